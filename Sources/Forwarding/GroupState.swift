import Base
import DNSCache

/// A group of upstreams and what is known about its servers. Which names and questions wait for it says
/// `GroupState+Names.swift`.
struct GroupState {
    private(set) var group: UpstreamGroup
    /// For a group that carries addresses: the most names in a request.
    private(set) var namesPerRequest: Int
    private(set) var servers: [ServerState]
    /// The index of the server that is asked now; 0 without servers.
    private(set) var currentIndex = 0
    var counters = GroupCounters()
    /// Queries under way.
    private(set) var underWay = 0
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
    var namesWithoutRecord = Remembered<NameKey, String?>(atMost: maximumNamesWithoutRecord)
    /// The questions that another group has answered since this one failed, and whether that answer may still be cached.
    var standIns = Remembered<Flight.Key, Bool>(atMost: maximumStandIns)
    /// Seconds from the last look whether it answers again to the next one; nil: none is to come.
    var nextLook: Int?

    /// With `Choice.inOrder`: when the first server is tried again while another is in use.
    private(set) var returnAt: Tick?
    private var isProbing = false
    /// Failed attempts in a row at the current server since it became that.
    private var failedAttempts = 0
    private var nextNumber = 0

    /// The most requests for names at once to the servers of one group. Beyond it names wait, and are sent in fuller
    /// requests.
    static let maximumRequests = 128
    /// Some 1.5 MB; a name that is forgotten too early is looked up once more.
    static let maximumNamesWithoutRecord = 8192
    /// The most questions that are remembered in ``standIns``, some 200 octets each. What stands in for an older one stays
    /// until its time ends.
    static let maximumStandIns = 4096

    init(_ group: UpstreamGroup) {
        self.group = group
        namesPerRequest = group.carries.namesPerRequest
        servers = []
        if group.namesPerSecond > 0 { plan = TokenBucket(perSecond: group.namesPerSecond) }
        setServers(group.servers)
    }

    var id: GroupID { group.id }

    /// The server that is asked now; nil without servers.
    var current: Server? { servers.isEmpty ? nil : servers[currentIndex].server }

    /// Whether any of its servers has failed since it last answered.
    var isFailing: Bool { servers.contains { $0.health.consecutiveFailures > 0 } }

    /// What flights and others may know of the group.
    var traits: FlightRules.GroupTraits {
        FlightRules.GroupTraits(
            hasServers: !servers.isEmpty, carriesAddresses: group.carriesAddresses, isProven: group.isProven,
            isShared: group.isShared)
    }

    /// Applies other settings or servers. What is known of servers that stay is kept.
    mutating func replace(_ new: UpstreamGroup) {
        if new.namesPerSecond != group.namesPerSecond {
            plan = new.namesPerSecond > 0 ? TokenBucket(perSecond: new.namesPerSecond) : nil
        }
        let isOtherList = new.servers != group.servers
        let hadServers = group.hadServers || !new.servers.isEmpty
        (group, namesPerRequest) = (new, new.carries.namesPerRequest)
        group.hadServers = hadServers
        if isOtherList { setServers(new.servers) }
    }

    /// With ``UpstreamGroup/Choice/inOrder(switchAfter:returnAfterMinutes:)`` the first server of the new list is in use, unless
    /// it is the first of the former list too and another server has taken over from it: that one stays, and the first is tried
    /// again when it would have been.
    private mutating func setServers(_ new: [Server]) {
        let (former, formerFirst) = (current, servers.first?.server)
        servers = new.map { server in
            if let known = servers.first(where: { $0.server == server }) { return known }
            nextNumber += 1
            return ServerState(server, number: nextNumber, health: ServerHealth())
        }
        currentIndex = new.firstIndex { $0 == former } ?? 0
        if case .inOrder = group.choice, former == formerFirst || new.first != formerFirst { currentIndex = 0 }
        if currentIndex == 0 { (failedAttempts, returnAt, isProbing) = (0, nil, false) }
        prefer()
    }

    /// Forgets what is known of the servers, and their results, for instance because the account is another.
    mutating func beginAfresh() {
        namesWithoutRecord.removeAll()
        for index in servers.indices {
            servers[index].health = ServerHealth()
            servers[index].isBack()
        }
        (currentIndex, failedAttempts, returnAt, isProbing) = (0, 0, nil, false)
    }

