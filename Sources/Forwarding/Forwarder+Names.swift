public import Base
import DNSCache
import DNSWire

/// Groups that carry addresses: names are gathered during a turn and sent in requests of several.
extension Forwarder {
    /// Looks a flight's name up at an HTTPDNS group; flights for the same name, of either family, share the lookup.
    mutating func lookUp(_ flight: Flight, at group: GroupID, _ now: Tick) {
        let key = flight.key.name
        if let lookup = groups[group.rawValue].lookups[key] {
            lookup.add(flight)
        } else {
            let lookup = Lookup(key, for: flight, at: now)
            groups[group.rawValue].lookups[key] = lookup
            groups[group.rawValue].outbox.append(lookup)
            hasGathered = true
        }
    }

    /// Ends a turn of the loop: the names gathered in it are sent, as many in a request as the group allows. No name
    /// waits for a later turn, unless `maximumRequests` are under way or the plan is exceeded. To be called again until
    /// it leaves no actions, since an action that fails at once may make room for further names.
    public mutating func endTurn(at now: Tick) {
        repeat {
            hasGathered = false
            for place in groups.indices {
                if !groups[place].outbox.isEmpty { sendGathered(by: GroupID(place), at: now) }
                if !groups[place].waiting.isEmpty { sendWaiting(at: place, now) }
            }
            // A name that its group cannot be asked for has gone on to a group whose turn was over.
        } while hasGathered
    }

    private mutating func sendGathered(by group: GroupID, at now: Tick) {
        let place = group.rawValue
        groups[place].plan?.fill(at: now)
        putInTurn(place, at: now)
        var taken = 0
        gathering: while taken < groups[place].outbox.count {
            let first = groups[place].outbox[taken]
            if wasLeft(first, group) {
                taken += 1
                forget(first, at: group, now)
                continue
            }
            if isBarred(first, group) {
                taken += 1
                abandon(first, at: group, because: trouble(of: first, group), now)
                continue
            }
            guard !isPastRequests(place) else { break }
            let server: Server
            switch groups[place].choose(at: now, unlessTried: { first.tried.contains($0) }) {
            case .server(let chosen): server = chosen
            case .full: break gathering
            case .nobody:
                taken += 1
                abandon(first, at: group, because: trouble(of: first, group), now)
                continue
            }
            guard isWithinPlan(first, place) else {
                let canWait = !first.flights.contains { $0.nextStep(after: .failure, rules) != nil }
                planExceeded(group, canWait: canWait, at: now)
                guard !canWait else { break }
                taken += 1
                counters.pastPlan += 1
                abandon(first, at: group, because: nil, now)
                continue
            }
            let count = batch(of: first, by: group, from: taken)
            let lookups = Array(groups[place].outbox[taken..<taken + count])
            taken += count
            send(lookups, to: server, of: group, at: now)
        }
        groups[place].isBehind = taken < groups[place].outbox.count
        if groups[place].isBehind {
            groups[place].outbox.removeFirst(taken)
        } else {
            groups[place].outbox.removeAll(keepingCapacity: taken <= 64)
        }
    }

    /// Whether as many requests are under way as there may be to a group without `concurrency`.
    private func isPastRequests(_ group: Int) -> Bool {
        groups[group].group.concurrency == 0 && groups[group].underWay >= Self.maximumRequests
    }

    /// Where not all names can be sent, puts them in an order in which each source has its turn. Past the plan the names
    /// come last of the source that has spent most of it.
    private mutating func putInTurn(_ group: Int, at now: Tick) {
        let count = groups[group].outbox.count
        guard groups[group].isBehind || groups[group].plan?.isShort(for: count) ?? false, count > 1,
            !(groups[group].plan?.isEmpty ?? false), !isPastRequests(group), !groups[group].isFull(at: now)
        else { return }
        var turns: [Source: Double] = [:]
        let inTurn = groups[group].outbox.enumerated().map { offset, lookup in
            let source = source(of: lookup)
            let turn = turns[source] ?? groups[group].plan?.spent(by: source) ?? 0
            turns[source] = turn + 1
            return (turn: turn, offset: offset, lookup: lookup)
        }
        guard turns.count > 1 else { return }
        groups[group].outbox = inTurn.sorted { ($0.turn, $0.offset) < ($1.turn, $1.offset) }.map(\.lookup)
    }

    /// For whom a name counts: of several that ask for it, the first.
    private func source(of lookup: Lookup) -> Source {
        var flights = lookup.flights.makeIterator()
        return flights.next().map { shares.source(at: $0.crowd.share) } ?? .daemon
    }

    /// Whether the plan has room for a name; it counts as sent then.
    private mutating func isWithinPlan(_ lookup: Lookup, _ group: Int) -> Bool {
        guard groups[group].plan != nil else { return true }
        let source = source(of: lookup)
        guard groups[group].plan?.hasRoom(for: source) ?? true else { return false }
        groups[group].plan?.take(for: source)
        return true
    }

