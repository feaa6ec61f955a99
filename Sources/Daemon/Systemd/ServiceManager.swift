import CSystemd
import Transport

/// What the service manager is told (sd_notify(3)); nothing happens without one.
public enum ServiceManager {
    /// The sockets are bound: whoever was ordered after the daemon may start. Needs no network. Also the end of what
    /// ``reloading()`` began.
    public static func ready() { notify("READY=1") }

    /// The configuration is being read again, until ``ready()``.
    public static func reloading() {
        notify("RELOADING=1\nMONOTONIC_USEC=\(Clock.monotonicMicroseconds())")
    }

    /// It ends; the line of ``status(_:)`` holds no more.
    public static func stopping() { notify("STOPPING=1\nSTATUS=") }

    /// One line for `systemctl status`.
    static func status(_ line: String) { notify("STATUS=\(line)") }

    /// All is well: the manager waits for the next such word, for ``watchdogMicroseconds`` at most.
    static func isAlive() { notify("WATCHDOG=1") }

    /// Whether somebody listens to all this.
    static var isPresent: Bool { Environment.variables["NOTIFY_SOCKET"] != nil }

    /// How long the manager waits for a sign of life; nil if it waits for none, or for one of another process.
    static var watchdogMicroseconds: UInt64? {
        var microseconds: UInt64 = 0
        return unsafe sd_watchdog_enabled(0, &microseconds) > 0 ? microseconds : nil
    }

    private static func notify(_ state: String) {
        _ = unsafe sd_notify(0, state)
    }
}
