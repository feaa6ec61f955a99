import Base

@testable import DNSWire

extension Target {
    /// The data of an HTTPS record of a name that goes to an account, and what clients get of it.
    static let binding = Target(name: "binding") { data in
        guard data.count <= 40_000 else { return }
        let name = Name("www.example.com")!
        let question = name.wire + [0, 65, 0, 1]
        var body = question + [0xC0, 0x0C, 0, 65, 0, 1, 0, 0, 1, 0, UInt8(data.count >> 8), UInt8(data.count & 0xFF)]
        body += data
        let answer = Answer(
            head: AnswerHead(responseCode: .noError, authenticData: true, answerCount: 1), body: body, keep: 256,
            isCacheable: true)
        let addresses = [IPAddress.v4(192, 0, 2, 1), IPAddress(v6: 0x2001_0DB8 << 32, 1)]
        for hints in [[], addresses] {
            guard let bound = answer.bound(to: hints, for: 60) else { continue }
            let message = [UInt8](repeating: 0xEE, count: Header.length) + bound.body
            let stored = try? StoredAnswer.check(message.span, bound.head)
            check(stored == StoredAnswer.Question(nameLength: name.wire.count, type: .https), "cannot be stored")
            check(!bound.head.authenticData, "authentic")
            for record in bound.records() {
                let given = parameters(record.rdata)
                check(given.allSatisfy { $0.key != 4 || $0.value == hints[0].octets }, "another IPv4 address")
                check(given.allSatisfy { $0.key != 6 || $0.value == hints[1].octets }, "another IPv6 address")
                check(zip(given, given.dropFirst()).allSatisfy { $0.key < $1.key }, "out of order")
                let before = parameters(data).filter { ![0, 4, 6].contains($0.key) }
                let isAlias = data[0] == 0 && data[1] == 0
                check(
                    given.filter { ![0, 4, 6].contains($0.key) }.elementsEqual(isAlias ? [] : before, by: ==),
                    "something else has changed")
                check(record.ttl == (given.contains { [4, 6].contains($0.key) } ? 60 : record.ttl), "lives too long")
            }
        }
    }
}

/// By rules of its own: behind priority and target, keys with values.
private func parameters(_ data: [UInt8]) -> [(key: Int, value: [UInt8])] {
    var rest = data.dropFirst(2)
    while let length = rest.first, length > 0 { rest = rest.dropFirst(1 + Int(length)) }
    rest = rest.dropFirst()
    var all: [(Int, [UInt8])] = []
    while rest.count >= 4 {
        let head = Array(rest.prefix(4))
        let value = rest.dropFirst(4).prefix(Int(head[2]) << 8 | Int(head[3]))
        all.append((Int(head[0]) << 8 | Int(head[1]), Array(value)))
        rest = rest.dropFirst(4 + value.count)
    }
    return all
}
