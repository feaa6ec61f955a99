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
    /// How far round trips usually are from that, in milliseconds, smoothed likewise.
    private var variation = 0.0
    /// Not asked before then: it said that it is asked too often, or that it refuses the account.
    public internal(set) var pausedUntil: Tick?
    public internal(set) var answers: UInt64 = 0
    public internal(set) var failures: UInt64 = 0

    /// Pauses in a row since it last answered.
    private var pauses = 0

    public func isPaused(at now: Tick) -> Bool { pausedUntil.map { now < $0 } ?? false }

    /// - Returns: true when it failed before: it answers again.
    mutating func answered(roundTrip sample: Int, at now: Tick) -> Bool {
        answers += 1
        measure(Double(sample))
        // What it still answers in a pause was asked before it.
        if !isPaused(at: now) { pauses = 0 }
        defer { consecutiveFailures = 0 }
        return consecutiveFailures > 0
    }

    private mutating func measure(_ sample: Double) {
        guard let before = roundTrip else {
            (roundTrip, variation) = (sample, sample / 2)
            return
        }
        variation += (abs(sample - before) - variation) / 4
        roundTrip = before + (sample - before) / 8
    }

    /// Milliseconds within which nearly all answers come; nil before the first.
    var usualRoundTrip: Double? { roundTrip.map { $0 + 2 * variation } }

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
        case .unauthorized: return min(failure.retryAfter ?? Self.unauthorizedPause, Self.longestPause)
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
