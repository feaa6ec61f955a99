import Base
import DNSWire
import HTTPDNS

@testable import DemoService

/// A question as a server reads it, by rules of its own.
struct DNSQuery {
    let id: UInt16
    let bytes: [UInt8]
    /// In lower case, without the last dot.
    let name: String
    let type: UInt16
    /// Where the question ends.
    let end: Int
    let hasEDNS: Bool

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
    }
}

extension [UInt8] {
    mutating func append(_ number: some FixedWidthInteger, octets: Int) {
        for shift in (0..<octets).reversed() { append(UInt8(truncatingIfNeeded: number >> (8 * shift))) }
    }
}

enum DNSServer {
    /// What a server of the group says, as whole octets; nil: nothing.
    static func answer(_ query: DNSQuery, at host: Host, isStream: Bool) -> [UInt8]? {
        if host.mayDo(.fails) { return failure(query, code: kernel.network.chance.below(2) == 0 ? 2 : 5) }
        if host.mayDo(.lies) { return lie(query, host) }
        let truth = Truth(query.name, query.type)
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
        for _ in 0..<truth.count {
            let serial = host.map { judge.says($0, query.name, query.type, ttl) } ?? Judge.forgedSerial
            bytes.append(UInt16(0xC00C), octets: 2)
            bytes.append(query.type, octets: 2)
            bytes.append(UInt16(1), octets: 2)
            bytes.append(ttl, octets: 4)
            let data = Judge.data(serial, query.type, padding: truth.isLong ? 200 : 0)
            bytes.append(data.count, octets: 2)
            bytes += data
        }
        bytes[7] = UInt8(truth.count)
        if truth.count == 0 {
            if let host { judge.denies(host, query.name, query.type, exists: truth.exists, ttl) }
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

    /// Of another question, of nobody's question, with another id or of no form at all.
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
        if !isSpelled { for index in 12..<query.end where bytes[index] & 0xDF != bytes[index] { bytes[index] |= 0x20 } }
        if !isSpelled {
            for index in 13..<query.end - 5 where (0x41...0x5A).contains(bytes[index]) { bytes[index] |= 0x20 }
        }
        return message(DNSQuery(bytes) ?? query, Truth(query.name, query.type), nil, id: id)
    }
}

/// What there is of a name, the same at all servers; only the records differ, each of which says who said it and when.
struct Truth {
    let exists: Bool
    let count: Int
    let ttl: UInt32
    let isLong: Bool

    /// The first letter says it: `x` does not exist, `v` has IPv4 alone, `l` has long answers, `g` is no business of HTTPDNS.
    init(_ name: String, _ type: UInt16) {
        let hash = name.utf8.reduce(UInt32(17)) { $0 &* 31 &+ UInt32($1) }
        ttl = [3, 10, 30, 60, 120, 300, 900, 3600][Int(hash >> 3) % 8]
        let first = name.first ?? "h"
        exists = first != "x"
        isLong = first == "l" && type == 16
        count =
            switch (first, type) {
            case ("x", _): 0
            case ("v", 28): 0
            case (_, 1), (_, 28): 1 + Int(hash) % 3
            case ("l", 16): 12
            case (_, 16): 1
            default: 0
            }
    }
}

/// DNS over TCP or TLS.
final class FramesSpeaker: Speaker {
    private weak var end: ServerEnd?
    private var buffer: [UInt8] = []

    init(_ end: ServerEnd) { self.end = end }

    func heard(_ bytes: [UInt8]) {
        buffer += bytes
        while buffer.count >= 2, case let length = Int(buffer[0]) << 8 | Int(buffer[1]), buffer.count >= 2 + length {
            let query = DNSQuery(Array(buffer[2..<2 + length]))
            buffer.removeFirst(2 + length)
            guard let query, let end else { return judge.fault("a stream is sent what is no query") }
            judge.asked(end.host, query.name, query.type)
            // In any order.
            kernel.after(kernel.network.milliseconds(0...10)) { [self] in answer(query, end.host) }
        }
    }

