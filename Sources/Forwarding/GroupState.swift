import Base

/// A group of upstreams and the state of its servers. `GroupState+Names.swift` has the queue of names and questions.
struct GroupState {
    private(set) var group: UpstreamGroup
    /// The group's servers, and the choice among them.
    var choice: ServerChoice
    var counters = GroupCounters()
    /// The limit of `namesPerSecond`.
    var plan: TokenBucket?
    /// Whether a deadline for room in the plan is set; one suffices for any number of turns that exceed the plan.
    var isPlanAwaited = false
    /// For a group that carries messages: the flights that wait for a server with room.
    var waiting = WaitingFlights()
    /// For a group that carries addresses: the names under way, and the names among them that are sent at the end of
    /// the turn.
    var lookups: [NameKey: Lookup] = [:]
    var outbox: [Lookup] = []
    /// Whether names were left in the outbox at the end of the last turn.
    var isBehind = false
    var noRecordBudget = NoRecordBudget()
    var noRecordNews = News()
    /// Names of which the group has no record.
    var namesWithoutRecord = Remembered<NameKey, String?>(atMost: maximumNamesWithoutRecord)
    /// The questions that another group has answered instead of this group, each until that substitute has expired;
    /// and the moment from which an answer of this group ends the substitute.
    var standIns = Remembered<Flight.Key, Tick>(atMost: maximumStandIns)
    /// The next probe of the failed group, and the seconds to it from the one before; nil if no probe is due.
    var nextLook: (pause: Int, at: Tick)?

    /// The most requests for names at once to the servers of one group. Further names wait for fuller requests.
    static let maximumRequests = 128
    /// The names take some 1.5 MB; a name that is forgotten too early costs one lookup.
    static let maximumNamesWithoutRecord = 8192
    /// The most questions in ``standIns``, some 200 octets each. The substitute for an older question stays cached
    /// until it expires.
    static let maximumStandIns = 4096

    init(_ group: UpstreamGroup) {
        self.group = group
        choice = ServerChoice(group)
        if group.namesPerSecond > 0 { plan = TokenBucket(perSecond: group.namesPerSecond) }
    }

    var id: GroupID { group.id }
    var servers: [ServerState] { choice.servers }
    /// Queries under way.
    var underWay: Int { choice.underWay }
    /// The server that is asked now; nil if there are no servers.
    var current: ServerState? { choice.current }

    /// Whether a server of the group has failed since that server's last answer.
    var isFailing: Bool { servers.contains { $0.health.consecutiveFailures > 0 } }

    /// The group's traits, for flights. `mutating`, so that reading a group copies nothing.
    var traits: FlightRules.GroupTraits {
        mutating get {
            FlightRules.GroupTraits(
                hasServers: !servers.isEmpty, carriesAddresses: group.carriesAddresses, isProven: group.isProven,
                isShared: group.isShared, isDown: choice.isDown, hasPlan: plan != nil,
                downBecause: choice.isDown ? trouble.flatMap { FallbackReason($0.failure.kind) } : nil,
                isLeftUntil: choice.isLeftUntil)
        }
    }

    /// Applies other settings or servers. A server that stays retains its state.
    mutating func replace(_ new: UpstreamGroup) {
        if new.namesPerSecond != group.namesPerSecond {
            plan = new.namesPerSecond > 0 ? TokenBucket(perSecond: new.namesPerSecond) : nil
        }
        // Servers from the settings do not count as servers from the network.
        let hadServers = group.isOfNetwork && group.hadServers
        group = new
        group.hadServers = new.isOfNetwork && (hadServers || !new.servers.isEmpty)
        choice.replace(new)
    }

    /// Resets the servers' states and forgets their results, for instance since the account has changed.
    mutating func beginAfresh() {
        namesWithoutRecord.removeAll()
        noRecordBudget.removeAll()
        choice.renew()
    }

    /// Why no server is asked, while all are paused or the group is down: the last failure of the current server.
    var trouble: Trouble? {
        guard let current, let failure = current.health.lastFailure else { return nil }
        return Trouble(failure: failure, group: id, server: group.carriesAddresses ? nil : current.server)
    }

    /// The choice for a flight's question at this moment. `mutating`, so that reading a group copies nothing.
    mutating func pick(_ messages: MessageStep, _ rules: FlightRules, at now: Tick) -> ServerChoice.Pick {
        let source = messages.flight.source
        return choice.pick(
            for: waiting.hasOthers(than: source) ? source : nil, isFirst: messages.tried.isEmpty,
            leadsOn: { messages.flight.leadsOn(from: messages.step, rules) },
            unlessTried: { number in !messages.tried.allSatisfy { $0 != number } }, at: now)
    }

    /// The choice for a name at this moment. Fill the plan first.
    mutating func pick(_ lookup: Lookup, _ rules: FlightRules, at now: Tick) -> ServerChoice.Pick {
        if isPastRequests { return .full }
        let id = id
        let pick = choice.pick(
            for: nil, isFirst: !lookup.wasSent, leadsOn: { lookup.leadsOn(from: id, rules) },
            unlessTried: { lookup.tried.contains($0) }, at: now)
        if case .server = pick, plan?.hasRoom(for: lookup.source) == false { return .pastPlan }
        return pick
    }

    /// Whether as many requests are under way as allowed for a group without `concurrency`.
    var isPastRequests: Bool { group.concurrency == 0 && underWay >= Self.maximumRequests }

    /// The network has changed: failed servers may work now.
    mutating func networkChanged(at now: Tick) {
        choice.networkChanged(at: now)
        for lookup in lookups.values { lookup.tried = [] }
    }
}
