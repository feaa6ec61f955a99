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
    /// Others are asked first; nil: it has its place.
    private(set) var setAside: SetAside?
    var isPassedOver: Bool { setAside != nil }
    /// Whether it has failed, or refused several questions in a row, so that others of its group are asked first until it is tried.
    public var isSetAside: Bool { setAside?.until != nil }
    /// Failed attempts in a row since it answered, or the network changed.
    private var failures = 0
    /// Whether none of its latest attempts was answered.
    var isLost: Bool { failures >= Self.mostFailures }
    /// Answers such as SERVFAIL in a row.
    private var refusals = 0
    /// The reduced `concurrency` after the server said that it is asked too often, and until when it holds; nil: as
    /// configured.
    private var limit: (most: Int, until: Tick)?

    struct SetAside: Equatable, Sendable {
        /// Seconds, doubled with each trial.
        var pause: Int
        /// When it is next tried; nil: never, it has its place again once it answers.
        var until: Tick?
    }

    /// After this many failed attempts in a row nothing is expected of a server: a single one may be an accident.
    public static let mostFailures = 3
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
        let most = most(configured, at: now)
        guard underWay < most else { return false }
        return source.map { holders.mayHaveMore($0, all: underWay, most: most) } ?? true
    }

    private func most(_ configured: Int, at now: Tick) -> Int {
        if let limit, now < limit.until { limit.most } else { configured }
    }

    /// The server was asked too often: half as many queries at once are allowed for a while.
    mutating func halveLimit(_ configured: Int, at now: Tick) {
        let most = most(configured, at: now)
        // Queries that were under way together cause one reduction.
        guard configured > 0, most == configured || underWay >= most else { return }
        limit = (max(1, most / 2), now.advanced(milliseconds: Self.limitTime))
    }

    // MARK: Its place

    /// Whether it is to be tried now, to see whether it answers again.
    func isDue(_ rule: UpstreamGroup.Choice, at now: Tick) -> Bool {
        rule.pause != nil && setAside.map { $0.until ?? now <= now } ?? false
    }

    /// The server has failed, or is tried, which counts as a failure until it answers. Of several failures before the next trial only
    /// the first counts.
    mutating func putAside(_ rule: UpstreamGroup.Choice, at now: Tick) {
        guard let pauses = rule.pause, setAside == nil || isDue(rule, at: now) else { return }
        let pause = min(max(2 * (setAside?.pause ?? 0), pauses.lowerBound), pauses.upperBound)
        setAside = SetAside(pause: pause, until: now.advanced(milliseconds: pause * 1000))
    }

    /// Another server has answered: if the last word of this one was a failure or a refusal, the other is asked first from now on.
    mutating func yield() {
        if failures + refusals > 0, setAside == nil { setAside = SetAside(pause: 0) }
    }

    /// Nothing follows from its trial.
    mutating func tryAgain(at now: Tick) { setAside?.until = now.advanced(milliseconds: ServerChoice.again) }

    /// - Returns: whether it answers again.
    mutating func answered(
        _ hasAnswer: Bool, roundTrip: Double, _ rule: UpstreamGroup.Choice, at now: Tick
    ) -> Bool {
        (heardAt, failures) = (now, 0)
        if hasAnswer { (setAside, refusals) = (nil, 0) } else { refused(rule, at: now) }
        return health.answered(roundTrip: roundTrip, at: now)
    }

    /// - Returns: whether that is news.
    mutating func failed(
        _ failure: Failure, _ silence: Silence, _ rule: UpstreamGroup.Choice, isTrial: Bool, at now: Tick
    ) -> Bool {
        if failure.kind.isServersWord { heardAt = now }
        if silence != .ofName { failures += 1 }
        switch silence {
        case .ofConnection where rule.refusals != nil: refused(rule, at: now)
        case .ofConnection, .ofServer: if failures >= rule.failures { putAside(rule, at: now) }
        case .ofName, .ofAll: if isTrial { tryAgain(at: now) }
        }
        if silence == .ofName { health.failures += 1 }
        return silence != .ofName && health.failed(failure, at: now)
    }

    mutating func refused(_ rule: UpstreamGroup.Choice, at now: Tick) {
        refusals += 1
        if let most = rule.refusals, refusals >= most { putAside(rule, at: now) }
    }

    /// It is asked in another way from now on.
    mutating func renew() { (health, setAside, failures, refusals) = (ServerHealth(), nil, 0, 0) }

    mutating func networkChanged(_ rule: UpstreamGroup.Choice, at now: Tick) {
        health.endPause()
        (failures, refusals) = (0, 0)
        if rule.triesBeside { setAside = nil } else { setAside?.until = now }
    }
}
