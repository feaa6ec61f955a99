import Base
import TestSupport

/// A question as a server reads it, with code of its own.
struct DNSQuery {
    let id: UInt16
    let bytes: [UInt8]
    /// The name in lower case, without the last dot.
    var name: String
    let type: UInt16
    /// The end of the question.
    let end: Int
    let hasEDNS: Bool
    /// The manner of the question; of the daemon's own queries only the bits DO and CD.
    private(set) var manner = Script.Manner()
    /// The client's cookie.
    private(set) var cookie: [UInt8] = []

    /// Whether its answer suits a client with other bits: an answer with DO suits clients without, an answer without CD
    /// suits clients with CD. A server that knows no EDNS cannot be asked with the bit DO.
    func suits(_ client: DNSQuery) -> Bool {
        (!manner.isCheckingDisabled || client.manner.isCheckingDisabled)
            && (manner.isDNSSECOK || !client.manner.isDNSSECOK || !hasEDNS)
    }

    /// A query of a client.
    init?(_ name: String, _ type: UInt16, id: UInt16, _ manner: Script.Manner, _ chance: inout Chance) {
        let cookie = manner.hasCookie ? (0..<8).map { _ in UInt8(chance.below(256)) } : []
        var bytes: [UInt8] = []
        bytes.append(id, octets: 2)
        bytes += [1, manner.isCheckingDisabled ? 0x10 : 0, 0, 1, 0, 0, 0, 0, 0, 1]
        for label in name.split(separator: ".") { bytes += [UInt8(label.utf8.count)] + label.utf8 }
        bytes.append(0)
        bytes.append(type, octets: 2)
        bytes += [0, 1, 0, 0, 41, 4, 208, 0, 0, manner.isDNSSECOK ? 0x80 : 0, 0, 0]
        bytes += cookie.isEmpty ? [0] : [12, 0, 10, 0, 8] + cookie
        self.init(bytes)
        (self.manner, self.cookie) = (manner, cookie)
    }

    init?(_ bytes: [UInt8]) {
        guard bytes.count >= 17, bytes[2] & 0x80 == 0, bytes[4] == 0, bytes[5] == 1 else { return nil }
        var (at, labels): (Int, [String]) = (12, [])
        while at < bytes.count, bytes[at] > 0, bytes[at] < 64, at + Int(bytes[at]) < bytes.count {
            labels.append(String(decoding: bytes[at + 1...at + Int(bytes[at])], as: UTF8.self).lowercased())
            at += 1 + Int(bytes[at])
        }
        guard at + 4 < bytes.count, bytes[at] == 0 else { return nil }
        self.bytes = bytes
        id = UInt16(bytes[0]) << 8 | UInt16(bytes[1])
        name = labels.joined(separator: ".")
        type = UInt16(bytes[at + 1]) << 8 | UInt16(bytes[at + 2])
        end = at + 5
        hasEDNS = bytes[11] > 0
        // The flags of an OPT record stand behind the root's name, type, size and two octets of the code and version.
        manner.isDNSSECOK = hasEDNS && end + 7 < bytes.count && bytes[end + 7] & 0x80 != 0
        manner.isCheckingDisabled = bytes[3] & 0x10 != 0
    }
}

extension [UInt8] {
    mutating func append(_ number: some FixedWidthInteger, octets: Int) {
        for shift in (0..<octets).reversed() { append(UInt8(truncatingIfNeeded: number >> (8 * shift))) }
    }
}

enum DNSServer {
    /// The answer of a server of the group, as whole octets; nil: none.
    static func answer(_ query: DNSQuery, at host: Host, isStream: Bool) -> [UInt8]? {
        if host.mayDo(.fails) { return failure(query, code: kernel.network.chance.below(2) == 0 ? 2 : 5) }
        if host.mayDo(.lies) { return lie(query, host) }
        let truth = Truth(query.name, query.type)
        guard !truth.isSilent else { return nil }
        if !isStream, truth.isLong || host.mayDo(.truncates) { return failure(query, code: 0, isTruncated: true) }
        let whole = message(query, truth, host)
        return host.mayDo(.cuts) ? Array(whole.prefix(12 + kernel.network.chance.below(whole.count - 12))) : whole
    }

    private static func failure(_ query: DNSQuery, code: UInt8, isTruncated: Bool = false) -> [UInt8] {
        var bytes = Array(query.bytes[..<query.end])
        bytes.replaceSubrange(2..<12, with: [isTruncated ? 0x83 : 0x81, 0x80 | code, 0, 1, 0, 0, 0, 0, 0, 0])
        return bytes
    }

