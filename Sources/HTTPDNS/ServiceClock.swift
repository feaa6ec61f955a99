/// The time of day of an account's service, by which the service judges whether a request is still valid. The daemon
/// learns the time from refusals, since the machine's own clock may not be set yet, or be wrong.
///
/// A clock belongs to one queue, with the account.
public final class ServiceClock {
    /// Seconds to add to the machine's time.
    private var offset: Int64 = 0
    /// The time of the last correction, by the machine's clock.
    private var correctedAt: UInt64?

    /// Seconds by which a clock may be wrong before a service refuses requests.
    static let tolerance: UInt64 = 20
    /// The largest correction in seconds by an answer that any host on the path could have written: an attacker could
    /// replay a request while it is valid, and each replay is billed.
    static let largestUnproven: UInt64 = 86_400
    /// For how many seconds after a correction an earlier request may still be refused: the longest `timeout`.
    static let memory: UInt64 = 60

    public init() {}

    /// The service's time.
    /// - Parameter wall: The machine's time, in seconds since 1970.
    public func time(at wall: UInt64) -> UInt64 { UInt64(max(0, Int64(clamping: wall) &+ offset)) }

    /// Learns from a refusal that may be due to the clock.
    /// - Parameters:
    ///   - time: The service's time in its answer; nil: the answer gives no time.
    ///   - isProven: Whether TLS proves that the service gave the time.
    /// - Returns: Whether to repeat the request with the time of the corrected clock.
    public func learn(_ time: UInt64?, at wall: UInt64, isProven: Bool) -> Bool {
        guard let time, time <= UInt64(UInt32.max) else { return wasCorrected(before: wall) }
        guard Self.difference(time, self.time(at: wall)) > Self.tolerance else { return wasCorrected(before: wall) }
        guard isProven || Self.difference(time, wall) <= Self.largestUnproven else { return false }
        offset = Int64(time) - Int64(clamping: wall)
        correctedAt = wall
        return true
    }

    /// Whether the request may have been made before the clock was corrected.
    private func wasCorrected(before wall: UInt64) -> Bool {
        correctedAt.map { Self.difference($0, wall) <= Self.memory } ?? false
    }

    private static func difference(_ a: UInt64, _ b: UInt64) -> UInt64 { a > b ? a - b : b - a }
}
