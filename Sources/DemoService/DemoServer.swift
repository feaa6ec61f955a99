internal import Base
internal import Cryptography
internal import Transport

/// Takes connections on the service's ports. Confined to its loop.
final class DemoServer {
    /// Connections at once; more are closed as they come. A daemon needs one, a test a few.
    static let connectionLimit = 64

    private let loop: EventLoop
    private let engine: ServiceEngine
    private let context: TLSServerContext
    private var connections = 0

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
            // Such a connection was turned away, which its client notices.
            failed: { _ in },
            accepted: { [self] socket, client in accept(socket, from: client.address, isSecure: isSecure) })
        return listener.local
    }

    private func accept(_ socket: consuming StreamSocket, from client: IPAddress, isSecure: Bool) {
        guard connections < Self.connectionLimit else { return }
        var session: TLSSession?
        if isSecure {
            session = try? context.session()
            guard session != nil else { return }
        }
        let connection = DemoConnection(socket, loop: loop, session: session) { [weak self] in
            self?.connections -= 1
        }
        guard connection.start(engine, isSecure: isSecure, client: client) else { return }
        connections += 1
    }
}

/// One connection: moves bytes between its socket, its TLS session, if it has one, and its conversation.
final class DemoConnection: EventHandler {
    /// Bytes that wait for a client to read; one that leaves more unread is dropped.
    static let outputLimit = 256 * 1024

    private let loop: EventLoop
    private var socket: StreamSocket
    private let session: TLSSession?
    private var conversation: ServiceConversation?
    private var output = StreamBuffer(limit: DemoConnection.outputLimit)
    private var registration: Registration?
    /// Nothing will be added to the output; what the client still sends is thrown away until it closes, since closing
    /// first could take the last response back from it (RFC 9112 §9.6).
    private var isEnding = false
    private let closed: () -> Void

    init(_ socket: consuming StreamSocket, loop: EventLoop, session: TLSSession?, closed: @escaping () -> Void) {
        self.socket = socket
        self.loop = loop
        self.session = session
        self.closed = closed
    }

    /// False if the loop cannot watch the socket, which is closed then.
    func start(_ engine: ServiceEngine, isSecure: Bool, client: IPAddress) -> Bool {
        conversation = engine.conversation(isSecure: isSecure, client: client) { [weak self] response, isLast in
            self?.send(response, isLast: isLast)
        }
        registration = try? loop.register(socket.descriptor, .readable, self)
        return registration != nil
    }

    func ready(_ readiness: Readiness) {
        if readiness.contains(.readable) { read() }
        flush()
    }

    private func read() {
        var buffer = [UInt8](repeating: 0, count: 16 * 1024)
        var room = buffer.mutableSpan
        guard let received = try? socket.receive(into: &room) else { return close() }
        switch received {
        case .wouldBlock: return
        case .endOfStream: return close()
        case .bytes(let count):
            guard !isEnding else { return }
            let bytes = buffer.span.extracting(0..<count)
            guard let session else {
                conversation?.receive(bytes)
                return
            }
            session.receive(bytes)
            var plaintext: [UInt8] = []
            session.takePlaintext(into: &plaintext)
            if !plaintext.isEmpty { conversation?.receive(plaintext.span) }
            takeCiphertext()
        }
    }

    private func send(_ response: [UInt8], isLast: Bool) {
        guard let session else {
            guard output.append(response.span) else { return close() }
            isEnding = isLast
            return flush()
        }
        session.send(response.span)
        if isLast { session.close() }
        takeCiphertext()
        flush()
    }

    /// Also after the session has failed: what then waits tells the client why.
    private func takeCiphertext() {
        guard let session else { return }
        var ciphertext: [UInt8] = []
        session.takeCiphertext(into: &ciphertext)
        guard output.append(ciphertext.span) else { return close() }
        switch session.state {
        case .handshaking, .open: break
        case .closed, .failed: isEnding = true
        }
    }

    private func flush() {
        guard let registration else { return }
        guard let isDone = try? output.flush(to: socket) else { return close() }
        loop.update(registration, isDone ? .readable : [.readable, .writable])
        if isDone, isEnding { socket.shutdownSending() }
    }

    private func close() {
        guard let registration else { return }
        self.registration = nil
        loop.unregister(registration)
        socket.close()
        conversation = nil
        closed()
    }
}
