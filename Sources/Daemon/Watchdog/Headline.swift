import Addresses
import DNSCache
import Forwarding

extension Resolver {
    /// How things stand, in a line for `systemctl status`. On the loop.
    func headline(_ cached: DNSCache.Statistics) -> String {
        func milliseconds(_ time: Double?) -> String { time.map { " \(Int($0.rounded())) ms" } ?? "" }
        var parts = ["serving"]
        let servers = service?.servers ?? []
        if servers.indices.contains(forwarder.currentService) {
            let health = forwarder.serviceHealth[forwarder.currentService]
            let state = health.consecutiveFailures > 0 ? " fails" : milliseconds(health.roundTrip)
            parts.append("HTTPDNS \(servers[forwarder.currentService].address)\(state)")
        }
        if servers.isEmpty || outage.isOut {
            parts.append(
                localServers.isEmpty
                    ? "nobody to ask"
                    : "local resolver \(localServers[0].address)\(milliseconds(forwarder.resolverHealth[0].roundTrip))")
        }
        let asked = cached.hits + forwarder.counters.flights + forwarder.counters.joined
        parts.append("cache \(cached.entries) answers" + (asked == 0 ? "" : ", \(cached.hits * 100 / asked) % hits"))
        return parts.joined(separator: "; ")
    }
}
