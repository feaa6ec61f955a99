package import Base
package import DNSWire

/// The cost of each server of one group: the durations of its answers, and the number of its requests that found an
/// open connection. Confined to the forwarder's loop.
package final class UpstreamTallies {
    private var servers: [Server: ServerTally] = [:]

    /// Servers come from the configuration, from resolv.conf and from the service's own list. New servers beyond this
    /// bound are not counted.
    private static let maximumServers = 128

    /// No counts yet.
    package init() {}

    /// The counts of one server since the start.
    package struct Figures: Sendable {
        /// Durations by `ResponseKind.index`.
        package fileprivate(set) var durations: [Int: Durations] = [:]
        /// The durations of the latest answers.
        package fileprivate(set) var latest = LatestDurations()
        /// The counts of connections; nil if the server is asked without connections.
        package fileprivate(set) var connections: Connections?
        /// Whether the last TLS handshake resumed an earlier session (RFC 8446 §2.2); nil without a handshake.
        package fileprivate(set) var isResumed: Bool?
        /// The end of the server's certificate in that handshake, in seconds since 1970; nil without a handshake.
        package fileprivate(set) var certificateEnd: UInt64?

        /// All counts are 0.
        package init() {}
    }

    /// The numbers of requests that found a connection, and that needed a new connection, since the start.
    package struct Connections: Sendable {
        /// Requests that found an open connection.
        package var reused: UInt64 = 0
        /// Requests for which a new connection was opened.
        package var fresh: UInt64 = 0
    }

    /// Counts for one server.
    package final class ServerTally {
        fileprivate var figures = Figures()

        /// Counts an answer.
        package func answered(_ code: ResponseCode, nanoseconds: UInt64) {
            figures.durations[ResponseKind.index(code), default: Durations()].add(nanoseconds)
            figures.latest.add(nanoseconds)
        }

        /// Counts a request that has got a connection.
        package func connected(isReused: Bool) {
            var counts = figures.connections ?? Connections()
            if isReused { counts.reused += 1 } else { counts.fresh += 1 }
            figures.connections = counts
        }

        /// Records the end of a TLS handshake.
        package func secured(isResumed: Bool, certificateEnd: UInt64?) {
            (figures.isResumed, figures.certificateEnd) = (isResumed, certificateEnd)
        }
    }

    /// The counts of a server. If there is room, they are stored from now on.
    package func server(_ server: Server) -> ServerTally {
        if let known = servers[server] { return known }
        let new = ServerTally()
        if servers.count < Self.maximumServers { servers[server] = new }
        return new
    }

    /// Forgets the counts of all other servers: a server that comes back begins at 0.
    package func keep(_ servers: [Server]) { self.servers = self.servers.filter { servers.contains($0.key) } }

    /// The counts of each server.
    package var figures: [Server: Figures] { servers.mapValues(\.figures) }
}

/// The durations of the latest events, for present percentiles. A histogram instead covers all events since the start,
/// and only to the factor two of its bounds.
package struct LatestDurations: Sendable, Equatable {
    /// The durations in microseconds.
    private var ring: [UInt32] = []
    /// The index of the oldest duration, which the next one replaces in a full ring.
    private var next = 0

    /// The number of durations that are remembered.
    package static let count = 100

    /// Adds a duration, which replaces the oldest of ``count``.
    package mutating func add(_ nanoseconds: UInt64) {
        let microseconds = UInt32(clamping: nanoseconds / 1000)
        if ring.count < Self.count {
            ring.append(microseconds)
        } else {
            ring[next] = microseconds
            next = (next + 1) % Self.count
        }
    }

    /// The milliseconds that a share (0…1) of the durations did not exceed; nil: there are no durations.
    package func milliseconds(ofShare share: Double) -> Double? {
        guard !ring.isEmpty else { return nil }
        let rank = Int((Double(ring.count) * share).rounded(.up)) - 1
        return Double(ring.sorted()[min(max(rank, 0), ring.count - 1)]) / 1000
    }
}
