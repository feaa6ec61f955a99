public import Base
internal import CLinux
internal import Glibc

/// Datagrams sent with one system call, from memory that is allocated once.
public struct SendBatch: ~Copyable {
    /// The largest reply: no client is sent more over UDP, whatever it offers to take.
    public static let slotSize = 4096

    /// Replies that wait for ``flush(_:)``.
    public private(set) var count = 0
    /// Datagrams given to the kernel since the beginning.
    public private(set) var sent: UInt64 = 0
    /// Datagrams that the kernel refused: no room, no route, not permitted. They are not sent again; the client repeats
    /// its question.
    public private(set) var dropped: UInt64 = 0
    /// Where the next reply goes: close behind the last one, so that many short ones need few cache lines and pages.
    private var end = 0
    private let slots: MessageSlots

    public init(slots: Int = 64) {
        self.slots = MessageSlots(count: slots, size: SendBatch.slotSize)
    }

    public var isFull: Bool { count == slots.count }

    /// The memory to write the next reply into. Nothing is sent of it until ``commit(_:to:from:)``.
    ///
    /// - Precondition: The batch is not full.
    public mutating func next() -> UnsafeMutableBufferPointer<UInt8> {
        precondition(!isFull)
        return unsafe slots.buffer(at: end)
    }

    /// Adds the first `length` bytes of ``next()`` as a reply.
    ///
    /// - Parameter source: The address it must leave from, for a socket bound to all addresses.
    public mutating func commit(_ length: Int, to peer: SocketAddress, from source: IPAddress?) {
        precondition(!isFull && (0...SendBatch.slotSize).contains(length))
        slots.prepareToSend(count, at: end, length: length, to: peer, from: source)
        count += 1
        // At most one slot's size further, since that is whole cache lines.
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

    /// To whom a committed reply goes.
    public func receiver(_ index: Int) -> SocketAddress {
        precondition(index < count)
        return slots.peer(index)
    }

    /// How often datagrams of one batch are sent again because of ICMP errors about earlier ones.
    private static let mostRepeats = 4

    /// Sends what was committed. Never waits: a datagram that cannot be sent at once is dropped, the rest still go.
    public mutating func flush(_ socket: DatagramSocket) {
        _ = flush(through: socket.descriptor.raw)
    }

    /// The same through any UDP socket.
    /// - Parameter isDropped: called with the index of each datagram that the kernel has not taken.
    /// - Returns: why the first of those failed that were dropped for another reason than that this machine had no room for it or a
    ///   firewall refused it, as `errno`; nil: none was, as far as the kernel tells.
    mutating func flush(
        through descriptor: Int32, isConnected: Bool = false, isDropped: (Int) -> Void = { _ in }
    ) -> Int32? {
        flush(isConnected: isConnected, isDropped: isDropped) { slots, range in slots.send(descriptor, range) }
    }

    /// The same with a system call of one's own.
    /// - Parameter send: as sendmmsg(2): gives how many of the datagrams of the range were taken, or -1 with `errno`.
    mutating func flush(
        isConnected: Bool, isDropped: (Int) -> Void, _ send: (borrowing MessageSlots, Range<Int>) -> Int
    ) -> Int32? {
        // On a connected socket a call also fails for what ICMP has said of earlier datagrams. That is then forgotten.
        var repeats = isConnected ? Self.mostRepeats : 0
        var next = 0
        var failure: Int32?
        while next < count {
            let range = next..<count
            switch SystemCall.attempt({ send(slots, range) }) {
            case .done(let taken) where taken > 0:
                next += taken
                sent += UInt64(taken)
                continue
            // The loss of this datagram alone: the queue of the interface is full, or a firewall or its table refuses it.
            case .failed(ENOBUFS), .failed(ENOMEM), .failed(EPERM), .done, .wouldBlock: break
            case .failed where repeats > 0:
                repeats -= 1
                continue
            case .failed(let code): failure = failure ?? code
            }
            isDropped(next)
            // sendmmsg stops at the datagram that fails, and gives the reason only when that one comes first.
            next += 1
            dropped += 1
        }
        (count, end) = (0, 0)
        return failure
    }
}
