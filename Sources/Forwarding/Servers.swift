public import Base

/// Whether one upstream server answers, and why not when it does not.
public struct ServerHealth: Sendable, Equatable {
    /// Failed attempts since the last one that was answered.
    public internal(set) var consecutiveFailures = 0
    /// Why the last failed attempt failed; kept when it answers again.
    public internal(set) var lastFailure: Failure?
    public internal(set) var lastFailureAt: Tick?
    /// Smoothed as TCP does it (RFC 6298 §2), in milliseconds; nil before the first answer.
    public internal(set) var roundTrip: Double?
    /// Not asked before then: it said that it is asked too often, or that it refuses the account.
    public internal(set) var pausedUntil: Tick?
    public internal(set) var answers: UInt64 = 0
    public internal(set) var failures: UInt64 = 0

    /// Pauses in a row since it last answered.
    private var pauses = 0

    func isPaused(at now: Tick) -> Bool { pausedUntil.map { now < $0 } ?? false }

    /// - Returns: true when it failed before: it answers again.
    mutating func answered(roundTrip sample: Int, at now: Tick) -> Bool {
        answers += 1
        roundTrip = roundTrip.map { $0 + (Double(sample) - $0) / 8 } ?? Double(sample)
        // What it still answers in a pause was asked before it.
        if !isPaused(at: now) { pauses = 0 }
        defer { consecutiveFailures = 0 }
        return consecutiveFailures > 0
    }

    /// - Returns: true when this is news: it answered before, or it fails for another kind of reason.
    mutating func failed(_ failure: Failure, at now: Tick) -> Bool {
        failures += 1
        consecutiveFailures += 1
        if let seconds = pause(after: failure, at: now) {
            let end = now.advanced(milliseconds: seconds * 1000)
            pausedUntil = max(pausedUntil ?? end, end)
        }
        defer {
            lastFailure = failure
            lastFailureAt = now
        }
        return consecutiveFailures == 1 || lastFailure?.kind != failure.kind
    }

    /// HTTP 429 doubles the pause from one second on, unless the server says how long; HTTP 401 is a matter of account
    /// or clock, and asking on would only be billed or blocked. In seconds.
    private mutating func pause(after failure: Failure, at now: Tick) -> Int? {
        switch failure.kind {
        case .tooOften:
            if let seconds = failure.retryAfter { return min(max(seconds, 1), Self.longestPause) }
            // Requests that were under way together are told off together: that is one pause.
            guard !isPaused(at: now) else { return nil }
            pauses += 1
            return min(1 << min(pauses - 1, 6), Self.longestPause)
        case .unauthorized: return Self.unauthorizedPause
        default: return nil
        }
    }

    mutating func endPause() {
        pausedUntil = nil
        pauses = 0
    }

    /// In seconds: nobody wants to wait longer for a service that is asked less now.
    static let longestPause = 60
    static let unauthorizedPause = 5
}

/// The HTTPDNS servers in the order of `dnsIp`, and which of them is asked now.
///
/// The first is preferred. After `retryTimesBeforeSwitchServer` failed attempts in a row the next one takes over; after
/// `minutesBeforeSwitchToMain` one live request tries the first again, and only its answer brings it back.
struct ServiceServers {
    private(set) var health: [ServerHealth]
    private(set) var current = 0
    /// When the first is tried again.
    private var returnAt: Tick?
    private var isProbing = false
    /// Failed attempts in a row at the current server since it became so.
    private var failedAttempts = 0
    private var retryTimes = 1
    private var returnAfter = 0
    /// Which list of servers this is: a number means another server in another list.
    let list: Int

    init(count: Int, list: Int = 0, _ timing: Timing) {
        self.list = list
        health = Array(repeating: ServerHealth(), count: count)
        heed(timing)
    }

    mutating func heed(_ timing: Timing) {
        retryTimes = max(1, timing.retryTimesBeforeSwitchServer)
        returnAfter = timing.minutesBeforeSwitchToMain * 60_000
    }

    /// The server for a request whose names were not answered by those in `tried`; nil when all were tried or want to
    /// be left alone.
    func choose(excluding tried: Set<Int>, at now: Tick) -> Int? {
        func isOpen(_ server: Int) -> Bool { !tried.contains(server) && !health[server].isPaused(at: now) }
        if current != 0, !isProbing, isOpen(0), let returnAt, returnAt <= now {
            return 0
        }
        return health.indices.lazy.map { [count = health.count, current] in ($0 + current) % count }.first(
            where: isOpen)
    }

    /// A request goes out to a server: if it is the first one while another is in use, its answer decides.
    mutating func asked(_ server: Int) {
        if server == 0, current != 0 { isProbing = true }
    }

    mutating func answered(_ server: Int, roundTrip: Int, at now: Tick) -> [Event] {
        var events: [Event] = []
        if health[server].answered(roundTrip: roundTrip, at: now) {
            events.append(.serviceAnswersAgain(server: server))
        }
        if server == current { failedAttempts = 0 }
        if server == 0, current != 0 {
            events.append(.serviceReturned(from: current))
            current = 0
            failedAttempts = 0
            returnAt = nil
            isProbing = false
        }
        return events
    }

    mutating func failed(_ server: Int, _ failure: Failure, at now: Tick) -> [Event] {
        var events: [Event] = []
        if health[server].failed(failure, at: now) {
            events.append(.serviceFailing(server: server, failure))
        }
        if server == current {
            failedAttempts += 1
            guard failedAttempts >= retryTimes, health.count > 1 else { return events }
            current = (current + 1) % health.count
            failedAttempts = 0
            returnAt = now.advanced(milliseconds: returnAfter)
            isProbing = false
            events.append(.serviceSwitched(from: server, to: current))
        } else if server == 0 {
            isProbing = false
            returnAt = now.advanced(milliseconds: returnAfter)
        }
        return events
    }

    /// Another network: what failed may work, and the first server is tried again with the next request.
    mutating func networkChanged(at now: Tick) {
        for server in health.indices { health[server].endPause() }
        failedAttempts = 0
        if current != 0 { (returnAt, isProbing) = (now, false) }
    }

    /// Why the server that is asked now failed last.
    var lastFailure: Failure? { health.isEmpty ? nil : health[current].lastFailure }
}
