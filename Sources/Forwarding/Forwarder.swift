public import Base
public import DNSCache
public import DNSWire

/// Owns every question under way and decides which servers are asked and what clients are answered.
///
/// It is told of a question (`receive`), an outcome (`settle`), the time (`expire`), a change of its rules or
/// surroundings (`change`), and the end of a turn (`endTurn`), in which the gathered names are sent. Each of these
/// appends to `actions`, which the shell carries out. It owns no socket, reads no clock and never blocks, so that tests
/// run hours of behaviour in milliseconds.
///
/// Functions on the path of every question are mutating even where they change nothing: for a reading function the
/// compiler would move the whole non-copyable value to another place.
public struct Forwarder: ~Copyable {
    public internal(set) var policy: Policy
    var timing: Timing
    let cache: DNSCache
    /// The actions for the shell, in order.
    private(set) var actions: [Action] = []
    public internal(set) var counters = Counters()
    /// Queries that have failed, of all groups together.
    public internal(set) var failedQueries: UInt64 = 0

    /// How many flights and waiting clients each source has.
    var shares = Shares()
    var flights = Table<Flight>()
    var flightOf: [Flight.Key: Flight] = [:]
    var queries = Table<Query>()
    var deadlines = Deadlines<Moment>()
    /// By `GroupID.rawValue`; a group that is not configured any more has no servers.
    var groups: [GroupState] = []
    /// Whether an account was given a name since the last look at what is gathered.
    var hasGathered = false
    var failures = Remembered<Flight.Key, RecentFailure>(atMost: maximumFailures)
    var privateNews = News()
    var ranks = AddressRanks()
    /// The limits that were reported since there was last plenty of room.
    var refusing: Set<Refusal> = []
    /// `keepAliveDomains`.
    var kept: [Name] = []
    /// The accounts of which was said that clients that validate are not sent to them.
    var leftToValidators: Set<GroupID> = []
    var shared = SharedCache()
    /// The looks into the store that are under way.
    var sharedReads = Table<SharedRead>()
    /// Increases with each change of rules: flights of an earlier generation go on, but their answers are not cached.
    var generation = 0

    /// The subject of a deadline.
    enum Moment {
        case flight(TableID)
        /// The deadline of an attempt.
        case query(TableID)
        /// A server has been silent for so long that it is asked once more.
        case silence(TableID)
        /// A server takes longer than usual: the next one is asked as well.
        case late(TableID)
        /// The index of a name in `kept` that is to be refreshed.
        case kept(Int)
        /// The plan has room again.
        case plan(GroupID)
        /// Addresses were tried for long enough.
        case trial(TableID)
        /// A look into the store has taken as long as its step waits, or as long as it may.
        case store(TableID)
    }

    /// The most flights at once, some 1.3 KB each. Beyond it the newest flight of the source that has the most is
    /// refused with SERVFAIL: see ``makeRoom(for:at:)``.
    public static var maximumFlights: Int { 1536 }
    /// The most clients waiting for one question. A further one is refused when its source has its share of them: see
    /// ``Source/mayHaveMore(own:all:most:)``.
    public static var maximumWaiting: Int { 1024 }
    /// The most clients waiting for all questions together, some 300 octets each, shared out in the same way. The first
    /// client of a question is always accepted.
    public static var maximumClients: Int { 8192 }
    /// The most requests for names at once to the servers of one group. Beyond it names wait, and are sent in fuller
    /// requests.
    public static var maximumRequests: Int { 128 }
    /// At most as many as there can be flights.
    static var maximumFailures: Int { maximumFlights }

    public init(policy: Policy, timing: Timing, groups: [UpstreamGroup], cache: DNSCache) {
        self.policy = policy
        self.timing = timing
        self.cache = cache
        replaceGroups(groups)
    }

    /// Returns the actions to carry out, and empties the list.
    public mutating func takeActions() -> [Action] {
        var taken: [Action] = []
        takeActions(into: &taken)
        return taken
    }

    /// Exchanges the actions to carry out for an empty list, whose memory serves the next ones.
    public mutating func takeActions(into list: inout [Action]) {
        precondition(list.isEmpty)
        if !shared.actions.isEmpty || !shared.events.isEmpty { takeSharedActions() }
        swap(&list, &actions)
        if actions.capacity > Self.keptActions { actions = [] }
    }
    /// For so many actions memory is kept between turns, some 300 octets each.
    private static var keptActions: Int { 64 }

