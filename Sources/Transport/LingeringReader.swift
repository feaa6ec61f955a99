internal import CLinux
internal import Dispatch
internal import Glibc
internal import Synchronization

/// Reads one UDP socket on a queue of its own, in batches, and sends the replies.
///
/// The queue's thread stays in a blocking `recvmmsg` while datagrams come, which costs one context switch a query at 20
/// or 10,000 a second, and waits in `poll` after 50 ms without a datagram, where an idle reader costs nothing. The
/// reader never waits in an epoll, as a Dispatch source does: a socket in an epoll makes each datagram sent a tenth
/// more expensive, since the kernel notifies the epoll of the free room.
///
/// `@unchecked Sendable`: the desk is used only on the queue; all else never changes after `start` or is atomic.
public final class LingeringReader<Receiver: DatagramReceiver & ~Copyable>: LoopWaiter, @unchecked Sendable {
    private let socket: DatagramSocket
    // A serial queue without a target has a thread of its own, however many threads are busy.
    private let queue: DispatchQueue
    /// Nil before ``start()``.
    private var wakeup: Wakeup?
    private let stopping = Atomic(false)
    private let isPinged = Atomic(false)
    private let away = Atomic(false)
    /// Signalled to end a pause early.
    private let back = DispatchSemaphore(value: 0)
    private let pings = Mutex<[@Sendable () -> Void]>([])
    private let failed: @Sendable (SystemError) -> Void
    /// Nil while the reader serves, which moves the desk out, so that no datagram costs a check for exclusive access.
    private var desk: DatagramDesk<Receiver>?
    private let isInTheWay: @Sendable () -> Bool

    /// How long the reader stays in `recvmmsg` without a datagram, in microseconds; also the longest time to stop.
    private static var linger: Int { 50_000 }
    /// How long a reader in the way leaves further datagrams alone.
    private static var moment: DispatchTimeInterval { .milliseconds(1) }
    /// How long a socket that cannot be read is left alone.
    private static var pause: DispatchTimeInterval { .milliseconds(100) }

    /// - Parameters:
    ///   - socket: Becomes a blocking socket with a receive time-out. Other threads still send without waiting
    ///     (``SendBatch/flush(_:)``).
    ///   - failed: Called when the socket could not be read; it will be tried again.
    ///   - isInTheWay: Called on the queue after each batch: whether to leave further datagrams alone for a moment,
    ///     since other work needs the thread's processor.
    public init(
        _ socket: DatagramSocket, label: String, failed: @escaping @Sendable (SystemError) -> Void = { _ in },
        isInTheWay: @escaping @Sendable () -> Bool = { false }, receiver: consuming Receiver
    ) {
        self.socket = socket
        queue = DispatchQueue(label: label)
        desk = DatagramDesk(socket, receiver: receiver)
        (self.failed, self.isInTheWay) = (failed, isInTheWay)
    }

    /// Begins to read. Call once, before other threads have the reader. The reader retains itself and the socket until
    /// it is stopped.
    public func start() throws(SystemError) {
        try socket.descriptor.setReceiveTimeout(microseconds: LingeringReader.linger)
        try socket.descriptor.setBlocking(true)
        wakeup = try Wakeup()
        queue.async { self.run() }
    }

    /// Stops reading. Call once, from any thread.
    ///
    /// - Parameter stopped: Called on the reader's queue, within about 50 ms, after the last batch. Then the reader
    ///   does not use the socket any more.
    public func stop(_ stopped: @escaping @Sendable () -> Void = {}) {
        stopping.store(true, ordering: .sequentiallyConsistent)
        wakeup?.wake()
        queue.async {
            self.answerPings()
            stopped()
        }
    }

    /// Calls `answer` on the reader's queue at its next turn: at once, after the present batch, or at the end of the
    /// wait for a datagram or after an error. A call before ``start()`` takes effect after the start. From any thread.
    public func ping(_ answer: @escaping @Sendable () -> Void) {
        pings.withLock { $0.append(answer) }
        isPinged.store(true, ordering: .sequentiallyConsistent)
        // During a round the queue is not free. After `stop` no round may follow, and the pings may have been answered
        // by the last round.
        if stopping.load(ordering: .sequentiallyConsistent) {
            queue.async { self.answerPings() }
        } else {
            wakeup?.wake()
        }
    }

    public var isAway: Bool { away.load(ordering: .relaxed) }

    public func goOn() {
        if away.exchange(false, ordering: .relaxed) { back.signal() }
    }

    private func answerPings() {
        isPinged.store(false, ordering: .relaxed)
        let answers = pings.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
        for answer in answers { answer() }
    }

    /// One round: serves datagrams until no datagram came for a while, then waits for more.
    private func run() {
        guard !stopping.load(ordering: .acquiring), var desk = desk.take() else { return }
        if isPinged.load(ordering: .acquiring) { answerPings() }
        do {
            try serve(&desk)
            self.desk = consume desk
        } catch {
            self.desk = consume desk
            failed(error)
            // If the socket stays readable although reading fails, the thread would spin.
            return queue.asyncAfter(deadline: .now() + Self.pause) { self.run() }
        }
        // In the simulation the work that is submitted next continues this wait.
        wakeup?.wait(or: socket.descriptor)
        wakeup?.acknowledge()
        queue.async { self.run() }
    }

    /// Serves until no datagram came for a while.
    private func serve(_ desk: inout DatagramDesk<Receiver>) throws(SystemError) {
        while !stopping.load(ordering: .acquiring) {
            guard try desk.serve(waiting: true) else { return }
            if isPinged.load(ordering: .acquiring) { answerPings() }
            if isInTheWay() { leaveAlone() }
        }
    }

    private func leaveAlone() {
        away.store(true, ordering: .relaxed)
        // A late signal ends the next pause early.
        _ = back.wait(timeout: .now() + Self.moment)
        away.store(false, ordering: .relaxed)
    }
}

extension Descriptor {
    func setReceiveTimeout(microseconds: Int) throws(SystemError) {
        var time = timeval(tv_sec: microseconds / 1_000_000, tv_usec: microseconds % 1_000_000)
        // Sound: the kernel copies the value during the call.
        try SystemCall.require("setsockopt") {
            unsafe setsockopt(raw, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
        }
    }
}
