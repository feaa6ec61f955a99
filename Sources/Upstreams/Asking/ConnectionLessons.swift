import Base

/// What the ends of a server's connections have shown about it: for how long it keeps idle ones, and how many queries it
/// answers on one.
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
    /// What ends ``take(_:of:newest:at:)`` learns from.
    enum Close: Equatable {
        /// Cleanly, when the connection had been idle for so many nanoseconds.
        case idle(UInt64)
        /// So many queries were answered on it, and others were under way.
        /// - Parameters:
        ///   - isClean: it was no reset.
        ///   - isAgain: one of those others had been lost with another connection before.
        case busy(answers: Int, isClean: Bool = true, isAgain: Bool = false)
    }

    private let limits: StreamLimits
    private var (idle, busy) = (Lesson(), Lesson())
    /// The two as they were when a connection was last established.
    private var proven = (idle: Lesson(), busy: Lesson())

    /// One number that a server's closes show.
    private struct Lesson {
        /// The end that the next one is compared with: what it showed, and which connections were opened before it.
        var first: (value: UInt64, isClean: Bool, newest: Int, at: Tick)?
        var learned: (value: UInt64, until: Tick)?

        /// - Returns: The smaller of two values that are alike, and whether both ends were clean; nil if that shows nothing.
        mutating func take(
            _ value: UInt64, isClean: Bool = true, isAgain: Bool = false, of serial: Int, newest: Int, at now: Tick
        ) -> (value: UInt64, isClean: Bool)? {
            let end = (value: value, isClean: isClean, newest: newest, at: now)
            guard let first, now.milliseconds(since: first.at) < ConnectionLessons.memory,
                max(value, first.value) - min(value, first.value) <= max(value, first.value) / 8
            else {
                self.first = end
                return nil
            }
            // The end of a connection that was open when the first one ended is passed over. If it took the place of the first,
            // there would never be two independent ends where another connection is always open.
            guard serial > first.newest else { return nil }
            let areClean = isClean && first.isClean
            let isShown = areClean || isAgain
            // A reset that shows nothing does not take the place of a clean close like it.
            if isShown || isClean { self.first = end }
            return isShown ? (min(value, first.value), areClean) : nil
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

    /// For how long an idle connection is kept, in nanoseconds.
    /// - Parameter told: For how long the server has said that it keeps one, if it has.
    func idleTime(told: UInt64? = nil, at now: Tick) -> UInt64 {
        // A little less than the server keeps it, so that no query meets the end.
        let usual = told.map { min(StreamLimits.idleRange.upperBound, $0 / 5 * 4) } ?? limits.idleTime
        guard let learned = idle.learned, now < learned.until else { return usual }
        return min(usual, learned.value)
    }

    /// The most queries on one connection in its life.
    func queriesPerConnection(at now: Tick) -> Int {
        guard let learned = busy.learned, now < learned.until else { return limits.queriesPerConnection }
        return min(limits.queriesPerConnection, Int(learned.value))
    }

    /// The server has ended a connection.
    /// - Parameters:
    ///   - serial: The connection's number, which increases with each that is opened.
    ///   - newest: The number of the connection that was opened last.
    mutating func take(_ close: Close, of serial: Int, newest: Int, at now: Tick) {
        switch close {
        case .idle(let time):
            // It was something else than idleness.
            guard time >= StreamLimits.shortestIdle else { return }
            guard let (time, _) = idle.take(time, of: serial, newest: newest, at: now) else { return }
            let range = StreamLimits.idleRange
            let kept = max(range.lowerBound, min(range.upperBound, time / 5 * 4))
            idle.learned = (kept, now.advanced(milliseconds: Self.memory))
        case .busy(let answers, let isClean, let isAgain):
            guard answers > 0,
                let (count, areClean) = busy.take(
                    UInt64(answers), isClean: isClean, isAgain: isAgain, of: serial, newest: newest, at: now)
            else { return }
            let time = areClean && count >= Self.fewestQueries ? Self.memory : Self.shortMemory
            busy.learned = (count, now.advanced(milliseconds: time))
        }
    }

    /// A connection was established: the server is there, and the ends until now were its own doing.
    mutating func established() { proven = (idle, busy) }

    /// A connection could not be made: the server has gone, and the ends since the last one that could say nothing else.
    mutating func unreachable() { (idle, busy) = proven }

    /// Connections are not trusted any more, for instance because the network is another: so may be the server.
    mutating func forget() { self = ConnectionLessons(limits) }
}