    private static func message(_ query: DNSQuery, _ truth: Truth, _ host: Host?, id: UInt16? = nil) -> [UInt8] {
        var bytes = failure(query, code: truth.exists ? 0 : 3)
        if let id { bytes.replaceSubrange(0..<2, with: [UInt8(id >> 8), UInt8(id & 0xFF)]) }
        let ttl = truth.ttl
        let all =
            Self.server(query) ?? Self.prefixSigns(query, host)
            ?? (0..<truth.count).map { _ in
                let serial = host.map { judge.says($0, query.name, query.type, ttl, to: query) } ?? Judge.forgedSerial
                return Judge.data(serial, query.type, padding: truth.isLong ? 200 : 0)
            }
        for data in all {
            bytes.append(UInt16(0xC00C), octets: 2)
            bytes.append(query.type, octets: 2)
            bytes.append(UInt16(1), octets: 2)
            bytes.append(ttl, octets: 4)
            bytes.append(data.count, octets: 2)
            bytes += data
        }
        bytes[7] = UInt8(all.count)
        if all.isEmpty {
            if let host { judge.denies(host, query.name, query.type, ttl, to: query) }
            bytes[9] = 1
            bytes += [0, 0, 6, 0, 1]
            bytes.append(ttl, octets: 4)
            let data: [UInt8] = [1, 97, 0, 1, 98, 0, 0, 0, 0, 1, 0, 0, 0, 60, 0, 0, 0, 60, 0, 0, 0, 60]
            bytes.append(data.count + 4, octets: 2)
            bytes += data
            bytes.append(ttl, octets: 4)
        }
        if query.hasEDNS {
            bytes[11] = 1
            bytes += [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]
        }
        return bytes
    }

    /// The address of a server that is given by its name; nil: the name is another.
    private static func server(_ query: DNSQuery) -> [[UInt8]]? {
        kernel.network.server(called: query.name).map { host in
            host.address.isIPv4 == (query.type == 1) ? [host.address.octets] : []
        }
    }

    /// The resolvers' answer for the name that shows the prefix of the translator (RFC 7050 §8); nil: another name.
    private static func prefixSigns(_ query: DNSQuery, _ host: Host?) -> [[UInt8]]? {
        guard query.name == Topology.prefixName, host?.group == "fallback" else { return nil }
        let signs = [IPAddress.v4(192, 0, 0, 170), .v4(192, 0, 0, 171)]
        if query.type == 1 { return signs.map(\.octets) }
        guard query.type == 28, let host else { return [] }
        judge.tells(kernel.network.prefix, by: host)
        return signs.compactMap { kernel.network.prefix.addressOfIPv4Only($0)?.octets }
    }

    /// An answer to another question, without a question, with another ID, or malformed.
    private static func lie(_ query: DNSQuery, _ host: Host) -> [UInt8] {
        var other = query.bytes
        other[13] = UInt8(ascii: "q")
        let question = DNSQuery(other) ?? query
        switch kernel.network.chance.below(4) {
        case 0: return message(question, Truth(query.name, query.type), nil)
        case 1: return message(query, Truth(query.name, query.type), nil, id: query.id ^ 0x55)
        case 2: return (0..<60).map { _ in UInt8(kernel.network.chance.below(256)) }
        default: return failure(query, code: 1)
        }
    }

    static func forgery(_ query: DNSQuery, id: UInt16, isSpelled: Bool) -> [UInt8] {
        var bytes = query.bytes
        if !isSpelled {
            for index in 12..<query.end - 4 where (0x41...0x5A).contains(bytes[index]) { bytes[index] |= 0x20 }
        }
        return message(DNSQuery(bytes) ?? query, Truth(query.name, query.type), nil, id: id)
    }
}

/// The facts about a name, the same at all servers; only the records differ: each shows its server and its time.
struct Truth {
    let exists: Bool
    let count: Int
    let ttl: UInt32
    let isLong: Bool
    let isAddress: Bool
    /// No resolver answers, since the name's own servers do not; HTTPDNS has no record of it.
    let isSilent: Bool

    /// The first letter says it: `x` does not exist, `v` has IPv4 alone, `l` has long answers, `g` is no business of HTTPDNS,
    /// of `z` nobody says anything, and of `a` all but whether there are IPv4 addresses.
    init(_ name: String, _ type: UInt16) {
        let sum = name.utf8.reduce(UInt32(17)) { $0 &* 31 &+ UInt32($1) }
        // So that names of one zone differ.
        let hash = (sum ^ sum >> 15) &* 2_654_435_769 >> 8
        ttl = [3, 10, 30, 60, 120, 300, 900, 3600][Int(hash >> 3) % 8]
        let first = name.first ?? "h"
        exists = first != "x"
        isAddress = type == 1 || type == 28
        isLong = first == "l" && type == 16
        isSilent = first == "z" || first == "a" && type == 1
        count =
            switch (first, type) {
            case ("x", _), ("z", _): 0
            case ("v", 28), ("a", 1), ("a", 28): 0
            case (_, 1), (_, 28): 1 + Int(hash) % 3
            case ("l", 16): 12
            case (_, 16): 1
            default: 0
            }
    }
}
