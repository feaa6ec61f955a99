import Base

/// Names on their way to an account: they are gathered during a turn and sent several to a request.
extension GroupState {
    /// Looks a flight's name up when the turn ends; flights for the same name, of either family, share the lookup.
    /// - Returns: The query that has the name already; nil if there is none.
    mutating func gather(_ flight: Flight, at now: Tick) -> TableID? {
        let key = flight.key.name
        if let lookup = lookups[key] {
            lookup.add(flight)
            return lookup.query
        }
        let lookup = Lookup(key, for: flight, at: now)
        lookups[key] = lookup
        outbox.append(lookup)
        return nil
    }

    /// The decision about the next waiting names.
    enum Next {
        /// The names go to a server in one request.
        case send([Lookup], to: Int, isTrial: Bool)
        /// No client waits for the name.
        case drop(Lookup)
        /// No server is left for the name, or the plan is exceeded and another group may be asked.
        case abandon(Lookup, Trouble?, because: FallbackReason?)
        /// The names wait for a server with room.
        case wait
        /// The names wait until the plan has room, since no other group may be asked.
        case waitForPlan
    }

    /// Takes the next names from ``outbox``.
    /// - Parameter index: The index of the first of these names; the call moves it past them.
    mutating func next(from index: inout Int, _ rules: FlightRules, at now: Tick) -> Next {
        let first = outbox[index]
        if wasLeft(first) {
            index += 1
            return .drop(first)
        }
        switch pick(first, rules, at: now) {
        case .full:
            // A name that has failed at other servers than this name may find a server with room.
            let next = outbox[index...].firstIndex { other in
                guard other.tried != first.tried else { return false }
                return if case .full = pick(other, rules, at: now) { false } else { true }
            }
            guard let next else { return .wait }
            outbox.insert(outbox.remove(at: next), at: index)
            return self.next(from: &index, rules, at: now)
        case .noServer, .down:
            index += 1
            let trouble = first.trouble ?? trouble
            return .abandon(first, trouble, because: trouble.flatMap { FallbackReason($0.failure.kind) })
        case .pastPlan:
            // A name behind this name may go on to another group.
            let next = outbox[index...].firstIndex { other in
                guard other.leadsOn(from: id, rules) else { return false }
                return if case .pastPlan = pick(other, rules, at: now) { true } else { false }
            }
            guard let next else { return .waitForPlan }
            let lookup = outbox.remove(at: next)
            outbox.insert(lookup, at: index)
            index += 1
            return .abandon(lookup, nil, because: .plan)
        case .server(let server, let isTrial, _):
            plan?.take(for: first.source)
            let start = index
            // A probe of a failed group has one name: further names would be billed, too.
            let isAlone = choice.isDown && !first.wasSent && first.leadsOn(from: id, rules)
            index += isAlone ? 1 : batch(of: first, from: start)
            return .send(Array(outbox[start..<index]), to: server, isTrial: isTrial)
        }
    }

    /// Removes names from the head of ``outbox``.
    mutating func removeGathered(_ count: Int) {
        isBehind = count < outbox.count
        if isBehind {
            outbox.removeFirst(count)
        } else {
            outbox.removeAll(keepingCapacity: count <= 64)
        }
    }

    /// If not all names can be sent, sorts them so that each source has its turn. Beyond the plan, the names of the
    /// source that has used most of the plan come last.
    mutating func putInTurn(at now: Tick) {
        guard outbox.count > 1, isBehind || plan?.isShort(for: outbox.count) ?? false, servesInTurn(at: now) else {
            return
        }
        var turns: [Source: Double] = [:]
        let inTurn = outbox.enumerated().map { offset, lookup in
            let source = lookup.source
            let turn = turns[source] ?? plan?.spent(by: source) ?? 0
            turns[source] = turn + 1
            return (turn: turn, offset: offset, lookup: lookup)
        }
        guard turns.count > 1 else { return }
        outbox = inTurn.sorted { ($0.turn, $0.offset) < ($1.turn, $1.offset) }.map(\.lookup).spread {
            $0.source.network
        }
    }

    /// Whether names can be sent at all, so that the turns of sources matter.
    private mutating func servesInTurn(at now: Tick) -> Bool {
        !(plan?.isEmpty ?? false) && !isPastRequests && !choice.isFull(at: now)
    }

    /// The number of waiting names that go with the first.
    private mutating func batch(of first: Lookup, from start: Int) -> Int {
        guard !first.wasLeftOut else { return 1 }
        let most = min(group.carries.namesPerRequest, outbox.count - start)
        var count = 1
        while count < most, canGo(outbox[start + count], with: first) {
            if plan != nil {
                let source = outbox[start + count].source
                guard plan?.hasRoom(for: source) ?? true else { break }
                plan?.take(for: source)
            }
            count += 1
        }
        return count
    }

    /// Whether a name can go with another: both must have failed at the same servers.
    private mutating func canGo(_ lookup: Lookup, with first: Lookup) -> Bool {
        // After a change of rules a name may be under way a second time, under the former rules.
        lookup.isCurrent && first.isCurrent && !lookup.wasLeftOut && lookup.tried == first.tried && !wasLeft(lookup)
    }

    /// Whether all clients of a lookup were answered while it waited: the lookup would only delay lookups whose clients
    /// still wait. A name that a server has failed still goes on to the next server, so that the answer is cached; but
    /// not under a plan, where it might wait for minutes and be billed although no client waits.
    private mutating func wasLeft(_ lookup: Lookup) -> Bool {
        let goesOn = lookup.wasSent && plan == nil
        return goesOn ? lookup.flights.isEmpty : lookup.flights.allSatisfy(\.isAnswered)
    }

    /// Withdraws a flight from its lookup. A request already sent goes on, since its answer is worth caching.
    mutating func withdraw(_ flight: Flight) {
        guard let lookup = lookups[flight.key.name] else { return }
        lookup.drop(flight)
        // The newest lookups are at the end.
        guard lookup.flights.isEmpty, let index = outbox.lastIndex(where: { $0 === lookup }) else { return }
        outbox.remove(at: index)
        remove(lookup)
    }

    /// Removes a lookup that has ended.
    mutating func remove(_ lookup: Lookup) { lookups.remove(lookup, forKey: lookup.key) }

    /// Detaches the lookups of these names: later questions do not share them, and their answers are not cached.
    mutating func outdateLookups(where isMeant: (NameKey, AnswerBases) -> Bool) {
        for lookup in lookups.values where isMeant(lookup.key, lookup.bases) {
            lookup.outdate()
            lookups[lookup.key] = nil
        }
    }
}