    /// The index of a server by its ``ServerState/number``; nil: it was removed from the list.
    func index(of number: Int) -> Int? { servers.firstIndex { $0.number == number } }

    /// Why none of the servers is asked, since all are paused: the last failure of the current one.
    var trouble: Trouble? {
        guard let current, let failure = servers[currentIndex].health.lastFailure else { return nil }
        return Trouble(failure: failure, group: id, server: group.carriesAddresses ? nil : current)
    }

    /// The choice of a server for a query.
    enum Pick {
        /// The index of a server.
        case server(Int)
        /// All servers that could be asked have as many queries under way as they may.
        case full
        /// All servers were tried or are paused.
        case nobody
        /// A server has room, and the source has had its share of `queriesPerSecond`.
        case pastPlan
    }

    /// What becomes of a question of a source at this moment. The plan is to be filled before. Mutating, like the functions
    /// below, so that reading a group copies nothing.
    /// - Parameter isTried: by ``ServerState/number``.
    mutating func pick(for source: Source, at now: Tick, unlessTried isTried: (Int) -> Bool) -> Pick {
        guard group.carriesAddresses else {
            return choose(at: now, for: waiting.hasOthers(than: source) ? source : nil, unlessTried: isTried)
        }
        if isPastRequests { return .full }
        let pick = choose(at: now, for: nil, unlessTried: isTried)
        if case .server = pick, plan?.hasRoom(for: source) == false { return .pastPlan }
        return pick
    }

    /// Whether as many requests are under way as there may be to a group without `concurrency`.
    var isPastRequests: Bool { group.concurrency == 0 && underWay >= Self.maximumRequests }

    /// The server for a question that some servers did not answer.
    /// - Parameter source: see ``ServerState/hasRoom(_:for:at:)``.
    private mutating func choose(at now: Tick, for source: Source?, unlessTried isTried: (Int) -> Bool) -> Pick {
        var isFull = false
        func isOpen(_ index: Int) -> Bool {
            guard !isTried(servers[index].number), !servers[index].health.isPaused(at: now) else { return false }
            let hasRoom = servers[index].hasRoom(group.concurrency, for: source, at: now)
            isFull = isFull || !hasRoom
            return hasRoom
        }
        if case .inPreference = group.choice {
            for isSetAside in [false, true] {
                for index in servers.indices where servers[index].isSetAside == isSetAside && isOpen(index) {
                    return .server(index)
                }
            }
            return isFull ? .full : .nobody
        }
        if currentIndex > 0, !isProbing, let returnAt, returnAt <= now, isOpen(0) { return .server(0) }
        for offset in servers.indices {
            let index = (currentIndex + offset) % servers.count
            if isOpen(index) { return .server(index) }
        }
        return isFull ? .full : .nobody
    }

    /// Whether none of the servers that could be asked has room: see ``ServerState/hasRoom(_:for:at:)``.
    mutating func isFull(for source: Source? = nil, at now: Tick) -> Bool {
        var isFull = false
        for index in servers.indices where !servers[index].health.isPaused(at: now) {
            if servers[index].hasRoom(group.concurrency, for: source, at: now) { return false }
            isFull = true
        }
        return isFull
    }

    /// A server that had failed and is to be tried beside a question that another server answers; it counts as tried
    /// then.
    mutating func serverToTry(besides other: Int, at now: Tick) -> Int? {
        let index = servers.indices.first { index in
            index != other && servers[index].isDue(at: now) && !servers[index].health.isPaused(at: now)
                && servers[index].hasRoom(group.concurrency, at: now)
        }
        if let index { servers[index].isTried() }
        return index
    }

    /// Milliseconds after which the next server is asked as well; nil: it is not.
    mutating func nextAfter(_ index: Int) -> Int? {
        guard case .inPreference(let longest) = group.choice, servers.count > 1 else { return nil }
        guard let usual = servers[index].health.usualRoundTrip else { return longest }
        return min(max(Timing.shortestPatience, Int(min(2 * usual, 60_000))), longest)
    }

    /// With ``UpstreamGroup/Choice/inPreference(nextWithin:)`` the current server is the first one that does not fail.
    private mutating func prefer() {
        guard case .inPreference = group.choice else { return }
        currentIndex = servers.firstIndex { !$0.isSetAside } ?? 0
    }

