import Base

/// Decides about the store of a fleet: whether it is asked, how long a question waits for it, and when it is dialled.
///
/// The rule behind all of it is that nothing is ever slower or less reliable than without a store. It is told of what
/// has happened and of the time, and appends to `actions` and `events`.
struct SharedCache {
    /// Nil: no store is configured.
    private(set) var settings: SharedSettings?
    private(set) var counters = SharedCacheCounters()
    private var state = State.off
    private(set) var actions: [SharedAction] = []
    private(set) var events: [Event] = []
    /// When the state began; for `away`, when it ends.
    private var moment = Tick(nanoseconds: 0)
    /// Seconds to wait before the next attempt to connect.
    private var pause = 0
    private var failuresInARow = 0
    /// Whether the log has said that the store is away.
    private var isSaidAway = false
    /// Why the store is away.
    private(set) var reason = ""
    private var underWay = 0
    /// Since when a reply is awaited: since the store's last reply, or since the first request after it owed none; nil
    /// while it owes none.
    private var owesSince: Tick?
    private var recent = RecentReads()
    /// Writes are given up until then, after this many seconds.
    private var writesPausedUntil: Tick?
    private var writePause = 0
    private var isClockSaid = false
    /// What the clock that is furthest ahead says, as an entry from the future has shown, less the ticks, in seconds: until
    /// an hour after the last such entry. By as much as this is ahead of this machine's clock, one of the two is wrong at
    /// least, so that any entry may be that much older than it seems. When this machine's clock is set, that changes with it.
    private var furthest: (beyondTicks: Int64, until: Tick)?
    private var nextLook: Tick?

    private enum State { case off, dialling, on, away }

    /// The longest that a client's question waits for the store, in milliseconds.
    static let mostWait = 5
    /// Milliseconds after which a read has failed.
    static let readTime = 50
    static let dialTime = 2000
    static let failuresToGoAway = 5
    /// The most reads under way: they are answered in order, so more would only wait.
    static let maximumReads = 256
    /// In seconds.
    static let longestPause = 60
    /// Milliseconds between two looks for the generation.
    static let lookTime = 10_000
    /// The least seconds for which an answer must be fresh to be shared (interface), and the longest that a copy is kept.
    static let leastLifetime: UInt32 = 5
    static let mostStale: UInt32 = 86_400
    /// Seconds by which an entry may lie in the future: clocks are never quite the same.
    static let clockTolerance: UInt64 = 2
    /// In milliseconds.
    private static let skewTime = 3_600_000
    /// A connection that held for so many milliseconds forgets earlier failures.
    private static let goodTime = 60_000

    var isOn: Bool { if case .on = state { true } else { false } }

    // MARK: Connection

    /// Applies other settings: the store may be another, so it is dialled anew.
    mutating func begin(_ new: SharedSettings?, at now: Tick) {
        if state != .off { actions.append(.hangUp) }
        let kept = counters
        self = SharedCache()
        (settings, counters) = (new, kept)
        if new != nil { dial(at: now) }
    }

    private mutating func dial(at now: Tick) {
        (state, moment) = (.dialling, now.advanced(milliseconds: Self.dialTime))
        actions.append(.dial)
    }

    mutating func connected(at now: Tick) {
        guard case .dialling = state else { return }
        (state, moment) = (.on, now)
        (failuresInARow, underWay, owesSince, recent) = (0, 0, nil, RecentReads())
        nextLook = now.advanced(milliseconds: Self.lookTime)
        (isSaidAway, reason) = (false, "")
        events.append(.sharedCacheOn)
    }

    /// The store cannot be used: no question looks at it until it is connected again.
    mutating func goAway(_ why: String, at now: Tick) {
        guard state == .on || state == .dialling else { return }
        if isOn, now.milliseconds(since: moment) >= Self.goodTime { pause = 0 }
        pause = min(max(1, 2 * pause), Self.longestPause)
        (state, moment, nextLook) = (.away, now.advanced(milliseconds: pause * 1000), nil)
        (failuresInARow, underWay, owesSince) = (0, 0, nil)
        actions.append(.hangUp)
        counters.outages += 1
        reason = why
        if !isSaidAway { events.append(.sharedCacheOff(why)) }
        isSaidAway = true
    }

