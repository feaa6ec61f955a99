/// How reading the settings again went, for whoever watches the daemon.
package struct Reloads: Sendable, Equatable {
    /// Those that were taken over, and those that were refused because something was wrong.
    package var succeeded: UInt64 = 0
    package var failed: UInt64 = 0
    /// Whether the last one was taken over; true before the first.
    package var lastSucceeded = true
    /// When the settings in effect were read, in seconds since 1970.
    package var lastSuccess: UInt64

    /// - Parameter now: Seconds since 1970.
    package init(at now: UInt64) { lastSuccess = now }
}
