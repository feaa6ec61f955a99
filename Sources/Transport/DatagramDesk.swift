/// Receives the datagrams that a ``DatagramDesk`` reads.
public protocol DatagramReceiver: ~Copyable, Sendable {
    /// Called with a batch of datagrams; the replies added to `replies` are sent when the call returns. A datagram gets
    /// at most one reply.
    mutating func receive(_ batch: borrowing ReceiveBatch, _ replies: inout SendBatch)
}

/// Reads a UDP socket in batches and sends the replies. Several desks can read one socket, each on its own thread.
public struct DatagramDesk<Receiver: DatagramReceiver & ~Copyable>: ~Copyable {
    private let socket: DatagramSocket
    private var receiver: Receiver
    private var batch = ReceiveBatch()
    private var replies = SendBatch()

    /// A desk that has not read yet.
    public init(_ socket: DatagramSocket, receiver: consuming Receiver) {
        self.socket = socket
        self.receiver = receiver
    }

    /// Reads one batch and sends the replies to it.
    ///
    /// - Parameter waiting: Whether to wait for the first datagram, up to the receive time-out of a blocking socket.
    /// - Returns: Whether there was a datagram.
    public mutating func serve(waiting: Bool) throws(SystemError) -> Bool {
        guard try batch.receive(from: socket, waiting: waiting) > 0 else { return false }
        receiver.receive(batch, &replies)
        if replies.count > 0 { replies.flush(socket) }
        return true
    }
}
