public import DNSCache
public import DNSWire

/// The brain: it owns every question under way and decides who is asked, who is answered and what with.
///
/// It has three doors: `receive` (a client asks), the two `settle` (an upstream answered or failed) and `expire` (time
/// has passed). Each appends to `actions`, which the shell carries out. It owns no socket, reads no clock and never
/// blocks, so that hours of behaviour are a test of microseconds.
public struct Forwarder<Client>: ~Copyable {
    public var policy: Policy
    let timing: Timing
    let cache: DNSCache
    /// What the shell has to do, in order. It takes them and leaves the array empty.
    public var actions: [Action<Client>] = []
    public internal(set) var counters = Counters()

    var flights = Table<Flight<Client>>()
    var flightOf: [Flight<Client>.Key: TableID] = [:]
    var lookups: [Name: Lookup] = [:]
    /// Names that go out when the turn ends.
    var outbox: [Name] = []
    var requests = Table<RequestState>()
    var resolverQueries = Table<ResolverState>()
    var deadlines = Deadlines<Moment>()
    var services: ServiceServers
    var resolvers: ResolverServers
    var namesWithoutRecord = RecentNames()
    /// What was said of refusals since there was last plenty of room.
    var refusing: Set<Refusal> = []
    var plan: TokenBucket?
    /// The names that are left in `outbox` have to wait for something else than the end of a turn.
    var isHeld = false
    /// A deadline says when the plan has room; one is enough, however many turns find it exceeded.
    var isPlanAwaited = false
    /// `keepAliveDomains`.
    var kept: [Name] = []

    /// What a deadline is about.
    enum Moment {
        case flight(TableID)
        case request(TableID)
        case resolverQuery(TableID)
        /// A place in `kept`.
        case kept(Int)
        /// The plan has room again.
        case plan
    }

    /// Questions under way at once. Past it the newest is refused with SERVFAIL: those under way have come further.
    public static var maximumFlights: Int { 8192 }
    /// Clients waiting for one question. Past it the newest is refused likewise.
    public static var maximumWaiting: Int { 1024 }
    /// HTTPDNS requests under way at once. Past it names wait, and go out in fuller requests.
    public static var maximumRequests: Int { 128 }

    public init(policy: Policy, timing: Timing, serviceServers: Int, resolverServers: Int, cache: DNSCache) {
        self.policy = policy
        self.timing = timing
        self.cache = cache
        services = ServiceServers(
            count: serviceServers, retryTimesBeforeSwitchServer: timing.retryTimesBeforeSwitchServer,
            minutesBeforeSwitchToMain: timing.minutesBeforeSwitchToMain)
        resolvers = ResolverServers(count: resolverServers)
        if timing.queriesPerSecond > 0 { plan = TokenBucket(perSecond: timing.queriesPerSecond) }
    }

    // MARK: First door

    /// A client asks; the cache had no fresh answer when its listener looked.
    ///
    /// - Parameter client: nil for a question the daemon asks for itself, to refresh an entry.
    public mutating func receive(
        _ name: Name, _ type: RecordType, for audience: Audience, from client: Client?, at now: Tick
    ) {
        switch policy.route(name, type) {
        case .answer(let answer):
            reply(client, answer, age: .elapsed(0))
        case .service:
            let hasRecord = !namesWithoutRecord.contains(name, at: now)
            guard hasRecord || !policy.httpOnly else {
                return reply(client, policy.noRecord(name, type), age: .elapsed(0))
            }
            ask(Flight.Key(name: name, type: type, audience: audience), from: client, service: hasRecord, at: now)
        case .serviceBinding:
            guard namesWithoutRecord.contains(name, at: now) else {
                return reply(client, policy.noServiceBinding(name, type), age: .elapsed(0))
            }
            guard !policy.httpOnly else { return reply(client, policy.notSupported(name, type), age: .elapsed(0)) }
            ask(Flight.Key(name: name, type: type, audience: audience), from: client, service: false, at: now)
        case .resolver:
            ask(Flight.Key(name: name, type: type, audience: audience), from: client, service: false, at: now)
        }
    }

