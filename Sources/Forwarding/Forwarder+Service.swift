public import Base
import DNSCache
import DNSWire

/// The HTTPDNS side of the second door.
extension Forwarder {
    mutating func askService(_ flight: Flight, at now: Tick) {
        flight.service = .waiting
        hedge(flight, at: now)
        let key = flight.key.name
        if let lookup = lookups[key] {
            lookup.flights.append(flight)
        } else {
            let lookup = Lookup(key, for: flight, list: services.list, at: now)
            lookups[key] = lookup
            outbox.append(lookup)
        }
    }

    /// Sets the moment at which the local resolver is asked too, for a flight that somebody wants.
    func hedge(_ flight: Flight, at now: Tick) {
        guard let hedgeAfter = timing.hedgeAfter, canFallBack, flight.isWanted, flight.service == .waiting else {
            return
        }
        flight.hedgeAt = now.advanced(milliseconds: hedgeAfter)
    }

    /// The turn of the loop has ended: the names that gathered in it go out, as many in a request as `batch` allows.
    /// Nothing waits longer than its own turn, unless `maximumRequests` are under way or the plan is exceeded. Called again
    /// until it leaves no actions: what fails while it is carried out leaves room.
    public mutating func endTurn(at now: Tick) {
        var taken = 0
        for lookup in outbox where lookup.list != services.list {
            (lookup.list, lookup.triedServers) = (services.list, [])
        }
        while taken < outbox.count {
            let first = outbox[taken]
            if wasLeft(first) {
                taken += 1
                forget(first)
                continue
            }
            if isBarred(first) {
                taken += 1
                abandon(first, because: lastFailure(of: first), at: now)
                continue
            }
            guard requests.count < Self.maximumRequests else { break }
            guard let server = services.choose(excluding: first.triedServers, at: now) else {
                taken += 1
                abandon(first, because: lastFailure(of: first), at: now)
                continue
            }
            let room = plan?.room(at: now) ?? .max
            guard room > 0 else {
                planExceeded(at: now)
                guard canFallBack else { break }
                taken += 1
                counters.pastPlan += 1
                abandon(first, because: nil, at: now)
                continue
            }
            let group = Array(outbox[taken...].prefix(batch(of: first, room: room, from: taken)))
            taken += group.count
            plan?.take(group.count)
            send(group, to: server, at: now)
        }
        outbox.removeFirst(taken)
    }

    /// How many of those that wait can go out with the first: they must not have been to other servers than it.
    private func batch(of first: Lookup, room: Int, from place: Int) -> Int {
        guard !first.wasLeftOut else { return 1 }
        return outbox[place...].prefix(min(timing.batch, room)).prefix {
            // Other rules may have had a name asked for once more.
            $0.generation == first.generation && !$0.wasLeftOut && $0.triedServers == first.triedServers
                && !wasLeft($0) && !isBarred($0)
        }.count
    }

    /// Whether it was held until everybody who asked had been told something: sent now, it would only stand in the way
    /// of those who still wait.
    private func wasLeft(_ lookup: Lookup) -> Bool {
        lookup.flights.isEmpty || !lookup.wasSent && lookup.flights.allSatisfy(\.isOverdue)
    }

    /// A flight goes before HTTPDNS has answered it. What was sent for nobody else is still worth keeping when it comes.
    mutating func withdraw(_ flight: Flight) {
        guard flight.service == .waiting, let lookup = lookups[flight.key.name] else { return }
        lookup.flights.removeAll { $0 === flight }
        // The newest are at the end.
        guard lookup.flights.isEmpty, let place = outbox.lastIndex(where: { $0 === lookup }) else { return }
        outbox.remove(at: place)
        remove(lookup)
    }

    /// Whether its name must not go to HTTPDNS any more: other rules hold since it was asked for.
    private func isBarred(_ lookup: Lookup) -> Bool {
        lookup.generation != generation && !policy.mayAskService(lookup.key.name)
    }

    mutating func remove(_ lookup: Lookup) {
        lookups.remove(lookup, forKey: lookup.key)
    }

    private mutating func forget(_ lookup: Lookup) {
        remove(lookup)
        for flight in lookup.flights {
            flight.service = .ended
            if flight.resolver != .waiting { remove(flight) }
        }
    }