    var nextDeadline: Tick? {
        switch state {
        case .off: nil
        case .dialling, .away: moment
        case .on: nextLook
        }
    }

    mutating func expire(at now: Tick) {
        guard let next = nextDeadline, next <= now else { return }
        switch state {
        case .dialling: goAway("no connection within \(Self.dialTime) ms", at: now)
        case .away: dial(at: now)
        case .on:
            nextLook = now.advanced(milliseconds: Self.lookTime)
            actions.append(.lookForGeneration)
        case .off: break
        }
    }

    // MARK: Reads

    /// How many milliseconds a client's question waits for a read that begins now: 0, not at all, though its answer
    /// still counts; nil: the store is not asked.
    mutating func budget(at now: Tick) -> Int? {
        guard isOn, underWay < Self.maximumReads else { return nil }
        // Reads are answered in order: behind one that is late, the next is later still.
        if let owesSince, now.milliseconds(since: owesSince) >= Self.mostWait { return 0 }
        return recent.budget
    }

    mutating func begin(_ action: SharedAction, at now: Tick) {
        underWay += 1
        if owesSince == nil { owesSince = now }
        if case .read = action { counters.reads += 1 }
        actions.append(action)
    }

    /// A read or a claim was answered.
    /// - Parameter hit: nil for a claim.
    mutating func answered(_ hit: Bool?, after nanoseconds: UInt64, at now: Tick) {
        replied(at: now)
        failuresInARow = 0
        guard let hit else { return }
        if hit { counters.hits += 1 }
        recent.add(nanoseconds, hit)
        if recent.isTooSlow { goAway("it takes longer than \(Self.mostWait) ms", at: now) }
    }

    /// A reply to a read or a claim has come, be it too late or an error.
    mutating func replied(at now: Tick) {
        underWay = max(0, underWay - 1)
        owesSince = underWay > 0 ? now : nil
    }

    /// Something has failed. A reply that did not come in time is still owed.
    mutating func failed(_ why: String, at now: Tick) {
        guard isOn else { return }
        counters.failures += 1
        failuresInARow += 1
        if failuresInARow >= Self.failuresToGoAway { goAway(why, at: now) }
    }

    mutating func ranOut() { counters.late += 1 }
    mutating func leaseLost() { counters.leasesLost += 1 }
    mutating func refused() { counters.refused += 1 }

    // MARK: Entries

    /// What can be done with an entry now.
    enum Worth: Equatable {
        /// Fresh for so long already; to be refreshed if it is past the share of its time that `prefetchAt` says.
        case fresh(elapsed: UInt32, isDue: Bool)
        /// So many seconds since it was written; to be given only when nothing else answers.
        case stale(elapsed: UInt32)
        case nothing

        var elapsed: UInt32? {
            switch self {
            case .fresh(let elapsed, _), .stale(let elapsed): elapsed
            case .nothing: nil
            }
        }
    }

    /// - Parameter wall: seconds since 1970.
    mutating func worth(_ entry: SharedEntry, isStaleCopy: Bool, wall: UInt64, at now: Tick) -> Worth {
        guard let settings else { return .nothing }
        guard entry.stored <= wall + Self.clockTolerance else {
            counters.ignored += 1
            if !isClockSaid { events.append(.sharedCacheClock) }
            isClockSaid = true
            let ahead = max(skew(wall, now), min(entry.stored - wall, UInt64(Self.mostStale)))
            furthest = (Self.beyondTicks(wall, now) + Int64(ahead), now.advanced(milliseconds: Self.skewTime))
            return .nothing
        }
        let age = (wall > entry.stored ? wall - entry.stored : 0) + skew(wall, now)
        if isStaleCopy {
            // It is never fresh, whatever the clocks say: the store would still have the entry itself.
            let elapsed = max(age, UInt64(entry.lifetime))
            guard elapsed < UInt64(entry.lifetime) + UInt64(settings.staleSeconds) else { return .nothing }
            return .stale(elapsed: UInt32(elapsed))
        }
        guard age < UInt64(entry.lifetime) else { return .nothing }
        let share = settings.prefetchAt == 0 ? 75 : settings.prefetchAt
        return .fresh(
            elapsed: UInt32(age), isDue: age * 100 >= UInt64(entry.lifetime) * UInt64(share))
    }

