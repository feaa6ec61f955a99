internal import Base
internal import CLinux
internal import Glibc

/// Datagrams read with one system call, in memory that is allocated once.
public struct ReceiveBatch: ~Copyable {
    /// Bytes read of a datagram: the size in the daemon's OPT records (RFC 6891 §6.2.3), far more than a query has.
    public static let slotSize = 1232

    /// The number of datagrams of the last ``receive(from:waiting:)``: indices are `0..<count`.
    public private(set) var count = 0
    private let slots: MessageSlots

    /// - Parameter size: The most bytes read of a datagram.
    public init(slots: Int = 64, size: Int = slotSize) {
        self.slots = MessageSlots(count: slots, size: size)
        for index in 0..<slots { self.slots.prepareToReceive(index) }
    }

    /// Reads the waiting datagrams, at most one a slot, and returns their number.
    ///
    /// - Parameter waiting: Whether to wait for the first datagram, up to the receive time-out of a blocking socket.
    /// - Returns: 0 if no datagram waited, or the time-out has passed.
    public mutating func receive(from socket: DatagramSocket, waiting: Bool) throws(SystemError) -> Int {
        let flags = waiting ? MessageSlots.waitForOne : Int32(MSG_DONTWAIT)
        if let code = receive(from: socket.descriptor.raw, flags: flags) {
            throw SystemError("recvmmsg", socket.local.description, code: code)
        }
        return count
    }

    /// - Returns: The `errno` of a failure; nil for success, with the number of datagrams in ``count``.
    mutating func receive(from descriptor: Int32, flags: Int32) -> Int32? {
        // The kernel has overwritten the lengths of the slots that it filled.
        for index in 0..<count { slots.prepareToReceive(index) }
        count = 0
        switch SystemCall.attempt({ slots.receive(descriptor, flags: flags) }) {
        case .done(let received): count = received
        case .wouldBlock: break
        case .failed(let code): return code
        }
        return nil
    }

    /// The datagram's bytes, which may be empty.
    ///
    /// The memory belongs to this batch, and is valid until the next receive.
    public func bytes(_ index: Int) -> UnsafeBufferPointer<UInt8> {
        precondition(index < count)
        return unsafe slots.received(index)
    }

    /// The sender of the datagram: the IPv4 address of a sender over IPv4 even if the socket is of both families.
    public func sender(_ index: Int) -> SocketAddress {
        precondition(index < count)
        return slots.peer(index).unmapped
    }

    /// The destination address of the datagram, from which a reply must leave; nil unless the socket is bound to all
    /// addresses.
    public func local(_ index: Int) -> LocalAddress? {
        precondition(index < count)
        return slots.local(index)
    }
}
