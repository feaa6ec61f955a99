public import Base
internal import CLinux
internal import Glibc

/// What a receiving call brought.
public enum Received: Equatable, Sendable {
    /// So many bytes. From a stream at least one; a datagram may be empty.
    case bytes(Int)
    case wouldBlock
    /// The peer of a stream will send no more.
    case endOfStream
}

/// A TCP connection: nonblocking, each write sent at once.
public struct StreamSocket: ~Copyable, Sendable {
    public private(set) var descriptor: Descriptor

    /// Octets that the kernel holds of what the peer has no room for yet, about.
    private static let mostUnsent: Int32 = 65_536

    init(adopting descriptor: consuming Descriptor) {
        self.descriptor = descriptor
        // Answers are whole when written; waiting for more only delays them. A refusal (the peer has reset the
        // connection already) shows at the next read.
        try? self.descriptor.setOption(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        // What the peer does not take waits here, where it is counted and bounded, and each piece it takes shows.
        try? self.descriptor.setOption(Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, Self.mostUnsent)
    }

    /// Milliseconds for which what was written may stay without the peer's word of its arrival (RFC 5482): a connection
    /// whose way is gone would else be tried for a quarter of an hour.
    private static let longestUnacknowledged: Int32 = 5000

    /// Begins to connect. The socket becomes writable when it is decided; then ask ``connectResult()``.
    public static func connect(to endpoint: Endpoint) throws(SystemError) -> StreamSocket {
        let address = try SocketAddress(reaching: endpoint)
        let descriptor = try Descriptor.socket(address.family, SOCK_STREAM)
        let code = descriptor.connect(address)
        guard code == 0 || code == EINPROGRESS else { throw SystemError("connect", endpoint.description, code: code) }
        // Where the kernel does not know it, its owner's deadline ends what waits.
        try? descriptor.setOption(Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, longestUnacknowledged)
        return StreamSocket(adopting: descriptor)
    }

    /// Returns if the connection stands. Call when the socket is writable.
    public func connectResult() throws(SystemError) {
        let code = try descriptor.option(SOL_SOCKET, SO_ERROR)
        guard code == 0 else { throw SystemError("connect", code: code) }
    }

    /// Reads what has come, at most the buffer's size, which must not be 0.
    public func receive(into buffer: inout MutableSpan<UInt8>) throws(SystemError) -> Received {
        precondition(!buffer.isEmpty)
        let received = try descriptor.receive(into: &buffer)
        return received == .bytes(0) ? .endOfStream : received
    }

    /// Tells the peer that nothing more will come; reading goes on. The bytes already written still arrive.
    public func shutdownSending() {
        // Fails only when the connection is gone, which a read tells.
        _ = shutdown(descriptor.raw, Int32(SHUT_WR))
    }

    /// Closes early; does nothing the second time. Unregister from the loop first.
    public mutating func close() {
        descriptor.close()
    }
}

extension Descriptor {
    /// Connects and returns the error number, 0 for success. An interrupted connect goes on by itself and must not be
    /// made again (connect(2)): it counts as in progress.
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

    /// Sends without waiting and returns how many bytes were taken; nil if none could be.
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
