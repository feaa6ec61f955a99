import Base
import DNSCache

/// A group of upstreams and what is known about its servers.
struct GroupState {
    private(set) var group: UpstreamGroup
    /// For a group that carries addresses: the most names in a request.
    private(set) var namesPerRequest: Int
    private(set) var servers: [ServerState]
    /// The server that is asked now; always one of `servers`, if there are any.
    private(set) var current: Server?
    var counters = GroupCounters()
    /// Queries under way.
    var underWay = 0
    /// `namesPerSecond`.
    var plan: TokenBucket?
    /// Whether a deadline for room in the plan is set; one suffices, however many turns find the plan exceeded.
    var isPlanAwaited = false
    /// For a group that carries messages: the flights that wait for a server with room.
    var waiting = WaitingFlights()
    /// For a group that carries addresses: the names under way, and those of them that are sent when the turn ends.
    var lookups: [NameKey: Lookup] = [:]
    var outbox: [Lookup] = []
    /// Whether names were left in the outbox when the last turn ended.
    var isBehind = false
    var noRecordBudget = NoRecordBudget()
    var noRecordNews = News()
    /// Names of which the group has no record.
    var namesWithoutRecord = Remembered<NameKey, Void>(atMost: maximumNamesWithoutRecord)

    /// The questions that another group has answered since this one failed: see ``Forwarder/standsIn(_:at:)``.
    var standIns = Remembered<Flight.Key, Bool>(atMost: Forwarder.maximumStandIns)
    /// Seconds from the last look whether it answers again to the next one; nil: none is to come.
    var nextLook: Int?

    /// With `Choice.inOrder`: when the first server is tried again while another is in use.
    private(set) var returnAt: Tick?
    private var isProbing = false
    /// Failed attempts in a row at the current server since it became that.
    private var failedAttempts = 0

    /// Some 1.5 MB; a name that is forgotten too early is looked up once more.
    static let maximumNamesWithoutRecord = 8192

    init(_ group: UpstreamGroup) {
        self.group = group
        namesPerRequest = group.carries.namesPerRequest
        servers = group.servers.map { ServerState($0, health: ServerHealth()) }
        current = group.servers.first
        if group.namesPerSecond > 0 { plan = TokenBucket(perSecond: group.namesPerSecond) }
    }

    var id: GroupID { group.id }

    var isEmpty: Bool { servers.isEmpty }

    /// Whether any of its servers has failed since it last answered.
    var isFailing: Bool {
        servers.contains { $0.health.consecutiveFailures > 0 }
    }

    /// Applies other settings or servers. What is known of servers that stay is kept.
    mutating func replace(_ new: UpstreamGroup) {
        if new.namesPerSecond != group.namesPerSecond {
            plan = new.namesPerSecond > 0 ? TokenBucket(perSecond: new.namesPerSecond) : nil
        }
        let isOtherList = new.servers != group.servers
        (group, namesPerRequest) = (new, new.carries.namesPerRequest)
        guard isOtherList else { return }
        servers = new.servers.map { server in
            servers.first { $0.server == server } ?? ServerState(server, health: ServerHealth())
        }
        if !new.servers.contains(where: { $0 == current }) { current = new.servers.first }
        (failedAttempts, returnAt, isProbing) = (0, nil, false)
        prefer()
    }

    /// Forgets what is known of the servers, and their results, for instance because the account is another.
    mutating func beginAfresh() {
        namesWithoutRecord.removeAll()
        for place in servers.indices {
            servers[place].health = ServerHealth()
            servers[place].isBack()
        }
        current = group.servers.first
        (failedAttempts, returnAt, isProbing) = (0, nil, false)
    }

    /// Compares by place, as the functions below do: passing a state to a closure copies it. Nearly always the server is
    /// one that this group gave out, and its identity tells it, which takes no reference counting.
    func place(of server: Server) -> Int? {
        for place in servers.indices where servers[place].identity == server.identity { return place }
        for place in servers.indices where servers[place].server == server { return place }
        return nil
    }

    /// What a server's answers usually take, in milliseconds, as far as it is known. Mutating, so that reading a group
    /// copies nothing.
    mutating func roundTrip(of server: Server) -> Double? {
        guard let place = place(of: server) else { return nil }
        return servers[place].health.roundTrip
    }

    /// Why the current server failed last.
    var lastFailure: Failure? {
        current.flatMap { place(of: $0) }.flatMap { servers[$0].health.lastFailure }
    }

    /// The choice of a server for a query.
    enum Pick {
        case server(Server)
        /// All servers that could be asked have as many queries under way as they may.
        case full
        /// All servers were tried or are paused.
        case nobody
    }

    /// The server for a question that some servers did not answer. Mutating, like the functions below, so that reading
    /// a group copies nothing.
    /// - Parameter source: see ``ServerState/hasRoom(_:for:at:)``.
    mutating func choose(at now: Tick, for source: Source? = nil, unlessTried isTried: (Server) -> Bool) -> Pick {
        guard let start = current.flatMap({ place(of: $0) }) else { return .nobody }
        var isFull = false
        func isOpen(_ place: Int) -> Bool {
            guard !isTried(servers[place].server), !servers[place].health.isPaused(at: now) else { return false }
            let hasRoom = servers[place].hasRoom(group.concurrency, for: source, at: now)
            isFull = isFull || !hasRoom
            return hasRoom
        }
        if case .inPreference = group.choice {
            for isSetAside in [false, true] {
                for place in servers.indices where (servers[place].setAside != nil) == isSetAside && isOpen(place) {
                    return .server(servers[place].server)
                }
            }
            return isFull ? .full : .nobody
        }
        if start > 0, !isProbing, let returnAt, returnAt <= now, isOpen(0) { return .server(servers[0].server) }
        for offset in servers.indices {
            let place = (start + offset) % servers.count
            if isOpen(place) { return .server(servers[place].server) }
        }
        return isFull ? .full : .nobody
    }

