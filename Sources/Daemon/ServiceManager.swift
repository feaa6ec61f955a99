import CSystemd
import Transport

/// What the service manager is told (sd_notify(3)); nothing happens without one.
public enum ServiceManager {
    /// The sockets are bound: whoever was ordered after the daemon may start. Needs no network.
    public static func ready() { notify("READY=1") }

    /// The configuration is being read again, until ``ready()``.
    public static func reloading() { notify("RELOADING=1\nMONOTONIC_USEC=\(Clock.now() / 1000)") }

    public static func stopping() { notify("STOPPING=1") }

    private static func notify(_ state: String) {
        _ = unsafe sd_notify(0, state)
    }
}
