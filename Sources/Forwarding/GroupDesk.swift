import Base

/// Asks the groups: it chooses servers, queues lookups, sets the time of each query, and knows the state of groups and
/// servers.
///
/// The desk reads flights and never changes a flight: it appends their events to a list for the forwarder
/// (``takeEvents()``), and the shell's orders to ``actions``.
struct GroupDesk: ~Copyable {
    /// The rules that flights read.
    private(set) var rules: FlightRules
    /// By `GroupID.rawValue`; a group that is no longer configured has no servers.
    var groups: [GroupState] = []
    var queries = Table<Query>()
    /// The forwarder's actions for the shell, in order.
    var actions: [Action] = []
    private(set) var deadlines = Deadlines<Moment>()
    private var events: [DeskEvent] = []
    /// By the number in ``Flight/id``.
    private var records: [Record] = []
    /// Queries that have failed, over all groups.
    var failedQueries: UInt64 = 0
    private var shortNews = News()

    /// The subject of a deadline.
    enum Moment {
        /// See ``Query/nextMoment``.
        case query(TableID)
        /// The plan of the group with this index may have room again.
        case plan(Int)
        /// The group with this index has failed and is probed.
        case outage(Int)
    }

    /// The desk's record of a flight that has asked a group.
    private struct Record {
        /// The flight; a later flight may get the same number.
        var flight: TableID?
        /// The steps that have begun at groups that carry messages.
        var messages = SmallList<MessageStep>()
        /// The least protected way in which the question was sent.
        var exposure = Exposure.none
    }

    init(timing: Timing, groups: [UpstreamGroup]) {
        rules = FlightRules(timing: timing)
        replace(groups, timing)
    }

    // MARK: Groups

    /// Replaces the groups; a group that stays retains its state.
    mutating func replace(_ new: [UpstreamGroup], _ timing: Timing) {
        rules.timing = timing
        while groups.count <= new.lazy.map(\.id.rawValue).max() ?? -1 {
            groups.append(
                GroupState(UpstreamGroup(GroupID(groups.count), [], .messages, .lastThatAnswered, timeout: 0)))
            rules.groups.append(FlightRules.GroupTraits())
        }
        for id in ids {
            if let group = new.first(where: { $0.id == id }) {
                replace(group)
            } else {
                setServers([], of: id)
            }
        }
    }

    private mutating func replace(_ group: UpstreamGroup) {
        groups[group.id.rawValue].replace(group)
        noteTraits(of: group.id.rawValue)
    }

    /// Gives flights the present traits of a group.
    mutating func noteTraits(of group: Int) { rules.groups[group] = groups[group].traits }

    /// - Returns: The group with its new servers.
    @discardableResult
    mutating func setServers(_ servers: [Server], of id: GroupID) -> UpstreamGroup {
        var group = groups[id.rawValue].group
        group.servers = servers
        replace(group)
        return self.group(id)
    }

    func group(_ id: GroupID) -> UpstreamGroup { groups[id.rawValue].group }

    // MARK: Flights

    /// Begins a step of a flight.
    mutating func ask(_ flight: Flight, _ step: Int, at now: Tick) {
        let number = beginRecord(of: flight)
        let group = flight.route[step].group.rawValue
        if !flight.key.findsServer { groups[group].counters.questions += 1 }
        if rules.groups[group].carriesAddresses {
            lookUp(flight, at: flight.route[step].group, now)
        } else {
            let messages = MessageStep(flight, step)
            records[number].messages.removeAll { $0.step == step }
            records[number].messages.append(messages)
            sendNext(messages, at: now)
        }
    }

    /// Counts an answer that a group gave by itself.
    mutating func noteAnswered(by group: GroupID) { groups[group.rawValue].counters.questions += 1 }

    /// - Returns: The number of the flight's record.
    @discardableResult
    private mutating func beginRecord(of flight: Flight) -> Int {
        let number = flight.id.number
        while records.count <= number { records.append(Record()) }
        records[number].flight = flight.id
        return number
    }

    /// Looks a flight's name up at an account; again, if the last answer lacked the flight's address family. A name that
    /// was sent before has left for this flight, too.
    mutating func lookUp(_ flight: Flight, at group: GroupID, _ now: Tick) {
        guard let id = groups[group.rawValue].gather(flight, at: now),
            let sent = queries.change(id, { $0.isWritten ? $0.server.exposure : Exposure.none })
        else { return }
        note(sent, of: flight)
    }

    /// Ends the queries of a step; their answers are not needed.
    mutating func leave(_ flight: Flight, _ step: Int) {
        for messages in messages(of: flight) where messages.step == step { leave(messages) }
    }

    private mutating func leave(_ messages: MessageStep) {
        messages.isWaiting = false
        for query in messages.underWay { leave(query) }
    }

