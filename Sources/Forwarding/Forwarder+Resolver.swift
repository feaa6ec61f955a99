public import Base
import DNSCache
import DNSWire

/// The local resolver's side of the second door, and how a flight ends.
extension Forwarder {
    mutating func askResolver(_ flight: Flight, at now: Tick) {
        // It made room for another meanwhile.
        guard flights[flight.id] != nil else { return }
        // What `httpOnly` forbids is not even asked for anew when it was allowed a moment ago.
        guard !policy.httpOnly, let server = resolvers.choose(excluding: flight.triedResolvers) else {
            flight.resolver = .ended
            return settleIfDone(flight, at: now)
        }
        flight.triedResolvers.insert(server)
        send(flight, to: server, overTCP: false, at: now)
    }

    private mutating func send(_ flight: Flight, to server: Int, overTCP: Bool, at now: Tick) {
        let state = ResolverState(
            server: server, list: resolvers.list, overTCP: overTCP, sent: now,
            until: now.advanced(milliseconds: timing.resolverTimeout), flight: flight.id)
        flight.resolver = .waiting
        let query = send(state, flight)
        flight.resolverQuery = query
        guard !overTCP else { return }
        let repeatAfter = timing.repeatAfter(roundTrip: resolvers.health[server].roundTrip)
        guard repeatAfter < timing.resolverTimeout else { return }
        deadlines.insert(.resolverRepeat(query), at: now.advanced(milliseconds: repeatAfter))
    }

    private mutating func send(_ state: ResolverState, _ flight: Flight) -> TableID {
        let query = resolverQueries.insert(state)
        counters.resolverQueries += 1
        deadlines.insert(.resolverQuery(query), at: state.until)
        actions.append(
            .askResolver(ResolverQuery(id: query), server: state.server, overTCP: state.overTCP, flight.question))
        return query
    }

    /// RFC 1035 §4.2.1: a datagram may be lost. The query goes out once more with an id and port of its own, the first to
    /// be answered counts, and the attempt ends when it would have.
    mutating func repeatQuery(_ id: TableID, at now: Tick) {
        guard !policy.httpOnly, var state = resolverQueries[id], state.list == resolvers.list,
            let flight = flights[state.flight], resolverQueries.count < Self.maximumResolverQueries
        else { return }
        state.sent = now
        counters.resolverRepeats += 1
        flight.repeatedQuery = send(state, flight)
    }

    /// None of a flight's queries is waited for any more.
    private mutating func cancelQueries(of flight: Flight) {
        if flight.resolverQuery == nil { return }
        for query in [flight.resolverQuery, flight.repeatedQuery] {
            guard let query, resolverQueries.remove(query) != nil else { continue }
            actions.append(.cancelResolver(ResolverQuery(id: query)))
        }
        (flight.resolverQuery, flight.repeatedQuery) = (nil, nil)
    }

    /// Whether another query of a flight's attempt is still under way.
    private func isStillAsked(_ flight: Flight) -> Bool {
        [flight.resolverQuery, flight.repeatedQuery].contains { $0.map { resolverQueries[$0] != nil } ?? false }
    }

    /// A local resolver's query ended. One that ended before, or timed out, changes nothing.
    public mutating func settle(_ query: ResolverQuery, _ outcome: ResolverOutcome, at now: Tick) {
        guard let state = resolverQueries.remove(query.id), let flight = flights[state.flight] else { return }
        // What cannot be sent a second time, say, is no reason not to wait for the first.
        if case .failed = outcome, isStillAsked(flight) { return }
        cancelQueries(of: flight)
        switch outcome {
        case .failed(let failure):
            fail(state, flight, failure, at: now)
        case .truncated where state.overTCP:
            fail(state, flight, Failure(.badAnswer, "truncated over TCP"), at: now)
        case .truncated:
            guard isListed(state, flight) else { return askResolver(flight, at: now) }
            send(flight, to: state.server, overTCP: true, at: now)
        case .answered(let answer):
            if isListed(state, flight) {
                report(
                    resolvers.answered(
                        state.server, answer.head.responseCode.isAnswer,
                        roundTrip: now.milliseconds(since: state.sent), at: now))
            }
            settle(flight, permitted(answer, to: flight.key, at: now), at: now)
        }
    }

    /// Whether the server's number still means that server. If the list was replaced since, the flight may ask each of
    /// the new one.
    private func isListed(_ state: ResolverState, _ flight: Flight) -> Bool {
        if state.list == resolvers.list { return true }
        flight.triedResolvers = []
        return false
    }

    mutating func resolverTimedOut(_ id: TableID, at now: Tick) {
        guard let state = resolverQueries[id], let flight = flights[state.flight] else { return }
        cancelQueries(of: flight)
        fail(state, flight, Failure(.timedOut, "no answer within \(timing.resolverTimeout) ms"), at: now)
    }

    private mutating func fail(_ state: ResolverState, _ flight: Flight, _ failure: Failure, at now: Tick) {
        counters.resolverFailures += 1
        if isListed(state, flight) { report(resolvers.failed(state.server, failure, at: now)) }
        flight.lastFailure = failure
        askResolver(flight, at: now)
    }

