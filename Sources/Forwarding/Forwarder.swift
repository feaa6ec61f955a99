public import Base
public import DNSCache
public import DNSWire

/// Owns every question under way; decides which servers are asked and how clients are answered.
///
/// Its inputs are a question (`receive`), an outcome (`settle`), the time (`expire`), a change of rules or surroundings
/// (`change`), and the end of a turn (`endTurn`), which sends the gathered names. Each input appends to `actions`,
/// which the shell carries out. The forwarder owns no socket, reads no clock and never blocks, so that tests run hours
/// of behaviour in milliseconds.
///
/// Functions on the path of every question are `mutating` even if they only read: otherwise the compiler copies the
/// whole non-copyable value.
public struct Forwarder: ~Copyable {
    /// The present rules.
    public internal(set) var policy: Policy
    let cache: DNSCache
    /// Counts of the decisions.
    public internal(set) var counters = Counters()
    /// Asks the groups.
    var desk: GroupDesk

    var admission = Admission()
    var flights = Table<Flight>()
    var flightOf: [Flight.Key: Flight] = [:]
    var deadlines = Deadlines<Moment>()
    var privateNews = News(), loopNews = News()
    var ranks = AddressRanks()
    /// The names of `preResolve`; those that are still to be looked up; and those that have been looked up, of which no
    /// answer is known yet: see ``preResolveAgain(at:)``.
    var preResolve: [Name] = [], notPreResolved: [Name] = [], unanswered: [Name] = []
    /// The names of `keepAliveDomains`.
    var keepAlive: [Name] = []
    /// The accounts for which the log shows that validating clients are not sent to them.
    var leftToValidators: Set<GroupID> = []
    var store = StoreDesk()
    var translations = Translations()
    var readiness = Readiness()

    /// The subject of a deadline.
    enum Moment {
        case flight(TableID)
        /// The next names in `preResolve` are to be looked up.
        case preResolve
        /// The name with this index in `keepAlive` is to be refreshed.
        case keepAlive(Int)
        /// The trial of addresses has taken long enough.
        case trial(TableID)
    }

    /// - Parameter groups: All groups; each number occurs once.
    public init(policy: Policy, timing: Timing, groups: [UpstreamGroup], cache: DNSCache) {
        self.policy = policy
        self.cache = cache
        cache.obey(policy.basis)
        desk = GroupDesk(timing: timing, groups: groups)
    }

    var timing: Timing { desk.rules.timing }
    /// Queries that have failed, over all groups.
    public var failedQueries: UInt64 { desk.failedQueries }

    /// Swaps the actions to carry out for an empty list, whose memory serves the next actions.
    public mutating func takeActions(into list: inout [Action]) {
        precondition(list.isEmpty)
        swap(&list, &desk.actions)
        if desk.actions.capacity > Self.actionsCapacity { desk.actions = [] }
    }
    /// Memory for so many actions is retained between turns, some 300 octets each.
    private static var actionsCapacity: Int { 64 }

    mutating func act(_ action: Action) { desk.actions.append(action) }

    // MARK: Questions

    /// Takes a client's question; its listener found no fresh answer in the cache.
    ///
    /// - Parameters:
    ///   - client: The client; nil for the daemon's own question, to refresh an entry.
    ///   - asker: The client, or the client whose question caused the refresh.
    ///   - recursionDesired: If false, the answer comes only from the cache and local data (RFC 1034 §4.3.1).
    public mutating func receive(
        _ name: Name, _ type: RecordType, for audience: Audience, from client: ClientNumber?,
        by asker: Asker = .host, recursionDesired: Bool = true, at now: Tick
    ) {
        let client = client.map { AskingClient(number: $0, asker: asker, recursionDesired: recursionDesired) }
        receive(Flight.Key(name: NameKey(name), type: type, audience: audience), client, of: asker.source, at: now)
    }

    /// Looks up a server for the daemon: see ``Policy/routeToServer(_:_:)``.
    /// - Parameters:
    ///   - type: A or AAAA.
    ///   - client: The number for the reply, which comes within ``Timing/answerWithin``, as to a client.
    public mutating func findServer(_ name: Name, _ type: RecordType, for client: ClientNumber, at now: Tick) {
        let key = Flight.Key(
            name: NameKey(name), type: type, audience: .plain, findsServer: true)
        receive(key, AskingClient(number: client, asker: .daemon), of: .daemon, at: now)
    }

