package import Base
package import DNSWire

/// What each server that is asked has cost: how long its answers took, and how often a connection to it was at hand.
/// Confined to the resolver's loop.
package final class UpstreamTallies {
    private var servers: [Server: ServerTally] = [:]

    /// Servers come from the configuration, from resolv.conf and from the service's own list: few, but over a year of
    /// networks and lists many. Those that are new past this bound are not counted.
    private static let maximumServers = 128

    package init() {}

    package struct Answered: Hashable {
        package let server: Server
        /// `ResponseKind.index`.
        package let kind: Int
    }

    package struct Connections {
        package let isSecure: Bool
        /// Requests that found an open connection, and those that did not.
        package var reused: UInt64 = 0
        package var fresh: UInt64 = 0
    }

    /// What one server has cost.
    package final class ServerTally {
        /// By `ResponseKind.index`; nil for what was never answered.
        fileprivate var durations = [Durations?](repeating: nil, count: ResponseKind.count)
        fileprivate var connections: Connections?

        package func answered(_ code: ResponseCode, nanoseconds: UInt64) {
            let kind = ResponseKind.index(code)
            if durations[kind] == nil { durations[kind] = Durations() }
            durations[kind]?.add(nanoseconds)
        }

        package func connected(isSecure: Bool, isReused: Bool) {
            var counts = connections ?? Connections(isSecure: isSecure)
            if isReused { counts.reused += 1 } else { counts.fresh += 1 }
            connections = counts
        }
    }

    /// Of a server that is asked now: it is counted from then on, if there is room.
    package func server(_ server: Server) -> ServerTally {
        if let known = servers[server] { return known }
        let new = ServerTally()
        if servers.count < Self.maximumServers { servers[server] = new }
        return new
    }

    package var durations: [Answered: Durations] {
        var all: [Answered: Durations] = [:]
        for (server, tally) in servers {
            for (kind, durations) in tally.durations.enumerated() {
                all[Answered(server: server, kind: kind)] = durations
            }
        }
        return all
    }

    package var connections: [Server: Connections] { servers.compactMapValues { $0.connections } }
}