    /// Whether none of the servers that could be asked has room: see ``ServerState/hasRoom(_:for:at:)``.
    mutating func isFull(for source: Source? = nil, at now: Tick) -> Bool {
        var isFull = false
        for place in servers.indices where !servers[place].health.isPaused(at: now) {
            if servers[place].hasRoom(group.concurrency, for: source, at: now) { return false }
            isFull = true
        }
        return isFull
    }

    /// A server that had failed and is to be tried beside a question that another server answers; it counts as tried
    /// then.
    mutating func serverToTry(besides other: Server, at now: Tick) -> Server? {
        let place = servers.indices.first { place in
            servers[place].isDue(at: now) && servers[place].server != other
                && !servers[place].health.isPaused(at: now) && servers[place].hasRoom(group.concurrency, at: now)
        }
        guard let place else { return nil }
        servers[place].isTried()
        return servers[place].server
    }

    /// Milliseconds after which the next server is asked as well; nil: it is not.
    mutating func nextAfter(_ server: Server) -> Int? {
        guard case .inPreference(let longest) = group.choice, servers.count > 1, let place = place(of: server) else {
            return nil
        }
        guard let usual = servers[place].health.usualRoundTrip else { return longest }
        return min(max(Timing.shortestPatience, Int(min(2 * usual, 60_000))), longest)
    }

    /// With ``UpstreamGroup/Choice/inPreference(nextWithin:)`` the current server is the first one that does not fail.
    private mutating func prefer() {
        guard case .inPreference = group.choice else { return }
        current = servers.first { $0.setAside == nil }?.server ?? servers.first?.server
    }

    /// A request was sent to a server. If it is the first server and another one is in use, its answer decides whether
    /// it returns.
    /// - Parameter holder: the source whose query it is; nil where there is no limit that sources share.
    mutating func asked(_ server: Server, for holder: Source?) {
        guard let place = place(of: server) else { return }
        servers[place].begins(for: holder)
        if place == 0, server != current { isProbing = true }
    }

    /// A query to a server has ended.
    mutating func ended(_ query: Query) {
        if let place = place(of: query.server) { servers[place].ends(for: query.holder) }
    }

    /// - Parameter hasAnswer: false for SERVFAIL and the like: the server is there, but another may give an answer.
    mutating func answered(_ server: Server, _ hasAnswer: Bool, roundTrip: Int, at now: Tick) -> [Event] {
        guard let place = place(of: server) else { return [] }
        var events: [Event] = []
        if servers[place].health.answered(roundTrip: roundTrip, at: now) {
            events.append(.answersAgain(id, server))
        }
        servers[place].heardAt = now
        switch group.choice {
        case .lastThatAnswered:
            servers[place].said(hasAnswer)
            // Another that was asked for one late name's sake does not replace it.
            let isInDoubt = current.flatMap { self.place(of: $0) }.map { servers[$0].isInDoubt } ?? true
            if hasAnswer, isInDoubt { current = server }
        case .inPreference:
            if hasAnswer { servers[place].isBack() } else { servers[place].refused(at: now) }
            prefer()
        case .inOrder:
            if server == current { failedAttempts = 0 }
            guard place == 0, let former = current, former != server else { break }
            events.append(.returned(id, from: former, to: server))
            (current, failedAttempts, returnAt, isProbing) = (server, 0, nil, false)
        }
        return events
    }

    mutating func failed(_ query: Query, _ failure: Failure, at now: Tick) -> [Event] {
        let server = query.server
        guard let place = place(of: server) else { return [] }
        var silence = Silence.ofServer
        if failure.kind == .timedOut {
            silence = Silence(of: query, heardAt: servers[place].heardAt)
        } else if failure.kind.isServersWord {
            servers[place].heardAt = now
        }
        guard silence != .ofName else {
            servers[place].health.failures += 1
            servers[place].isUndecided(at: now)
            // The next request tries the first server once more.
            if place == 0, server != current { isProbing = false }
            return []
        }
        var events: [Event] = []
        if servers[place].health.failed(failure, at: now) { events.append(.failing(id, server, failure)) }
        if failure.kind == .tooOften { servers[place].halveLimit(group.concurrency, at: now) }
        if case .inPreference = group.choice {
            switch silence {
            case .ofServer: servers[place].putAside(at: now)
            case .ofConnection: servers[place].refused(at: now)
            case .ofAll, .ofName: servers[place].isUndecided(at: now)
            }
            prefer()
        }
        guard case .inOrder(let switchAfter, let minutes) = group.choice else { return events }
        let returnAfter = now.advanced(milliseconds: minutes * 60_000)
        if server == current {
            failedAttempts += 1
            guard failedAttempts >= max(1, switchAfter), servers.count > 1 else { return events }
            let next = servers[(place + 1) % servers.count].server
            (current, failedAttempts, returnAt, isProbing) = (next, 0, returnAfter, false)
            events.append(.switched(id, from: server, to: next))
        } else if place == 0 {
            (returnAt, isProbing) = (returnAfter, false)
        }
        return events
    }

    /// The network has changed: servers that failed may work now, and the first one is tried again with the next
    /// request.
    mutating func networkChanged(at now: Tick) {
        for place in servers.indices {
            servers[place].health.endPause()
            servers[place].isBack()
        }
        prefer()
        failedAttempts = 0
        if current != servers.first?.server { (returnAt, isProbing) = (now, false) }
        for lookup in lookups.values { lookup.tried = [] }
    }
}
