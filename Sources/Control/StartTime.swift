/// The start of the daemon, or of its settings, by the present wall clock: a machine without a battery for its clock
/// starts in 1970.
struct StartTime: Sendable {
    private let begun: UInt64
    private var unixSeconds: UInt64

    /// The least correction that counts. Rounding and slewing of the clock must not look like a new start.
    private static let step: UInt64 = 3

    /// - Parameters:
    ///   - now: Nanoseconds of a clock that is never set.
    ///   - wall: Seconds since 1970.
    init(at now: UInt64, wall: UInt64) { (begun, unixSeconds) = (now, wall) }

    /// The start in seconds since 1970. Parameters as in ``init(at:wall:)``.
    mutating func unixSeconds(at now: UInt64, wall: UInt64) -> UInt64 {
        let uptime = (now - min(now, begun)) / 1_000_000_000
        let found = wall - min(wall, uptime)
        if max(found, unixSeconds) - min(found, unixSeconds) >= Self.step { unixSeconds = found }
        return unixSeconds
    }
}
