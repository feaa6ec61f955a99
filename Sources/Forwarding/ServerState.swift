public import Base

/// One server of a group, and its state.
public struct ServerState: Sendable, Equatable {
    /// The entry of the list, with the way it is asked.
    public let server: Server
    /// Differs from the numbers of all servers that the group has had; unchanged while the server stays in the list
    /// and is asked in the same way.
    let number: Int
    /// Whether the server answers.
    public internal(set) var health: ServerHealth
    /// Requests and messages under way to the server.
    private(set) var underWay = 0
    /// The number of queries under way by source, as far as they count for a source.
    private var holders = SourceCounts<Int>()
    /// When the server last gave an answer or a refusal of its own, or the network has changed.
    var heardAt: Tick?
    /// Set while other servers are asked first; nil if the server has its rank.
    private(set) var setAside: SetAside?
    var isPassedOver: Bool { setAside != nil }
    /// Whether the server has failed, or refused several questions in a row, so that the other servers of its group are
    /// asked first until its trial.
    public var isSetAside: Bool { setAside?.until != nil }
    /// Failed attempts in a row since the server's last answer, or the last change of the network.
    private var failures = 0
    /// Whether the server answered none of the latest attempts.
    var isLost: Bool { failures >= Self.mostFailures }
    /// Answers such as SERVFAIL in a row.
    private var refusals = 0
    /// The reduced `concurrency` after a "too often", and when it was reduced; nil if it never was.
    private var limit: (most: Int, since: Tick)?

    struct SetAside: Equatable, Sendable {
        /// Seconds until the next trial, doubled with each trial.
        var pause: Int
        /// When the server is next tried; nil if no trial is due, and the server regains its rank once it answers.
        var until: Tick?
    }

    /// After this many failed attempts in a row a server counts as lost: a single failure may be an accident.
    public static let mostFailures = 3
    /// Milliseconds for which a halved limit holds.
    private static let limitTime = 10_000

    /// A server that was not asked yet.
    public init(_ server: Server, number: Int = 0, health: ServerHealth) {
        (self.server, self.number, self.health) = (server, number, health)
    }

    /// Compares the parts that are visible from outside.
    public static func == (a: ServerState, b: ServerState) -> Bool {
        a.server == b.server && a.health == b.health && a.underWay == b.underWay && a.setAside == b.setAside
    }

    /// Counts a query to the server.
    /// - Parameter holder: The source for which the query counts, if any.
    mutating func begins(for holder: Source?) {
        underWay += 1
        if let holder { holders.add(1, to: holder) }
    }

    mutating func ends(for holder: Source?) {
        underWay = max(0, underWay - 1)
        if let holder { holders.add(-1, to: holder) }
    }

    /// Whether one more query may go to the server.
    /// - Parameters:
    ///   - configured: `concurrency`; 0 for no limit.
    ///   - source: If other sources wait: the asking source, which may have its share, see ``Shares``. Nil if no other
    ///     source waits.
    func hasRoom(_ configured: Int, for source: Source? = nil, at now: Tick) -> Bool {
        guard configured > 0 else { return true }
        let most = most(configured, at: now)
        guard underWay < most else { return false }
        return source.map { holders.mayHaveMore($0, all: underWay, most: most) } ?? true
    }

    private func most(_ configured: Int, at now: Tick) -> Int {
        if let limit, now < limit.since.advanced(milliseconds: Self.limitTime) { limit.most } else { configured }
    }

    /// The server was asked too often: halves the number of queries at once for a while.
    /// - Parameter sent: When the query was sent that the server has refused so.
    mutating func halveLimit(_ configured: Int, sent: Tick, at now: Tick) {
        // Queries that were under way together cause one reduction.
        guard configured > 0, limit.map({ $0.since < sent }) ?? true else { return }
        limit = (max(1, most(configured, at: now) / 2), now)
    }

    // MARK: Setting aside

    /// Whether the server is to be tried now.
    func isDue(_ rule: UpstreamGroup.Choice, at now: Tick) -> Bool {
        rule.pause != nil && setAside.map { $0.until ?? now <= now } ?? false
    }

    /// Sets the server aside after a failure or at a trial, which counts as a failure until the server answers. Of
    /// several failures before the next trial only the first counts.
    mutating func putAside(_ rule: UpstreamGroup.Choice, at now: Tick) {
        guard let pauses = rule.pause, setAside == nil || isDue(rule, at: now) else { return }
        let pause = min(max(2 * (setAside?.pause ?? 0), pauses.lowerBound), pauses.upperBound)
        setAside = SetAside(pause: pause, until: now.advanced(milliseconds: pause * 1000))
    }

    /// The group has another rule: a present pause is no longer than the longest one of the rule.
    mutating func shortenPause(_ rule: UpstreamGroup.Choice) {
        guard let most = rule.pause?.upperBound, let known = setAside, known.pause > most else { return }
        let less = UInt64(known.pause - most) * 1_000_000_000
        let until = known.until.map { Tick(nanoseconds: $0.nanoseconds - min(less, $0.nanoseconds)) }
        setAside = SetAside(pause: most, until: until)
    }

    /// Another server has answered: if the last result of this server was a failure or a refusal, the other server is
    /// asked first from now on.
    mutating func yield() {
        if failures + refusals > 0, setAside == nil { setAside = SetAside(pause: 0) }
    }

    /// The server's trial ended without a verdict.
    mutating func tryAgain(at now: Tick) { setAside?.until = now.advanced(milliseconds: ServerChoice.again) }

    /// - Returns: Whether the server answers again.
    mutating func answered(
        _ hasAnswer: Bool, roundTrip: Double, _ rule: UpstreamGroup.Choice, at now: Tick
    ) -> Bool {
        (heardAt, failures) = (now, 0)
        if hasAnswer { (setAside, refusals) = (nil, 0) } else { refused(rule, at: now) }
        return health.answered(roundTrip: roundTrip, at: now)
    }

    /// - Returns: Whether the failure is news.
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

    mutating func networkChanged(_ rule: UpstreamGroup.Choice, at now: Tick) {
        health.endPause()
        // The silence of a question that was sent in the former network does not count.
        (heardAt, failures, refusals) = (now, 0, 0)
        if rule.triesBeside { setAside = nil } else { setAside?.until = now }
    }
}
