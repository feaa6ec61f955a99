public import Base
internal import CLinux
internal import Glibc

/// A listening TCP socket, or the socket of a ``UnixListener``. Confined to the loop on which it was started.
///
/// `@unchecked Sendable`: made on one thread and passed to the loop before it starts or from within it; from then on
/// used only by the loop.
public final class StreamListener: EventHandler, @unchecked Sendable {
    /// The bound address and port.
    public let local: Endpoint
    /// The endpoints at which the socket is reached: ``local``, and another one for IPv4 if it is of both families.
    public let endpoints: [Endpoint]
    /// The socket's name in errors.
    private let name: String
    /// The address for clients that have none.
    private let unnamedClient: SocketAddress?
    private(set) var descriptor: Descriptor
    /// Reserve descriptors, which are freed when no others are left: so a client is refused, or at a unix socket
    /// served, instead of left waiting.
    private var reserves: [Int32] = []
    /// The most reserves. A unix socket has several: another thread can take the descriptor that a client has left.
    private var mostReserves: Int { isUnix ? 4 : 1 }
    private var isUnix: Bool { unnamedClient != nil }
    private var registration: Registration?
    private weak var loop: EventLoop?
    private var failed: (SystemError) -> Void = { _ in }
    private var accepted: (consuming StreamSocket, SocketAddress) -> Void = { _, _ in }

    /// The most connections that wait in the kernel to be accepted; the kernel lowers the number to net.core.somaxconn.
    private static let backlog: Int32 = 1024
    /// The most connections accepted before other work of the loop.
    private static let turn = 64
    /// The pause after a failure to accept, in nanoseconds.
    private static let pause: UInt64 = 100_000_000

    init(_ descriptor: consuming Descriptor, local: Endpoint, endpoints: [Endpoint]? = nil) {
        self.descriptor = descriptor
        self.local = local
        self.endpoints = endpoints ?? [local]
        name = local.description
        unnamedClient = nil
    }

    /// A listener for a unix socket that is bound and listens.
    init(_ descriptor: consuming Descriptor, path: String) {
        self.descriptor = descriptor
        local = Endpoint(IPAddress(v4: 0), port: 0)
        endpoints = []
        name = path
        unnamedClient = SocketAddress(local)
    }

    deinit { for reserve in reserves { close(reserve) } }

    /// Binds and listens. For port 0 the kernel chooses the port: see ``local``.
    public static func listen(_ endpoint: Endpoint) throws(SystemError) -> StreamListener {
        let descriptor = try Descriptor.socket(endpoint.address.isIPv4 ? AF_INET : AF_INET6, .stream)
        if !endpoint.address.isIPv4 { try descriptor.setOption(Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1) }
        // The option lets a restarted daemon bind while old connections are in TIME_WAIT.
        try descriptor.setOption(SOL_SOCKET, SO_REUSEADDR, 1)
        try descriptor.bind(endpoint)
        try SystemCall.require("listen", endpoint.description) { Glibc.listen(descriptor.raw, backlog) }
        var local = endpoint
        local.port = try descriptor.boundEndpoint()?.port ?? endpoint.port
        return StreamListener(descriptor, local: local)
    }

    /// Begins to accept. Call on the loop, or before the loop starts.
    ///
    /// - Parameters:
    ///   - givesWay: See ``EventLoop/register(_:_:givesWay:_:)``.
    ///   - failed: Called when a connection could not be accepted (as for EMFILE); it was refused, or accepting pauses.
    ///   - accepted: Called with a new connection and its client's address, which is the IPv4 address of a client over
    ///     IPv4 even if the socket is of both families.
    public func start(
        in loop: EventLoop, givesWay: Bool = false, failed: @escaping (SystemError) -> Void,
        accepted: @escaping (consuming StreamSocket, SocketAddress) -> Void
    ) throws(SystemError) {
        self.failed = failed
        self.accepted = accepted
        self.loop = loop
        openReserves()
        registration = try loop.register(descriptor, .readable, givesWay: givesWay, self)
    }

    /// Closes the socket; the kernel refuses the connections that were not accepted yet. Call on the loop.
    public func stop() {
        if let registration { loop?.unregister(registration) }
        registration = nil
        descriptor.close()
        for reserve in reserves { close(reserve) }
        reserves = []
        failed = { _ in }
        accepted = { _, _ in }
    }

    public func ready(_ readiness: Readiness) {
        for _ in 0..<StreamListener.turn {
            // A handler may stop the listener.
            guard registration != nil, acceptOne() else { return }
        }
    }

    /// Accepts a connection; false if none waits, or accepting must pause.
    private func acceptOne() -> Bool {
        switch accept() {
        case .connection(let socket, let client):
            accepted(socket, client)
            // In a shortage another thread may have taken the descriptor of a reserve.
            openReserves()
            return true
        case .none:
            return false
        case .failed(let code) where [EMFILE, ENFILE, ENOBUFS, ENOMEM, EBADF, EINVAL].contains(code):
            return acceptWithReserve(code)
        case .failed:
            // The error is of that one connection, which is gone already (accept(2)).
            return true
        }
    }

    private enum Accepted: ~Copyable {
        case connection(StreamSocket, SocketAddress)
        case none
        case failed(Int32)
    }

    private func accept() -> Accepted {
        var client: SocketAddress?
        let outcome = SystemCall.attempt {
            let accepted = unsafe SocketAddress.filled { unsafe clinux_accept(descriptor.raw, $0, $1) }
            client = accepted.address
            return Int(accepted.result)
        }
        switch outcome {
        case .wouldBlock: return .none
        case .failed(let code): return .failed(code)
        case .done(let raw):
            let socket = StreamSocket(adopting: Descriptor(adopting: Int32(raw)))
            guard let client = client ?? unnamedClient else { return .failed(EAFNOSUPPORT) }
            return .connection(socket, client.unmapped)
        }
    }

    /// Without free descriptors: frees a reserve, accepts, and closes the connection or, at a unix socket, serves it.
    /// Without a reserve, and if that fails, pauses: the socket stays readable, so the loop would spin.
    private func acceptWithReserve(_ code: Int32) -> Bool {
        let error = SystemError("accept4", name, code: code)
        if code == EMFILE || code == ENFILE, let reserve = reserves.popLast() {
            close(reserve)
            defer { openReserves() }
            switch accept() {
            case .connection(let socket, let client):
                if isUnix {
                    accepted(socket, client)
                } else {
                    failed(error)
                    _ = consume socket
                }
                return true
            // Without a free descriptor the kernel reports the shortage even if no client waits.
            case .none: return false
            case .failed: break
            }
        }
        failed(error)
        if let registration { loop?.pause(registration, nanoseconds: StreamListener.pause) }
        return false
    }

    /// Opens the reserves that were freed, as far as there are descriptors.
    func openReserves() {
        while descriptor.raw >= 0, reserves.count < mostReserves {
            let reserve = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
            // Without a reserve, accepting pauses when descriptors run out.
            guard reserve >= 0 else { return }
            reserves.append(reserve)
        }
    }
}