    mutating func receive(_ key: Flight.Key, _ client: AskingClient?, of source: Source, at now: Tick) {
        let decision = decide(
            key, isClients: client?.takesCached ?? false, recursionDesired: client?.recursionDesired ?? true,
            of: source, at: now)
        switch decision.fate {
        case .answer(let answer, by: nil): reply(client, answer)
        case .answer(let answer, by: let group?):
            if client != nil, !key.findsServer { desk.noteAnswered(by: group) }
            reply(client, answer, by: .group(group))
        case .alias(of: let target, by: let group):
            if let group, client != nil, !key.findsServer { desk.noteAnswered(by: group) }
            follow(key, client, to: target, of: source, at: now)
        case .cached:
            // Without RD, the question refreshes nothing.
            let fresh =
                client?.recursionDesired ?? true
                ? cache.take(key.name.name, type: key.type, for: key.audience, at: now.seconds) : nil
            guard let known = fresh ?? decision.known else { return }
            reply(client, known.answer, age: .elapsed(known.elapsed), by: .cache)
            // The listener, which begins most refreshes, read the cache for the alias, not for its target.
            if known.isDue { receive(key, nil, of: source, at: now) }
        case .join(let flight):
            if !endLoop(flight, client, at: now) { join(flight, client, decision.known, at: now) }
        case .failedLately(let reason), .noServer(let reason): giveUp(key, client, decision.known, reason)
        case .ask:
            if let client, !admission.mayWait(client) { return refuse(key, client, decision.known, .tooManyWaiting) }
            guard makesRoom(for: source, isClients: client != nil, at: now) else {
                return refuse(key, client, decision.known, .tooManyFlights)
            }
            begin(key, decision, for: client, of: source, at: now)
        }
        handleDeskEvents(at: now)
    }

    private mutating func begin(
        _ key: Flight.Key, _ decision: borrowing Decision, for client: AskingClient?, of source: Source, at now: Tick
    ) {
        admission.begin(source)
        let flight = Flight(
            key, decision.route, id: flights.nextID, for: client.map { admission.wait($0) },
            // The daemon's own question has to reach every group, as a client's would.
            isWanted: client?.takesCached ?? (key == Readiness.own), of: source, after: decision.before,
            staleAt: decision.known != nil ? now.advanced(milliseconds: timing.staleWithin) : nil,
            answerBy: now.advanced(milliseconds: timing.answerWithin), isBinding: decision.isBinding,
            bases: bases(key, decision.row, of: source))
        flights.insert(flight)
        flightOf[key] = flight
        if !key.findsServer { counters.flights += 1 }
        if let account = policy.leavesToValidators(key) { noteLeft(account, asked: decision.route[0].group) }
        tell(flight, .begun, at: now)
        if let before = client?.waitedBefore { tell(flight, .waitedBefore(before), at: now) }
    }

    /// The bases of a flight's answers. A client of another host may get less of the hosts file than the clients that
    /// share the answer.
    private mutating func bases(_ key: Flight.Key, _ row: Policy.Row?, of source: Source) -> AnswerBases {
        if let row, source.isThisHost || !policy.hosts.holds(key.name) {
            policy.bases(key, by: row)
        } else {
            policy.bases(key)
        }
    }

    /// Notes that a validating client asks for a name of an account, and another group is asked instead.
    private mutating func noteLeft(_ account: GroupID, asked group: GroupID) {
        counters.fellBack(because: .signed)
        guard leftToValidators.insert(account).inserted else { return }
        act(.report(.leftToValidators(account, asked: group)))
    }

    /// Ends a loop: a server asks this daemon the question that the daemon is asking it. The daemon and the server
    /// would wait for each other, so the server's question fails at once. The server counts as failing only if the
    /// address is proven: another one may be forged, and is only reported.
    /// - Returns: false if there is no loop.
    private mutating func endLoop(_ flight: Flight, _ client: AskingClient?, at now: Tick) -> Bool {
        guard let client, client.source != .host, client.source != flight.source,
            let query = desk.query(of: flight, at: client.asker.address)
        else { return false }
        reply(client, failure(flight.key, FailureReason(code: .other, text: Failure.loop.detail)))
        if client.asker.isProven {
            desk.cancel(query, as: .failed(Failure.loop), at: now)
        } else if loopNews.isNews(at: now), let asked = desk.asked(by: query) {
            act(.report(.mayLoop(asked.group, asked.server)))
        }
        return true
    }

    private mutating func join(_ flight: Flight, _ client: AskingClient?, _ known: DNSCache.Held?, at now: Tick) {
        guard let client else { return }
        if flight.isAnswered, let known {
            // RFC 8767 §5: while a refresh is known to fail, a stale answer is given at once. No group is asked for it.
            return replyKnown(client, known)
        }
        if client.takesCached, !flight.isWanted { want(flight, at: now) }
        guard admission.mayWait(client, with: flight.clients) else {
            return refuse(flight.key, client, known, .tooManyWaiting)
        }
        if admission.takesOver(from: flight.source, client.source) { flight.count(for: client.source) }
        flight.add(admission.wait(client))
        if !flight.key.findsServer { counters.joined += 1 }
        if flight.isAnswered { tell(flight, .reopened, at: now) }
        if let before = client.waitedBefore { tell(flight, .waitedBefore(before), at: now) }
    }

