internal import Glibc

/// The daemon's time: nanoseconds since the machine started, sleep included, so that answers age while it is suspended.
public enum Clock {
    /// Nanoseconds of CLOCK_BOOTTIME, which never goes back.
    public static func now() -> UInt64 {
        var time = timespec()
        // The call cannot fail: Linux has this clock since 2.6.39, and the pointer is to a live variable.
        _ = unsafe clock_gettime(CLOCK_BOOTTIME, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    /// Microseconds of CLOCK_MONOTONIC, without sleep: the clock that the service manager compares with.
    package static func monotonicMicroseconds() -> UInt64 {
        var time = timespec()
        // Cannot fail: every Linux has this clock, and the pointer is to a live variable.
        _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec / 1000)
    }
}
