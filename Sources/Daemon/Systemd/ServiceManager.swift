import CSystemd
import Transport

/// Messages to the service manager (sd_notify(3)); no effect without one.
public enum ServiceManager {
    /// The sockets are bound: units ordered after the daemon may start. The call needs no network. It also ends a
    /// ``reloading()``.
    public static func ready() { notify("READY=1") }

    /// The configuration is being reloaded; ends with ``ready()``.
    public static func reloading() { notify("RELOADING=1\nMONOTONIC_USEC=\(Clock.monotonicMicroseconds())") }

    /// The daemon is stopping; clears the line of ``status(_:)``.
    public static func stopping() { notify("STOPPING=1\nSTATUS=") }

    /// Sets the line for `systemctl status`.
    static func status(_ line: String) { notify("STATUS=\(line)") }

    /// The daemon is well: the manager expects this at least every ``watchdogMicroseconds``.
    static func isAlive() { notify("WATCHDOG=1") }

    /// Whether there is a service manager.
    static var isPresent: Bool { Environment.variables["NOTIFY_SOCKET"] != nil }

    /// The longest time that the manager allows between two signs of life; nil if it expects none, or expects them from
    /// another process.
    static var watchdogMicroseconds: UInt64? {
        guard Environment.variables["WATCHDOG_USEC"] != nil else { return nil }
        var microseconds: UInt64 = 0
        return unsafe csd_watchdog_enabled(0, &microseconds) > 0 ? microseconds : nil
    }

    private static func notify(_ state: String) {
        if isPresent { _ = unsafe csd_notify(0, state) }
    }
}