    private mutating func planExceeded(at now: Tick) {
        if plan?.news.isNews(at: now) ?? false { actions.append(.report(.planExceeded)) }
        guard !canFallBack, !isPlanAwaited else { return }
        deadlines.insert(.plan, at: plan?.nextRoom ?? now)
        isPlanAwaited = true
    }

    private mutating func send(_ group: [Lookup], to server: Int, at now: Tick) {
        services.asked(server)
        let families = policy.families
        let names = group.map(\.key.name)
        let id = requests.insert(
            RequestState(
                server: server, list: services.list, names: names, lookups: group, families: families, sent: now))
        for lookup in group {
            lookup.request = id
            lookup.wasSent = true
        }
        counters.serviceRequests += 1
        counters.serviceNames += UInt64(names.count)
        deadlines.insert(.request(id), at: now.advanced(milliseconds: timing.serviceTimeout))
        actions.append(
            .askService(ServiceRequest(id: id), server: server, names: names, families: families))
    }

    /// An HTTPDNS request ended. One that ended before, or timed out, changes nothing.
    public mutating func settle(_ request: ServiceRequest, _ outcome: ServiceOutcome, at now: Tick) {
        guard let state = requests.remove(request.id) else { return }
        switch outcome {
        case .answered(let results):
            if state.list == services.list {
                report(services.answered(state.server, roundTrip: now.milliseconds(since: state.sent), at: now))
            }
            for result in results {
                guard let place = state.names.firstIndex(of: result.name) else { continue }
                let lookup = state.lookups[place]
                if lookup.request == request.id { settle(lookup, result, asked: state.families, at: now) }
            }
            for lookup in state.lookups where lookup.request == request.id {
                askAgain(lookup, leftOutBy: state, at: now)
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
        report(
            AbnormalLookup(
                names: state.names, families: state.families, server: isListed ? state.server : nil,
                failure: failure, spend: now.milliseconds(since: state.sent), fellBack: false))
        for lookup in state.lookups {
            for flight in lookup.flights { flight.lastFailure = failure }
            if failure.kind == .badAnswer, state.names.count > 1 {
                // One odd name must not cost the others of its request their answer.
                lookup.wasLeftOut = true
            } else if isListed {
                lookup.triedServers.insert(state.server)
            }
            lookup.request = nil
            outbox.append(lookup)
        }
    }

    /// A request was answered, but not for this name.
    private mutating func askAgain(_ lookup: Lookup, leftOutBy state: RequestState, at now: Tick) {
        guard state.names.count > 1 else {
            return fail(state, Failure(.badAnswer, "the answer does not speak of the name asked"), at: now)
        }
        lookup.wasLeftOut = true
        lookup.request = nil
        outbox.append(lookup)
    }

    private mutating func report(_ lookup: AbnormalLookup) {
        if timing.reportsLookups { actions.append(.reportLookup(lookup)) }
    }

    /// Why no server is left for a name: what failed on it, or why they want to be left alone.
    private func lastFailure(of lookup: Lookup) -> Failure? {
        lookup.flights.lazy.compactMap(\.lastFailure).first ?? services.lastFailure
    }

    /// HTTPDNS will not be asked for a name any more: its flights go on without.
    /// - Parameter failure: nil when the plan is exceeded.
    private mutating func abandon(_ lookup: Lookup, because failure: Failure?, at now: Tick) {
        remove(lookup)
        var fellBack = false
        for flight in lookup.flights {
            flight.service = .ended
            flight.hedgeAt = nil
            flight.lastFailure = failure ?? flight.lastFailure
            if !flight.isWanted {
                // What HTTPDNS said before is not given up for what the local resolver may say.
                remove(flight)
            } else if canFallBack, flight.resolver == .idle {
                counters.fallbacks += 1
                counters.fellBack(because: failure.map { FallbackReason($0.kind) } ?? .plan)
                fellBack = true
                askResolver(flight, at: now)
            } else {
                fellBack = fellBack || flight.resolver == .waiting
                settleIfDone(flight, at: now)
            }
        }
        report(
            AbnormalLookup(
                names: [lookup.key.name], families: policy.families, server: nil, failure: failure,
                spend: now.milliseconds(since: lookup.started), fellBack: fellBack))
    }
}
