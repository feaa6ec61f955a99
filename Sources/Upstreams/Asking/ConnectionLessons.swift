import Base

/// The number of queries that a server answers on one connection, learned from the ends of its connections. Without
/// this lesson, many queries at once would lose more connections than ``PlannedQuery/mostLosses``. The server announces
/// how long it keeps idle connections open (RFC 7828), and a query that meets such an end is sent again.
///
/// Only deliberate ends by the server count: clean closes, not silence or a failure of TLS. A restart closes cleanly,
/// too, so two closes must be alike, and independent: the second connection was opened after the first had ended.
/// Regular restarts are alike as well, but at a restart there is often a moment in which no connection can be made:
/// closes before a failed connection do not count. A reset usually has another cause, but a server also resets a
/// connection that it closes without having read all queries. So one of the two ends may be a reset; both may be, if
/// the second connection carried a query that had been lost before.
/// Lessons are forgotten after a while, and when connections are not trusted any more.
///
/// A value without sockets; the time is an argument.
struct ConnectionLessons {
    /// An end of a connection with queries under way.
    struct Close: Equatable {
        /// The number of queries answered on the connection.
        var answers: Int
        /// Whether the connection was closed, not reset.
        var isClean = true
        /// Whether a query under way had been lost with another connection before.
        var isAgain = false
    }

    private let limits: StreamLimits
    private var busy = Lesson()
    /// The lesson when a connection was last established.
    private var proven = Lesson()

    private struct Lesson {
        /// The end with which the next end is compared: its answers, and the newest connection opened before it.
        var first: (answers: Int, isClean: Bool, newest: Int, at: Tick)?
        var learned: (answers: Int, until: Tick)?

        /// - Returns: The smaller of two similar numbers, and whether both ends were clean; nil if they prove nothing.
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
            // The end of a connection that was open when the first connection ended does not count. If it replaced the
            // first, there would never be two independent ends where another connection is always open.
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
    /// Fewer queries on a connection are remembered only for ``shortMemory``: such a server is hardly in good order,
    /// and with so few queries on a connection the queries of all clients wait for each other. Lessons from resets are
    /// remembered for the same short time.
    static let fewestQueries = 8
    /// The time for such a lesson, in milliseconds.
    static let shortMemory = 10_000

    init(_ limits: StreamLimits) { self.limits = limits }

    /// The most queries on one connection in its life.
    func queriesPerConnection(at now: Tick) -> Int {
        guard let learned = busy.learned, now < learned.until else { return limits.queriesPerConnection }
        return min(limits.queriesPerConnection, learned.answers)
    }

    /// The server has ended a connection.
    /// - Parameters:
    ///   - serial: The connection's number, which increases with each connection opened.
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

    /// A connection could not be made: the server is down, which explains the ends since the last success.
    mutating func unreachable() { busy = proven }

    /// Connections are not trusted any more, for instance since the network has changed: the server may be another
    /// server, too.
    mutating func forget() { self = ConnectionLessons(limits) }
}