    /// How many of the waiting names are sent together with the first.
    private mutating func batch(of first: Lookup, by group: GroupID, from place: Int) -> Int {
        let state = group.rawValue
        guard !first.wasLeftOut else { return 1 }
        let most = min(groups[state].namesPerRequest, groups[state].outbox.count - place)
        var count = 1
        while count < most, case let next = groups[state].outbox[place + count], canGo(next, with: first, to: group),
            isWithinPlan(next, state)
        {
            count += 1
        }
        return count
    }

    /// Whether a name can be sent together with another: both must have failed at the same servers.
    private mutating func canGo(_ lookup: Lookup, with first: Lookup, to group: GroupID) -> Bool {
        // After a change of rules a name may be under way a second time, by the rules of before.
        lookup.isCurrent && first.isCurrent && !lookup.wasLeftOut && lookup.tried == first.tried
            && !wasLeft(lookup, group) && !isBarred(lookup, group)
    }

    /// Whether all its clients were answered while it waited: sent now, it would only delay lookups whose clients still
    /// wait. A name that a server has failed goes on to the next server all the same, so that the answer is cached for
    /// later questions; but not where a plan limits how many names are sent: it might wait there for minutes, and be
    /// billed although no client waits for it.
    private func wasLeft(_ lookup: Lookup, _ group: GroupID) -> Bool {
        let goesOn = lookup.wasSent && groups[group.rawValue].plan == nil
        return goesOn ? lookup.flights.isEmpty : lookup.flights.allSatisfy(\.isAnswered)
    }

    /// Withdraws a flight from its lookup. A request already sent goes on, since its answer is still worth caching.
    mutating func withdraw(_ flight: Flight) {
        for step in flight.route.indices where flight.isUnderWay(step) {
            let group = flight.route[step].group
            guard let lookup = groups[group.rawValue].lookups[flight.key.name] else { continue }
            lookup.drop(flight)
            // The newest are at the end.
            guard lookup.flights.isEmpty,
                let place = groups[group.rawValue].outbox.lastIndex(where: { $0 === lookup })
            else { continue }
            groups[group.rawValue].outbox.remove(at: place)
            remove(lookup, at: group)
        }
    }

    mutating func remove(_ lookup: Lookup, at group: GroupID) {
        groups[group.rawValue].lookups.remove(lookup, forKey: lookup.key)
    }

    private mutating func forget(_ lookup: Lookup, at group: GroupID, _ now: Tick) {
        remove(lookup, at: group)
        for flight in lookup.flights {
            tell(flight, .dropped(step: flight.step(of: group)), at: now)
        }
    }

    private mutating func planExceeded(_ group: GroupID, canWait: Bool, at now: Tick) {
        let place = group.rawValue
        if groups[place].plan?.news.isNews(at: now) ?? false { act(.report(.planExceeded(group))) }
        guard canWait, !groups[place].isPlanAwaited else { return }
        deadlines.insert(.plan(group), at: groups[place].plan?.nextRoom ?? now)
        groups[place].isPlanAwaited = true
    }

    private mutating func send(_ lookups: [Lookup], to server: Server, of group: GroupID, at now: Tick) {
        let families = policy.families(of: group)
        let exposure = server.exposure
        let names = lookups.map(\.key.name)
        let id = send(.names(lookups, families), .addresses(names, families), to: server, of: group, at: now)
        for lookup in lookups {
            lookup.query = id
            lookup.wasSent = true
            for flight in lookup.flights { flight.sent(by: exposure) }
        }
        groups[group.rawValue].counters.names += UInt64(names.count)
    }

    /// Why no server is left for a name: the last failure of its lookup, or why the servers are paused.
    private func trouble(of lookup: Lookup, _ group: GroupID) -> Trouble? {
        lookup.trouble
            ?? groups[group.rawValue].lastFailure.map { Trouble(failure: $0, group: group, server: nil) }
    }

    /// The group is not asked for a name any more: its flights go on to their next steps.
    /// - Parameter trouble: nil when the plan is exceeded.
    private mutating func abandon(_ lookup: Lookup, at group: GroupID, because trouble: Trouble?, _ now: Tick) {
        remove(lookup, at: group)
        let reason = trouble.map { FallbackReason($0.failure.kind) } ?? .plan
        var fellBack = false
        for flight in lookup.flights {
            let step = flight.step(of: group)
            fellBack = fellBack || flight.isWanted && flight.leadsOn(from: step, rules)
            tell(flight, .exhausted(step: step, .failure, trouble, because: reason), at: now)
        }
        report(
            AbnormalLookup(
                group: group, names: [lookup.key.name], families: policy.families(of: group), server: nil,
                failure: trouble?.failure, spend: now.milliseconds(since: lookup.started), fellBack: fellBack))
    }
}