    /// Withdraws a flight from its lookups. A request already sent goes on, since its answer is worth caching.
    mutating func withdraw(_ flight: Flight) {
        for step in flight.route.indices where flight.isUnderWay(step) {
            groups[flight.route[step].group.rawValue].withdraw(flight)
        }
    }

    /// Forgets a flight that has ended.
    /// - Returns: The least protected way in which its question was sent.
    mutating func end(_ flight: Flight) -> Exposure {
        let number = flight.id.number
        guard number < records.count else { return .none }
        let record = exchange(&records[number], with: Record())
        for messages in record.messages { leave(messages) }
        return record.exposure
    }

    private func messages(of flight: Flight) -> SmallList<MessageStep> {
        flight.id.number < records.count ? records[flight.id.number].messages : SmallList()
    }

    /// The query of a flight to the server at this address; nil if there is none.
    func query(of flight: Flight, at address: IPAddress) -> TableID? {
        messages(of: flight).lazy.flatMap(\.underWay).first { id in
            queries[id]?.server.endpoints.contains { $0.address.unmapped == address.unmapped } ?? false
        }
    }

    /// The server of a query, with its group; nil: the query has ended.
    func asked(by query: TableID) -> (group: GroupID, server: Server)? {
        queries[query].map { ($0.group, $0.server) }
    }

    /// The least protected way in which a flight's question has been sent.
    func exposure(of flight: Flight) -> Exposure {
        flight.id.number < records.count ? records[flight.id.number].exposure : .none
    }

    /// Records that a question was sent from whose answer a flight's is made.
    mutating func noteOther(_ exposure: Exposure, for flight: Flight) {
        beginRecord(of: flight)
        note(exposure, of: flight)
    }

    /// Records that a flight's question was sent.
    mutating func note(_ exposure: Exposure, of flight: Flight) {
        let number = flight.id.number
        guard records[number].flight == flight.id else { return }
        if records[number].exposure < exposure { records[number].exposure = exposure }
    }

    // MARK: Events

    mutating func tell(_ event: DeskEvent) { events.append(event) }
    mutating func tell(_ flight: Flight, _ event: FlightEvent) { events.append(.flight(flight, event)) }

    var hasEvents: Bool { !events.isEmpty }

    /// The events so far, in order.
    mutating func takeEvents() -> [DeskEvent] { exchange(&events, with: []) }

    // MARK: Queries

    /// Sends a query to a server.
    /// - Parameters:
    ///   - source: The source of the flight that the message is for.
    ///   - isTrial: see ``Query/isTrial``.
    mutating func send(
        _ subject: Query.Subject, _ ask: Ask, to index: Int, of group: Int, for source: Source?, isTrial: Bool,
        at now: Tick
    ) -> TableID {
        groups[group].choice.asked(index, for: source, isTrial: isTrial, at: now)
        groups[group].counters.queries += 1
        let (timeout, id) = (groups[group].group.timeout, GroupID(group))
        let server = groups[group].servers[index].server
        let patience = Timing.patience(roundTrip: groups[group].servers[index].health.roundTrip)
        var query = Query(
            group: id, server: server, number: groups[group].servers[index].number, sent: now, subject: subject,
            holder: groups[group].group.concurrency > 0 ? source : nil, endsAt: now.advanced(milliseconds: timeout),
            isTrial: isTrial)
        if patience < timeout { query.askAgainAt = now.advanced(milliseconds: patience) }
        if case .message = subject, let after = groups[group].choice.nextAfter(index) {
            query.askNextAt = now.advanced(milliseconds: after)
        }
        let moment = query.nextMoment
        let number = queries.insert(query)
        deadlines.insert(.query(number), at: moment)
        actions.append(.ask(QueryID(id, number), server, ask))
        if deadlines.count > 4 * queries.count + 256 { compactDeadlines() }
        return number
    }

    /// Drops the deadlines of ended queries once they are the majority: constant cost for each.
    private mutating func compactDeadlines() {
        let queries = queries
        deadlines.compact { if case .query(let id) = $0 { queries.contains(id) } else { true } }
    }

    /// Ends a query whose answer is not needed. The query of an overtaken server or of a group that is down goes on:
    /// the query's time, or its failure, decides on the servers of later questions.
    private mutating func leave(_ id: TableID) {
        guard let query = queries[id] else { return }
        if query.isOvertaken || rules[query.group].isDown, case .message(let messages) = query.subject {
            queries[id]?.subject = .measurement(messages)
        } else {
            // The query is no trial, so the given moment has no effect.
            cancel(id, as: .withdrawn, at: query.sent)
        }
    }

    /// Ends a query whose answer is no longer awaited.
    @discardableResult
    mutating func cancel(
        _ id: TableID, as verdict: ServerChoice.Verdict, isOverdue: Bool = false, at now: Tick
    ) -> Query? {
        guard let group = queries.change(id, { $0.group }) else { return nil }
        actions.append(.cancel(QueryID(group, id), isOverdue: isOverdue))
        return end(id, at: now) { _ in verdict }
    }

