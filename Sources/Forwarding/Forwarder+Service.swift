import Addresses
public import DNSCache
import DNSWire

/// The HTTPDNS side of the second door.
extension Forwarder {
    /// The turn of the loop has ended: the names that gathered in it go out, as many in a request as `batch` allows.
    /// Nothing waits longer than its own turn, unless `maximumRequests` are under way.
    public mutating func endTurn(at now: Tick) {
        var taken = 0
        isHeld = false
        while taken < outbox.count, !isHeld {
            let first = outbox[taken]
            guard let lookup = lookups[first] else {
                taken += 1
                continue
            }
            let room = requests.count < Self.maximumRequests ? roomInPlan(first, at: now) : 0
            guard room > 0 else {
                isHeld = lookups[first] != nil
                continue
            }
            guard let server = services.choose(excluding: lookup.triedServers, at: now) else {
                taken += 1
                failLookup(first, at: now)
                continue
            }
            var names: [Name] = []
            while names.count < min(timing.batch, room), taken < outbox.count, let other = lookups[outbox[taken]],
                other.triedServers == lookup.triedServers, names.isEmpty || !(lookup.wasLeftOut || other.wasLeftOut)
            {
                names.append(outbox[taken])
                taken += 1
            }
            plan?.take(names.count)
            send(names, to: server, at: now)
        }
        outbox.removeFirst(taken)
    }

    /// Whether another end of turn now would send something out.
    public var hasNamesToSend: Bool { !outbox.isEmpty && !isHeld }

    /// How many names the plan has room for. Without room the name goes to the local resolver, unless it must wait.
    private mutating func roomInPlan(_ name: Name, at now: Tick) -> Int {
        guard let room = plan?.room(at: now) else { return .max }
        guard room == 0 else { return room }
        if plan?.isNewlyEmpty(at: now) ?? false { actions.append(.report(.planExceeded)) }
        if policy.httpOnly || resolvers.health.isEmpty {
            if !isPlanAwaited { deadlines.insert(.plan, at: plan?.nextRoom ?? now) }
            isPlanAwaited = true
        } else {
            counters.pastPlan += 1
            abandon(name, at: now)
        }
        return 0
    }

    private mutating func send(_ names: [Name], to server: Int, at now: Tick) {
        let families = policy.families
        let id = requests.insert(
            RequestState(server: server, list: services.list, names: names, families: families, sent: now))
        for name in names { lookups[name]?.request = id }
        counters.serviceRequests += 1
        counters.serviceNames += UInt64(names.count)
        deadlines.insert(.request(id), at: now.advanced(milliseconds: timing.serviceTimeout))
        actions.append(
            .askService(ServiceRequest(id: id), server: server, names: names, families: families))
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
            if state.list == services.list {
                report(services.answered(state.server, roundTrip: now.milliseconds(since: state.sent)))
            }
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
        let isListed = state.list == services.list
        if isListed { report(services.failed(state.server, failure, at: now)) }
        reportLookup(state.names, state.server, failure, spend: now.milliseconds(since: state.sent), state.families)
        for name in state.names {
            for flight in lookups[name]?.flights ?? [] { flights[flight]?.lastFailure = failure }
            if failure.kind == .badAnswer, state.names.count > 1 {
                // One odd name must not cost the others of its request their answer.
                lookups[name]?.wasLeftOut = true
            } else if isListed {
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
        let failure = lookups[name]?.flights.lazy.compactMap { [flights] in flights[$0]?.lastFailure }.first
        reportLookup([name], nil, failure, spend: 0, policy.families)
        abandon(name, at: now)
    }

    private mutating func reportLookup(
        _ names: [Name], _ server: Int?, _ failure: Failure?, spend: Int, _ families: Families
    ) {
        guard timing.reportsLookups else { return }
        actions.append(
            .reportLookup(
                AbnormalLookup(
                    names: names, families: families, server: server, failure: failure, spend: spend,
                    fellBack: server == nil)))
    }

    /// HTTPDNS will not be asked for a name any more: its flights go on without.
    private mutating func abandon(_ name: Name, at now: Tick) {
        guard let lookup = lookups.removeValue(forKey: name) else { return }
        for id in lookup.flights {
            guard let flight = flights[id] else { continue }
            flights[id]?.service = .ended
            flights[id]?.hedgeAt = nil
            if isSpareRefresh(flight, at: now) {
                remove(id)
            } else if !policy.httpOnly, flight.resolver == .idle {
                counters.fallbacks += 1
                askResolver(id, at: now)
            } else {
                settleIfDone(id, at: now)
            }
        }
    }

    /// A refresh nobody waits for, of an answer that is still fresh: what HTTPDNS said is not given up for what the
    /// local resolver may say.
    private func isSpareRefresh(_ flight: Flight<Client>, at now: Tick) -> Bool {
        guard flight.clients.isEmpty, !flight.isOverdue, flight.resolver == .idle else { return false }
        return cache.find(flight.key.name, type: flight.key.type, for: flight.key.audience, at: now.seconds)?.isFresh
            ?? false
    }
}
