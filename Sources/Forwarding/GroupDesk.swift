import Base
import DNSCache
import DNSWire

/// Asks the groups: which server gets a question, what waits for one, how long each query may take, and what is known of
/// the groups and their servers.
///
/// It reads flights and never changes one: what it has to tell of them, it puts into a list for the forwarder
/// (``takeEvents()``). What the shell is to do it appends to the `actions` that it is handed.
struct GroupDesk: ~Copyable {
    /// What flights depend on, beside what happens to them.
    private(set) var rules: FlightRules
    /// By `GroupID.rawValue`; a group that is not configured any more has no servers.
    var groups: [GroupState] = []
    var queries = Table<Query>()
    private(set) var deadlines = Deadlines<Moment>()
    private var events: [DeskEvent] = []
    /// By the number of the flight's ``Flight/id``.
    private var records: [Record] = []
    /// Queries that have failed, of all groups together.
    var failedQueries: UInt64 = 0
    private var shortNews = News()

    /// The subject of a deadline.
    enum Moment {
        /// See ``Query/nextMoment``.
        case query(TableID)
        /// The plan of the group with this index has room again.
        case plan(Int)
        /// A group that has failed is asked again.
        case outage(Int)
    }

    /// What is known of a flight that has asked a group.
    private struct Record {
        /// The flight; another may have its number later.
        var flight: TableID?
        /// The last step that has begun at a group that carries messages.
        var messages: MessageStep?
        /// The most readable way in which the question was sent so far.
        var exposure = Exposure.none
    }

    init(timing: Timing, groups: [UpstreamGroup]) {
        rules = FlightRules(timing: timing)
        replace(groups, timing)
    }

    // MARK: Groups

    /// Puts each group in its place; groups that stay keep what is known of them.
    mutating func replace(_ new: [UpstreamGroup], _ timing: Timing) {
        rules.timing = timing
        for index in groups.indices where !new.contains(where: { $0.id.rawValue == index }) {
            setServers([], of: GroupID(index))
        }
        for group in new {
            while groups.count <= group.id.rawValue {
                groups.append(
                    GroupState(UpstreamGroup(GroupID(groups.count), [], .messages, .lastThatAnswered, timeout: 0)))
                rules.groups.append(FlightRules.GroupTraits())
            }
            replace(group)
        }
    }

    private mutating func replace(_ group: UpstreamGroup) {
        groups[group.id.rawValue].replace(group)
        rules.groups[group.id.rawValue] = groups[group.id.rawValue].traits
    }

    /// - Returns: the group with its new servers.
    @discardableResult
    mutating func setServers(_ servers: [Server], of id: GroupID) -> UpstreamGroup {
        var group = groups[id.rawValue].group
        group.servers = servers
        replace(group)
        return self.group(id)
    }

    func group(_ id: GroupID) -> UpstreamGroup { groups[id.rawValue].group }

    // MARK: Flights

    /// A step of a flight has begun.
    mutating func ask(_ flight: Flight, _ step: Int, at now: Tick, _ actions: inout [Action]) {
        let number = flight.id.number
        while records.count <= number { records.append(Record()) }
        records[number].flight = flight.id
        let group = flight.route[step].group.rawValue
        if !flight.key.findsServer { groups[group].counters.questions += 1 }
        if rules.groups[group].carriesAddresses {
            groups[group].gather(flight, at: now)
        } else {
            let messages = MessageStep(flight, step)
            records[number].messages = messages
            sendNext(messages, at: now, &actions)
        }
    }

    /// A group has answered a client by itself.
    mutating func noteAnswered(by group: GroupID) { groups[group.rawValue].counters.questions += 1 }

    /// Looks a flight's name up at an account once more, whose answer was not about what the flight asks.
    mutating func lookUp(_ flight: Flight, at group: GroupID, _ now: Tick) {
        groups[group.rawValue].gather(flight, at: now)
    }

    /// The answers of a step's servers are not wanted any more.
    mutating func leave(_ flight: Flight, _ step: Int, _ actions: inout [Action]) {
        guard let messages = messages(of: flight), messages.step == step else { return }
        for query in messages.underWay { leave(query, &actions) }
    }

    /// Withdraws a flight from its lookups. A request already sent goes on, since its answer is still worth caching.
    mutating func withdraw(_ flight: Flight) {
        for step in flight.route.indices where flight.isUnderWay(step) {
            groups[flight.route[step].group.rawValue].withdraw(flight)
        }
    }

