internal import CLinux
internal import Glibc

/// Datagrams sent with one system call, from memory that is allocated once.
public struct SendBatch: ~Copyable {
    /// The largest reply over UDP to any client, whatever size it offers.
    public static let slotSize = 4096

    /// Replies that wait for ``flush(_:)``.
    public private(set) var count = 0
    /// The offset of the next reply: close after the last reply, so that short replies need few cache lines and pages.
    private var end = 0
    private let slots: MessageSlots

    public init(slots: Int = 64) { self.slots = MessageSlots(count: slots, size: SendBatch.slotSize) }

    public var isFull: Bool { count == slots.count }

    /// The memory for the next reply, which is not sent before ``commit(_:to:from:)``.
    ///
    /// - Precondition: The batch is not full.
    public mutating func next() -> UnsafeMutableBufferPointer<UInt8> {
        precondition(!isFull)
        return unsafe slots.buffer(at: end)
    }

    /// Adds the first `length` bytes of ``next()`` as a reply.
    ///
    /// - Parameter source: The address from which the reply must leave, for a socket bound to all addresses.
    public mutating func commit(_ length: Int, to peer: SocketAddress, from source: LocalAddress?) {
        precondition(!isFull && (0...SendBatch.slotSize).contains(length))
        slots.prepareToSend(count, at: end, length: length, to: peer, from: source)
        count += 1
        // At most one slot's size further, since that is a whole number of cache lines.
        end += (length + MessageSlots.cacheLine - 1) & ~(MessageSlots.cacheLine - 1)
    }

    /// Adds the first `length` bytes of ``next()`` for the peer of a connected socket.
    public mutating func commit(_ length: Int) {
        precondition(!isFull && (0...SendBatch.slotSize).contains(length))
        slots.prepareToSend(count, at: end, length: length)
        count += 1
        end += (length + MessageSlots.cacheLine - 1) & ~(MessageSlots.cacheLine - 1)
    }

    /// A committed reply; its bytes are valid until the batch is flushed.
    public func bytes(_ index: Int) -> UnsafeBufferPointer<UInt8> {
        precondition(index < count)
        return unsafe slots.prepared(index)
    }

    /// The receiver of a committed reply.
    public func receiver(_ index: Int) -> SocketAddress {
        precondition(index < count)
        return slots.peer(index)
    }

    /// The most repetitions of a batch's datagrams after ICMP errors about earlier datagrams.
    private static let mostRepeats = 4

    /// Sends the committed datagrams. The call never waits: a datagram that cannot be sent at once (no room, no route,
    /// not permitted) is dropped, and the rest still go. The client repeats its question.
    public mutating func flush(_ socket: DatagramSocket) { _ = flush(through: socket.descriptor.raw) }

    /// Sends the committed datagrams through any UDP socket.
    /// - Parameter isDropped: Called with the index of each datagram that the kernel has refused.
    /// - Returns: The `errno` of the first datagram that was dropped for a reason other than a lack of room in this
    ///   machine or a firewall; nil if no datagram was, as far as the kernel reports.
    mutating func flush(
        through descriptor: Int32, isConnected: Bool = false, isDropped: (Int) -> Void = { _ in }
    ) -> Int32? {
        flush(isConnected: isConnected, isDropped: isDropped) { slots, range in slots.send(descriptor, range) }
    }

    /// Sends the committed datagrams by another system call.
    /// - Parameter send: Works as sendmmsg(2): returns how many datagrams of the range were taken, or −1 with `errno`.
    mutating func flush(
        isConnected: Bool, isDropped: (Int) -> Void, _ send: (borrowing MessageSlots, Range<Int>) -> Int
    ) -> Int32? {
        // On a connected socket a call also fails for an ICMP error about earlier datagrams, which the call clears.
        var repeats = isConnected ? Self.mostRepeats : 0
        var next = 0
        var failure: Int32?
        while next < count {
            let range = next..<count
            switch SystemCall.attempt({ send(slots, range) }) {
            case .done(let taken) where taken > 0:
                next += taken
                continue
            // Only this datagram is lost: the queue of the interface is full, or a firewall or its table refuses it.
            case .failed(ENOBUFS), .failed(ENOMEM), .failed(EPERM), .done, .wouldBlock: break
            case .failed where repeats > 0:
                repeats -= 1
                continue
            case .failed(let code): failure = failure ?? code
            }
            isDropped(next)
            // sendmmsg stops at the datagram that fails, and gives the reason only if that datagram is the first.
            next += 1
        }
        (count, end) = (0, 0)
        return failure
    }
}
