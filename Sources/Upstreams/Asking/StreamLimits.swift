/// The limits of connections to a server.
struct StreamLimits: Sendable {
    /// The most connections opened for queries; a query that finds no connection with room waits.
    var connections = 2
    /// The most connections including those opened to ask again, so that an unstable network does not multiply them.
    var mostConnections = 6
    /// The most queries that a new connection carries at once, until the server announces another number; with 1,
    /// connections are not shared.
    var atOnce = 1
    var sharesConnections: Bool { atOnce > 1 }
    /// The most queries on one connection in its life.
    var queriesPerConnection = Int.max
    /// How long an idle connection stays open, in nanoseconds; with 0, it is closed at once. The server may announce
    /// another time (RFC 7828).
    var idleTime: UInt64
    /// The number of idle connections that stay open for ``idleTime``. If each request needs a connection of its own, a
    /// busy second uses more connections again and again, and opening one costs more than many requests; so further
    /// ones stay open too, for ``surplusTime``.
    var usualIdle = 16
    /// Whether a query is sent again even if the connection that ended without an answer was a new connection.
    var retriesOnFresh = false

    /// How long an idle connection beyond ``usualIdle`` stays open, in nanoseconds.
    static let surplusTime: UInt64 = 2_000_000_000

    /// The most octets that wait for a server to read; a request and a handshake are far smaller.
    static let maximumQueued = 128 * 1024
    /// The most queries that wait for room on a connection to one server.
    static let maximumWaiting = 1024
    /// The longest idle time that a server can ask for, in nanoseconds.
    static let longestIdle: UInt64 = 120_000_000_000
}
