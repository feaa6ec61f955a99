internal import Base
internal import HTTP
internal import Streams

/// DNS over TLS (RFC 7858) with one client: its queries are answered in their order.
final class DNSOverTLSConversation: DemoConversation {
    private let resolver = DemoResolver()
    private let send: Send
    private var frames: ServerFrames!

    let takesMessages = true

    init(send: @escaping Send) {
        self.send = send
        frames = ServerFrames(owner: self)
    }

    func receive(_ bytes: Span<UInt8>) {
        var events: [ConversationEvent] = []
        try? frames.receive(bytes, into: &events)
        send(frames.takeOutput(), false)
    }
}

extension DNSOverTLSConversation: MessageOwner {
    func asked(_ message: Span<UInt8>) {
        let reply = resolver.answer(message.indices.map { message[$0] })
        frames.answer(reply?.span)
    }
}

/// DNS over HTTPS (RFC 8484) with one client, over HTTP/2.
final class DNSOverHTTPSConversation: DemoConversation {
    static let path = "/dns-query"
    private static let mediaType = "application/dns-message"

    private let resolver = DemoResolver()
    private let send: Send
    private let session: HTTP2Server

    /// Nil: there is no memory for it.
    init?(send: @escaping Send) {
        guard let session = try? HTTP2Server(bodyLimit: Int(UInt16.max)) else { return nil }
        (self.send, self.session) = (send, session)
    }

    func receive(_ bytes: Span<UInt8>) {
        session.receive(bytes)
        while let request = session.nextRequest() { answer(request) }
        flush()
    }

    private func answer(_ request: HTTP2Server.Request) {
        switch Self.query(in: request) {
        case .failure(let refusal): session.answer(request.stream, status: refusal.status, body: [])
        case .success(let query):
            if let reply = resolver.answer(query) {
                session.answer(request.stream, status: 200, contentType: Self.mediaType, body: reply)
            } else {
                session.answer(request.stream, status: 400, body: [])
            }
        }
    }

    private struct Refused: Error { let status: Int }

    /// The DNS message of a request (RFC 8484 §4.1).
    private static func query(in request: HTTP2Server.Request) -> Result<[UInt8], Refused> {
        let parts = request.path.split(
            separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.first?.elementsEqual(path.utf8) ?? false else { return .failure(Refused(status: 404)) }
        switch String(decoding: request.method, as: UTF8.self) {
        case "POST":
            guard request.contentType.elementsEqual(mediaType.utf8) else { return .failure(Refused(status: 415)) }
            return .success(request.body)
        case "GET":
            let parameter = Array("dns=".utf8)
            let text = parts.dropFirst().first?.split(separator: UInt8(ascii: "&")).first { $0.starts(with: parameter) }
            guard let message = text.flatMap({ Base64.url.decode($0.dropFirst(parameter.count)) }) else {
                return .failure(Refused(status: 400))
            }
            return .success(message)
        default: return .failure(Refused(status: 405))
        }
    }

    private func flush() {
        var output = session.takeOutput()
        while !output.isEmpty {
            send(output, false)
            output = session.takeOutput()
        }
        if session.isFinished { send([], true) }
    }
}