    private mutating func ask(_ key: Flight<Client>.Key, from client: Client?, service: Bool, at now: Tick) {
        let known = cache.find(key.name, type: key.type, for: key.audience, at: now.seconds)
        if let client, let known, known.isFresh {
            return reply(client, known.answer, age: .elapsed(known.elapsed))
        }
        if let id = flightOf[key] { return join(id, client, known, at: now) }
        guard flights.count < Self.maximumFlights else { return refuse(key, client, known, .tooManyFlights) }
        var flight = Flight<Client>(
            key: key, answerBy: now.advanced(milliseconds: timing.answerWithin))
        if let client { flight.clients = [client] }
        if known != nil { flight.staleAt = now.advanced(milliseconds: timing.staleWithin) }
        let id = flights.insert(flight)
        flightOf[key] = id
        counters.flights += 1
        if service {
            askService(id, key.name, at: now)
        } else {
            askResolver(id, at: now)
        }
        scheduleFlight(id)
    }

    private mutating func join(_ id: TableID, _ client: Client?, _ known: DNSCache.Found?, at now: Tick) {
        guard let client, let flight = flights[id] else { return }
        if flight.isOverdue, let known {
            // RFC 8767 §5: while a refresh is known to be stuck, what is stale need not be waited for.
            return replyStale([client], known.answer)
        }
        guard flight.clients.count < Self.maximumWaiting else {
            return refuse(flight.key, client, known, .tooManyWaiting)
        }
        flights[id]?.clients.append(client)
        counters.joined += 1
        guard flight.isOverdue else { return }
        flights[id]?.isOverdue = false
        flights[id]?.answerBy = now.advanced(milliseconds: timing.answerWithin)
        scheduleFlight(id)
        if flight.resolver == .ended {
            // It had its say for those before, and nothing of that is left in the cache for this one.
            flights[id]?.triedResolvers = []
            askResolver(id, at: now)
        }
    }

    private mutating func refuse(
        _ key: Flight<Client>.Key, _ client: Client?, _ known: DNSCache.Found?, _ refusal: Refusal
    ) {
        counters.refused += 1
        if refusing.insert(refusal).inserted { actions.append(.report(.refusing(refusal))) }
        if let client, let known { return replyStale([client], known.answer) }
        reply(client, .failure(key.name, type: key.type, .servFail, extendedError: nil), age: .elapsed(0))
    }

    // MARK: Third door

    /// Time has passed: whatever is due by `now` happens.
    public mutating func expire(at now: Tick) {
        while let moment = deadlines.popDue(at: now) {
            switch moment {
            case .flight(let id): flightMoment(id, at: now)
            case .request(let id): requestTimedOut(id, at: now)
            case .resolverQuery(let id): resolverTimedOut(id, at: now)
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
            flights[id]?.hedgeAt = nil
            if flight.resolver == .idle { askResolver(id, at: now) }
        }
        guard let flight = flights[id], !flight.isOverdue else { return scheduleFlight(id) }
        if let staleAt = flight.staleAt, staleAt <= now {
            flights[id]?.staleAt = nil
            if let known = cache.find(flight.key.name, type: flight.key.type, for: flight.key.audience, at: now.seconds)
            {
                replyStale(takeClients(id), known.answer)
            }
        } else if flight.answerBy <= now {
            counters.overdue += 1
            give(id, failureAnswer(flight, timedOut: true))
        }
        scheduleFlight(id)
    }

    mutating func scheduleFlight(_ id: TableID) {
        guard let moment = flights[id]?.nextMoment else { return }
        deadlines.insert(.flight(id), at: moment)
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
            case .resolverQuery(let id): queries[id] != nil
            case .kept, .plan: true
            }
        }
    }
}
