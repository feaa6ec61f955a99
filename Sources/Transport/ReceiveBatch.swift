public import Base
internal import CLinux
internal import Glibc

/// Datagrams read with one system call, in memory that is allocated once.
public struct ReceiveBatch: ~Copyable {
    /// Bytes kept of a datagram: what our OPT records announce (RFC 6891 §6.2.3), and far more than a query has.
    public static let slotSize = 1232

    /// How many datagrams the last ``receive(from:waiting:)`` brought: indices are `0..<count`.
    public private(set) var count = 0
    private let slots: MessageSlots

    /// - Parameter size: Bytes kept of a datagram.
    public init(slots: Int = 64, size: Int = slotSize) {
        self.slots = MessageSlots(count: slots, size: size)
        for index in 0..<slots { self.slots.prepareToReceive(index) }
    }

    /// Reads what waits, at most one datagram a slot, and returns how many.
    ///
    /// - Parameter waiting: Wait for the first one, up to the receive time-out of a blocking socket.
    /// - Returns: 0 when nothing waited or the time-out has passed.
    public mutating func receive(from socket: DatagramSocket, waiting: Bool) throws(SystemError) -> Int {
        let flags = waiting ? MessageSlots.waitForOne : Int32(MSG_DONTWAIT)
        if let code = receive(from: socket.descriptor.raw, flags: flags) {
            throw SystemError("recvmmsg", socket.local.description, code: code)
        }
        return count
    }

    /// - Returns: `errno` of a failure; nil: ``count`` says how many datagrams waited.
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

    /// The datagram's bytes, perhaps none.
    ///
    /// The memory is this batch's: valid until the next receive.
    public func bytes(_ index: Int) -> UnsafeBufferPointer<UInt8> {
        precondition(index < count)
        return unsafe slots.received(index)
    }

    /// Where the datagram came from.
    public func sender(_ index: Int) -> SocketAddress {
        precondition(index < count)
        return slots.peer(index)
    }

    /// The address the datagram was sent to, which a reply must leave from; nil unless the socket is bound to all
    /// addresses.
    public func local(_ index: Int) -> IPAddress? {
        precondition(index < count)
        return slots.local(index)
    }
}
