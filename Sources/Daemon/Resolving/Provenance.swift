import Configuration

/// Where settings come from, as far as an operator wants to know it.
struct Provenance: Sendable {
    /// Nil for settings that no file gave.
    var origins: Settings.Origins?
    /// A proxy in the environment that has HTTPDNS left out.
    var proxy: ProxyFound?
}