    /// A first client waits for a flight that the daemon began for itself, and so for the A records of which the flight's
    /// answer is made.
    private mutating func want(_ flight: Flight, at now: Tick) {
        tell(flight, .wanted, at: now)
        if store.isOn { store.hurry(flight.id, at: now) }
        guard translations.isAwaited(by: flight.id) else { return }
        let key = Flight.Key(name: flight.key.name, type: .a, audience: flight.key.audience)
        if let a = flightOf[key], !a.isWanted { want(a, at: now) }
    }

    /// Makes room for a flight of this source, if necessary by the end of another flight.
    /// - Parameter isClients: false for a refresh, for which no flight ends.
    /// - Returns: false if there is no room.
    private mutating func makesRoom(for source: Source, isClients: Bool, at now: Tick) -> Bool {
        let room = admission.room(for: source)
        if case .free = room { return true }
        guard isClients, case .ofNewest(let other) = room,
            let newest = flights.newest(where: { $0.source == other })
        else { return false }
        say(.tooManyFlights)
        let clients = newest.takeClients()
        counters.refusedFlights += UInt64(clients.count)
        if let known = known(newest.key, at: now) {
            replyKnown(newest, clients, known)
        } else {
            reply(newest, clients, failure(newest.key, nil), by: .daemon)
        }
        desk.withdraw(newest)
        end(newest)
        return true
    }

    private mutating func refuse(
        _ key: Flight.Key, _ client: AskingClient?, _ known: DNSCache.Held?, _ refusal: Refusal
    ) {
        // An answer that is not refreshed now is looked up at a client's next question.
        guard client != nil else { return }
        switch refusal {
        case .tooManyFlights: counters.refusedFlights += 1
        case .tooManyWaiting: counters.refusedWaiting += 1
        }
        say(refusal)
        giveUp(key, client, known, nil)
    }

    private mutating func say(_ refusal: Refusal) {
        if admission.isNews(refusal) { act(.report(.refusing(refusal))) }
    }

    /// Answers without asking: a stale answer, else a failure.
    /// - Parameter reason: The reason for not asking; nil if one of the daemon's own limits is reached.
    private mutating func giveUp(
        _ key: Flight.Key, _ client: AskingClient?, _ known: DNSCache.Held?, _ reason: FailureReason?
    ) {
        guard let client else { return }
        if let known { return replyKnown(client, known) }
        reply(client, failure(key, reason), by: reason == nil ? .daemon : .noServer)
    }

    // MARK: Time

    /// Handles all that is due by `now`.
    public mutating func expire(at now: Tick) {
        store.expire(at: now, &desk.actions)
        takeFindings(at: now)
        while true {
            if let first = desk.nextDeadline, first <= now, deadlines.next.map({ first <= $0 }) ?? true {
                desk.expireFirst(at: now)
            } else if let moment = deadlines.popDue(at: now) {
                switch moment {
                case .flight(let id): flightMoment(id, at: now)
                case .preResolve: preResolveNext(at: now)
                case .keepAlive(let index): refreshKeepAlive(index, at: now)
                case .trial(let id): endTrial(id, at: now)
                }
            } else {
                return
            }
            handleDeskEvents(at: now)
        }
    }

    /// When `expire` must be called next; nil if no work is under way. Deadlines of ended queries do not count.
    public var nextDeadline: Tick? {
        mutating get {
            // Deadlines of ended flights are left to ``schedule(_:)``, which drops them together: these deadlines are
            // seconds away, so one of them wakes the loop for many.
            while case .trial(let id) = deadlines.first, !ranks.isUnderWay(id) { deadlines.removeFirst() }
            return deadlines.next.orEarlier(desk.nextDeadline).orEarlier(store.nextDeadline)
        }
    }

    /// Ends a turn of the loop: sends the names gathered in it. Call it until no actions are left: an action that fails
    /// at once may make room for further names.
    public mutating func endTurn(at now: Tick) {
        // A name that its group cannot take goes on to a group whose turn was over.
        repeat { desk.endTurn(policy, at: now) } while handleDeskEvents(at: now)
    }

    private mutating func flightMoment(_ id: TableID, at now: Tick) {
        guard let flight = flights[id] else { return }
        tell(flight, .due(stale: flight.isStaleDue(at: now) ? known(flight.key, at: now) : nil), at: now)
    }

    /// Drops the deadlines of ended subjects once they are the majority: constant cost for each.
    mutating func schedule(_ flight: Flight) {
        guard let moment = flight.nextMoment else { return }
        deadlines.insert(.flight(flight.id), at: moment)
        guard deadlines.count > 4 * (flights.count + keepAlive.count) + 256 else { return }
        let (flights, ranks) = (flights, ranks)
        deadlines.compact { moment in
            switch moment {
            case .flight(let id): flights.contains(id)
            case .trial(let id): ranks.isUnderWay(id)
            case .preResolve, .keepAlive: true
            }
        }
    }
}