    private func answer(_ query: DNSQuery, _ host: Host) {
        guard let end, let answer = DNSServer.answer(query, at: host, isStream: true) else { return }
        var frame: [UInt8] = []
        frame.append(answer.count, octets: 2)
        frame += answer
        for _ in 0..<(host.mayDo(.twice) ? 2 : 1) { end.say(frame) }
        if host.mayDo(.closes) { end.close(isCut: kernel.network.chance.below(2) == 0) }
    }
}

/// The service of an account, over HTTP/1.1.
final class AccountSpeaker: Speaker {
    private weak var end: ServerEnd?
    private var conversation: ServiceConversation?
    /// When it has said something that was not asked for.
    private var saidTooMuch: UInt64?

    init(_ end: ServerEnd, isSecure: Bool) {
        self.end = end
        let host = end.host
        let engine = try? ServiceEngine(Topology.account, result: { Self.result($0, $1, host) })
        conversation = engine?.conversation(isSecure: isSecure, client: .v4(192, 0, 2, 9)) { [weak self] in
            self?.respond($0, isLast: $1)
        }
    }

    func heard(_ bytes: [UInt8]) {
        if let saidTooMuch, let host = end?.host, host.isPrompt, saidTooMuch + 500_000_000 < kernel.now {
            judge.fault("\(host.name) is asked on a connection on which it has said what nobody asked for")
        }
        conversation?.receive(bytes.span)
    }

    private static func result(_ name: Name, _ family: Families, _ host: Host) -> NameAddresses {
        let text = name.description.lowercased()
        judge.billed(host, text)
        func addresses(_ type: UInt16, isAsked: Bool) -> FamilyAddresses {
            guard isAsked else { return .notAsked }
            judge.asked(host, text, type)
            let truth = Truth(text, type)
            guard truth.count > 0, text.first != "g", !host.has(.lies) || kernel.network.chance.below(2) == 0 else {
                judge.denies(host, text, type, exists: true, 3600)
                return .noRecord
            }
            return .addresses(
                (0..<truth.count).map { _ in Judge.address(judge.says(host, text, type, truth.ttl), type) },
                ttl: truth.ttl)
        }
        return NameAddresses(
            name: name, ipv4: addresses(1, isAsked: family.contains(.ipv4)),
            ipv6: addresses(28, isAsked: family.contains(.ipv6)))
    }

    private func respond(_ response: [UInt8], isLast: Bool) {
        guard let end else { return }
        let host = end.host
        var response = response
        if host.mayDo(.fails) { response = Self.status(401) }
        if host.mayDo(.tooOften) { response = Self.status(429, "Retry-After: \(kernel.network.chance.below(30))\r\n") }
        if host.mayDo(.broken) { response = Self.status(host.brokenStatus) }
        let isCut = host.mayDo(.cuts)
        if isCut { response = Array(response.dropLast(1 + kernel.network.chance.below(response.count))) }
        // What is left over may come with the answer, or later, when another is waited for.
        let isStuttering = host.isStuttering
        host.isStuttering = false
        let isTwice = isStuttering || host.mayDo(.twice)
        let isTogether = isStuttering || kernel.network.chance.below(2) == 0
        let closes = isLast || isCut || host.mayDo(.closes)
        kernel.after(kernel.network.milliseconds(0...20)) { [weak end, weak self] in
            end?.say(isTwice && isTogether ? response + response : response)
            if isTwice, isTogether { self?.saidTooMuch = kernel.now }
            if closes { end?.close(isCut: kernel.network.chance.below(2) == 0) }
        }
        guard isTwice, !isTogether else { return }
        kernel.after(kernel.network.milliseconds(20...3000)) { [weak end, weak self] in
            end?.say(response)
            self?.saidTooMuch = kernel.now
        }
    }

    private static func status(_ code: Int, _ more: String = "") -> [UInt8] {
        Array("HTTP/1.1 \(code) So\r\n\(more)Content-Length: 0\r\n\r\n".utf8)
    }
}

/// DNS over HTTPS, on the frames of HTTP/2 (RFC 9113) that are needed: questions stand in bodies, so no field is read.
final class HTTP2Speaker: Speaker {
    private weak var end: ServerEnd?
    private var buffer: [UInt8] = []
    private var hasBegun = false
    private var bodies: [UInt32: [UInt8]] = [:]
    private var isGone = false
    private var hasAnswered = false

    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    init(_ end: ServerEnd) { self.end = end }

