import Addresses
public import DNSCache
import DNSWire

/// The HTTPDNS side of the second door.
extension Forwarder {
    /// The turn of the loop has ended: the names that gathered in it go out, as many in a request as `batch` allows.
    /// Nothing waits longer than its own turn, unless `maximumRequests` are under way.
    public mutating func endTurn(at now: Tick) {
        var taken = 0
        while taken < outbox.count, requests.count < Self.maximumRequests {
            let first = outbox[taken]
            taken += 1
            guard let lookup = lookups[first] else { continue }
            guard let server = services.choose(excluding: lookup.triedServers, at: now) else {
                failLookup(first, at: now)
                continue
            }
            var names = [first]
            while names.count < timing.batch, !lookup.wasLeftOut, taken < outbox.count,
                let other = lookups[outbox[taken]], !other.wasLeftOut, other.triedServers == lookup.triedServers
            {
                names.append(outbox[taken])
                taken += 1
            }
            send(names, to: server, at: now)
        }
        outbox.removeFirst(taken)
    }

    /// Whether `endTurn` has something to send out.
    public var hasNamesToSend: Bool { !outbox.isEmpty && requests.count < Self.maximumRequests }

    private mutating func send(_ names: [Name], to server: Int, at now: Tick) {
        let id = requests.insert(RequestState(server: server, names: names, sent: now))
        for name in names { lookups[name]?.request = id }
        counters.serviceRequests += 1
        counters.serviceNames += UInt64(names.count)
        deadlines.insert(.request(id), at: now.advanced(milliseconds: timing.serviceTimeout))
        actions.append(
            .askService(ServiceRequest(id: id), server: server, names: names, families: .both))
    }

    mutating func askService(_ id: TableID, _ name: Name, at now: Tick) {
        flights[id]?.service = .waiting
        if let hedgeAfter = timing.hedgeAfter, !policy.httpOnly, !resolvers.health.isEmpty {
            flights[id]?.hedgeAt = now.advanced(milliseconds: hedgeAfter)
        }
        if lookups[name] != nil {
            lookups[name]?.flights.append(id)
        } else {
            lookups[name] = Lookup(name: name, flights: [id])
            outbox.append(name)
        }
    }

    /// An HTTPDNS request ended. One that ended before, or timed out, changes nothing.
    public mutating func settle(_ request: ServiceRequest, _ outcome: ServiceOutcome, at now: Tick) {
        guard let state = requests.remove(request.id) else { return }
        switch outcome {
        case .answered(let results):
            report(services.answered(state.server, roundTrip: now.milliseconds(since: state.sent)))
            for result in results where lookups[result.name]?.request == request.id {
                settle(result, at: now)
            }
            for name in state.names where lookups[name]?.request == request.id {
                askAgain(name, leftOutBy: state, at: now)
            }
        case .failed(let failure):
            fail(state, failure, at: now)
        }
    }

    mutating func requestTimedOut(_ id: TableID, at now: Tick) {
        guard let state = requests.remove(id) else { return }
        actions.append(.cancelService(ServiceRequest(id: id)))
        fail(state, Failure(.timedOut, "no answer within \(timing.serviceTimeout) ms"), at: now)
    }

    private mutating func fail(_ state: RequestState, _ failure: Failure, at now: Tick) {
        counters.serviceFailures += 1
        report(services.failed(state.server, failure, at: now))
        for name in state.names {
            for flight in lookups[name]?.flights ?? [] { flights[flight]?.lastFailure = failure }
            if failure.kind == .badAnswer, state.names.count > 1 {
                // One odd name must not cost the others of its request their answer.
                lookups[name]?.wasLeftOut = true
            } else {
                lookups[name]?.triedServers.insert(state.server)
            }
            lookups[name]?.request = nil
            outbox.append(name)
        }
    }

    /// A request was answered, but not for this name.
    private mutating func askAgain(_ name: Name, leftOutBy state: RequestState, at now: Tick) {
        if state.names.count > 1 {
            lookups[name]?.wasLeftOut = true
            lookups[name]?.request = nil
            outbox.append(name)
        } else {
            fail(state, Failure(.badAnswer, "the answer does not speak of the name asked"), at: now)
        }
    }

    /// HTTPDNS has spoken of a name: both families are kept, whoever asked for which.
    private mutating func settle(_ result: NameAddresses, at now: Tick) {
        guard let lookup = lookups.removeValue(forKey: result.name) else { return }
        guard result.hasAddresses else {
            namesWithoutRecord.insert(
                result.name, until: now.advanced(milliseconds: Int(timing.negativeTTL) * 1000))
            for id in lookup.flights { settleWithoutRecord(id, at: now) }
            return
        }
        let a = keep(result.name, .a, result.ipv4, at: now)
        let aaaa = keep(result.name, .aaaa, result.ipv6, at: now)
        for id in lookup.flights {
            guard let flight = flights[id] else { continue }
            finish(id, flight.key.type == .a ? a : aaaa)
        }
    }

    /// A family without addresses beside one that has some is an answer, not a gap for the local resolver to fill: it
    /// could put in whatever it likes.
    private func keep(_ name: Name, _ type: RecordType, _ family: FamilyAddresses, at now: Tick) -> Answer {
        guard case .addresses(let addresses, let ttl) = family else {
            let answer = Answer.noData(name, type: type, negativeTTL: timing.negativeTTL)
            if family == .noRecord { cache.store(answer, to: name, type: type, for: .everyone, at: now.seconds) }
            return answer
        }
        var answer = Answer.addresses(name, type: type, addresses, ttl: ttl)
        answer.clampTTLs(minimum: timing.minTTL, maximum: timing.maxTTL)
        cache.store(answer, to: name, type: type, for: .everyone, at: now.seconds)
        return answer
    }

    private mutating func settleWithoutRecord(_ id: TableID, at now: Tick) {
        guard let flight = flights[id] else { return }
        flights[id]?.service = .ended
        flights[id]?.hedgeAt = nil
        if policy.httpOnly {
            let answer = policy.noRecord(flight.key.name, flight.key.type)
            cache.store(
                answer, to: flight.key.name, type: flight.key.type, for: .everyone, at: now.seconds)
            finish(id, answer)
        } else if flight.resolver == .idle {
            askResolver(id, at: now)
        } else {
            settleIfDone(id, at: now)
        }
    }

    /// Every server failed on a name.
    private mutating func failLookup(_ name: Name, at now: Tick) {
        guard let lookup = lookups.removeValue(forKey: name) else { return }
        for id in lookup.flights {
            guard let flight = flights[id] else { continue }
            flights[id]?.service = .ended
            flights[id]?.hedgeAt = nil
            if !policy.httpOnly, flight.resolver == .idle {
                counters.fallbacks += 1
                askResolver(id, at: now)
            } else {
                settleIfDone(id, at: now)
            }
        }
    }
}
