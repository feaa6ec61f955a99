internal import Base
internal import Streams

/// DNS over TLS (RFC 7858) or HTTPS (RFC 8484) with one client, whose queries are answered in order.
final class DNSConversation: DemoConversation {
    private let send: Send
    private var conversation: (any ServerConversation)!

    let takesMessages = true

    /// - Parameter applicationProtocol: The protocol chosen by ALPN.
    init(_ applicationProtocol: String, send: @escaping Send) {
        self.send = send
        conversation =
            applicationProtocol == ApplicationProtocol.dnsOverTLS ? ServerFrames(owner: self) : ServerHTTP(owner: self)
        conversation.opened(applicationProtocol)
    }

    func receive(_ bytes: Span<UInt8>) {
        var events: [ConversationEvent] = []
        try? conversation.receive(bytes, into: &events)
        while case let output = conversation.takeOutput(), !output.isEmpty { send(output, false) }
        if conversation.isFinished { send([], true) }
    }
}

extension DNSConversation: MessageOwner {
    func asked(_ message: Span<UInt8>, as id: RequestID) {
        let reply = DemoResolver.answer(message.indices.map { message[$0] })
        conversation.answer(reply?.span, to: id)
    }
}
