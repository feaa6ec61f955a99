internal import CLinux
internal import Dispatch
internal import Synchronization

/// Waits for all events except the UDP listeners' datagrams: a serial queue with an epoll descriptor, a mailbox and a
/// timer.
///
/// Dispatch watches the epoll descriptor, which is readable when any of its descriptors is. Once woken, the loop waits
/// in `epoll_wait` itself while events flow (no change of threads), and returns to Dispatch after 100 idle ms (no cost
/// when idle). One wake-up is one turn: the events, then submitted work, then the deadline, then one event of a
/// descriptor that gives way, then ``turnEnded``, where the owner sends the gathered replies. When the events of a turn
/// have taken 10 ms, the rest comes with the next turn, so that neither work nor replies wait for all of them.
///
/// A turn needs the ``TurnRight``. The queue's thread takes it for each turn and returns it while it waits; meanwhile
/// ``perform(_:)`` may take a turn on another thread, with only its work and ``turnEnded``. Events are fetched without
/// the right, so another thread's turn may come in between: whether an event is delivered depends, as after any earlier
/// handler, on the registrations and interests at its delivery.
///
/// `@unchecked Sendable`: confined to turns (before ``start()``: to the thread that makes it), which ``assertOnLoop()``
/// checks. Exceptions: `source` and `waiters` belong to the queue, the fetched events to its thread; ``submit(_:)``,
/// ``perform(_:)``, ``stop(_:)``, ``turns`` and ``waitsForThisThread`` may be called from any thread. The loop retains
/// itself from start to stop.
public final class EventLoop: @unchecked Sendable {
    /// Called once at the end of each turn.
    public var turnEnded: (() -> Void)?
    /// Threads that may leave their processor to the loop. Set before ``start()``.
    public var waiters: [any LoopWaiter] = []
    /// Called when the time set by ``setDeadline(_:)`` has come, never before. Then there is no deadline until a new
    /// deadline is set.
    public var deadlineReached: (() -> Void)?

    private let queue: DispatchQueue
    private let epoll: Epoll
    /// The epoll descriptor of the descriptors that give way, which is itself in ``epoll``.
    private let givingWay: Epoll
    private let mailbox: Mailbox
    private let timer: DeadlineTimer
    private let right = TurnRight()
    private let isStarted = Atomic(false)
    private let stopping = Atomic(false)
    private let ended = Atomic<UInt64>(0)
    /// The processor on which the queue's thread began its turn, or waits for the right; −1 if it does neither. The
    /// number is a hint, since the thread may move.
    private let processor = Atomic<Int32>(-1)
    private var source: (any DispatchSourceRead)?
    /// The number of events of the last fetch, and the number of delivered events.
    private var (fetched, delivered) = (0, 0)
    private var (hasMail, isTime, hasGivenWay) = (false, false, false)

    private var slots: [Slot] = []
    private var freeSlots: [UInt32] = []
    private var pauses: [(registration: Registration, until: UInt64)] = []
    private var deadline = UInt64.max

    private struct Slot {
        var generation: UInt32 = 0
        var handler: (any EventHandler)?
        var descriptor: Int32 = -1
        var interest: Readiness = []
        var isPaused = false
        var isWatched = false
        var givesWay = false
    }

    /// The longest time for the events of one turn, in nanoseconds.
    private static let longestTurn: UInt64 = 10_000_000
    /// When a descriptor is watched again that could not be, in nanoseconds.
    private static let shortage: UInt64 = 100_000_000

    /// The loop's share of scarce processors, by the nice value of Dispatch's threads.
    public enum Share {
        /// 0.
        case usual
        /// 2: two thirds of the usual share.
        case lower
        /// 10: a tenth of the usual share.
        case lowest
    }

    public init(label: String, share: Share = .usual) throws(SystemError) {
        let quality: DispatchQoS =
            switch share {
            case .usual: .unspecified
            case .lower: .utility
            case .lowest: .background
            }
        queue = DispatchQueue(label: label, qos: quality)
        epoll = try Epoll()
        givingWay = try Epoll(capacity: 1)
        mailbox = try Mailbox()
        timer = try DeadlineTimer()
        try epoll.add(mailbox.raw, .readable, token: Registration.mailboxToken)
        try epoll.add(timer.descriptor.raw, .readable, token: Registration.timerToken)
        try epoll.add(givingWay.descriptor.raw, .readable, token: Registration.givingWayToken)
    }

    /// Begins. Call once, when the hooks are set.
    public func start() {
        let source = DispatchSource.makeReadSource(fileDescriptor: epoll.descriptor.raw, queue: queue)
        self.source = source
        source.setEventHandler { self.run() }
        isStarted.store(true, ordering: .releasing)
        source.activate()
    }

