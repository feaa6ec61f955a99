import Base
import Configuration

extension Settings {
    /// Refuses what the configuration can say and this daemon does not do: nothing is accepted and ignored.
    func refuseUnsupported() throws(StartFailure) {
        let usual = Settings()
        let account = httpdns.map { HTTPDNS(credential: $0.credential) }
        let arePlain = fallback.servers.allSatisfy { entry in
            if case .server(let server) = entry { server.kind == .plain } else { false }
        }
        let unsupported: [(key: String, isUsed: Bool)] = [
            ("httpdns.thenTry", httpdns.map { !$0.httpOnly && $0.thenTry != account?.thenTry } ?? false),
            ("httpdns.thenTryOn", httpdns?.thenTryOn != account?.thenTryOn),
            ("httpdns.concurrency", httpdns?.concurrency != account?.concurrency),
            ("tls.whenClockUnset", tls.whenClockUnset != usual.tls.whenClockUnset),
            ("domains.interceptFile", !domains.interceptFile.isEmpty),
            ("domains.bypassFile", !domains.bypassFile.isEmpty),
            ("fallback.servers", !arePlain),
            ("fallback.thenTry", !fallback.thenTry.isEmpty),
            ("fallback.thenTryOn", fallback.thenTryOn != usual.fallback.thenTryOn),
            ("fallback.concurrency", fallback.concurrency != usual.fallback.concurrency),
            ("fallback.routeIp", fallback.routeIp != nil),
            ("fallback.caFile", fallback.tls != usual.fallback.tls),
        ]
        let key = unsupported.first { $0.isUsed }?.key ?? upstreams.first.map { $0.path + ".servers" }
        if let key { throw .setting(key: key, "this version does not do that; leave it out, or give its default") }
    }
}
