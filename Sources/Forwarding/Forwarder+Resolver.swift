public import DNSCache
import DNSWire

/// The local resolver's side of the second door, and how a flight ends.
extension Forwarder {
    mutating func askResolver(_ id: TableID, at now: Tick) {
        guard let flight = flights[id] else { return }
        guard let server = resolvers.choose(excluding: flight.triedResolvers) else {
            flights[id]?.resolver = .ended
            return settleIfDone(id, at: now)
        }
        flights[id]?.triedResolvers.insert(server)
        send(flight.question, to: server, overTCP: false, for: id, at: now)
    }

    private mutating func send(
        _ question: ResolverQuestion, to server: Int, overTCP: Bool, for id: TableID, at now: Tick
    ) {
        let query = resolverQueries.insert(
            ResolverState(server: server, list: resolvers.list, overTCP: overTCP, sent: now, flight: id))
        flights[id]?.resolver = .waiting
        flights[id]?.resolverQuery = query
        counters.resolverQueries += 1
        deadlines.insert(.resolverQuery(query), at: now.advanced(milliseconds: timing.resolverTimeout))
        actions.append(.askResolver(ResolverQuery(id: query), server: server, overTCP: overTCP, question))
    }

    /// A local resolver's query ended. One that ended before, or timed out, changes nothing.
    public mutating func settle(_ query: ResolverQuery, _ outcome: ResolverOutcome, at now: Tick) {
        guard let state = resolverQueries.remove(query.id) else { return }
        switch outcome {
        case .failed(let failure):
            fail(state, failure, at: now)
        case .truncated where state.overTCP:
            fail(state, Failure(.badAnswer, "truncated over TCP"), at: now)
        case .truncated:
            guard let flight = flights[state.flight] else { return }
            guard isListed(state) else { return askResolver(state.flight, at: now) }
            send(flight.question, to: state.server, overTCP: true, for: state.flight, at: now)
        case .answered(let answer):
            if isListed(state) {
                report(
                    resolvers.answered(
                        state.server, answer.head.responseCode.isAnswer,
                        roundTrip: now.milliseconds(since: state.sent)))
            }
            settle(state.flight, answer, at: now)
        }
    }

    /// Whether the server's number still means that server. If the list was replaced since, the flight may ask each of
    /// the new one.
    private mutating func isListed(_ state: ResolverState) -> Bool {
        if state.list == resolvers.list { return true }
        flights[state.flight]?.triedResolvers = []
        return false
    }

    mutating func resolverTimedOut(_ id: TableID, at now: Tick) {
        guard let state = resolverQueries.remove(id) else { return }
        actions.append(.cancelResolver(ResolverQuery(id: id)))
        fail(state, Failure(.timedOut, "no answer within \(timing.resolverTimeout) ms"), at: now)
    }

    private mutating func fail(_ state: ResolverState, _ failure: Failure, at now: Tick) {
        counters.resolverFailures += 1
        if isListed(state) { report(resolvers.failed(state.server, failure, at: now)) }
        flights[state.flight]?.lastFailure = failure
        askResolver(state.flight, at: now)
    }

    private mutating func settle(_ id: TableID, _ answer: Answer, at now: Tick) {
        guard let flight = flights[id] else { return }
        flights[id]?.resolverQuery = nil
        guard answer.head.responseCode.isAnswer else {
            flights[id]?.refusal = answer
            return askResolver(id, at: now)
        }
        flights[id]?.resolver = .ended
        var answer = answer
        answer.clampTTLs(minimum: timing.minTTL, maximum: timing.maxTTL)
        cache.store(answer, to: flight.key.name, type: flight.key.type, for: flight.key.audience, at: now.seconds)
        if flight.service == .waiting {
            // HTTPDNS was slow; what it still says replaces this in the cache.
            give(id, answer)
        } else {
            finish(id, answer)
        }
    }

    // MARK: Ends

    /// The flight ends if neither source can still answer: with what is stale, else with a failure.
    mutating func settleIfDone(_ id: TableID, at now: Tick) {
        guard let flight = flights[id], flight.isDone else { return }
        let key = flight.key
        if let known = cache.find(key.name, type: key.type, for: key.audience, at: now.seconds) {
            replyStale(takeClients(id), known.answer)
            remove(id)
        } else {
            finish(id, failureAnswer(flight, timedOut: false))
        }
    }

    func failureAnswer(_ flight: Flight<Client>, timedOut: Bool) -> Answer {
        if let refusal = flight.refusal { return refusal }
        let reason = timedOut ? .noReachableAuthority : flight.lastFailure?.extendedError ?? .noReachableAuthority
        return .failure(flight.key.name, type: flight.key.type, .servFail, extendedError: reason)
    }

    /// Answers everyone who waits and ends the flight.
    mutating func finish(_ id: TableID, _ answer: Answer) {
        give(id, answer)
        remove(id)
    }

    /// Answers everyone who waits; the flight goes on.
    mutating func give(_ id: TableID, _ answer: Answer) {
        let clients = takeClients(id)
        if !clients.isEmpty { actions.append(.reply(clients, answer, .elapsed(0))) }
    }

    /// Those who wait, to be answered now: they wait no longer.
    mutating func takeClients(_ id: TableID) -> [Client] {
        let clients = flights[id]?.clients ?? []
        flights[id]?.clients = []
        flights[id]?.isOverdue = true
        return clients
    }

    mutating func remove(_ id: TableID) {
        guard let flight = flights.remove(id) else { return }
        flightOf.removeValue(forKey: flight.key)
        if flights.count < Self.maximumFlights / 2 { refusing = [] }
        if let query = flight.resolverQuery, resolverQueries.remove(query) != nil {
            actions.append(.cancelResolver(ResolverQuery(id: query)))
        }
    }
}

extension Forwarder {
    mutating func reply(_ client: Client?, _ answer: Answer, age: Reply.Age) {
        if let client { actions.append(.reply([client], answer, age)) }
    }

    /// RFC 8767 with the code of RFC 8914 that says so.
    mutating func replyStale(_ clients: [Client], _ answer: Answer) {
        guard !clients.isEmpty else { return }
        counters.servedStale += UInt64(clients.count)
        var stale = answer
        stale.head.extendedError = .staleAnswer
        actions.append(.reply(clients, stale, .fixed(timing.staleTTL)))
    }

    mutating func report(_ events: [Event]) {
        for event in events { actions.append(.report(event)) }
    }

    /// The local resolvers are others now; queries under way to the former ones end as they may.
    public mutating func replaceResolvers(count: Int) {
        resolvers = ResolverServers(count: count, list: resolvers.list + 1)
    }

    public var serviceHealth: [ServerHealth] { services.health }
    public var resolverHealth: [ServerHealth] { resolvers.health }
    /// Which place of `dnsIp` is asked now.
    public var currentService: Int { services.current }
    public var underWay: (flights: Int, requests: Int) { (flights.count, requests.count) }
}

extension ResponseCode {
    /// Whether a resolver that says so has answered the question, rather than said that it could not or would not.
    fileprivate var isAnswer: Bool { self == .noError || self == .nxDomain }
}
