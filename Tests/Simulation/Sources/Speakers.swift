import Base
import DNSWire
import Glibc
import HTTP
import HTTPDNS
import TestSupport

@testable import DemoService

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
            guard !end.host.has(.hangsUp) else { return end.close() }
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
        end.hasAnswered = true
        if host.mayDo(.closes) { end.close(isCut: kernel.network.chance.below(2) == 0) }
    }
}

/// The service of an account, over HTTP/1.1.
final class AccountSpeaker: Speaker {
    private weak var end: ServerEnd?
    private var conversation: ServiceConversation?
    /// The time of the last octets without a request.
    private var saidTooMuch: UInt64?

    init(_ end: ServerEnd, isSecure: Bool) {
        self.end = end
        let host = end.host
        let time = { kernel.trueTime }
        let result = { Self.result($0, $1, host) }
        let signed = try? SignedRequests(Topology.account, unixSeconds: time)
        let engine = try? ServiceEngine(
            Topology.account, unixSeconds: time,
            other: { target throws(HTTPStatus) in try signed?.answer(target, result) }, result: result)
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
            if let server = kernel.network.server(called: text) {
                return server.address.isIPv4 == (type == 1) ? .addresses([server.address], ttl: 60) : .noRecord
            }
            let truth = Truth(text, type)
            guard truth.count > 0, text.first != "g", !host.has(.lies) || kernel.network.chance.below(2) == 0 else {
                // The absence of one family is known for as long as the addresses of the other.
                let other = Truth(text, type == 1 ? 28 : 1)
                judge.denies(host, text, type, max(Plan.longestNegativeTTL, other.count > 0 ? other.ttl : 0))
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
        guard !host.has(.hangsUp) else { return end.close() }
        var response = Self.dated(response)
        if host.mayDo(.fails) { response = Self.status(401) }
        if host.mayDo(.tooOften) { response = Self.status(429, "Retry-After: \(kernel.network.chance.below(30))\r\n") }
        if host.mayDo(.broken) { response = Self.status(host.brokenStatus) }
        let isCut = host.mayDo(.cuts)
        if isCut { response = Array(response.dropLast(1 + kernel.network.chance.below(response.count))) }
        // The rest may come with the answer, or later, when another answer is expected.
        let isStuttering = host.isStuttering
        host.isStuttering = false
        let isTwice = isStuttering || host.mayDo(.twice)
        let isTogether = isStuttering || kernel.network.chance.below(2) == 0
        let closes = isLast || isCut || host.mayDo(.closes)
        kernel.after(kernel.network.milliseconds(0...20)) { [weak end, weak self] in
            end?.say(isTwice && isTogether ? response + response : response)
            end?.hasAnswered = true
            if isTwice, isTogether { self?.saidTooMuch = kernel.now }
            if closes { end?.close(isCut: kernel.network.chance.below(2) == 0) }
        }
        guard isTwice, !isTogether else { return }
        kernel.after(kernel.network.milliseconds(20...3000)) { [weak end, weak self] in
            end?.say(response)
            self?.saidTooMuch = kernel.now
        }
    }

    /// With the field `Date`, which services have and the demo's lacks.
    private static func dated(_ response: [UInt8]) -> [UInt8] {
        guard let end = response.firstIndex(of: 10) else { return response }
        return response[...end] + Array("Date: \(HTTPDate.text(kernel.trueTime))\r\n".utf8) + response[(end + 1)...]
    }

    private static func status(_ code: Int, _ more: String = "") -> [UInt8] {
        Array("HTTP/1.1 \(code) So\r\n\(more)Content-Length: 0\r\n\r\n".utf8)
    }
}

enum HTTPDate {
    /// As in `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7).
    static func text(_ unixSeconds: UInt64) -> String {
        var time = time_t(unixSeconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        var text = [CChar](repeating: 0, count: 40)
        let length = strftime(&text, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
        return String(decoding: text[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