    // MARK: Time

    /// Handles a query that could not be sent for a shortage of this machine.
    mutating func noteShort(_ failure: Failure, at now: Tick) {
        tell(.short(failure.detail))
        if shortNews.isNews(at: now) { actions.append(.report(.short(failure.detail))) }
    }

    /// When ``expireFirst(at:)`` must be called. Deadlines of ended queries do not count.
    var nextDeadline: Tick? {
        mutating get {
            while case .query(let id) = deadlines.first, !queries.contains(id) { deadlines.removeFirst() }
            return deadlines.next
        }
    }

    /// Handles the first deadline, if it is due.
    mutating func expireFirst(at now: Tick) {
        switch deadlines.popDue(at: now) {
        case .query(let id): queryMoment(id, at: now)
        // The end of the turn checks the plan itself.
        case .plan(let group): groups[group].isPlanAwaited = false
        case .outage(let group): lookAgain(group, at: now)
        case nil: break
        }
    }

    mutating func schedule(_ moment: Moment, at tick: Tick) { deadlines.insert(moment, at: tick) }

    private mutating func queryMoment(_ id: TableID, at now: Tick) {
        guard let query = queries[id] else { return }
        if query.endsAt <= now {
            let timeout = groups[query.group.rawValue].group.timeout
            // A repetition that left late, from a queue of this machine, may have had too little time.
            let failure =
                query.isLost
                ? Failure(.here, "the kernel did not take a datagram or open a connection")
                : Failure(.timedOut, "no answer within \(timeout) ms")
            cancel(id, as: .failed(failure), isOverdue: true, at: now)
        }
        if let moment = query.askAgainAt, moment <= now { askAgain(id, at: now) }
        if let moment = query.askNextAt, moment <= now { askNextAsWell(id, at: now) }
        if let query = queries[id] { deadlines.insert(.query(id), at: query.nextMoment) }
    }

    /// Asks a silent server a second time: the datagram may be lost (RFC 1035 §4.2.1), or the connection dead without a
    /// sign. The first answer counts, and the deadline stays.
    private mutating func askAgain(_ id: TableID, at now: Tick) {
        guard var query = queries[id] else { return }
        let group = query.group.rawValue
        query.askAgainAt = nil
        defer { queries[id] = query }
        if case .measurement = query.subject { return }
        // A server that was removed from the list is not asked again.
        guard query.repeated == nil, groups[group].servers.contains(where: { $0.number == query.number }) else {
            return
        }
        query.repeated = now
        groups[group].counters.repeats += 1
        actions.append(.askAgain(QueryID(query.group, id)))
    }

    /// Asks the next server too when a server takes longer than usual; the first answer counts. The usual time never
    /// ends the first query: a server needs longer for names that are not in its cache.
    private mutating func askNextAsWell(_ id: TableID, at now: Tick) {
        guard var query = queries[id] else { return }
        query.askNextAt = nil
        query.isOvertaken = true
        queries[id] = query
        guard case .message(let messages) = query.subject else { return }
        sendNext(messages, at: now)
    }

    /// A group's servers have changed: the next server is asked the questions that are under way to removed ones alone.
    /// The lookup of a server asks again by itself.
    mutating func askInsteadOfRemoved(_ group: GroupID, at now: Tick) {
        let servers = groups[group.rawValue].servers
        func isRemoved(_ id: TableID) -> Bool {
            guard let number = queries[id]?.number else { return true }
            return !servers.contains { $0.number == number }
        }
        for id in queries.ids {
            guard let query = queries[id], query.group == group, case .message(let messages) = query.subject,
                !messages.flight.key.findsServer, messages.underWay.allSatisfy(isRemoved)
            else { continue }
            sendNext(messages, at: now)
        }
    }

    /// This machine's addresses or routes have changed: failed servers may work, and queries under way are repeated.
    mutating func networkChanged(at now: Tick) {
        for group in groups.indices {
            groups[group].networkChanged(at: now)
            noteTraits(of: group)
            endStandIns(of: GroupID(group), at: now)
        }
        for id in queries.ids {
            // What was sent a second time went into the former network, too.
            queries.change(id) { $0.repeated = nil }
            askAgain(id, at: now)
        }
        for record in records {
            for messages in record.messages {
                messages.tried.removeAll { number in !messages.underWay.contains { queries[$0]?.number == number } }
            }
        }
    }
}

/// An event of the desk for the forwarder.
enum DeskEvent {
    /// An event of a flight.
    case flight(Flight, FlightEvent)
    /// A name has exceeded its group's plan.
    case pastPlan
    /// A query could not be sent: this machine was short of a resource.
    case short(String)
    /// A group answers again, or may: substitutes for its answers to these questions are to be removed.
    case outageEnded([Flight.Key])
    /// The question is asked as a refresh, to probe a group that has failed.
    case lookAgain(Flight.Key)
}
