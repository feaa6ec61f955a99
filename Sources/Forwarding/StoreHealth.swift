import Base

/// Whether a store is in use: when it is dialled and given up, and whether it takes entries.
struct StoreHealth {
    private var state = State.off
    /// When the state began; for `away`, when it ends.
    private var moment = Tick(nanoseconds: 0)
    /// Seconds to wait before the next attempt to connect.
    private var pause = 0
    private var failuresInARow = 0
    /// Whether the log has reported that the store is away.
    private var isAbsenceReported = false
    /// Why the store is away.
    private(set) var reason = ""
    private var nextLook = Tick(nanoseconds: 0)
    /// Until when no entries are written; then the pause in seconds.
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
    /// Whether it is connected, is being dialled, or will be.
    var isInUse: Bool { state != .off }
    /// When it is dialled again.
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

    mutating func answered() { failuresInARow = 0 }

    mutating func failed(_ why: String, at now: Tick, _ actions: inout [Action]) {
        failuresInARow += 1
        if failuresInARow >= Self.failuresToGoAway { goAway(why, at: now, &actions) }
    }

    // MARK: Writes

    func takesWrites(at now: Tick) -> Bool { isOn && now >= writesPausedUntil ?? now }

    mutating func written(_ actions: inout [Action]) {
        guard writePause > 0 else { return }
        (writePause, writesPausedUntil) = (0, nil)
        actions.append(.report(.sharedCacheTakesAgain))
    }

    mutating func writeFailed(_ why: String, at now: Tick, _ actions: inout [Action]) {
        // The write was under way when the first one failed.
        if let writesPausedUntil, now < writesPausedUntil { return }
        if writePause == 0 { actions.append(.report(.sharedCacheTakesNothing(why))) }
        writePause = min(max(1, 2 * writePause), Self.longestPause)
        writesPausedUntil = now.advanced(milliseconds: writePause * 1000)
    }
}
