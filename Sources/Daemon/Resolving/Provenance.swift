import Configuration
import Log
import Logging

/// Where settings come from, as far as an operator wants to know it.
struct Provenance: Sendable {
    /// Nil for settings that no file gave.
    var origins: Settings.Origins?
    /// A proxy in the environment because of which HTTPDNS is not asked.
    var proxy: ProxyFound?
}

/// A proxy in the environment that applies to the service.
struct ProxyFound: Equatable {
    let variable: String
    /// Whether the service is not asked because of it; with `httpOnly` it is asked all the same.
    let bypassesService: Bool
}

extension Report {
    func proxy(_ found: ProxyFound) {
        log.notice("\(Self.proxy(found))")
    }

    static func proxy(_ found: ProxyFound) -> String {
        found.bypassesService
            ? "\(found.variable) is set, and httpdns.proxy is \"bypass\": the local resolver answers everything, HTTPDNS is not asked"
            : "\(found.variable) is set, but httpOnly leaves nobody else to ask: HTTPDNS is asked all the same"
    }
}
