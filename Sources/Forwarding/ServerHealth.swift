public import Base

/// Whether an upstream server answers; if not, the reason.
public struct ServerHealth: Sendable, Equatable {
    /// Failed attempts since the last answer.
    public internal(set) var consecutiveFailures = 0
    /// The reason of the last failed attempt; stays when the server answers again.
    public internal(set) var lastFailure: Failure?
    /// When the last attempt failed; nil if no attempt has.
    public internal(set) var lastFailureAt: Tick?
    /// The round trip, smoothed as in TCP (RFC 6298 §2), in milliseconds; nil before the first answer.
    public internal(set) var roundTrip: Double?
    /// The usual deviation of round trips from ``roundTrip``, in milliseconds, smoothed in the same way.
    private var variation = 0.0
    /// The server is not asked before this moment, since it has answered "too often", or refused the account.
    public internal(set) var pausedUntil: Tick?
    /// Answered attempts, since the start or the last change of the account.
    public internal(set) var answers: UInt64 = 0
    /// Failed attempts, since the same moment as ``answers``.
    public internal(set) var failures: UInt64 = 0

    /// Pauses in a row since the server last answered.
    private var pauses = 0

    /// Whether the server has asked for a pause that lasts now.
    public func isPaused(at now: Tick) -> Bool { pausedUntil.map { now < $0 } ?? false }

    /// - Returns: Whether the server had failed before, so that it answers again.
    mutating func answered(roundTrip sample: Double, at now: Tick) -> Bool {
        answers += 1
        measure(sample)
        // An answer during a pause is to a query from before the pause.
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

    /// Milliseconds within which nearly all answers come; nil before the first answer.
    var usualRoundTrip: Double? { roundTrip.map { $0 + 2 * variation } }

    /// - Returns: Whether the server's state changed: it had answered before, or fails for another kind of reason now.
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

    /// The length of the pause after a failure, in seconds; nil if there is no pause. HTTP 429 doubles it from one
    /// second on, unless the server gives a time. HTTP 401 is due to the account or the clock; further queries would
    /// only be billed or blocked.
    private mutating func pause(after failure: Failure, at now: Tick) -> Int? {
        switch failure.kind {
        case .tooOften:
            if let seconds = failure.retryAfter { return min(max(seconds, 1), Self.longestPause) }
            // Queries that were under way together and all got 429 cause one pause.
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

    /// The longest pause in seconds. By then a service with fewer queries is likely to answer again.
    static let longestPause = 60
    static let unauthorizedPause = 5
}
