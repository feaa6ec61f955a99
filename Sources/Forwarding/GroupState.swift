import Base
import DNSCache

/// A group of upstreams and what is known about its servers. Which names and questions wait for it says
/// `GroupState+Names.swift`.
struct GroupState {
    private(set) var group: UpstreamGroup
    /// For a group that carries addresses: the most names in a request.
    private(set) var namesPerRequest: Int
    /// Its servers, and which of them is asked.
    var choice: ServerChoice
    var counters = GroupCounters()
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
        choice = ServerChoice(group)
        if group.namesPerSecond > 0 { plan = TokenBucket(perSecond: group.namesPerSecond) }
    }

    var id: GroupID { group.id }
    var servers: [ServerState] { choice.servers }
    /// Queries under way.
    var underWay: Int { choice.underWay }
    /// The server that is asked now; nil without servers.
    var current: ServerState? { choice.current }

    /// Whether any of its servers has failed since it last answered.
    var isFailing: Bool { servers.contains { $0.health.consecutiveFailures > 0 } }

    /// What flights and others may know of the group.
    var traits: FlightRules.GroupTraits {
        FlightRules.GroupTraits(
            hasServers: !servers.isEmpty, carriesAddresses: group.carriesAddresses, isProven: group.isProven,
            isShared: group.isShared, isDown: choice.isDown, isLeftUntil: choice.isLeftUntil)
    }

    /// Applies other settings or servers. What is known of servers that stay is kept.
    mutating func replace(_ new: UpstreamGroup, at now: Tick) {
        if new.namesPerSecond != group.namesPerSecond {
            plan = new.namesPerSecond > 0 ? TokenBucket(perSecond: new.namesPerSecond) : nil
        }
        // Servers that the settings named say nothing of those that the network will.
        let hadServers = group.isOfNetwork && group.hadServers
        (group, namesPerRequest) = (new, new.carries.namesPerRequest)
        group.hadServers = new.isOfNetwork && (hadServers || !new.servers.isEmpty)
        choice.take(.settings(new), at: now)
    }

    /// Forgets what is known of the servers, and their results, for instance because the account is another.
    mutating func beginAfresh(at now: Tick) {
        namesWithoutRecord.removeAll()
        choice.take(.renewed, at: now)
    }

    /// Why none of the servers is asked, since all are paused or the group is down: the last failure of the current one.
    var trouble: Trouble? {
        guard let current, let failure = current.health.lastFailure else { return nil }
        return Trouble(failure: failure, group: id, server: group.carriesAddresses ? nil : current.server)
    }

    /// What becomes of a flight's question at this moment. Mutating, so that reading a group copies nothing.
    mutating func pick(_ messages: MessageStep, _ rules: FlightRules, at now: Tick) -> ServerChoice.Pick {
        let source = messages.flight.crowd.source
        return choice.pick(
            for: waiting.hasOthers(than: source) ? source : nil, isFirst: messages.tried.isEmpty,
            leadsOn: { messages.flight.leadsOn(from: messages.step, rules) },
            unlessTried: { number in !messages.tried.allSatisfy { $0 != number } }, at: now)
    }

    /// What becomes of a name at this moment. The plan is to be filled before.
    mutating func pick(_ lookup: Lookup, _ rules: FlightRules, at now: Tick) -> ServerChoice.Pick {
        if isPastRequests { return .full }
        let id = id
        let pick = choice.pick(
            for: nil, isFirst: !lookup.wasSent, leadsOn: { lookup.leadsOn(from: id, rules) },
            unlessTried: { lookup.tried.contains($0) }, at: now)
        if case .server = pick, plan?.hasRoom(for: lookup.source) == false { return .pastPlan }
        return pick
    }

    /// Whether as many requests are under way as there may be to a group without `concurrency`.
    var isPastRequests: Bool { group.concurrency == 0 && underWay >= Self.maximumRequests }

    /// The network has changed: servers that failed may work now.
    mutating func networkChanged(at now: Tick) {
        choice.take(.networkChanged, at: now)
        for lookup in lookups.values { lookup.tried = [] }
    }
}