    func heard(_ bytes: [UInt8]) {
        buffer += bytes
        if !hasBegun {
            guard buffer.count >= Self.preface.count else { return }
            guard buffer.starts(with: Self.preface) else { return judge.fault("no preface of HTTP/2") }
            buffer.removeFirst(Self.preface.count)
            hasBegun = true
            say(4, 0, 0, [])
        }
        while buffer.count >= 9 {
            let length = Int(buffer[0]) << 16 | Int(buffer[1]) << 8 | Int(buffer[2])
            guard buffer.count >= 9 + length else { return }
            let frame = Array(buffer[..<(9 + length)])
            buffer.removeFirst(9 + length)
            take(frame[3], frame[4], frame[5..<9].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }, Array(frame[9...]))
        }
    }

    private func say(_ type: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8]) {
        end?.say(Self.frame(type, flags, stream, payload))
    }

    private static func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8]) -> [UInt8] {
        var frame: [UInt8] = []
        frame.append(payload.count, octets: 3)
        frame += [type, flags]
        frame.append(stream, octets: 4)
        return frame + payload
    }

    private func take(_ type: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8]) {
        switch type {
        case 0:
            bodies[stream, default: []] += payload
            if !payload.isEmpty {
                var window: [UInt8] = []
                window.append(payload.count, octets: 4)
                say(8, 0, 0, window)
            }
            if flags & 1 != 0, let body = bodies.removeValue(forKey: stream) { asked(body, stream) }
        case 3: bodies[stream] = nil
        case 4 where flags & 1 == 0: say(4, 1, 0, [])
        case 6 where flags & 1 == 0: say(6, 1, 0, payload)
        default: break
        }
    }

    private func asked(_ body: [UInt8], _ stream: UInt32) {
        guard let host = end?.host, !isGone else { return }
        guard let query = DNSQuery(body) else { return judge.fault("\(host.name) is sent a body that is no query") }
        if query.id != 0 { judge.fault("\(host.name) is sent an id over HTTPS") }
        judge.asked(host, query.name, query.type)
        // A server that leaves the first request on a fresh connection is taken for one that leaves them all.
        let isLeaving = host.isGoingAway && hasAnswered
        if isLeaving || host.mayDo(.goesAway) {
            isGone = true
            if isLeaving {
                host.isGoingAway = false
                judge.leaves(host, query.name, query.type)
            }
            var last: [UInt8] = []
            last.append(
                stream < 3 ? 0 : stream - 2 * UInt32(1 + kernel.network.chance.below(Int(stream) / 2)), octets: 4)
            say(7, 0, 0, last + [0, 0, 0, 0])
            kernel.after(kernel.network.milliseconds(0...200)) { [weak end] in end?.close() }
            return
        }
        if host.mayDo(.resetsStreams) {
            return say(3, 0, stream, [0, 0, 0, [7, 2, 8][kernel.network.chance.below(3)]])
        }
        kernel.after(kernel.network.milliseconds(0...20)) { [self] in answer(query, stream, host) }
    }

    private func answer(_ query: DNSQuery, _ stream: UInt32, _ host: Host) {
        guard let end else { return }
        if host.mayDo(.tooOften) { return say(1, 5, stream, [0x08, 3] + "429".utf8) }
        if host.has(.broken) { return say(1, 5, stream, [0x08, 3] + "\(host.brokenStatus)".utf8) }
        guard let answer = DNSServer.answer(query, at: host, isStream: true) else { return }
        let media = Array("application/dns-message".utf8)
        hasAnswered = true
        let head = Self.frame(1, 4, stream, [0x88, 0x0F, 0x10, UInt8(media.count)] + media)
        let frames = head + Self.frame(0, 1, stream, answer)
        for _ in 0..<(host.mayDo(.twice) ? 2 : 1) { end.say(frames) }
        if host.mayDo(.closes) { end.close(isCut: kernel.network.chance.below(2) == 0) }
    }
}
