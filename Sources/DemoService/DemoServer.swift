internal import Base
internal import Cryptography
internal import Streams
internal import Transport

/// Accepts connections on the service's ports. Confined to its loop.
final class DemoServer {
    /// The most connections at once; further ones are closed. A daemon needs one, a test a few.
    static let connectionLimit = 64

    private let loop: EventLoop
    private let engine: ServiceEngine
    private let context: TLSServerContext
    /// Memory into which all clients' octets are read.
    private let scratch = Scratch(16 * 1024)
    private var connections: [ObjectIdentifier: DemoConnection] = [:]

    init(loop: EventLoop, engine: ServiceEngine, context: TLSServerContext) {
        self.loop = loop
        self.engine = engine
        self.context = context
    }

    /// Listens on a free port. The loop keeps the listener, and so the server.
    func listen(on address: IPAddress, isSecure: Bool) throws(SystemError) -> Endpoint {
        let listener = try StreamListener.listen(Endpoint(address, port: 0))
        try listener.start(
            in: loop,
            // A connection that cannot be accepted is closed, which its client notices.
            failed: { _ in },
            accepted: { [self] socket, client in accept(socket, from: client.address, isSecure: isSecure) })
        return listener.local
    }

    private func accept(_ socket: consuming StreamSocket, from client: IPAddress, isSecure: Bool) {
        guard connections.count < Self.connectionLimit else { return }
        var tls: TLSSession?
        if isSecure {
            tls = try? context.session()
            guard tls != nil else { return }
        }
        let connection = DemoConnection { [weak self] in self?.connections[ObjectIdentifier($0)] = nil }
        let conversation = engine.conversation(isSecure: isSecure, client: client) { [weak connection] in
            connection?.send($0, isLast: $1)
        }
        guard connection.start(socket, tls, conversation, scratch: scratch, loop: loop) else { return }
        connections[ObjectIdentifier(connection)] = connection
    }
}

/// One connection: moves octets between its stream and its conversation.
final class DemoConnection: StreamOwner {
    /// The most bytes that wait for a client to read; a client that leaves more unread is disconnected.
    static let outputLimit = 256 * 1024

    private var stream: Stream?
    private var conversation: ServiceConversation?
    private let closed: (DemoConnection) -> Void

    init(closed: @escaping (DemoConnection) -> Void) { self.closed = closed }

    /// Starts serving; false if the loop cannot watch the socket, which is then closed.
    func start(
        _ socket: consuming StreamSocket, _ tls: TLSSession?, _ conversation: ServiceConversation, scratch: Scratch,
        loop: EventLoop
    ) -> Bool {
        stream = try? Stream(
            socket, isConnected: true, tls: tls, limit: Self.outputLimit, scratch: scratch, loop: loop, owner: self)
        self.conversation = conversation
        return stream != nil
    }

    func send(_ response: [UInt8], isLast: Bool) {
        stream?.send(response.span)
        if isLast { stream?.finish() }
    }

    func received(_ bytes: Span<UInt8>, on stream: Stream) { conversation?.receive(bytes) }

    func ended(_ stream: Stream, isCut: Bool) { close() }

    /// After a TLS failure, closing waits until the alert was sent, which tells the client the reason.
    func failed(_ stream: Stream, _ failure: StreamFailure) {
        if case .tls = failure { stream.finish() } else { close() }
    }

    private func close() {
        guard let stream else { return }
        self.stream = nil
        stream.close()
        conversation = nil
        closed(self)
    }
}
