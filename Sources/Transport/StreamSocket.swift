public import Base
internal import CLinux
internal import Glibc

/// The result of a receiving call.
public enum Received: Equatable, Sendable {
    /// The number of bytes: from a stream at least one; a datagram may be empty.
    case bytes(Int)
    case wouldBlock
    /// The peer of a stream sends no more.
    case endOfStream
}

/// A TCP connection: nonblocking, each write sent at once.
public struct StreamSocket: ~Copyable, Sendable {
    public private(set) var descriptor: Descriptor

    /// About the most octets that wait in the kernel for room at the peer.
    private static let mostUnsent: Int32 = 65_536

    init(adopting descriptor: consuming Descriptor) {
        self.descriptor = descriptor
        // Answers are written whole, so waiting for more would only delay them. If this fails, the peer has already
        // reset the connection, and the next read reports it.
        try? self.descriptor.setOption(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        // Beyond the limit, unsent octets wait in this process, where they are counted and bounded, and each progress
        // of the peer is noticed.
        try? self.descriptor.setOption(Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, Self.mostUnsent)
    }

    /// Milliseconds for which sent data may stay unacknowledged (RFC 5482): without a limit the kernel would try for a
    /// quarter of an hour after the loss of the route.
    private static let longestUnacknowledged: Int32 = 5000

    /// Begins to connect. The socket becomes writable when the result is known; then call ``connectResult()``.
    public static func connect(
        to endpoint: Endpoint, by egress: Egress = Egress()
    ) throws(SystemError) -> StreamSocket {
        let address = try SocketAddress(reaching: endpoint)
        let descriptor = try Descriptor.socket(address.family, .stream)
        try descriptor.leave(by: egress, to: endpoint)
        let code = descriptor.connect(address)
        if let detour = Translator.detour(to: endpoint, after: code) { return try connect(to: detour, by: egress) }
        guard code == 0 || code == EINPROGRESS else {
            let isMissing = code == EADDRNOTAVAIL
            let isShort = isMissing ? try hasSource(to: endpoint, address, by: egress) : false
            throw SystemError("connect", endpoint.description, code: isShort ? EAGAIN : code)
        }
        // On a kernel without this option, the caller's deadline ends the wait.
        try? descriptor.setOption(Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, longestUnacknowledged)
        return StreamSocket(adopting: descriptor)
    }

    /// Whether this machine has an address from which an endpoint is reached: if so, EADDRNOTAVAIL means that all ports
    /// of the range are in use, for which connect(2) fails with EAGAIN over UDP. No packet leaves.
    private static func hasSource(
        to endpoint: Endpoint, _ address: SocketAddress, by egress: Egress
    ) throws(SystemError) -> Bool {
        let socket = try Descriptor.socket(address.family, .datagram)
        try socket.leave(by: egress, to: endpoint)
        return socket.connect(address) != EADDRNOTAVAIL
    }

    /// The call returns if the connection is established, else throws the reason. Call when the socket is writable.
    public func connectResult() throws(SystemError) {
        let code = try descriptor.option(SOL_SOCKET, SO_ERROR)
        guard code == 0 else { throw SystemError("connect", code: code) }
    }

    /// Acknowledges the next data at once instead of together with the next write, perhaps 40 ms later (TCP_QUICKACK,
    /// tcp(7)); after a write the kernel delays again.
    public func acknowledgeAtOnce() {
        // The call fails only if the connection is gone, which the next read reports.
        try? descriptor.setOption(Int32(IPPROTO_TCP), TCP_QUICKACK, 1)
    }

    /// Reads the available bytes, at most the memory's size.
    package func receive(into scratch: Scratch) throws(SystemError) -> Received {
        let buffer = unsafe scratch.buffer
        var room = unsafe buffer.mutableSpan
        let received = try descriptor.receive(into: &room)
        return received == .bytes(0) ? .endOfStream : received
    }

    /// Tells the peer that no more will be sent, by FIN; reading goes on. The bytes already written still arrive.
    public func shutdownSending() {
        // The call fails only when the connection is gone, which the next read reports.
        _ = shutdown(descriptor.raw, Int32(SHUT_WR))
    }

    /// Closes early; a second call has no effect. Unregister from the loop first.
    public mutating func close() { descriptor.close() }
}

extension Descriptor {
    /// Connects and returns the error number, 0 for success. An interrupted connect goes on by itself and must not be
    /// repeated (connect(2)): it counts as in progress.
    func connect(_ address: SocketAddress) -> Int32 {
        let result = unsafe address.withStorage { unsafe Glibc.connect(raw, $0, $1) }
        if result == 0 { return 0 }
        return errno == EINTR ? EINPROGRESS : errno
    }

    func receive(into buffer: inout MutableSpan<UInt8>) throws(SystemError) -> Received {
        // Sound: the kernel writes at most `count` bytes.
        let outcome = unsafe buffer.withUnsafeMutableBufferPointer { room in
            SystemCall.attempt { unsafe recv(raw, room.baseAddress, room.count, 0) }
        }
        switch outcome {
        case .done(let count): return .bytes(count)
        case .wouldBlock: return .wouldBlock
        case .failed(let code): throw SystemError("recv", code: code)
        }
    }

    /// Sends without waiting and returns the number of bytes taken; nil if none could be.
    func send(_ bytes: Span<UInt8>) throws(SystemError) -> Int? {
        // Sound: the kernel reads `count` bytes during the call.
        let outcome = unsafe bytes.withUnsafeBufferPointer { data in
            SystemCall.attempt { unsafe Glibc.send(raw, data.baseAddress, data.count, Int32(MSG_NOSIGNAL)) }
        }
        switch outcome {
        case .done(let count): return count
        case .wouldBlock: return nil
        case .failed(let code): throw SystemError("send", code: code)
        }
    }
}
