import Addresses
import DNSWire

/// What each server that is asked has cost: how long its answers took, and how often a connection to it was at hand.
/// Confined to the resolver's loop.
final class UpstreamTallies {
    private(set) var durations: [Answered: Durations] = [:]
    private(set) var connections: [Endpoint: Connections] = [:]

    /// Servers come from the configuration, from resolv.conf and from the service's own list: few, but over a year of
    /// networks and lists many. Those that are new past these bounds are not counted.
    private static let maximumAnswered = 512
    private static let maximumServers = 128

    struct Answered: Hashable {
        let server: Endpoint
        let code: ResponseCode
    }

    struct Connections {
        let isSecure: Bool
        /// Requests that found an open connection, and those that did not.
        var reused: UInt64 = 0
        var fresh: UInt64 = 0
    }

    func answered(_ server: Endpoint, _ code: ResponseCode, nanoseconds: UInt64) {
        let key = Answered(server: server, code: code)
        if durations.count >= Self.maximumAnswered, durations[key] == nil { return }
        durations[key, default: Durations()].add(nanoseconds)
    }

    func connected(_ server: Endpoint, isSecure: Bool, isReused: Bool) {
        if connections.count >= Self.maximumServers, connections[server] == nil { return }
        var counts = connections[server] ?? Connections(isSecure: isSecure)
        if isReused { counts.reused += 1 } else { counts.fresh += 1 }
        connections[server] = counts
    }
}
