internal import CLinux
internal import Glibc

/// The timer of an event loop, in the time of ``Clock``.
final class DeadlineTimer {
    /// The descriptor is readable at the set time.
    let descriptor: Descriptor
    private var armed = UInt64.max

    init() throws(SystemError) {
        descriptor = try Descriptor.made(by: "timerfd_create") {
            timerfd_create(CLOCK_BOOTTIME, Int32(TFD_NONBLOCK | TFD_CLOEXEC))
        }
    }

    /// Sets the timer unless it fires earlier anyway: a timer that fires early costs less than a system call for each
    /// change.
    func arm(_ at: UInt64) {
        guard at < armed else { return }
        armed = at
        var time = itimerspec()
        // Zero would switch the timer off.
        time.it_value.tv_nsec = max(1, Int(at % 1_000_000_000))
        time.it_value.tv_sec = Int(at / 1_000_000_000)
        // Sound: the kernel copies the value. Cannot fail: the descriptor and the value are valid.
        _ = unsafe timerfd_settime(descriptor.raw, Int32(TFD_TIMER_ABSTIME), &time, nil)
    }

    /// Clears the timer. Call when it has fired.
    func acknowledge() {
        var expirations: UInt64 = 0
        _ = unsafe read(descriptor.raw, &expirations, MemoryLayout<UInt64>.size)
        armed = .max
    }
}
