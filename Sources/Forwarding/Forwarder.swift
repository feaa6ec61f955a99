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
    let cache: DNSCache
    /// The actions for the shell, in order.
    var actions: [Action] = []
    public internal(set) var counters = Counters()
    /// Asks the groups.
    var desk: GroupDesk

    /// How many flights and waiting clients each source has.
    var shares = Shares()
    var flights = Table<Flight>()
    var flightOf: [Flight.Key: Flight] = [:]
    var deadlines = Deadlines<Moment>()
    var failures = Remembered<Flight.Key, RecentFailure>(atMost: maximumFailures)
    var privateNews = News()
    var ranks = AddressRanks()
    /// The limits that were reported since there was last plenty of room.
    var refusing: Set<Refusal> = []
    /// `keepAliveDomains`.
    var kept: [Name] = []
    /// The accounts of which was said that clients that validate are not sent to them.
    var leftToValidators: Set<GroupID> = []
    var store = StoreDesk()

    /// The subject of a deadline.
    enum Moment {
        case flight(TableID)
        /// The index of a name in `kept` that is to be refreshed.
        case kept(Int)
        /// Addresses were tried for long enough.
        case trial(TableID)
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
    /// At most as many as there can be flights.
    static var maximumFailures: Int { maximumFlights }

    public init(policy: Policy, timing: Timing, groups: [UpstreamGroup], cache: DNSCache) {
        self.policy = policy
        self.cache = cache
        desk = GroupDesk(timing: timing, groups: groups)
    }

    var timing: Timing { desk.rules.timing }
    /// Queries that have failed, of all groups together.
    public var failedQueries: UInt64 { desk.failedQueries }

    /// Returns the actions to carry out, and empties the list.
    public mutating func takeActions() -> [Action] {
        var taken: [Action] = []
        takeActions(into: &taken)
        return taken
    }

    /// Exchanges the actions to carry out for an empty list, whose memory serves the next ones.
    public mutating func takeActions(into list: inout [Action]) {
        precondition(list.isEmpty)
        swap(&list, &actions)
        if actions.capacity > Self.keptActions { actions = [] }
    }
    /// For so many actions memory is kept between turns, some 300 octets each.
    private static var keptActions: Int { 64 }

    mutating func act(_ action: Action) { actions.append(action) }

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
        let decision = decide(
            key, isClients: client != nil, recursionDesired: client?.recursionDesired ?? true, at: now)
        let known = decision.known
        switch decision.fate {
        case .answer(let answer): reply(client, answer)
        case .cached:
            guard let known = cache.take(name, type: type, for: audience, at: now.seconds) ?? known else { return }
            reply(client, known.answer, age: .elapsed(known.elapsed), by: .cache)
        case .join(let flight): join(flight, client, known, at: now)
        case .failedLately(let reason), .nobody(let reason): giveUp(key, client, known, reason)
        case .budgetSpent(let group):
            notePastBudget(group, at: now)
            giveUp(key, client, known, FailureReason(code: .blocked))
        case .ask:
            let before = decision.before
            if before.isBudgetSpent {
                notePastBudget(decision.route[before.count - 1].group, at: now)
                counters.fellBack(because: .noRecordBudget)
            }
            if let client, !mayWait(client) { return refuse(key, client, known, .tooManyWaiting) }
            guard flights.count < Self.maximumFlights || makeRoom(for: source, at: now) else {
                return refuse(key, client, known, .tooManyFlights)
            }
            begin(key, decision, for: client, of: source, at: now)
        }
        handleDeskEvents(at: now)
    }

    private mutating func begin(
        _ key: Flight.Key, _ decision: Decision, for client: Asker?, of source: Source, at now: Tick
    ) {
        let share = shares.begin(source, waits: client != nil)
        let flight = Flight(
            key, decision.route, id: flights.nextID, for: client.map { Waiter(number: $0.number, place: share) },
            share: share, of: source, after: decision.before,
            staleAt: decision.known != nil ? now.advanced(milliseconds: timing.staleWithin) : nil,
            answerBy: now.advanced(milliseconds: timing.answerWithin))
        flights.insert(flight)
        flightOf[key] = flight
        counters.flights += 1
        if let account = policy.leavesToValidators(key) { noteLeft(account, asked: decision.route[0].group) }
        tell(flight, .begun, at: now)
    }

    /// A client that validates asks for a name of an account, and another group is asked in its place.
    private mutating func noteLeft(_ account: GroupID, asked group: GroupID) {
        counters.fellBack(because: .signed)
        guard leftToValidators.insert(account).inserted else { return }
        act(.report(.leftToValidators(account, asked: group)))
    }

    private mutating func join(_ flight: Flight, _ client: Asker?, _ known: DNSCache.Held?, at now: Tick) {
        guard let client else { return }
        if !flight.isWanted {
            tell(flight, .wanted, at: now)
            if store.isOn { store.hurry(flight.id, at: now) }
        }
        if flight.isAnswered, let known {
            // RFC 8767 §5: while a refresh is known to fail, a stale answer is given without waiting.
            return replyStale(client, known.answer)
        }
        guard mayWait(client, for: flight) else { return refuse(flight.key, client, known, .tooManyWaiting) }
        takeOver(flight, client.source)
        flight.add(Waiter(number: client.number, place: shares.wait(client.source)))
        counters.joined += 1
        if flight.isAnswered { tell(flight, .reopened, at: now) }
    }

    // MARK: Time

    /// Handles everything that is due by `now`.
    public mutating func expire(at now: Tick) {
        store.expire(at: now, &actions)
        takeFindings(at: now)
        while true {
            if let first = desk.nextDeadline, first <= now, deadlines.next.map({ first <= $0 }) ?? true {
                desk.expireFirst(at: now, &actions)
            } else if let moment = deadlines.popDue(at: now) {
                switch moment {
                case .flight(let id): flightMoment(id, at: now)
                case .kept(let index): refreshKept(index, at: now)
                case .trial(let id): endTrial(id, at: now)
                }
            } else {
                return
            }
            handleDeskEvents(at: now)
        }
    }

    /// When `expire` must be called next; nil while nothing is under way. Deadlines of queries that have ended do not
    /// count.
    public var nextDeadline: Tick? {
        mutating get {
            while let first = deadlines.first, hasEnded(first) { deadlines.removeFirst() }
            return deadlines.next.orEarlier(desk.nextDeadline).orEarlier(store.nextDeadline)
        }
    }

    /// Ends a turn of the loop: the names gathered in it are sent. To be called again until it leaves no actions, since an
    /// action that fails at once may make room for further names.
    public mutating func endTurn(at now: Tick) {
        // A name that its group cannot be asked for has gone on to a group whose turn was over.
        repeat { desk.endTurn(policy, at: now, &actions) } while handleDeskEvents(at: now)
    }

    private mutating func flightMoment(_ id: TableID, at now: Tick) {
        guard let flight = flights[id] else { return }
        let hasStale = flight.isStaleDue(at: now) && known(flight, at: now) != nil
        tell(flight, .due(hasStale: hasStale), at: now)
    }
}
