import Base

/// Decides when a store is dialled and given up, and whether it takes entries.
struct StoreHealth {
    private var state = State.off
    /// When the state began; for `away`, when it ends.
    private var moment = Tick(nanoseconds: 0)
    /// Seconds to wait before the next attempt to connect.
    private var pause = 0
    private var failuresInARow = 0
    /// Whether the log has reported that the store is away.
    private var isAbsenceReported = false
    /// Why the store is away, or takes no entries while it is in use.
    private(set) var reason = ""
    private var nextLook = Tick(nanoseconds: 0)
    /// Until when no entries are written, and the length of that pause in seconds.
    private var writesPausedUntil: Tick?
    private var writePause = 0

    /// The number of times that the store was given up.
    private(set) var outages: UInt64

    init(outages: UInt64 = 0) { self.outages = outages }

    private enum State { case off, dialling, on, away }

    /// In milliseconds.
    private static let dialTime = 2000
    private static let failuresToGoAway = 5
    /// In seconds.
    private static let longestPause = 60
    /// Milliseconds between two reads of the generation.
    private static let lookTime = 10_000
    /// A connection that lasted so many milliseconds resets the count of failures.
    private static let goodTime = 60_000

    var isOn: Bool { state == .on }
    /// Whether the store is connected, is being dialled, or will be dialled.
    var isInUse: Bool { state != .off }
    /// When the store is dialled again.
    var nextTry: Tick? { state == .away ? moment : nil }

    var nextDeadline: Tick? {
        switch state {
        case .off: nil
        case .dialling, .away: moment
        case .on: nextLook
        }
    }

    mutating func expire(at now: Tick, _ actions: inout [Action]) {
        guard let next = nextDeadline, next <= now else { return }
        switch state {
        case .dialling: goAway("no connection within \(Self.dialTime) ms", at: now, &actions)
        case .away: dial(at: now, &actions)
        case .on:
            nextLook = now.advanced(milliseconds: Self.lookTime)
            actions.append(.shared(.lookForGeneration))
        case .off: break
        }
    }

    mutating func dial(at now: Tick, _ actions: inout [Action]) {
        (state, moment) = (.dialling, now.advanced(milliseconds: Self.dialTime))
        actions.append(.shared(.dial))
    }

    /// - Returns: Whether the connection was awaited.
    mutating func connected(at now: Tick, _ actions: inout [Action]) -> Bool {
        guard state == .dialling else { return false }
        (state, moment, failuresInARow) = (.on, now, 0)
        nextLook = now.advanced(milliseconds: Self.lookTime)
        (isAbsenceReported, reason) = (false, "")
        actions.append(.report(.sharedCacheOn))
        return true
    }

    /// Gives the store up: no question reads it until it is connected again.
    mutating func goAway(_ why: String, at now: Tick, _ actions: inout [Action]) {
        guard state == .on || state == .dialling else { return }
        outages += 1
        if isOn, now.milliseconds(since: moment) >= Self.goodTime { pause = 0 }
        pause = min(max(1, 2 * pause), Self.longestPause)
        (state, moment, failuresInARow) = (.away, now.advanced(milliseconds: pause * 1000), 0)
        actions.append(.shared(.hangUp))
        reason = why
        if !isAbsenceReported { actions.append(.report(.sharedCacheOff(why))) }
        isAbsenceReported = true
    }

    /// A store that is away may be reachable in the present network.
    mutating func networkChanged(at now: Tick, _ actions: inout [Action]) {
        pause = 0
        if state == .away { dial(at: now, &actions) }
    }

    mutating func answered() { failuresInARow = 0 }

    mutating func failed(_ why: String, at now: Tick, _ actions: inout [Action]) {
        failuresInARow += 1
        if failuresInARow >= Self.failuresToGoAway { goAway(why, at: now, &actions) }
    }

    // MARK: Writes

    func takesWrites(at now: Tick) -> Bool { isOn && now >= writesPausedUntil ?? now }

    mutating func written(_ actions: inout [Action]) {
        guard writePause > 0 else { return }
        (writePause, writesPausedUntil, reason) = (0, nil, "")
        actions.append(.report(.sharedCacheTakesAgain))
    }

    mutating func writeFailed(_ why: String, at now: Tick, _ actions: inout [Action]) {
        // The write was under way when the first write failed.
        if let writesPausedUntil, now < writesPausedUntil { return }
        if writePause == 0 { actions.append(.report(.sharedCacheTakesNothing(why))) }
        reason = why
        writePause = min(max(1, 2 * writePause), Self.longestPause)
        writesPausedUntil = now.advanced(milliseconds: writePause * 1000)
    }
}

