public import Base

/// One server of a group, and its state.
public struct ServerState: Sendable, Equatable {
    /// The entry of the list, and how it is asked.
    public let server: Server
    /// Tells it from all that its group has had, for as long as it stays in the list.
    let number: Int
    /// Whether it answers.
    public internal(set) var health: ServerHealth
    /// Requests and messages under way to it.
    private(set) var underWay = 0
    /// How many of them are of each source, of those that count for one.
    private var holders = SourceCounts<Int>()
    /// When the last answer came from it, or the last refusal of its own.
    var heardAt: Tick?
    /// With ``UpstreamGroup/Choice/inPreference(nextWithin:)``: the server has failed, so others are asked first.
    private(set) var setAside: SetAside?
    /// Whether it has failed, or refused several questions in a row, so that others of its group are asked first.
    public var isSetAside: Bool { setAside != nil }
    /// Answers such as SERVFAIL in a row.
    private var refusals = 0
    /// The reduced `concurrency` after the server said that it is asked too often, and until when it holds; nil: as
    /// configured.
    private var limit: (most: Int, until: Tick)?

    /// How long a server is set aside.
    struct SetAside: Equatable, Sendable {
        /// Seconds, doubled with each further failure.
        var pause: Int
        /// When it is next tried beside a live question.
        var until: Tick
        /// Whether it is being tried now.
        var isTried = false
    }

    /// In seconds.
    private static let firstPause = 1
    private static let longestPause = 60
    /// After this many answers such as SERVFAIL in a row a server is set aside: a single one may be due to the name.
    private static let mostRefusals = 3
    /// Milliseconds for which a halved limit holds.
    private static let limitTime = 10_000

    /// A server that was not asked yet.
    public init(_ server: Server, number: Int = 0, health: ServerHealth) {
        (self.server, self.number, self.health) = (server, number, health)
    }

    /// Compares what can be seen from outside.
    public static func == (a: ServerState, b: ServerState) -> Bool {
        a.server == b.server && a.health == b.health && a.underWay == b.underWay && a.setAside == b.setAside
    }

    /// A query goes to it.
    /// - Parameter holder: the source for which it counts, if it counts for one.
    mutating func begins(for holder: Source?) {
        underWay += 1
        if let holder { holders.add(1, to: holder) }
    }

    mutating func ends(for holder: Source?) {
        underWay = max(0, underWay - 1)
        if let holder { holders.add(-1, to: holder) }
    }

    /// Whether one more query may go to it.
    /// - Parameters:
    ///   - configured: `concurrency`; 0: no limit.
    ///   - source: where other sources wait, the one that asks: it may have its share, see
    ///     ``Shares``. Nil: nobody else waits.
    func hasRoom(_ configured: Int, for source: Source? = nil, at now: Tick) -> Bool {
        guard configured > 0 else { return true }
        var most = configured
        if let limit, now < limit.until { most = limit.most }
        guard underWay < most else { return false }
        return source.map { holders.mayHaveMore($0, all: underWay, most: most) } ?? true
    }

    /// The server was asked too often: half as many queries at once are allowed for a while.
    mutating func halveLimit(_ configured: Int, at now: Tick) {
        guard configured > 0 else { return }
        var most = configured
        // Queries that were under way together cause one reduction.
        if let limit, now < limit.until {
            guard underWay >= limit.most else { return }
            most = limit.most
        }
        limit = (max(1, most / 2), now.advanced(milliseconds: Self.limitTime))
    }

    /// Whether it is to be tried now, to see whether it answers again.
    func isDue(at now: Tick) -> Bool { setAside.map { !$0.isTried && $0.until <= now } ?? false }

    mutating func isTried() { setAside?.isTried = true }

    mutating func isBack() { (setAside, refusals) = (nil, 0) }

    /// Nothing follows from a time-out. If that was its trial, another one follows after the same time.
    mutating func isUndecided(at now: Tick) {
        guard let setAside, setAside.isTried else { return }
        self.setAside = SetAside(pause: setAside.pause, until: now.advanced(milliseconds: setAside.pause * 1000))
    }

    /// Whether its last word was a failure or a refusal.
    var isInDoubt: Bool { health.consecutiveFailures > 0 || refusals > 0 }

    /// It has said an answer, or SERVFAIL or the like.
    mutating func said(_ hasAnswer: Bool) { refusals = hasAnswer ? 0 : refusals + 1 }

    /// It has answered with SERVFAIL or the like, or left a question unanswered that another server has answered. If
    /// that was its trial, another one follows.
    mutating func refused(at now: Tick) {
        refusals += 1
        if refusals >= Self.mostRefusals || setAside?.isTried ?? false { putAside(at: now) }
    }

    /// The server has failed: see ``SetAside``. Of several failures before the next try only the first counts.
    mutating func putAside(at now: Tick) {
        guard let before = setAside else {
            setAside = SetAside(pause: Self.firstPause, until: now.advanced(milliseconds: Self.firstPause * 1000))
            return
        }
        guard before.isTried || before.until <= now else { return }
        let pause = min(2 * before.pause, Self.longestPause)
        setAside = SetAside(pause: pause, until: now.advanced(milliseconds: pause * 1000))
    }
}
