import Base
import Cryptography
import DNSWire
import DemoService
import Foundation
import HTTP
import Streams
import Testing

/// The encrypted resolver over real sockets, asked by the daemon's own client side.
@Suite struct DemoResolverTests {
    /// Who asks, by what conversation.
    enum Asked: String, CaseIterable {
        case tls = "dot"
        case post = "h2"
        case get = "h2 with GET"
    }

    @Test(arguments: Asked.allCases) func itsOwnNames(by asked: Asked) async throws {
        let service = try DemoService()
        let client = try EncryptedClient(service, asked)
        for (type, expected) in [(RecordType.a, "192.0.2.9"), (.aaaa, "2001:db8::9")] {
            #expect(try client.ask("example.net", type)?.addresses == addresses(expected))
        }
        let other = try #require(try client.ask("example.net", .mx))
        #expect(other.answer.head == AnswerHead(responseCode: .noError, authorityCount: 1))
        // HTTPDNS knows it.
        let both = try client.ask(["example.com", "example.net"])
        #expect(both.map(\.responseCode) == [.refused, .noError])
        await stopped(service)
    }

    @Test func whatIsNoQueryOverHTTPS() async throws {
        let service = try DemoService()
        let client = try EncryptedClient(service, .post)
        let dns = [(name: "content-type", value: "application/dns-message")]
        for (path, fields, body, status) in [
            ("/other", dns, [UInt8](), 404), ("/dns-query", [], [0], 415), ("/dns-query", dns, [0], 400),
        ] {
            var request = try #require(HTTP2Request(.post, authority: "h", path: path, fields: fields))
            request.body = body
            #expect(try client.status(of: request) == status)
        }
        for (path, status) in [
            ("/dns-query", 400), ("/dns-query?dns=!", 400), ("/dns-query?dns=AA==", 400),
            ("/dns-query?x=1&dns=AA", 400),
        ] {
            let request = try #require(HTTP2Request(.get, authority: "h", path: path))
            #expect(try client.status(of: request) == status)
        }
        #expect(try client.ask("example.net")?.addresses == addresses("192.0.2.9"))
        await stopped(service)
    }
}

extension Response.Reply {
    fileprivate var addresses: [IPAddress] {
        answer.records().filter { $0.section == .answer }.compactMap { IPAddress(bytes: $0.rdata.span) }
    }
}

/// One connection to the demo's resolver.
private final class EncryptedClient {
    private let socket: BlockingSocket
    private let tls: TLSSession
    private var conversation: any ClientConversation
    /// What goes out over HTTPS for a message.
    private var makeRequest: ([UInt8]) -> HTTP2Request? = { message in
        let fields = [(name: "content-type", value: "application/dns-message")]
        var request = HTTP2Request(.post, authority: "h", path: DemoService.dnsOverHTTPSPath, fields: fields)
        request?.body = message
        return request
    }

    init(_ service: DemoService, _ asked: DemoResolverTests.Asked) throws {
        let policy = TLSPolicy(anchors: service.certificatePEM)
        let endpoint = asked == .tls ? service.dnsOverTLS : service.dnsOverHTTPS
        socket = try BlockingSocket.connected(to: endpoint)
        tls = try TLSClientContext(policy).session(
            to: endpoint, TLSTarget(protocols: [asked == .tls ? "dot" : "h2"]),
            at: UInt64(Date().timeIntervalSince1970))
        var id = UInt16.random(in: 0...UInt16.max)
        conversation = DNSFrames {
            id &+= 1
            return id
        }
        guard asked != .tls else { return }
        conversation = HTTP2(bodyLimit: Int(UInt16.max)) { [unowned self] in makeRequest($0) }
        guard asked == .get else { return }
        makeRequest = { message in
            let path = "\(DemoService.dnsOverHTTPSPath)?dns=\(Base64.url.encode(message))"
            return HTTP2Request(.get, authority: "h", path: path)
        }
    }

    func ask(_ name: String, _ type: RecordType = .a) throws -> Response.Reply? { try ask([name], type).first }

    /// The answers for all of the names, in their order.
    func ask(_ texts: [String], _ type: RecordType = .a) throws -> [Response.Reply] {
        let names = texts.map { Name($0)! }
        for (index, name) in names.enumerated() {
            conversation.open(
                Query.message(id: 0, name, type: type, dnssecOK: false, checkingDisabled: false, paddedTo: 128),
                as: UInt64(index))
        }
        try flush()
        var replies: [UInt64: Response.Reply] = [:]
        while replies.count < names.count {
            for event in try events() {
                guard case .answered(let id, let answer) = event else { throw SocketFailure(call: "\(event)") }
                let message =
                    switch answer {
                    case .message(let message): message
                    case .http(let response): response.body
                    case .store: throw SocketFailure(call: "\(event)")
                    }
                let name = names[Int(id)]
                replies[id] = try Response.read(message.span, id: 0, to: name, type: type, defaultNegativeTTL: 0)
            }
        }
        return names.indices.map { replies[UInt64($0)]! }
    }

    func status(of request: HTTP2Request) throws -> Int? {
        let usual = makeRequest
        defer { makeRequest = usual }
        makeRequest = { _ in request }
        conversation.open([], as: 0)
        try flush()
        while true {
            for case .answered(_, .http(let response)) in try events() { return response.status }
        }
    }

    private func events() throws -> [ConversationEvent] {
        let bytes = try socket.receive()
        guard !bytes.isEmpty else { throw SocketFailure(call: "closed") }
        tls.receive(bytes.span)
        var plaintext: [UInt8] = []
        tls.takePlaintext(into: &plaintext)
        var events: [ConversationEvent] = []
        try conversation.receive(plaintext.span, into: &events)
        try flush()
        return events
    }

    private func flush() throws {
        tls.send(conversation.takeOutput().span)
        var ciphertext: [UInt8] = []
        tls.takeCiphertext(into: &ciphertext)
        if !ciphertext.isEmpty { try socket.send(ciphertext) }
    }
}
