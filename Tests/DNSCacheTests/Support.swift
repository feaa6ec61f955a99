import Base
import DNSWire
import Testing

@testable import DNSCache

/// An answer with one address, distinguishable by it.
func address(_ number: UInt32, of name: Name, ttl: UInt32 = 60) -> Answer {
    .addresses(name, type: .a, [IPAddress(v4: number)], ttl: ttl)
}

/// A TXT answer whose body takes exactly `bodyLength` octets.
func filler(_ name: Name, bodyLength: Int, octet: UInt8 = 0, ttl: UInt32 = 60) -> Answer {
    var answer = Answer.failure(name, type: .txt, .noError, extendedError: nil)
    let data = bodyLength - answer.body.count - 12
    precondition(data >= 0)
    answer.body += [0xC0, 0x0C, 0, 16, 0, 1]
    for shift: UInt32 in [24, 16, 8, 0] { answer.body.append(UInt8(truncatingIfNeeded: ttl >> shift)) }
    answer.body += [UInt8(data >> 8), UInt8(data & 0xFF)] + [UInt8](repeating: octet, count: data)
    answer.head.answerCount = 1
    answer.keep = ttl
    answer.isCacheable = true
    return answer
}

/// What a client sees when it asks the cache: the reply read back, nil for a miss.
struct Seen: Equatable {
    var octets: [UInt8]
    var isDueForRefresh: Bool
    /// The letters of the question as they came back.
    var question: [UInt8]
    var records: [String]
    var answer: Answer

    var ttls: [UInt32] { answer.records().map(\.ttl) }
}

/// Names that differ in their numbers.
func hosts(_ count: Int) -> [Name] { (0..<count).map { Name("host-\($0).example.com")! } }

extension DNSCache {
    /// Stores an address of each name, which is its number among them.
    func store(addressesOf names: [Name], at now: UInt32) {
        for (number, name) in names.enumerated() {
            store(address(UInt32(number), of: name), to: name, type: .a, for: everyone, at: now)
        }
    }

    /// Makes it as it was in the beginning.
    func removeAll() {
        for index in 0..<Self.segmentCount { unsafe segments[index].withLock { _ = $0.removeAll(in: .all) } }
    }

    /// - Parameter spelling: the name as the client spells it.
    func ask(
        _ spelling: String, _ type: RecordType = .a, dnssecOK: Bool = false, checkingDisabled: Bool = false,
        limit: Int = 1232, at now: UInt32
    ) -> Seen? {
        let name = Name(spelling)!
        var query = Query.message(
            id: 4711, name, type: type, dnssecOK: dnssecOK, checkingDisabled: checkingDisabled)
        var at = 12
        for label in spelling.split(separator: ".") {
            query.replaceSubrange(at + 1...at + label.utf8.count, with: label.utf8)
            at += 1 + label.utf8.count
        }
        guard case .question(let question) = Question.read(query.span) else { return nil }
        var reply = [UInt8](repeating: 0xEE, count: limit)
        var span = reply.mutableSpan
        let lookup = answer(
            question, key(question, query: query.span), query: query.span, at: now, limit: limit, into: &span)
        let length: Int
        let due: Bool
        switch lookup {
        case .miss: return nil
        case .hit(let written): (length, due) = (written, false)
        case .hitDueForRefresh(let written): (length, due) = (written, true)
        }
        reply.removeLast(reply.count - length)
        guard
            let read = try? Response.read(reply.span, id: 4711, to: name, type: type, defaultNegativeTTL: 30)
        else {
            Issue.record("the reply to \(spelling) cannot be read")
            return nil
        }
        return Seen(
            octets: reply, isDueForRefresh: due, question: Array(reply[12..<at + 1]),
            records: read.answer.records().map(\.data), answer: read.answer)
    }
}

let everyone = Audience.everyone
let plain = Audience.those(dnssecOK: false, checkingDisabled: false)
let signed = Audience.those(dnssecOK: true, checkingDisabled: false)
let unchecked = Audience.those(dnssecOK: false, checkingDisabled: true)
let signedUnchecked = Audience.those(dnssecOK: true, checkingDisabled: true)
let allClients = [plain, signed, unchecked, signedUnchecked]
