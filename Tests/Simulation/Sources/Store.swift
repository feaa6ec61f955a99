import TestSupport

/// The content of a store (Valkey or Redis), for all daemons and connections.
final class Shelf {
    private var values: [[UInt8]: (value: [UInt8], until: UInt64)] = [:]

    subscript(key: [UInt8]) -> [UInt8]? { values[key].flatMap { $0.until > kernel.now ? $0.value : nil } }

    func put(_ value: [UInt8], at key: [UInt8], milliseconds: UInt64) {
        values[key] = (value, kernel.now + milliseconds * 1_000_000)
    }

    func remove(_ key: [UInt8]) { values[key] = nil }

    /// Any of its values, as they lie: what is at another key.
    var another: [UInt8]? {
        let keys = values.keys.sorted { $0.lexicographicallyPrecedes($1) }
        return keys.isEmpty ? nil : values[keys[kernel.network.chance.below(keys.count)]]?.value
    }
}

/// The server's side of RESP2, which knows four commands.
final class StoreSpeaker: Speaker {
    private weak var end: ServerEnd?
    private var buffer: [UInt8] = []

    /// The wire forms of names, which must not occur here.
    private static let secrets =
        ([Topology.publicZone, Topology.secondZone] + Topology.zones.values + Topology.namesFiles.joined()).map {
            $0.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        }

    init(_ end: ServerEnd) { self.end = end }

    func heard(_ bytes: [UInt8]) {
        buffer += bytes
        var offset = 0
        while let words = command(&offset) {
            buffer.removeFirst(offset)
            offset = 0
            carryOut(words)
        }
    }

    /// The command that begins at an offset, which moves behind it; nil while it is not whole.
    private func command(_ offset: inout Int) -> [[UInt8]]? {
        func number(after mark: Character) -> Int? {
            guard let end = buffer[offset...].firstIndex(of: 10) else { return nil }
            let line = String(decoding: buffer[offset..<end - 1], as: UTF8.self)
            offset = end + 1
            guard line.first == mark, let number = Int(line.dropFirst()) else {
                judge.fault("a store is sent \(line)")
                return nil
            }
            return number
        }
        guard let count = number(after: "*") else { return nil }
        var words: [[UInt8]] = []
        for _ in 0..<count {
            guard let length = number(after: "$"), buffer.count >= offset + length + 2 else { return nil }
            words.append(Array(buffer[offset..<offset + length]))
            offset += length + 2
        }
        return words
    }

    private func carryOut(_ words: [[UInt8]]) {
        guard let end, words.count > 1 else { return }
        let shelf = kernel.network.shelf
        let texts = words.map { String(decoding: $0, as: UTF8.self) }
        for word in words where Self.secrets.contains(where: { word.contains($0) }) {
            judge.fault("\(end.host.name) is told a name")
        }
        if texts[0] != "CLIENT", !texts[1].hasPrefix("h1:") { judge.fault("\(end.host.name) is asked for \(texts[1])") }
        var reply: String?
        switch texts[0] {
        case "CLIENT" where texts[1] == "SETNAME": reply = "+OK"
        case "GET": break
        case "DEL":
            shelf.remove(words[1])
            reply = ":1"
        case "SET":
            guard let unit = texts.dropLast().last, let time = UInt64(texts.last!), ["EX", "PX"].contains(unit) else {
                return judge.fault("\(end.host.name) is to keep something for ever")
            }
            if texts.contains("NX"), shelf[words[1]] != nil {
                reply = "$-1"
            } else {
                shelf.put(words[2], at: words[1], milliseconds: unit == "EX" ? time * 1000 : time)
                reply = "+OK"
            }
        default: return judge.fault("\(end.host.name) is sent \(texts[0])")
        }
        let value = reply == nil ? shelf[words[1]] : nil
        let told = reply ?? (value == nil ? "nothing" : "a value")
        kernel.network.tell("store: \(texts[0]) \(texts[1].prefix(12)), \(told)")
        say(reply.map { Array("\($0)\r\n".utf8) } ?? Self.encode(value), isRead: texts[0] == "GET", end)
    }

    private static func encode(_ value: [UInt8]?) -> [UInt8] {
        value.map { Array("$\($0.count)\r\n".utf8) + $0 + [13, 10] } ?? Array("$-1\r\n".utf8)
    }

    private func say(_ right: [UInt8], isRead: Bool, _ end: ServerEnd) {
        let (host, chance) = (end.host, kernel.network.chance.next())
        var reply = right
        if isRead, host.mayDo(.lies) {
            let random = (0..<chance % 300).map { _ in UInt8(kernel.network.chance.below(256)) }
            reply =
                switch chance % 4 {
                case 0: Self.encode(kernel.network.shelf.another)
                case 1: Self.encode(random)
                case 2: Array("-WRONGTYPE so\r\n".utf8)
                default: random
                }
        }
        if host.mayDo(.fails) { reply = Array("-LOADING so\r\n".utf8) }
        if !isRead, host.mayDo(.broken) { reply = Array("-READONLY so\r\n".utf8) }
        if !isRead, host.mayDo(.tooOften) { reply = Array("-OOM so\r\n".utf8) }
        let isCut = host.mayDo(.cuts)
        if isCut { reply = Array(reply.prefix(Int(chance % UInt64(reply.count)))) }
        for _ in 0..<(host.mayDo(.twice) ? 2 : 1) { end.say(reply) }
        if isCut || host.mayDo(.closes) { end.close(isCut: chance % 2 == 0) }
    }
}

extension [UInt8] {
    fileprivate func contains(_ part: [UInt8]) -> Bool {
        count >= part.count && indices.dropLast(part.count - 1).contains { self[$0...].starts(with: part) }
    }
}
