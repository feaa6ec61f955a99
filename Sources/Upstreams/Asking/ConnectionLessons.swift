import Base

/// How many queries a server answers on one connection, as the ends of its connections have shown. Without that, many queries at once
/// would lose more connections than ``PlannedQuery/mostLosses``. For how long the server keeps idle connections it says itself (RFC
/// 7828), and a query that meets such an end goes out again.
///
/// Only what a server does by itself teaches anything, so clean closes count: not silence or a failure of TLS. A restart
/// closes cleanly, too, so two closes have to be alike, and independent: the second connection was opened after the first had
/// ended. Restarts at regular intervals are alike as well, but there is often a moment in which no connection can be made:
/// closes behind which the next connection fails show nothing. A reset is usually something else's doing, but it is also how
/// a server ends a connection that closes it without having read all queries: one of two ends may be a reset, or both, if the
/// second took a query that had been lost before.
/// What was learned is forgotten after a while, and when connections are not trusted any more.
///
/// A value without sockets; the time is an argument.
struct ConnectionLessons {
    /// An end of a connection with queries under way.
    struct Close: Equatable {
        /// So many queries were answered on it.
        var answers: Int
        /// It was no reset.
        var isClean = true
        /// A query under way had been lost with another connection before.
        var isAgain = false
    }

    private let limits: StreamLimits
    private var busy = Lesson()
    /// The same as it was when a connection was last established.
    private var proven = Lesson()

    private struct Lesson {
        /// The end that the next one is compared with: its answers, and which connections were opened before it.
        var first: (answers: Int, isClean: Bool, newest: Int, at: Tick)?
        var learned: (answers: Int, until: Tick)?

        /// - Returns: The smaller of two numbers that are alike, and whether both ends were clean; nil if that shows nothing.
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
            // The end of a connection that was open when the first one ended is passed over. If it took the place of the first,
            // there would never be two independent ends where another connection is always open.
            guard serial > first.newest else { return nil }
            let areClean = close.isClean && first.isClean
            let isShown = areClean || close.isAgain
            // A reset that shows nothing does not take the place of a clean close like it.
            if isShown || close.isClean { self.first = end }
            return isShown ? (min(close.answers, first.answers), areClean) : nil
        }
    }

    /// Milliseconds after which what was learned is forgotten, and within which two closes have to come.
    static let memory = 600_000
    /// The fewest queries on a connection that are remembered for so long. A server that answers fewer is hardly in good order:
    /// that is remembered for ``shortMemory``, during which it is spared, since a connection that takes so few makes the
    /// queries of all clients wait for each other. So is what resets have shown.
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
    ///   - serial: The connection's number, which increases with each that is opened.
    ///   - newest: The number of the connection that was opened last.
    mutating func take(_ close: Close, of serial: Int, newest: Int, at now: Tick) {
        guard close.answers > 0, let (count, areClean) = busy.take(close, of: serial, newest: newest, at: now) else {
            return
        }
        let time = areClean && count >= Self.fewestQueries ? Self.memory : Self.shortMemory
        busy.learned = (count, now.advanced(milliseconds: time))
    }

    /// A connection was established: the server is there, and the ends until now were its own doing.
    mutating func established() { proven = busy }

    /// A connection could not be made: the server has gone, and the ends since the last one that could say nothing else.
    mutating func unreachable() { busy = proven }

    /// Connections are not trusted any more, for instance because the network is another: so may be the server.
    mutating func forget() { self = ConnectionLessons(limits) }
}
