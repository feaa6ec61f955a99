public import Base
internal import CLinux
internal import Glibc

/// A UDP socket for queries to one resolver, to which the kernel gives a random port of its own (RFC 5452 §9.2), so a
/// forger must guess both port and id.
///
/// It is not connected: on a connected socket the kernel would drop datagrams from other senders unseen, and a guessing
/// attacker would go unnoticed.
public struct QuerySocket: ~Copyable, Sendable {
    public private(set) var descriptor: Descriptor
    /// The resolver it is for.
    public let resolver: SocketAddress

    /// What a receiving call brought.
    public enum Received: Equatable, Sendable {
        /// A datagram of this many octets from the resolver; it may be empty.
        case bytes(Int)
        /// A datagram from another address or port. The buffer's contents mean nothing.
        case stranger
        case wouldBlock
    }

    /// - Parameter source: One of this machine's addresses, of the same family; nil: the kernel chooses.
    public static func open(to endpoint: Endpoint, from source: IPAddress? = nil) throws(SystemError) -> QuerySocket {
        let isIPv4 = endpoint.address.isIPv4
        let descriptor = try Descriptor.socket(isIPv4 ? AF_INET : AF_INET6, .datagram)
        if let source { try descriptor.bind(Endpoint(source, port: 0)) }
        // Makes the kernel report that no program listens on the port, as it does on a connected socket.
        if isIPv4 {
            try descriptor.setOption(Int32(IPPROTO_IP), IP_RECVERR, 1)
        } else {
            try descriptor.setOption(Int32(IPPROTO_IPV6), IPV6_RECVERR, 1)
        }
        return QuerySocket(descriptor: descriptor, resolver: try SocketAddress(reaching: endpoint))
    }

    /// Sends one datagram; false if there is no room for it now. Fails at once when there is no route.
    public func send(_ message: Span<UInt8>) throws(SystemError) -> Bool {
        // Sound: the kernel reads `count` bytes during the call.
        let outcome = unsafe message.withUnsafeBufferPointer { data in
            SystemCall.attempt {
                Int(
                    unsafe resolver.withStorage { name, length in
                        Int32(
                            truncatingIfNeeded: unsafe sendto(
                                descriptor.raw, data.baseAddress, data.count, 0, name, length))
                    })
            }
        }
        switch outcome {
        case .done: return true
        case .wouldBlock: return false
        case .failed(let code): throw SystemError("send", resolver.description, code: code)
        }
    }

    /// Reads one datagram; the part that does not fit is lost. ECONNREFUSED, because no program listens on the server's
    /// port, is thrown here or by ``send(_:)``.
    public func receive(into buffer: inout MutableSpan<UInt8>) throws(SystemError) -> Received {
        var sender: SocketAddress?
        // Sound: the kernel writes at most `count` bytes.
        let outcome = unsafe buffer.withUnsafeMutableBufferPointer { room in
            SystemCall.attempt {
                let received = unsafe SocketAddress.filled { name, length in
                    Int32(
                        truncatingIfNeeded: unsafe recvfrom(
                            descriptor.raw, room.baseAddress, room.count, 0, name, length))
                }
                sender = received.address
                return Int(received.result)
            }
        }
        switch outcome {
        case .done(let count): return sender.map(resolver.isReached(as:)) ?? false ? .bytes(count) : .stranger
        case .wouldBlock: return .wouldBlock
        case .failed(let code): throw SystemError("recv", code: code)
        }
    }

    /// Sends what was committed to a batch. What the socket has no room for is dropped. Fails as
    /// ``send(_:)-(Span<UInt8>)`` does; then some may have been sent.
    public func send(_ batch: inout ReplyBatch) throws(SystemError) {
        if let code = batch.flush(through: descriptor.raw) {
            throw SystemError("send", resolver.description, code: code)
        }
    }

    /// Reads the waiting datagrams, of all senders, into a batch. Throws what sending left behind, such as that the
    /// resolver's port is closed.
    public func receive(into batch: inout ReceiveBatch) throws(SystemError) {
        var code = batch.receive(from: descriptor.raw, flags: Int32(MSG_DONTWAIT))
        if code == nil, batch.count == 0 {
            // An error of an earlier datagram that a later send has already reported stays in the queue, and would wake the
            // loop for ever.
            let queued = clinux_next_error(descriptor.raw)
            if queued != 0 { code = queued }
        }
        if let code { throw SystemError("recv", code: code) }
    }

    /// Whether a datagram of a batch comes from the resolver.
    public func isFromResolver(_ batch: borrowing ReceiveBatch, _ index: Int) -> Bool {
        resolver.isReached(as: batch.sender(index))
    }

    /// Blocks the thread until a datagram or an error is there; false when that takes longer than this many
    /// milliseconds.
    public func wait(milliseconds: Int) -> Bool {
        var poll = pollfd(fd: descriptor.raw, events: Int16(POLLIN), revents: 0)
        let time = Int32(clamping: milliseconds)
        // Interrupted: the caller has a deadline of its own.
        return unsafe Glibc.poll(&poll, 1, time) > 0
    }

    /// Closes early; does nothing the second time. Unregister from the loop first.
    public mutating func close() {
        descriptor.close()
    }
}
