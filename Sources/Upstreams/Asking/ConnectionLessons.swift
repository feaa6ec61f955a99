import Base

/// The number of queries that a server answers on one connection, learned from the ends of its connections. Without it,
/// many queries at once would lose more connections than ``PlannedQuery/mostLosses``. How long the server keeps idle
/// connections open it announces itself (RFC 7828), and a query that meets such an end is sent again.
///
/// Only deliberate ends by the server count, so clean closes do: not silence or a failure of TLS. A restart closes
/// cleanly, too, so two closes must be alike, and independent: the second connection was opened after the first had
/// ended. Restarts at regular intervals are alike as well, but there is often a moment in which no connection can be
/// made: closes that are followed by a failed connection do not count. A reset usually has another cause, but a server
/// that closes a connection without having read all queries also ends it by a reset: one of two ends may be a reset, or
/// both, if the second took a query that had been lost before.
/// Lessons are forgotten after a while, and when connections are not trusted any more.
///
/// A value without sockets; the time is an argument.
struct ConnectionLessons {
    /// An end of a connection with queries under way.
    struct Close: Equatable {
        /// The number of queries answered on it.
        var answers: Int
        /// Whether it was no reset.
        var isClean = true
        /// Whether a query under way had been lost with another connection before.
        var isAgain = false
    }

    private let limits: StreamLimits
    private var busy = Lesson()
    /// Its state when a connection was last established.
    private var proven = Lesson()

    private struct Lesson {
        /// The end with which the next one is compared: its answers, and the newest connection opened before it.
        var first: (answers: Int, isClean: Bool, newest: Int, at: Tick)?
        var learned: (answers: Int, until: Tick)?

        /// - Returns: The smaller of two similar numbers, and whether both ends were clean; nil: that proves nothing.
        mutating func take(
            _ close: Close, of serial: Int, newest: Int, at now: Tick
        ) -> (answers: Int, isClean: Bool)? {
            let end = (answers: close.answers, isClean: close.isClean, newest: newest, at: now)
            guard let first, now.milliseconds(since: first.at) < ConnectionLessons.memory,
                abs(close.answers - first.answers) <= max(close.answers, first.answers) / 8
            else {
                self.first = end
                return nil
            }
            // The end of a connection that was open when the first one ended does not count. If it replaced the first,
            // there would never be two independent ends where another connection is always open.
            guard serial > first.newest else { return nil }
            let areClean = close.isClean && first.isClean
            let isShown = areClean || close.isAgain
            // A reset that proves nothing does not replace a similar clean close.
            if isShown || close.isClean { self.first = end }
            return isShown ? (min(close.answers, first.answers), areClean) : nil
        }
    }

    /// Milliseconds after which a lesson is forgotten, and within which two closes must come.
    static let memory = 600_000
    /// The fewest queries on a connection that are remembered for so long. A server that answers fewer is hardly in
    /// good order: that is remembered for ``shortMemory``, during which it is spared, since a connection that takes so
    /// few makes the queries of all clients wait for each other. The same is true of lessons from resets.
    static let fewestQueries = 8
    /// In milliseconds.
    static let shortMemory = 10_000

    init(_ limits: StreamLimits) { self.limits = limits }

    /// The most queries on one connection in its life.
    func queriesPerConnection(at now: Tick) -> Int {
        guard let learned = busy.learned, now < learned.until else { return limits.queriesPerConnection }
        return min(limits.queriesPerConnection, learned.answers)
    }

    /// The server has ended a connection.
    /// - Parameters:
    ///   - serial: The connection's number, which increases with each one opened.
    ///   - newest: The number of the last connection opened.
    mutating func take(_ close: Close, of serial: Int, newest: Int, at now: Tick) {
        guard close.answers > 0, let (count, areClean) = busy.take(close, of: serial, newest: newest, at: now) else {
            return
        }
        let time = areClean && count >= Self.fewestQueries ? Self.memory : Self.shortMemory
        busy.learned = (count, now.advanced(milliseconds: time))
    }

    /// A connection was established: the server is up, and the ends until now were its own decisions.
    mutating func established() { proven = busy }

    /// A connection could not be made: the server is down, which explains the ends since the last one that could.
    mutating func unreachable() { busy = proven }

    /// Connections are not trusted any more, for instance since the network has changed: the server may be another one,
    /// too.
    mutating func forget() { self = ConnectionLessons(limits) }
}
