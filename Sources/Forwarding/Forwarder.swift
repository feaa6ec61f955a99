public import Base
public import DNSCache
public import DNSWire

/// The brain: it owns every question under way and decides who is asked, who is answered and what with.
///
/// It has three doors: `receive` (a client asks), the two `settle` (an upstream answered or failed) and `expire` (time
/// has passed). Each appends to `actions`, which the shell carries out. It owns no socket, reads no clock and never
/// blocks, so that hours of behaviour are a test of microseconds.
public struct Forwarder: ~Copyable {
    public var policy: Policy {
        didSet {
            // "No record" was said of other families.
            if policy.families != oldValue.families { namesWithoutRecord.removeAll() }
        }
    }
    var timing: Timing
    let cache: DNSCache
    /// What the shell has to do, in order. It takes them and leaves the array empty.
    public var actions: [Action] = []
    public internal(set) var counters = Counters()

    /// Who has how many of the flights, and of the clients that wait.
    var shares = Shares()
    var flights = Table<Flight>()
    var flightOf: [Flight.Key: Flight] = [:]
    var lookups: [NameKey: Lookup] = [:]
    /// Those that go out when the turn ends.
    var outbox: [Lookup] = []
    var requests = Table<RequestState>()
    var resolverQueries = Table<ResolverState>()
    var deadlines = Deadlines<Moment>()
    var services: ServiceServers
    var resolvers: ResolverServers
    var namesWithoutRecord = Remembered<NameKey, Void>(atMost: maximumNamesWithoutRecord)
    var noRecordBudget = NoRecordBudget()
    var noRecordNews = News()
    var privateNews = News()
    var failures = Remembered<Flight.Key, RecentFailure>(atMost: maximumFailures)
    /// What was said of refusals since there was last plenty of room.
    var refusing: Set<Refusal> = []
    var plan: TokenBucket?
    /// A deadline says when the plan has room; one is enough, however many turns find it exceeded.
    var isPlanAwaited = false
    /// `keepAliveDomains`.
    var kept: [Name] = []
    /// Which rules hold: what began under others ends as it may, and nothing that comes of it is kept.
    var generation = 0

    /// What a deadline is about.
    enum Moment {
        case flight(TableID)
        case request(TableID)
        case resolverQuery(TableID)
        /// A query to a local resolver goes out once more.
        case resolverRepeat(TableID)
        /// A place in `kept`.
        case kept(Int)
        /// The plan has room again.
        case plan
    }

    /// Questions under way at once, some 1.3 KB each. Past it the newest of the source that has the most is refused with
    /// SERVFAIL: see ``makeRoom(for:at:)``.
    public static var maximumFlights: Int { 1536 }
    /// Clients waiting for one question. The newest is refused likewise when its source has its part of them: see
    /// ``Source/mayHaveMore(own:all:most:)``.
    public static var maximumWaiting: Int { 1024 }
    /// Clients waiting for all questions together, some 300 octets each, shared out likewise. The first who asks something
    /// is always taken on.
    public static var maximumClients: Int { 8192 }
    /// HTTPDNS requests under way at once. Past it names wait, and go out in fuller requests.
    public static var maximumRequests: Int { 128 }
    /// Queries to local resolvers under way at once, each with a socket: one for each question. Past it none is repeated.
    static var maximumResolverQueries: Int { maximumFlights }
    /// Some 1.5 MB; a name forgotten too early is looked up once more.
    static var maximumNamesWithoutRecord: Int { 8192 }
    /// As many as can have been under way at once.
    static var maximumFailures: Int { maximumFlights }

    public init(policy: Policy, timing: Timing, serviceServers: Int, resolverServers: Int, cache: DNSCache) {
        self.policy = policy
        self.timing = timing
        self.cache = cache
        services = ServiceServers(count: serviceServers, timing)
        resolvers = ResolverServers(count: resolverServers)
        if timing.queriesPerSecond > 0 { plan = TokenBucket(perSecond: timing.queriesPerSecond) }
    }

    // MARK: First door

    /// A client asks; the cache had no fresh answer when its listener looked.
    ///
    /// - Parameters:
    ///   - client: nil for a question the daemon asks for itself, to refresh an entry.
    ///   - source: the client's, or of the one whose question has shown that the entry is to be refreshed.
    ///   - recursionDesired: false: the client wants what is known here, and nobody is asked (RFC 1034 §4.3.1).
    public mutating func receive(
        _ name: Name, _ type: RecordType, for audience: Audience, from client: ClientNumber?,
        of source: Source = .host, recursionDesired: Bool = true, at now: Tick
    ) {
        let client = client.map { Asker(number: $0, source: source, recursionDesired: recursionDesired) }
        let key = Flight.Key(name: NameKey(name), type: type, audience: audience)
        switch policy.route(key.name, type) {
        case .answer(let answer):
            reply(client, answer)
        case .service:
            let hasRecord = namesWithoutRecord.value(key.name, at: now) == nil
            guard hasRecord || !policy.httpOnly else { return replyNoRecord(key, client, at: now) }
            ask(key, from: client, of: source, service: hasRecord, isOwed: hasRecord || !policy.serviceProves, at: now)
        case .serviceBinding:
            guard namesWithoutRecord.value(key.name, at: now) != nil else {
                return reply(client, policy.noServiceBinding(name, type))
            }
            guard !policy.httpOnly else { return reply(client, policy.notSupported(name, type)) }
            ask(key, from: client, of: source, service: false, isOwed: !policy.serviceProves, at: now)
        case .resolver:
            ask(key, from: client, of: source, service: false, isOwed: false, at: now)
        }
    }