    /// Ends after the present turn; releases handlers, hooks and work that has not begun. Call once, from any thread.
    ///
    /// - Parameter stopped: Called on the loop's queue when all is released.
    public func stop(_ stopped: @escaping @Sendable () -> Void = {}) {
        stopping.store(true, ordering: .releasing)
        mailbox.close()
        queue.async {
            guard let source = self.source else {
                self.releaseAll()
                return stopped()
            }
            self.source = nil
            // The closure retains self, which keeps the descriptors open until Dispatch has released them.
            source.setCancelHandler {
                self.releaseAll()
                stopped()
            }
            source.cancel()
        }
    }

    /// Passes work to the loop, from any thread. Work begins in the order submitted; after ``stop(_:)`` it is dropped.
    public func submit(_ work: @escaping @Sendable () -> Void) { mailbox.post(work) }

    /// Does work in a turn of its own on this thread if the loop is at rest, which saves a wake-up of the loop's
    /// thread. Otherwise the call is as ``submit(_:)``: during a turn, while work waits, and before ``start()``. Work
    /// of one thread is done in order in either case. From any thread.
    public func perform(_ work: @escaping @Sendable () -> Void) {
        let isDone = right.takeIfFree {
            // Earlier work comes first, and after `stop` none is done.
            guard isStarted.load(ordering: .acquiring), !stopping.load(ordering: .acquiring), mailbox.isEmpty
            else { return false }
            work()
            turnEnded?()
            return true
        }
        if !isDone { submit(work) }
    }

    /// Whether the present turn cannot go on while this thread runs, since both share a processor; nil if there is no
    /// turn. May be called from any thread.
    public var waitsForThisThread: Bool? {
        let processor = processor.load(ordering: .relaxed)
        return processor < 0 ? nil : processor == clinux_processor()
    }

    /// The number of ended turns, by which a busy loop shows progress, however slow. From any thread.
    public var turns: UInt64 { ended.load(ordering: .relaxed) }

    /// Traps when called outside the loop's turns.
    public func assertOnLoop() { precondition(right.isMine || !isStarted.load(ordering: .relaxed)) }

    private func releaseAll() {
        right.take {
            turnEnded = nil
            waiters = []
            deadlineReached = nil
            let handlers = slots
            slots = []
            freeSlots = []
            pauses = []
            withExtendedLifetime(handlers) {}
        }
    }
}

/// Turns.
extension EventLoop {
    private func run() {
        while !stopping.load(ordering: .acquiring) {
            if delivered == fetched {
                (fetched, delivered) = (nextEvents(), 0)
                guard fetched > 0 else { return }
            }
            processor.store(clinux_processor(), ordering: .relaxed)
            right.take { takeTurn() }
            processor.store(-1, ordering: .relaxed)
            ended.store(ended.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
        }
    }

    private func nextEvents() -> Int {
        if waiters.contains(where: \.isAway) {
            let count = epoll.wait(0)
            if count > 0 { return count }
            for waiter in waiters { waiter.goOn() }
        }
        return epoll.wait(Epoll.linger)
    }

    private func takeTurn() {
        let isRest = delivered > 0
        if !isRest { for index in 0..<fetched { note(epoll.event(index).token) } }
        deliverEvents()
        // In a long turn, and after a long turn, newer work does not wait for the rest of the events.
        let isLong = isRest || delivered < fetched
        if hasMail || isLong && !mailbox.isEmpty { mailbox.runWork() }
        if isTime || isLong && deadline <= Clock.now() { timerFired() }
        if hasGivenWay, givingWay.wait(0) > 0 { deliver(givingWay.event(0)) }
        (hasMail, isTime, hasGivenWay) = (false, false, false)
        turnEnded?()
    }

    private func note(_ token: UInt64) {
        switch token {
        case Registration.mailboxToken: hasMail = true
        case Registration.timerToken: isTime = true
        case Registration.givingWayToken: hasGivenWay = true
        default: break
        }
    }

    private func deliverEvents() {
        let end = fetched - delivered > 1 ? Clock.now() + Self.longestTurn : .max
        while delivered < fetched {
            let event = epoll.event(delivered)
            delivered += 1
            if event.token < Registration.givingWayToken { deliver(event) }
            if end < .max, Clock.now() >= end { return }
        }
    }

    private func deliver(_ event: Epoll.Event) {
        // An earlier handler of this turn may have ended the registration or reduced its interest.
        guard let slot = slot(Registration(token: event.token)), slot.isWatched, let handler = slot.handler
        else { return }
        let readiness = event.isFailure ? slot.interest : event.readiness.intersection(slot.interest)
        if !readiness.isEmpty { handler.ready(readiness) }
    }

    private func slot(_ registration: Registration) -> Slot? {
        guard registration.slot < slots.count else { return nil }
        let slot = slots[Int(registration.slot)]
        return slot.generation == registration.generation ? slot : nil
    }
}

/// Descriptors.
extension EventLoop {
    /// Watches a nonblocking descriptor, level-triggered. The loop retains the handler until ``unregister(_:)``.
    ///
    /// - Parameter givesWay: Whether a turn delivers only one event of all such descriptors, after the events of other
    ///   descriptors; until ``giveWayNoMore(_:)``.
    public func register(
        _ descriptor: borrowing Descriptor, _ interest: Readiness, givesWay: Bool = false, _ handler: any EventHandler
    ) throws(SystemError) -> Registration {
        assertOnLoop()
        let index = freeSlots.popLast() ?? UInt32(slots.count)
        if index == slots.count { slots.append(Slot()) }
        let registration = Registration(slot: index, generation: slots[Int(index)].generation)
        if !interest.isEmpty {
            do {
                try (givesWay ? givingWay : epoll).add(descriptor.raw, interest, token: registration.token)
            } catch {
                freeSlots.append(index)
                throw error
            }
        }
        slots[Int(index)] = Slot(
            generation: registration.generation, handler: handler, descriptor: descriptor.raw, interest: interest,
            isWatched: !interest.isEmpty, givesWay: givesWay)
        return registration
    }

