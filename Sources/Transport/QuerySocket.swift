public import Base
internal import CLinux
internal import Glibc

/// A UDP socket for queries to one resolver, to which the kernel gives a random port of its own (RFC 5452 §9.2), so a
/// forger must guess both port and ID.
///
/// The socket is connected. So to all hosts but the resolver its port looks closed like an unused one, and the kernel
/// passes on only ICMP errors that quote a datagram to the resolver.
public struct QuerySocket: ~Copyable, Sendable {
    public private(set) var descriptor: Descriptor
    /// The resolver's address.
    public let resolver: SocketAddress

    public static func open(to endpoint: Endpoint, by egress: Egress = Egress()) throws(SystemError) -> QuerySocket {
        let isIPv4 = endpoint.address.isIPv4
        let descriptor = try Descriptor.socket(isIPv4 ? AF_INET : AF_INET6, .datagram)
        // The option makes the kernel queue ICMP errors with the datagrams that they quote: an error alone does not
        // identify its query.
        try descriptor.setOption(isIPv4, (IP_RECVERR, 1), (IPV6_RECVERR, 1))
        try descriptor.leave(by: egress, to: endpoint)
        let resolver = try SocketAddress(reaching: endpoint)
        let code = descriptor.connect(resolver)
        if let detour = Translator.detour(to: endpoint, after: code) { return try open(to: detour, by: egress) }
        guard code == 0 else { throw SystemError("connect", resolver.description, code: code) }
        return QuerySocket(descriptor: descriptor, resolver: resolver)
    }

    /// Sends the committed datagrams of a batch to the resolver. The call fails at once if there is no route; then some
    /// datagrams may have been sent.
    /// - Parameter isDropped: Called with the index of each datagram that the kernel has refused, whether the call
    ///   fails or not.
    public func send(_ batch: inout SendBatch, isDropped: (Int) -> Void) throws(SystemError) {
        if let code = batch.flush(through: descriptor.raw, isConnected: true, isDropped: isDropped) {
            throw SystemError("send", resolver.description, code: code)
        }
    }

    /// Reads the waiting datagrams into a batch, and takes ICMP errors out of their queue, where they would wake the
    /// loop without end.
    public func receive(into batch: inout ReceiveBatch) -> [ReportedError] {
        let flags = Int32(MSG_DONTWAIT)
        let failure = batch.receive(from: descriptor.raw, flags: flags)
        guard failure != nil || batch.count == 0 else { return [] }
        let errors = takeErrors()
        // The first call fails for an error in the queue, and reads nothing.
        if failure != nil { _ = batch.receive(from: descriptor.raw, flags: flags) }
        return errors
    }

    /// An ICMP error about a datagram to the resolver. An attacker who knows the port can forge one from any address:
    /// an error counts only if it quotes octets that the attacker does not know.
    public struct ReportedError: Equatable, Sendable {
        /// No program listens on the resolver's port. Other errors are transient or advice (RFC 1122 §3.2.2).
        public let isRefusal: Bool
        /// The first two octets of the datagram, the ID of a DNS message; nil if the error quotes fewer.
        public let id: UInt16?
    }

    /// Takes the ICMP errors out of their queue.
    private func takeErrors() -> [ReportedError] {
        var errors: [ReportedError] = []
        // More errors may come meanwhile; the loop reads them later.
        while errors.count < Self.mostErrors {
            var (quoted, count): (InlineArray<2, UInt8>, Int32) = ([0, 0], 0)
            var span = quoted.mutableSpan
            // Sound: the call writes two octets at most.
            let code = unsafe span.withUnsafeMutableBufferPointer { room in
                unsafe clinux_next_error(descriptor.raw, room.baseAddress!, &count)
            }
            guard code != 0 else { break }
            let id = count == 2 ? UInt16(quoted[0]) << 8 | UInt16(quoted[1]) : nil
            errors.append(ReportedError(isRefusal: code == ECONNREFUSED, id: id))
        }
        return errors
    }

    /// The most errors that are taken at once.
    private static let mostErrors = 256

    /// Whether a datagram of a batch comes from the resolver.
    public func isFromResolver(_ batch: borrowing ReceiveBatch, _ index: Int) -> Bool {
        resolver.isReached(as: batch.sender(index))
    }

    /// Closes early; a second call has no effect. Unregister from the loop first.
    public mutating func close() { descriptor.close() }
}