    mutating func act(_ action: Action) {
        // What came before for the store stays before it.
        if !shared.actions.isEmpty { takeSharedActions() }
        actions.append(action)
    }

    private mutating func takeSharedActions() {
        actions += shared.takeActions().map { .shared($0) }
        actions += shared.takeEvents().map { .report($0) }
    }

    // MARK: Questions

    /// A client asks; the cache had no fresh answer when its listener looked.
    ///
    /// - Parameters:
    ///   - client: nil for a question the daemon asks for itself, to refresh an entry.
    ///   - source: that of the client, or of the client whose question caused the refresh.
    ///   - isProven: false: somebody else may have asked in the source's name.
    ///   - recursionDesired: false: the client is answered only from the cache and local data (RFC 1034 §4.3.1).
    public mutating func receive(
        _ name: Name, _ type: RecordType, for audience: Audience, from client: ClientNumber?,
        of source: Source = .host, isProven: Bool = true, recursionDesired: Bool = true, at now: Tick
    ) {
        let client = client.map {
            Asker(number: $0, source: source, recursionDesired: recursionDesired, isProven: isProven)
        }
        let key = Flight.Key(name: NameKey(name), type: type, audience: audience)
        switch policy.route(key.name, type, for: audience) {
        case .answer(let answer):
            reply(client, answer)
        case .ask(let steps):
            let (skipped, isOwed) = withoutRecord(steps, key.name, at: now)
            guard skipped < steps.count else {
                return replyNoRecord(key, client, of: steps, isProven: !isOwed, at: now)
            }
            ask(key, steps, skipped, from: client, of: source, isOwed: isOwed, at: now)
        case .serviceBinding(let steps):
            let (skipped, isOwed) = withoutRecord(steps, key.name, at: now)
            guard skipped < steps.count else { return reply(client, policy.notSupported(name, type)) }
            if groups[steps[skipped].group.rawValue].group.carriesAddresses {
                return reply(client, policy.noServiceBinding(name, type))
            }
            ask(key, steps, skipped, from: client, of: source, isOwed: isOwed, at: now)
        }
    }

    /// How many groups at the beginning of a route are known to have no record of a name, and whether an answer is owed
    /// all the same: one of these has not proven it, or the last, if there is no other group to be asked.
    mutating func withoutRecord(_ route: [Step], _ key: NameKey, at now: Tick) -> (count: Int, isOwed: Bool) {
        var (count, isOwed, isProven) = (0, false, true)
        while count < route.count {
            let place = route[count].group.rawValue
            guard groups[place].namesWithoutRecord.value(key, at: now) != nil else { return (count, isOwed) }
            isProven = groups[place].group.isProven
            isOwed = isOwed || !isProven
            count += 1
            if count < route.count, !route[count].after.contains(.noRecord) { break }
        }
        return (route.count, !isProven)
    }

    /// - Parameter skipped: how many groups at the beginning of the route are not asked.
    private mutating func ask(
        _ key: Flight.Key, _ route: [Step], _ skipped: Int, from client: Asker?, of source: Source, isOwed: Bool,
        at now: Tick
    ) {
        let known = cache.take(key.name.name, type: key.type, for: key.audience, at: now.seconds)
        if let client, let known, known.isFresh {
            return reply(client, known.answer, age: .elapsed(known.elapsed), by: .cache)
        }
        if let client, !client.recursionDesired {
            // RFC 8914 §4.21: this daemon has no upstream for the name.
            return reply(
                client, .failure(key.name.name, type: key.type, .refused, extendedError: .notAuthoritative))
        }
        if let flight = flightOf[key] { return join(flight, client, known, at: now) }
        if let failure = failures.value(key, at: now), failure.timesInARow >= RecentFailure.mostTimes {
            return giveUp(key, client, known, failure.reason)
        }
        var (skipped, isOwed) = (skipped, isOwed)
        if isPastNoRecordBudget(route[skipped].group, key, client, known, at: now) {
            (skipped, isOwed) = (skipped + 1, true)
            guard route[skipped...].contains(where: { !groups[$0.group.rawValue].isEmpty }) else {
                return giveUp(key, client, known, FailureReason(code: .blocked))
            }
            counters.fallbacks += 1
            counters.fellBack(because: .noRecordBudget)
        }
        if let client, !mayWait(client) { return refuse(key, client, known, .tooManyWaiting) }
        guard flights.count < Self.maximumFlights || makeRoom(for: source, at: now) else {
            return refuse(key, client, known, .tooManyFlights)
        }
        begin(
            key, skipped == 0 ? route : Array(route[skipped...]), from: client, of: source, isKnown: known != nil,
            isOwed: isOwed, at: now)
    }

