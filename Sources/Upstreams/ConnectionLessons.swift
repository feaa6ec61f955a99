import Base

/// What the ends of a server's connections have shown about it: for how long it keeps idle ones, and how many queries it
/// answers on one.
///
/// Only what a server does by itself teaches anything, so only a clean close counts: not a reset, silence or a failure of
/// TLS. A restart closes cleanly, too, so two closes have to be alike, and independent: the second connection was opened
/// after the first had ended. What was learned is forgotten after a while, and when connections are not trusted any more.
///
/// A value without sockets; the time is an argument.
struct ConnectionLessons {
    /// What ends ``take(_:of:opened:at:)`` learns from.
    enum Close: Equatable {
        /// The connection had been idle for so many nanoseconds.
        case idle(UInt64)
        /// So many queries were answered on it, and others were under way.
        case busy(answers: Int)
    }

    private let limits: StreamLimits
    private var idle = Lesson()
    private var busy = Lesson()

    /// One number that a server's closes show.
    private struct Lesson {
        /// The last close: what it showed, and which connections were opened before it.
        var first: (value: UInt64, newest: Int, at: Tick)?
        var learned: (value: UInt64, until: Tick)?

        /// - Returns: The smaller of two values that are alike; nil if this is the first of its kind.
        mutating func take(_ value: UInt64, of serial: Int, newest: Int, at now: Tick) -> UInt64? {
            defer { first = (value, newest, now) }
            guard let first, serial > first.newest,
                now.milliseconds(since: first.at) < ConnectionLessons.memory
            else { return nil }
            let (less, more) = (min(value, first.value), max(value, first.value))
            return more - less <= more / 8 ? less : nil
        }
    }

    /// Milliseconds after which what was learned is forgotten, and within which two closes have to come.
    static let memory = 600_000
    /// The fewest queries on a connection that are remembered for so long. A server that answers fewer is hardly in good order:
    /// that is remembered for ``shortMemory``, during which it is spared, since a connection that takes so few makes the
    /// queries of all clients wait for each other.
    static let fewestQueries = 8
    /// In milliseconds.
    static let shortMemory = 10_000

    init(_ limits: StreamLimits) { self.limits = limits }

    /// For how long an idle connection is kept, in nanoseconds.
    func idleTime(at now: Tick) -> UInt64 {
        guard let learned = idle.learned, now < learned.until else { return limits.idleTime }
        return min(limits.idleTime, learned.value)
    }

    /// The most queries on one connection in its life.
    func queriesPerConnection(at now: Tick) -> Int {
        guard let learned = busy.learned, now < learned.until else { return limits.queriesPerConnection }
        return min(limits.queriesPerConnection, Int(learned.value))
    }

    /// The server has closed a connection cleanly.
    /// - Parameters:
    ///   - serial: The connection's number, which increases with each that is opened.
    ///   - newest: The number of the connection that was opened last.
    mutating func take(_ close: Close, of serial: Int, newest: Int, at now: Tick) {
        switch close {
        case .idle(let time):
            // It was something else than idleness.
            guard time >= StreamLimits.shortestIdle else { return }
            guard let time = idle.take(time, of: serial, newest: newest, at: now) else { return }
            let range = StreamLimits.idleRange
            let kept = max(range.lowerBound, min(range.upperBound, time / 5 * 4))
            idle.learned = (kept, now.advanced(milliseconds: Self.memory))
        case .busy(let answers):
            guard answers > 0,
                let count = busy.take(UInt64(answers), of: serial, newest: newest, at: now)
            else { return }
            let time = count < Self.fewestQueries ? Self.shortMemory : Self.memory
            busy.learned = (count, now.advanced(milliseconds: time))
        }
    }

    /// Connections are not trusted any more, for instance because the network is another: so may be the server.
    mutating func forget() { self = ConnectionLessons(limits) }
}
