/// The results of reloading the settings, for monitoring.
package struct Reloads: Sendable, Equatable {
    /// Reloads that were applied.
    package var succeeded: UInt64 = 0
    /// Reloads that were refused because of an error.
    package var failed: UInt64 = 0
    /// Why the last reload was refused; nil if it was applied, and before the first.
    package var lastFailure: String?
    /// When the settings in effect were read, in seconds since 1970.
    package var lastSuccess: UInt64 = 0

    /// No reload yet.
    package init() {}
}
