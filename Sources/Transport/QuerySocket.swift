public import Addresses
internal import Glibc

/// A UDP socket for one query to one resolver: the kernel takes datagrams from that address and port only, and gives
/// the socket a random port of its own (RFC 5452 §9.2), so a forger must guess both port and id.
public struct QuerySocket: ~Copyable, Sendable {
    public private(set) var descriptor: Descriptor

    /// A new socket. Fails at once when there is no route (``SystemError/isUnreachable``).
    public static func connect(to endpoint: Endpoint) throws(SystemError) -> QuerySocket {
        let descriptor = try Descriptor.socket(endpoint.address.isIPv4 ? AF_INET : AF_INET6, SOCK_DGRAM)
        let code = descriptor.connect(endpoint)
        guard code == 0 else { throw SystemError("connect", endpoint.description, code: code) }
        return QuerySocket(descriptor: descriptor)
    }

    /// Sends one datagram; false if there is no room for it now.
    public func send(_ message: Span<UInt8>) throws(SystemError) -> Bool {
        try descriptor.send(message) != nil
    }

    /// Reads one datagram; what does not fit is lost. That nobody listens there
    /// (``SystemError/isConnectionRefused``) is told here or by ``send(_:)``.
    public func receive(into buffer: inout MutableSpan<UInt8>) throws(SystemError) -> Received {
        try descriptor.receive(into: &buffer)
    }

    /// Closes early; does nothing the second time. Unregister from the loop first.
    public mutating func close() {
        descriptor.close()
    }
}