    private mutating func ask(
        _ key: Flight.Key, from client: Asker?, of source: Source, service: Bool, isOwed: Bool, at now: Tick
    ) {
        let known = cache.find(key.name.name, type: key.type, for: key.audience, at: now.seconds)
        if let client, let known, known.isFresh {
            return reply(client, known.answer, age: .elapsed(known.elapsed))
        }
        if let client, !client.recursionDesired {
            // RFC 8914 §4.21: the name is nobody's whom this daemon could speak for.
            return reply(
                client, .failure(key.name.name, type: key.type, .refused, extendedError: .notAuthoritative))
        }
        if let flight = flightOf[key] { return join(flight, client, known, at: now) }
        if let failure = failures.value(key, at: now), failure.timesInARow >= RecentFailure.mostTimes {
            return giveUp(key, client, known, failure.extendedError)
        }
        var service = service
        if service, isPastNoRecordBudget(key, client, known, at: now) {
            guard canFallBack else { return giveUp(key, client, known, .blocked) }
            counters.fallbacks += 1
            counters.fellBack(because: .noRecordBudget)
            service = false
        }
        guard flights.count < Self.maximumFlights || makeRoom(for: source, at: now) else {
            return refuse(key, client, known, .tooManyFlights)
        }
        begin(key, from: client, of: source, isKnown: known != nil, service: service, isOwed: isOwed, at: now)
    }

    private mutating func begin(
        _ key: Flight.Key, from client: Asker?, of source: Source, isKnown: Bool, service: Bool, isOwed: Bool,
        at now: Tick
    ) {
        let place = shares.begin(source, waits: client != nil)
        let flight = Flight(
            key, id: flights.nextID, place: place, number: counters.flights, generation: generation, isOwed: isOwed,
            answerBy: now.advanced(milliseconds: timing.answerWithin))
        if let client {
            flight.clients = Few(Waiter(number: client.number, place: place))
            flight.isWanted = true
        }
        if isKnown { flight.staleAt = now.advanced(milliseconds: timing.staleWithin) }
        flights.insert(flight)
        flightOf[key] = flight
        counters.flights += 1
        if service {
            askService(flight, at: now)
        } else {
            askResolver(flight, at: now)
        }
        schedule(flight)
    }

    private mutating func join(_ flight: Flight, _ client: Asker?, _ known: DNSCache.Found?, at now: Tick) {
        guard let client else { return }
        if !flight.isWanted {
            flight.isWanted = true
            flight.answerBy = now.advanced(milliseconds: timing.answerWithin)
            hedge(flight, at: now)
            schedule(flight)
        }
        if flight.isOverdue, let known {
            // RFC 8767 §5: while a refresh is known to be stuck, what is stale need not be waited for.
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
        if flight.resolver == .ended {
            // It had its say for those before, and nothing of that is left in the cache for this one.
            flight.triedResolvers = []
            askResolver(flight, at: now)
        }
    }

    // MARK: Third door

    /// Time has passed: whatever is due by `now` happens.
    public mutating func expire(at now: Tick) {
        while let moment = deadlines.popDue(at: now) {
            switch moment {
            case .flight(let id): flightMoment(id, at: now)
            case .request(let id): requestTimedOut(id, at: now)
            case .resolverQuery(let id): resolverTimedOut(id, at: now)
            case .resolverRepeat(let id): repeatQuery(id, at: now)
            case .kept(let place): refreshKept(place, at: now)
            // The end of the turn looks at the plan by itself.
            case .plan: isPlanAwaited = false
            }
        }
    }

    /// When `expire` is to be called next; nil while nothing is under way.
    public var nextDeadline: Tick? { deadlines.next }

    private mutating func flightMoment(_ id: TableID, at now: Tick) {
        guard let flight = flights[id] else { return }
        if let hedgeAt = flight.hedgeAt, hedgeAt <= now {
            flight.hedgeAt = nil
            if flight.resolver == .idle {
                counters.fellBack(because: .slow)
                askResolver(flight, at: now)
            }
        }
        // No more than the hedge can have ended it.
        guard flights[id] != nil else { return }
        if !flight.isOverdue, let staleAt = flight.staleAt, staleAt <= now {
            flight.staleAt = nil
            let key = flight.key
            if let known = cache.find(key.name.name, type: key.type, for: key.audience, at: now.seconds) {
                replyStale(takeClients(of: flight), known.answer)
                // Nobody waits for what the local resolver would say, nor is it kept beside this.
                if flight.isOwed { flight.hedgeAt = nil }
            }
        } else if !flight.isOverdue, flight.answerBy <= now {
            if !flight.clients.isEmpty { counters.overdue += 1 }
            give(flight, failureAnswer(flight, timedOut: true))
        }
        schedule(flight)
    }

    mutating func schedule(_ flight: Flight) {
        guard let moment = flight.nextMoment else { return }
        deadlines.insert(.flight(flight.id), at: moment)
        compactDeadlines()
    }

    /// Drops the deadlines of what ended early once they are the most, so that each is looked at a few times in all.
    private mutating func compactDeadlines() {
        let live = flights.count + requests.count + resolverQueries.count + kept.count
        guard deadlines.count > 4 * live + 256 else { return }
        let (flights, requests, queries) = (flights, requests, resolverQueries)
        deadlines.compact { moment in
            switch moment {
            case .flight(let id): flights[id] != nil
            case .request(let id): requests[id] != nil
            case .resolverQuery(let id), .resolverRepeat(let id): queries[id] != nil
            case .kept, .plan: true
            }
        }
    }
}