    /// A flight is over.
    /// - Returns: the most readable way in which its question was sent.
    mutating func end(_ flight: Flight, _ actions: inout [Action]) -> Exposure {
        let number = flight.id.number
        guard number < records.count else { return .none }
        let record = exchange(&records[number], with: Record())
        if let messages = record.messages {
            messages.isWaiting = false
            for query in messages.underWay { leave(query, &actions) }
        }
        return record.exposure
    }

    private func messages(of flight: Flight) -> MessageStep? {
        flight.id.number < records.count ? records[flight.id.number].messages : nil
    }

    /// The query of a flight's question that is under way to a server at this address; nil: there is none.
    func query(of flight: Flight, at address: IPAddress) -> TableID? {
        messages(of: flight)?.underWay.first { id in
            queries[id]?.server.endpoints.contains { $0.address.unmapped == address.unmapped } ?? false
        }
    }

    /// The most readable way in which the question of a flight was sent until now.
    func exposure(of flight: Flight) -> Exposure {
        flight.id.number < records.count ? records[flight.id.number].exposure : .none
    }

    /// A flight's question has left.
    mutating func note(_ exposure: Exposure, of flight: Flight) {
        let number = flight.id.number
        guard number < records.count, records[number].flight == flight.id else { return }
        if records[number].exposure < exposure { records[number].exposure = exposure }
    }

    // MARK: What is told

    mutating func tell(_ event: DeskEvent) { events.append(event) }

    var hasEvents: Bool { !events.isEmpty }

    /// What has happened, in order.
    mutating func takeEvents() -> [DeskEvent] { exchange(&events, with: []) }

    // MARK: Queries

    /// Sends a query to a server.
    /// - Parameter source: that of a message's flight.
    mutating func send(
        _ subject: Query.Subject, _ ask: Ask, to index: Int, of group: Int, for source: Source?, at now: Tick,
        _ actions: inout [Action]
    ) -> TableID {
        let holder = groups[group].asked(index, for: source)
        let (timeout, id) = (groups[group].group.timeout, GroupID(group))
        let server = groups[group].servers[index].server
        let patience = Timing.patience(roundTrip: groups[group].servers[index].health.roundTrip)
        var query = Query(
            group: id, server: server, number: groups[group].servers[index].number, sent: now, subject: subject,
            holder: holder, endsAt: now.advanced(milliseconds: timeout))
        if patience < timeout { query.askAgainAt = now.advanced(milliseconds: patience) }
        if case .message = subject, let after = groups[group].nextAfter(index) {
            query.askNextAt = now.advanced(milliseconds: after)
        }
        let moment = query.nextMoment
        let number = queries.insert(query)
        deadlines.insert(.query(number), at: moment)
        actions.append(.ask(QueryID(id, number), server, ask))
        if deadlines.count > 4 * queries.count + 256 { compactDeadlines() }
        return number
    }

    /// Deadlines of queries that have ended are dropped once they are the majority, so that the cost of each stays the same.
    private mutating func compactDeadlines() {
        let queries = queries
        deadlines.compact { if case .query(let id) = $0 { queries.contains(id) } else { true } }
    }

    /// - Returns: the query, which has ended, and the index of its server; nil: that was removed from the list.
    mutating func takeQuery(_ id: TableID) -> (query: Query, index: Int?)? {
        guard let query = queries.remove(id) else { return nil }
        let index = groups[query.group.rawValue].index(of: query.number)
        groups[query.group.rawValue].ended(index, for: query.holder)
        if case .message(let messages) = query.subject { messages.underWay.removeAll { $0 == id } }
        return (query, index)
    }

    /// The answer to a query is not wanted any more. A query whose server was overtaken goes on all the same: its time,
    /// or its failure, decides the order of servers for later questions.
    private mutating func leave(_ id: TableID, _ actions: inout [Action]) {
        guard let query = queries[id] else { return }
        if query.isOvertaken, case .message(let messages) = query.subject {
            queries[id]?.subject = .measurement(messages.flight)
        } else {
            _ = cancel(id, &actions)
        }
    }

    /// No answer to a query can come, for a reason that the daemon knows.
    mutating func abandon(_ id: TableID, _ failure: Failure, at now: Tick, _ actions: inout [Action]) {
        if let (query, index) = cancel(id, &actions) { fail(query, index, failure, at: now, &actions) }
    }

