public import Base

/// The time of day of an account's service, by which the service judges whether a request is still valid. The daemon
/// learns the time from refusals, since the machine's own clock may not be set yet, or be wrong. What was learned does
/// not change when the machine's clock is set.
///
/// A clock belongs to one queue, with the account.
public final class ServiceClock {
    /// The service's time at the last correction, and its moment.
    private var correction: (time: UInt64, at: Tick)?

    /// Seconds by which a clock may be wrong before a service refuses requests that are valid for longer.
    static let tolerance: UInt64 = 20
    /// The largest correction in seconds by an answer that any host on the path could have written: an attacker could
    /// replay a request while it is valid, and each replay is billed.
    static let largestUnproven: UInt64 = 86_400
    /// For how many milliseconds after a correction an earlier request may still be refused: the longest `timeout`.
    static let memory = 60_000

    public init() {}

    /// The service's time, in seconds since 1970.
    /// - Parameter wall: The machine's time, in seconds since 1970.
    public func time(at now: Tick, wall: UInt64) -> UInt64 {
        correction.map { $0.time + UInt64(now.milliseconds(since: $0.at) / 1000) } ?? wall
    }

    /// Learns from a refusal that may be due to the clock.
    /// - Parameters:
    ///   - time: The service's time in its answer; nil: the answer gives no time.
    ///   - validity: Seconds for which the request was valid.
    ///   - isProven: Whether TLS proves that the service gave the time.
    /// - Returns: Whether to repeat the request with the time of the corrected clock.
    public func learn(_ time: UInt64?, at now: Tick, wall: UInt64, validity: UInt64, isProven: Bool) -> Bool {
        guard let time, time <= UInt64(UInt32.max),
            Self.difference(time, self.time(at: now, wall: wall)) > min(Self.tolerance, validity / 2)
        else { return wasCorrected(before: now) }
        guard isProven || Self.difference(time, wall) <= Self.largestUnproven else { return false }
        correction = (time, now)
        return true
    }

    /// Whether the request may have been made before the clock was corrected.
    private func wasCorrected(before now: Tick) -> Bool {
        correction.map { now.milliseconds(since: $0.at) <= Self.memory } ?? false
    }

    private static func difference(_ a: UInt64, _ b: UInt64) -> UInt64 { a > b ? a - b : b - a }
}
