/// A moment of the monotonic clock that includes sleep, in nanoseconds from an arbitrary origin.
///
/// Only the transport reads a clock; each module below it gets the time as an argument.
public struct Tick: Comparable, Hashable, Sendable {
    public var nanoseconds: UInt64

    public init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

    /// The whole second of this moment. The cache counts in seconds, as TTLs do (RFC 1035 §3.2.1).
    public var seconds: UInt32 { UInt32(truncatingIfNeeded: nanoseconds / 1_000_000_000) }

    public func advanced(milliseconds: Int) -> Tick {
        Tick(nanoseconds: nanoseconds &+ UInt64(max(0, milliseconds)) &* 1_000_000)
    }

    public static func < (a: Tick, b: Tick) -> Bool { a.nanoseconds < b.nanoseconds }

    /// Milliseconds since an earlier moment; 0: `earlier` is not earlier.
    public func milliseconds(since earlier: Tick) -> Int {
        nanoseconds > earlier.nanoseconds ? Int((nanoseconds - earlier.nanoseconds) / 1_000_000) : 0
    }

    /// Microseconds since an earlier moment; 0: `earlier` is not earlier.
    public func microseconds(since earlier: Tick) -> Int {
        nanoseconds > earlier.nanoseconds ? Int((nanoseconds - earlier.nanoseconds) / 1000) : 0
    }
}

extension Tick? {
    /// The earlier of two moments, of which either may be missing.
    public func orEarlier(_ other: Tick?) -> Tick? {
        guard let self, let other else { return self ?? other }
        return min(self, other)
    }
}
