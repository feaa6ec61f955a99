internal import Glibc

/// The time of day, which may jump: for text and messages to others, never for durations.
public enum WallClock {
    /// Microseconds since 1970 (Unix time); 0 if the clock is before 1970.
    public static func unixMicroseconds() -> UInt64 {
        var time = timespec()
        // The call cannot fail: every Linux has this clock, and the pointer is to a live variable.
        _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
        return UInt64(max(0, time.tv_sec)) * 1_000_000 + UInt64(time.tv_nsec / 1000)
    }

    /// Milliseconds since 1970.
    public static func unixMilliseconds() -> UInt64 { unixMicroseconds() / 1000 }

    /// Seconds since 1970.
    public static func unixSeconds() -> UInt64 { unixMilliseconds() / 1000 }
}