    private mutating func settle(_ flight: Flight, _ answer: Answer, at now: Tick) {
        guard answer.head.responseCode.isAnswer else {
            flight.refusal = answer
            return askResolver(flight, at: now)
        }
        flight.resolver = .ended
        flight.wasAnswered = true
        var answer = answer
        let longest = flight.isOwed ? min(timing.maxTTL, Timing.standInTTL) : timing.maxTTL
        answer.clampTTLs(minimum: min(timing.minTTL, longest), maximum: longest)
        let key = flight.key
        keep(
            answer, to: key.name.name, key.type, for: key.audience, flight.generation, at: now, isStandIn: flight.isOwed
        )
        if flight.service == .waiting {
            // HTTPDNS was slow; what it still says replaces this in the cache.
            give(flight, answer)
        } else {
            finish(flight, answer)
        }
    }

    // MARK: Ends

    /// The flight ends if neither source can still answer: with what is stale, else with a failure.
    mutating func settleIfDone(_ flight: Flight, at now: Tick) {
        guard flight.isDone else { return }
        let key = flight.key
        // A resolver that says SERVFAIL was reached, and remembers that itself.
        if flight.refusal == nil, !flight.wasAnswered { remember(flight, at: now) }
        if let known = cache.find(key.name.name, type: key.type, for: key.audience, at: now.seconds) {
            replyStale(takeClients(of: flight), known.answer)
            remove(flight)
        } else {
            finish(flight, failureAnswer(flight, timedOut: false))
        }
    }

    private mutating func remember(_ flight: Flight, at now: Tick) {
        guard flight.generation == generation else { return }
        let before = failures.value(flight.key, at: now)?.timesInARow ?? 0
        failures.insert(
            flight.key, RecentFailure(timesInARow: before + 1, extendedError: flight.extendedError),
            until: now.advanced(milliseconds: RecentFailure.time))
    }

    func failureAnswer(_ flight: Flight, timedOut: Bool) -> Answer {
        if let refusal = flight.refusal { return refusal }
        return .failure(
            flight.key.name.name, type: flight.key.type, .servFail,
            extendedError: timedOut ? .noReachableAuthority : flight.extendedError)
    }

    /// Answers everyone who waits and ends the flight.
    mutating func finish(_ flight: Flight, _ answer: Answer) {
        give(flight, answer)
        remove(flight)
    }

    /// Answers everyone who waits; the flight goes on.
    mutating func give(_ flight: Flight, _ answer: Answer) {
        reply(takeClients(of: flight), answer, age: .elapsed(0))
    }

    /// Those who wait, to be answered now: they wait no longer.
    func takeClients(of flight: Flight) -> Few<Waiter> {
        flight.isOverdue = true
        return exchange(&flight.clients, with: Few())
    }

    mutating func remove(_ flight: Flight) {
        if flights.remove(flight.id) != nil { shares.end(flight.place) }
        flightOf.remove(flight, forKey: flight.key)
        if !refusing.isEmpty, flights.count < Self.maximumFlights / 2 { refusing = [] }
        cancelQueries(of: flight)
    }
}

extension Forwarder {
    mutating func reply(_ clients: Few<Waiter>, _ answer: Answer, age: Reply.Age) {
        guard !clients.isEmpty else { return }
        let numbers = clients.map { client in
            shares.answered(client.place)
            return client.number
        }
        actions.append(.reply(numbers, answer, age))
    }

    /// Answers a client that did not have to wait.
    mutating func reply(_ client: Asker?, _ answer: Answer, age: Reply.Age = .elapsed(0)) {
        guard let client else { return }
        actions.append(.reply(Few(client.number), answer, age))
    }

    mutating func replyStale(_ clients: Few<Waiter>, _ answer: Answer) {
        counters.servedStale += UInt64(clients.count)
        reply(clients, answer.stale, age: .fixed(timing.staleTTL))
    }

    mutating func replyStale(_ client: Asker, _ answer: Answer) {
        counters.servedStale += 1
        reply(client, answer.stale, age: .fixed(timing.staleTTL))
    }

    mutating func report(_ events: [Event]) {
        for event in events { actions.append(.report(event)) }
    }

    /// The local resolvers are others now; queries under way to the former ones end as they may.
    public mutating func replaceResolvers(count: Int) {
        resolvers = ResolverServers(count: count, list: resolvers.list + 1)
        failures.removeAll()
    }

    public var serviceHealth: [ServerHealth] { services.health }
    public var resolverHealth: [ServerHealth] { resolvers.health }
    /// Which place of `dnsIp` is asked now.
    public var currentService: Int { services.current }
    /// Whether there is a local resolver, and it may be asked what HTTPDNS does not answer.
    var canFallBack: Bool { !policy.httpOnly && !resolvers.health.isEmpty }
    public var underWay: (flights: Int, requests: Int) { (flights.count, requests.count) }
}

extension Flight {
    /// Why it failed, for a client that understands RFC 8914.
    fileprivate var extendedError: ExtendedError { lastFailure?.extendedError ?? .noReachableAuthority }
}

extension Answer {
    /// As it is given when it is stale: RFC 8767 with the code of RFC 8914 that says so.
    fileprivate var stale: Answer {
        var stale = self
        stale.add(.staleAnswer)
        return stale
    }
}

extension ResponseCode {
    /// Whether a resolver that says so has answered the question, rather than said that it could not or would not.
    fileprivate var isAnswer: Bool { self == .noError || self == .nxDomain }
}