/// The ages of a store's entries, by clocks that may differ.
struct StoreClock {
    /// The largest lead of another daemon's wall clock over the ticks of this machine, in seconds, learnt from an entry
    /// dated ahead; retained for an hour and added to every entry's age. If it exceeds this machine's wall clock, one
    /// of the two clocks is wrong. If this machine's clock is set, the difference changes with it.
    private var skew: (beyondTicks: Int64, until: Tick)?

    /// Seconds by which an entry may be in the future: clocks are never quite the same.
    static let tolerance: UInt64 = 2
    /// In milliseconds.
    private static let skewTime = 3_600_000

    /// The use of an entry now.
    enum Worth: Equatable {
        /// Written `elapsed` seconds ago; given only if no server answers.
        case fresh(elapsed: UInt32, isDue: Bool)
        /// Written `elapsed` seconds ago; given only if no server answers.
        case stale(elapsed: UInt32)
        /// The entry's time is over, or the group has given a later answer.
        case nothing
        /// The entry is in the future: the writer's clock or this machine's clock is wrong.
        case ahead

        var isFresh: Bool { if case .fresh = self { true } else { false } }
    }

    /// - Parameters:
    ///   - known: When the cache got the group's latest answer, in seconds of ``Tick``; nil if it has none.
    ///   - wall: The time, in seconds since 1970.
    mutating func worth(
        _ entry: SharedEntry, isStaleCopy: Bool, _ settings: SharedSettings, after known: Int? = nil, wall: UInt64,
        at now: Tick
    ) -> Worth {
        guard entry.stored <= wall + Self.tolerance else {
            let ahead = max(lead(wall, now), min(entry.stored - wall, UInt64(StoreDesk.mostStale)))
            skew = (Self.beyondTicks(wall, now) + Int64(ahead), now.advanced(milliseconds: Self.skewTime))
            return .ahead
        }
        let age = wall - min(wall, entry.stored) + lead(wall, now)
        let lifetime = UInt64(entry.lifetime)
        if isStaleCopy {
            // A copy is never fresh, whatever the clocks show: otherwise the store would still have the entry itself.
            let elapsed = max(age, lifetime)
            return elapsed < lifetime + UInt64(settings.staleSeconds) ? .stale(elapsed: UInt32(elapsed)) : .nothing
        }
        let latest = Int(now.seconds) - Int(age) + Int(Self.tolerance)
        guard age < lifetime, latest >= known ?? latest else { return .nothing }
        let share = settings.prefetchAt == 0 ? 75 : settings.prefetchAt
        return .fresh(elapsed: UInt32(age), isDue: age * 100 >= lifetime * UInt64(share))
    }

    /// The seconds by which a clock of the fleet is known to be ahead of this machine's clock.
    private func lead(_ wall: UInt64, _ now: Tick) -> UInt64 {
        guard let skew, now < skew.until else { return 0 }
        return UInt64(max(0, skew.beyondTicks - Self.beyondTicks(wall, now)))
    }

    private static func beyondTicks(_ wall: UInt64, _ now: Tick) -> Int64 {
        Int64(min(wall, UInt64(UInt32.max))) - Int64(now.seconds)
    }
}

/// The times of the last reads of a store, and the resulting wait for the next read.
struct StorePace {
    private var reads: [(nanoseconds: UInt64, isHit: Bool)] = []
    private var oldest = 0
    /// The time within which nearly all reads got a reply (the 95th percentile), in nanoseconds; nil: too few are
    /// known.
    private(set) var usual: UInt64?

    private static let count = 20

    mutating func add(_ time: UInt64, _ isHit: Bool) {
        if reads.count < Self.count {
            reads.append((time, isHit))
        } else {
            reads[oldest] = (time, isHit)
            oldest = (oldest + 1) % Self.count
        }
        if reads.count == Self.count { usual = reads.map(\.nanoseconds).sorted()[Self.count * 95 / 100 - 1] }
    }

    /// Milliseconds that a question waits.
    var budget: Int {
        guard let usual else { return StoreDesk.mostWait }
        if reads.count(where: \.isHit) * 10 < Self.count {
            // The store seldom helps: questions wait only if that is hardly noticed, so that it can help again.
            return usual <= 1_000_000 ? 1 : 0
        }
        return min(max(1, Int((2 * usual + 999_999) / 1_000_000)), StoreDesk.mostWait)
    }

    var isTooSlow: Bool { usual.map { $0 > UInt64(StoreDesk.mostWait) * 1_000_000 } ?? false }
}