    /// Changes the interest; with an empty set no event is reported, not even an error.
    public func update(_ registration: Registration, _ interest: Readiness) {
        assertOnLoop()
        guard let slot = slot(registration), slot.interest != interest else { return }
        slots[Int(registration.slot)].interest = interest
        watch(registration)
    }

    /// Ends ``register(_:_:givesWay:_:)``'s `givesWay` of a descriptor.
    public func giveWayNoMore(_ registration: Registration) {
        assertOnLoop()
        guard let slot = slot(registration), slot.givesWay else { return }
        if slot.isWatched { givingWay.remove(slot.descriptor) }
        slots[Int(registration.slot)].givesWay = false
        slots[Int(registration.slot)].isWatched = false
        watch(registration)
    }

    /// Reports no event for a while; then as before, or as ``update(_:_:)`` has set meanwhile.
    public func pause(_ registration: Registration, nanoseconds: UInt64) {
        assertOnLoop()
        guard let slot = slot(registration), !slot.isPaused else { return }
        beginPause(registration, nanoseconds: nanoseconds)
        watch(registration)
    }

    /// Ends a registration, also from within a handler: events already fetched are not delivered. Call it before the
    /// descriptor is closed.
    ///
    /// - Parameter closing: Whether the descriptor is closed right afterwards, and has no duplicate: the kernel then
    ///   forgets it by itself (epoll(7), question 6), which saves a system call.
    public func unregister(_ registration: Registration, closing: Bool = false) {
        assertOnLoop()
        guard let slot = slot(registration) else { return }
        if slot.isWatched, !closing { watcher(of: slot).remove(slot.descriptor) }
        slots[Int(registration.slot)] = Slot(generation: registration.generation &+ 1)
        freeSlots.append(registration.slot)
    }

    /// The epoll descriptor that watches the slot's descriptor.
    private func watcher(of slot: Slot) -> Epoll { slot.givesWay ? givingWay : epoll }

    /// Sets epoll's interest to that of a slot.
    private func watch(_ registration: Registration) {
        let slot = slots[Int(registration.slot)]
        let wanted = slot.isPaused ? [] : slot.interest
        var isWatched = !wanted.isEmpty
        if !isWatched {
            if slot.isWatched { watcher(of: slot).remove(slot.descriptor) }
        } else if slot.isWatched {
            watcher(of: slot).modify(slot.descriptor, wanted, token: registration.token)
        } else {
            // The call fails only if the kernel has no memory, or the user has reached the limit of watches.
            do { try watcher(of: slot).add(slot.descriptor, wanted, token: registration.token) } catch {
                isWatched = false
                beginPause(registration, nanoseconds: Self.shortage)
            }
        }
        slots[Int(registration.slot)].isWatched = isWatched
    }

    private func beginPause(_ registration: Registration, nanoseconds: UInt64) {
        slots[Int(registration.slot)].isPaused = true
        pauses.append((registration, Clock.now() + nanoseconds))
        arm()
    }
}

/// Time.
extension EventLoop {
    /// Sets when ``deadlineReached`` is called next, in the time of ``Clock``; nil for never. The former deadline is
    /// replaced. The call costs a system call only if the deadline is earlier than the timer's.
    public func setDeadline(_ at: UInt64?) {
        assertOnLoop()
        deadline = at ?? .max
        arm()
    }

    private func timerFired() {
        timer.acknowledge()
        let now = Clock.now()
        if !pauses.isEmpty {
            let ended = pauses.filter { $0.until <= now }
            pauses.removeAll { $0.until <= now }
            for pause in ended where slot(pause.registration) != nil {
                slots[Int(pause.registration.slot)].isPaused = false
                watch(pause.registration)
            }
        }
        if deadline <= now {
            deadline = .max
            deadlineReached?()
        }
        arm()
    }

    private func arm() { timer.arm(pauses.reduce(deadline) { min($0, $1.until) }) }
}