    private mutating func begin(
        _ key: Flight.Key, _ route: [Step], from client: Asker?, of source: Source, isKnown: Bool, isOwed: Bool,
        at now: Tick
    ) {
        let place = shares.begin(source, waits: client != nil)
        let flight = Flight(
            key, route, for: client.map { Waiter(number: $0.number, place: place) }, id: flights.nextID, place: place,
            number: counters.flights, generation: generation, isOwed: isOwed,
            answerBy: now.advanced(milliseconds: timing.answerWithin))
        if isKnown { flight.staleAt = now.advanced(milliseconds: timing.staleWithin) }
        flights.insert(flight)
        flightOf[key] = flight
        counters.flights += 1
        if let account = policy.leavesToValidators(key) { leave(flight, of: account) }
        beginNextStep(of: flight, at: now)
        if flight.hedgeAt == nil { schedule(flight) }
    }

    private mutating func join(_ flight: Flight, _ client: Asker?, _ known: DNSCache.Held?, at now: Tick) {
        guard let client else { return }
        if !flight.isWanted {
            flight.isWanted = true
            flight.answerBy = now.advanced(milliseconds: timing.answerWithin)
            hedge(flight, at: now)
            if flight.hedgeAt == nil { schedule(flight) }
            if shared.isOn { hurry(flight, at: now) }
        }
        if flight.isOverdue, let known {
            // RFC 8767 §5: while a refresh is known to fail, a stale answer is given without waiting.
            return replyStale(client, known.answer)
        }
        guard mayWait(client, for: flight) else { return refuse(flight.key, client, known, .tooManyWaiting) }
        takeOver(flight, client.source)
        flight.clients.append(Waiter(number: client.number, place: shares.wait(client.source)))
        counters.joined += 1
        guard flight.isOverdue else { return }
        flight.isOverdue = false
        flight.answerBy = now.advanced(milliseconds: timing.answerWithin)
        schedule(flight)
        askLastStepAgain(flight, at: now)
    }

    // MARK: Time

    /// Handles everything that is due by `now`.
    public mutating func expire(at now: Tick) {
        shared.expire(at: now)
        abandonReadsIfAway(at: now)
        while let moment = deadlines.popDue(at: now) {
            switch moment {
            case .flight(let id): flightMoment(id, at: now)
            case .query(let id): timedOut(id, at: now)
            case .silence(let id): askAgain(id, at: now)
            case .late(let id): askNextAsWell(id, at: now)
            case .kept(let place): refreshKept(place, at: now)
            // The end of the turn checks the plan itself.
            case .plan(let group): groups[group.rawValue].isPlanAwaited = false
            case .trial(let id): endTrial(id, at: now)
            case .store(let id): storeMoment(id, at: now)
            }
        }
    }

    /// When `expire` must be called next; nil while nothing is under way. Deadlines of queries that have ended do not
    /// count.
    public var nextDeadline: Tick? {
        mutating get {
            while let first = deadlines.first, isOfEndedQuery(first) { deadlines.removeFirst() }
            return deadlines.next.orEarlier(shared.nextDeadline)
        }
    }

    private mutating func flightMoment(_ id: TableID, at now: Tick) {
        guard let flight = flights[id] else { return }
        if let hedgeAt = flight.hedgeAt, hedgeAt <= now {
            counters.fellBack(because: .slow)
            beginNextStep(of: flight, at: now)
        }
        // The hedge above is the only thing that can have ended the flight.
        guard flights[id] != nil else { return }
        if !flight.isOverdue, let staleAt = flight.staleAt, staleAt <= now {
            flight.staleAt = nil
            let key = flight.key
            if let known = cache.find(key.name.name, type: key.type, for: key.audience, at: now.seconds) {
                replyStale(takeClients(of: flight), known.answer)
                // The local resolver's answer is not needed any more, and would not be cached beside this one.
                if flight.isOwed { flight.hedgeAt = nil }
            }
        } else if !flight.isOverdue, flight.answerBy <= now {
            if !flight.clients.isEmpty { counters.overdue += 1 }
            give(flight, failureAnswer(flight, timedOut: true))
        }
        schedule(flight)
    }
}