    /// By how many seconds some clock of the fleet is known to be ahead of this machine's.
    private func skew(_ wall: UInt64, _ now: Tick) -> UInt64 {
        guard let furthest, now < furthest.until else { return 0 }
        return UInt64(max(0, furthest.beyondTicks - Self.beyondTicks(wall, now)))
    }

    private static func beyondTicks(_ wall: UInt64, _ now: Tick) -> Int64 {
        Int64(min(wall, UInt64(UInt32.max))) - Int64(now.seconds)
    }

    /// Whether what is asked for past a share of its time is refreshed.
    var refreshes: Bool { settings.map { $0.prefetchAt > 0 } ?? false }

    // MARK: Writes

    mutating func write(_ question: SharedQuestion, _ content: SharedContent, lifetime: UInt32, at now: Tick) {
        guard isOn, let settings, lifetime >= Self.leastLifetime else { return }
        if let writesPausedUntil, now < writesPausedUntil { return }
        actions.append(
            .write(question, content, lifetime: lifetime, stale: min(settings.staleSeconds, Self.mostStale)))
    }

    mutating func written() {
        counters.writes += 1
        guard writePause > 0 else { return }
        (writePause, writesPausedUntil) = (0, nil)
        events.append(.sharedCacheTakesAgain)
    }

    mutating func writeFailed(_ why: String, at now: Tick) {
        counters.writesFailed += 1
        // Those that were under way when the first one failed.
        if let writesPausedUntil, now < writesPausedUntil { return }
        if writePause == 0 { events.append(.sharedCacheTakesNothing(why)) }
        writePause = min(max(1, 2 * writePause), Self.longestPause)
        writesPausedUntil = now.advanced(milliseconds: writePause * 1000)
    }

    mutating func dropped(_ count: Int) { counters.dropped += UInt64(count) }

    mutating func act(_ action: SharedAction) { actions.append(action) }

    mutating func takeActions() -> [SharedAction] { exchange(&actions, with: []) }
    mutating func takeEvents() -> [Event] { exchange(&events, with: []) }

    var overview: SharedCacheOverview {
        SharedCacheOverview(
            isOn: isOn, reason: reason, nextTry: state == .away ? moment : nil, budget: recent.budget,
            usual: recent.usual, counters: counters)
    }
}

/// How the last reads went.
private struct RecentReads {
    private var nanoseconds: [UInt64] = []
    private var hits: [Bool] = []
    private var place = 0
    /// The time within which nearly all of them were answered (the 95th percentile), in nanoseconds; nil while too few
    /// are known.
    private(set) var usual: UInt64?

    private static let count = 20

    mutating func add(_ time: UInt64, _ hit: Bool) {
        if nanoseconds.count < Self.count {
            nanoseconds.append(time)
            hits.append(hit)
        } else {
            (nanoseconds[place], hits[place]) = (time, hit)
            place = (place + 1) % Self.count
        }
        if nanoseconds.count == Self.count { usual = nanoseconds.sorted()[Self.count * 95 / 100 - 1] }
    }

    /// Milliseconds that a question waits.
    var budget: Int {
        guard let usual else { return SharedCache.mostWait }
        let milliseconds = { (time: UInt64) in Int((time + 999_999) / 1_000_000) }
        if hits.count(where: { $0 }) * 10 < Self.count {
            // It seldom helps: it is waited for only where that is hardly noticed, so that it can help again.
            return usual <= 1_000_000 ? 1 : 0
        }
        return min(max(1, milliseconds(2 * usual)), SharedCache.mostWait)
    }

    var isTooSlow: Bool { usual.map { $0 > UInt64(SharedCache.mostWait) * 1_000_000 } ?? false }
}