    /// A query goes to a server. If it is the first server and another one is in use, its answer decides whether it
    /// returns.
    /// - Parameter source: the source whose query it is; nil for a request for names, which is of many.
    /// - Returns: the source for which it counts at the server; nil where there is no limit that sources share.
    mutating func asked(_ index: Int, for source: Source?) -> Source? {
        let holder = group.concurrency > 0 ? source : nil
        servers[index].begins(for: holder)
        underWay += 1
        counters.queries += 1
        if index == 0, currentIndex != 0 { isProbing = true }
        return holder
    }

    /// A query has ended.
    /// - Parameter index: that of its server; nil: it was removed from the list.
    mutating func ended(_ index: Int?, for holder: Source?) {
        underWay -= 1
        if let index { servers[index].ends(for: holder) }
    }

    /// - Parameter hasAnswer: false for SERVFAIL and the like: the server is there, but another may give an answer.
    mutating func answered(_ index: Int, _ hasAnswer: Bool, roundTrip: Double, at now: Tick) -> [Event] {
        var events: [Event] = []
        if servers[index].health.answered(roundTrip: roundTrip, at: now) {
            events.append(.answersAgain(id, servers[index].server))
        }
        servers[index].heardAt = now
        switch group.choice {
        case .lastThatAnswered:
            servers[index].said(hasAnswer)
            // Another that was asked for one late name's sake does not replace it.
            if hasAnswer, servers[currentIndex].isInDoubt { currentIndex = index }
        case .inPreference:
            if hasAnswer { servers[index].isBack() } else { servers[index].refused(at: now) }
            prefer()
        case .inOrder:
            if index == currentIndex { failedAttempts = 0 }
            guard index == 0, currentIndex != 0 else { break }
            events.append(.returned(id, from: servers[currentIndex].server, to: servers[0].server))
            (currentIndex, failedAttempts, returnAt, isProbing) = (0, 0, nil, false)
        }
        return events
    }

    mutating func failed(_ index: Int, _ query: Query, _ failure: Failure, at now: Tick) -> [Event] {
        var silence = Silence.ofServer
        if failure.kind == .timedOut {
            silence = Silence(of: query, heardAt: servers[index].heardAt)
        } else if failure.kind.isServersWord {
            servers[index].heardAt = now
        }
        guard silence != .ofName else {
            servers[index].health.failures += 1
            isUndecided(index, at: now)
            return []
        }
        var events: [Event] = []
        if servers[index].health.failed(failure, at: now) { events.append(.failing(id, query.server, failure)) }
        if failure.kind == .tooOften { servers[index].halveLimit(group.concurrency, at: now) }
        if case .inPreference = group.choice {
            switch silence {
            case .ofServer: servers[index].putAside(at: now)
            case .ofConnection: servers[index].refused(at: now)
            case .ofAll, .ofName: servers[index].isUndecided(at: now)
            }
            prefer()
        }
        guard case .inOrder(let switchAfter, let minutes) = group.choice else { return events }
        let returnAfter = now.advanced(milliseconds: minutes * 60_000)
        if index == currentIndex {
            failedAttempts += 1
            guard failedAttempts >= max(1, switchAfter), servers.count > 1 else { return events }
            let next = (index + 1) % servers.count
            (currentIndex, failedAttempts, returnAt, isProbing) = (next, 0, returnAfter, false)
            events.append(.switched(id, from: query.server, to: servers[next].server))
        } else if index == 0 {
            (returnAt, isProbing) = (returnAfter, false)
        }
        return events
    }

    /// Nothing follows for a server from how a query has ended. If that was its trial, another one follows.
    mutating func isUndecided(_ index: Int, at now: Tick) {
        servers[index].isUndecided(at: now)
        // The next request tries the first server once more.
        if index == 0, currentIndex != 0 { isProbing = false }
    }

    /// The network has changed: servers that failed may work now, and the first one is tried again with the next
    /// request.
    mutating func networkChanged(at now: Tick) {
        for index in servers.indices {
            servers[index].health.endPause()
            servers[index].isBack()
        }
        prefer()
        failedAttempts = 0
        if currentIndex != 0 { (returnAt, isProbing) = (now, false) }
        for lookup in lookups.values { lookup.tried = [] }
    }
}