    mutating func cancel(
        _ id: TableID, isOverdue: Bool = false, _ actions: inout [Action]
    ) -> (query: Query, index: Int?)? {
        guard let taken = takeQuery(id) else { return nil }
        actions.append(.cancel(QueryID(taken.query.group, id), isOverdue: isOverdue))
        return taken
    }

    // MARK: Time

    /// This machine was short of something, so that a query could not be sent.
    mutating func noteShort(_ failure: Failure, at now: Tick, _ actions: inout [Action]) {
        tell(.short(failure.detail))
        if shortNews.isNews(at: now) { actions.append(.report(.short(failure.detail))) }
    }

    /// When ``expireFirst(at:_:)`` is to be called. Deadlines of queries that have ended do not count.
    var nextDeadline: Tick? {
        mutating get {
            while case .query(let id) = deadlines.first, !queries.contains(id) { deadlines.removeFirst() }
            return deadlines.next
        }
    }

    /// Handles the first moment, if it has come.
    mutating func expireFirst(at now: Tick, _ actions: inout [Action]) {
        switch deadlines.popDue(at: now) {
        case .query(let id): queryMoment(id, at: now, &actions)
        // The end of the turn checks the plan itself.
        case .plan(let group): groups[group].isPlanAwaited = false
        case .outage(let group): lookAgain(group, at: now)
        case nil: break
        }
    }

    mutating func schedule(_ moment: Moment, at tick: Tick) { deadlines.insert(moment, at: tick) }

    private mutating func queryMoment(_ id: TableID, at now: Tick, _ actions: inout [Action]) {
        guard let query = queries[id] else { return }
        if query.endsAt <= now {
            guard let (query, index) = cancel(id, isOverdue: true, &actions) else { return }
            let timeout = groups[query.group.rawValue].group.timeout
            // A repetition that left late may have had too little time, much of it in a queue of this machine.
            let failure =
                query.isLost
                ? Failure(.here, "the kernel did not take a datagram")
                : Failure(.timedOut, "no answer within \(timeout) ms")
            return fail(query, index, failure, at: now, &actions)
        }
        if let moment = query.askAgainAt, moment <= now { askAgain(id, at: now, &actions) }
        if let moment = query.askNextAt, moment <= now { askNextAsWell(id, at: now, &actions) }
        if let query = queries[id] { deadlines.insert(.query(id), at: query.nextMoment) }
    }

    /// Asks a silent server once more: the datagram may be lost (RFC 1035 §4.2.1), or the connection dead without a
    /// sign. The first answer counts, and the attempt's deadline stays the same.
    private mutating func askAgain(_ id: TableID, at now: Tick, _ actions: inout [Action]) {
        guard var query = queries[id] else { return }
        let group = query.group.rawValue
        query.askAgainAt = nil
        defer { queries[id] = query }
        if case .measurement = query.subject { return }
        // A server that was removed from the list is not asked again.
        guard query.repeated == nil, groups[group].index(of: query.number) != nil else { return }
        query.repeated = now
        groups[group].counters.repeats += 1
        actions.append(.askAgain(QueryID(query.group, id)))
    }

    /// A server takes longer than usual: the next one is asked as well, and the first answer counts. The usual time
    /// only begins a second query and never ends the first: names that the server must look up itself take longer than
    /// those in its cache.
    private mutating func askNextAsWell(_ id: TableID, at now: Tick, _ actions: inout [Action]) {
        guard var query = queries[id] else { return }
        query.askNextAt = nil
        query.isOvertaken = true
        queries[id] = query
        guard case .message(let messages) = query.subject else { return }
        sendNext(messages, at: now, &actions)
    }

    /// This machine's addresses or routes have changed: what is known to fail may work, and queries under way are sent once
    /// more.
    mutating func networkChanged(at now: Tick, _ actions: inout [Action]) {
        for group in groups.indices {
            groups[group].networkChanged(at: now)
            outageEnded(of: GroupID(group), at: now)
        }
        for id in queries.ids { askAgain(id, at: now, &actions) }
    }
}

/// What a desk has to tell the forwarder.
enum DeskEvent {
    /// Something has happened to a flight.
    case flight(Flight, FlightEvent)
    /// A name has gone past its group's plan.
    case pastPlan
    /// A query could not be sent, as this machine was short of something.
    case short(String)
    /// A group answers again, or may: what stood in for its answers to these questions is to be forgotten.
    case outageEnded([Flight.Key])
    /// The question is to be asked as a refresh, to see whether a group that has failed answers it again.
    case lookAgain(Flight.Key)
}
