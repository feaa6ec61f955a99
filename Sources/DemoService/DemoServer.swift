internal import Base
internal import Cryptography
internal import Streams
internal import Transport

/// The server side of one client's connection: bytes in, and bytes out through the function given at its creation. A
/// conversation is confined to its loop.
public protocol DemoConversation: AnyObject {
    /// Takes bytes for the client; after the last bytes the connection must be closed.
    typealias Send = (_ bytes: [UInt8], _ isLast: Bool) -> Void

    /// Takes bytes from the client, in any fragments.
    func receive(_ bytes: Span<UInt8>)
}

/// Accepts connections on the demo's ports. The server is confined to its loop.
final class DemoServer {
    /// The most concurrent connections. Further connections are closed. A daemon needs one on each port, a test a few.
    static let connectionLimit = 64

    /// Begins to serve a connection; nil if memory is not available.
    typealias Converse = (_ client: IPAddress, _ send: @escaping DemoConversation.Send) -> (any DemoConversation)?

    private let loop: EventLoop
    /// The read buffer that all connections share.
    private let scratch = Scratch(16 * 1024)
    private var connections: [ObjectIdentifier: DemoConnection] = [:]
    /// While true, connections are closed at once.
    private let isBroken: () -> Bool

    init(loop: EventLoop, isBroken: @escaping () -> Bool = { false }) { (self.loop, self.isBroken) = (loop, isBroken) }

    /// Listens on a port, or on a free port if that is 0 or in use. The loop retains the listener, and so the server.
    /// - Parameter context: The context for TLS; nil for connections without TLS.
    func listen(
        on address: IPAddress, _ port: UInt16, _ context: TLSServerContext?, _ converse: @escaping Converse
    ) throws(SystemError) -> Endpoint {
        var listener: StreamListener
        do throws(SystemError) {
            listener = try StreamListener.listen(Endpoint(address, port: port))
        } catch {
            listener = try StreamListener.listen(Endpoint(address, port: 0))
        }
        try listener.start(
            in: loop,
            // A connection that cannot be accepted is closed, which the client notices.
            failed: { _ in },
            accepted: { [self] socket, client in accept(socket, from: client.address, context, converse) })
        return listener.local
    }

    private func accept(
        _ socket: consuming StreamSocket, from client: IPAddress, _ context: TLSServerContext?, _ converse: Converse
    ) {
        guard connections.count < Self.connectionLimit, !isBroken() else { return }
        let tls = try? context?.session()
        guard (tls == nil) == (context == nil) else { return }
        let connection = DemoConnection { [weak self] in self?.connections[ObjectIdentifier($0)] = nil }
        connection.conversation = converse(client) { [weak connection] in connection?.send($0, isLast: $1) }
        let stream = try? Stream(
            socket, isConnected: true, tls: tls, limit: DemoConnection.outputLimit, scratch: scratch, loop: loop,
            owner: connection.link)
        guard let stream, connection.conversation != nil else { return }
        connections[ObjectIdentifier(connection)] = connection
        connection.link.begin(stream)
    }
}

/// One connection, which passes its conversation's output to its link.
final class DemoConnection {
    /// The most bytes that wait to be read by a client. A client with more unread bytes is disconnected.
    static let outputLimit = 256 * 1024

    private(set) var link: StreamLink!
    var conversation: (any DemoConversation)?
    private var output: RawConversation!
    private let closed: (DemoConnection) -> Void

    init(closed: @escaping (DemoConnection) -> Void) {
        self.closed = closed
        output = RawConversation(owner: self)
        link = StreamLink(server: output, owner: self)
    }

    func send(_ bytes: [UInt8], isLast: Bool) {
        output.add(bytes.span)
        if isLast { link.finish() } else { link.flush() }
    }
}

extension DemoConnection: RawOwner, LinkOwner {
    func received(_ bytes: Span<UInt8>) { conversation?.receive(bytes) }
    func happened(_ event: ConversationEvent, on link: StreamLink) {}
    func ended(_ link: StreamLink, _ end: LinkEnd) { closed(self) }
}
