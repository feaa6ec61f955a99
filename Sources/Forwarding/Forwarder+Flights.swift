import Base
import DNSCache
import DNSWire

/// What flights order, and how they end.
extension Forwarder {
    /// Tells a flight what has happened, and carries out what that leads to.
    mutating func tell(_ flight: Flight, _ event: FlightEvent, at now: Tick) {
        flight.take(event, rules, at: now, &orders)
        // What an order leads to, the outermost call carries out.
        guard !isCarryingOut else { return }
        isCarryingOut = true
        while let entry = orders.take() {
            // The flight may have ended meanwhile, by an earlier order or to make room for another.
            if flights.contains(entry.flight.id) { carryOut(entry.order, for: entry.flight, at: now) }
        }
        isCarryingOut = false
    }

    private mutating func carryOut(_ order: FlightOrder, for flight: Flight, at now: Tick) {
        switch order {
        case .ask(let step, let reason):
            if let reason { counters.fellBack(because: reason) }
            askStoreOrGroup(flight, step, at: now)
        case .deliver(let isStandIn, let isFromStore):
            guard let best = flight.takeSecondBest() else { return }
            let kept = keep(best, of: flight, isStandIn: isStandIn, isFromStore: isFromStore, at: now)
            reply(flight.takeClients(), kept, age: .elapsed(0), by: best.by)
        case .deliverNoRecord:
            guard var best = flight.takeSecondBest() else { return }
            let (key, group) = (flight.key, flight.route[best.step].group)
            let isStandIn = flight.accountStandsIn(best.step, rules)
            if isStandIn {
                best.answer.limitToStandIn()
                standsIn(flight, at: now)
            }
            if flight.isCurrent {
                keep(
                    best.answer, by: group, to: key.name.name, key.type, for: key.audience, at: now,
                    isStandIn: isStandIn)
            }
            reply(flight.takeClients(), best.answer, age: .elapsed(0), by: best.by)
        case .giveStale:
            if let known = known(flight, at: now) { replyStale(flight.takeClients(), known.answer) }
        case .giveUp:
            if !flight.crowd.clients.isEmpty { counters.overdue += 1 }
            giveFailure(flight, timedOut: true)
        case .fail: fail(flight, at: now)
        case .leave(let step):
            if let messages = flight.messages, messages.step == step {
                for query in messages.underWay { leave(query) }
            }
        case .noteStandIn: standsIn(flight, at: now)
        case .schedule: schedule(flight)
        case .end: end(flight)
        }
    }

    /// Asks the group of a step that has begun.
    mutating func askGroup(_ flight: Flight, _ step: Int, at now: Tick) {
        let group = flight.route[step].group
        groups[group.rawValue].counters.questions += 1
        switch groups[group.rawValue].group.carries {
        case .addresses: lookUp(flight, at: group, now)
        case .messages:
            flight.ask(Messages(step: step))
            sendMessage(flight, at: now)
        }
    }

    /// What the cache holds for the clients of a flight.
    func known(_ flight: Flight, at now: Tick) -> DNSCache.Held? {
        let key = flight.key
        return cache.find(key.name.name, type: key.type, for: key.audience, at: now.seconds)
    }

    /// No step can answer any more: a stale answer is given, else a failure.
    private mutating func fail(_ flight: Flight, at now: Tick) {
        // The store may still have an answer, which is better than a failure.
        if store.isWaitedFor(by: flight.id, at: now) { return }
        // A resolver that says SERVFAIL was reached, and caches the failure itself.
        if flight.secondBest == nil, !flight.wasAnswered, flight.isCurrent { remember(flight, at: now) }
        if let known = known(flight, at: now) {
            // Fresh, if it came meanwhile to a question with other bits.
            if known.isFresh {
                reply(flight.takeClients(), known.answer, age: .elapsed(known.elapsed), by: .cache)
            } else {
                replyStale(flight.takeClients(), known.answer)
            }
        } else {
            giveFailure(flight, timedOut: false)
        }
        end(flight)
    }

    private mutating func remember(_ flight: Flight, at now: Tick) {
        let before = failures.value(flight.key, at: now)?.timesInARow ?? 0
        failures.insert(
            flight.key, RecentFailure(timesInARow: before + 1, reason: reason(flight)),
            until: now.advanced(milliseconds: RecentFailure.time))
    }

    /// An account has no record of a flight's name.
    mutating func tellWithoutRecord(_ flight: Flight, at group: GroupID, by answerer: Answerer, at now: Tick) {
        tell(
            flight,
            .withoutRecord(
                step: flight.step(of: group), isProven: groups[group.rawValue].group.isProven,
                policy.noRecord(flight.key.name.name, flight.key.type), by: answerer), at: now)
    }

    /// Gives the clients of a flight their answer, and ends it.
    mutating func end(_ flight: Flight, with answer: Answer, age: Reply.Age = .elapsed(0), by answerer: Answerer) {
        reply(flight.takeClients(), answer, age: age, by: answerer)
        end(flight)
    }

    /// The flight is over.
    mutating func end(_ flight: Flight) {
        // An account that was slow, beside which the next one has answered.
        if let last = flight.last, last > 0, !flight.isDone { withdraw(flight) }
        if flights.remove(flight.id) != nil {
            shares.end(flight.crowd.share)
            counters.ended(flight.exposure)
        }
        flightOf.remove(flight, forKey: flight.key)
        store.ended(flight.id)
        if !refusing.isEmpty, flights.count < Self.maximumFlights / 2 { refusing = [] }
        if let messages = flight.messages { for query in messages.underWay { leave(query) } }
    }

    // MARK: Failures in words

    private mutating func giveFailure(_ flight: Flight, timedOut: Bool) {
        let clients = flight.takeClients()
        if let best = flight.secondBest {
            reply(
                clients, explained(best.answer, flight.route[best.step].group), age: .elapsed(0), by: best.by)
        } else {
            var reason = reason(flight)
            if timedOut { reason.code = .noReachableAuthority }
            reply(clients, failure(flight.key, reason), age: .elapsed(0), by: .nobody)
        }
    }

    func failure(_ key: Flight.Key, _ reason: FailureReason) -> Answer {
        var answer = Answer.failure(key.name.name, type: key.type, .servFail, extendedError: nil)
        answer.add(reason.code, text: reason.text)
        return answer
    }

    /// Adds an extended error that names the group, since no other group was or will be asked.
    private func explained(_ refusal: Answer, _ group: GroupID) -> Answer {
        guard refusal.extendedErrors.isEmpty else { return refusal }
        var refusal = refusal
        let name = groups[group.rawValue].group.name
        if refusal.head.responseCode == .refused {
            refusal.add(.other, text: "\(name): every server refuses the question")
        } else {
            refusal.add(
                .noReachableAuthority, text: "\(name): no server has more to say than \(refusal.head.responseCode)")
        }
        return refusal
    }

    /// Why a flight failed: the code of RFC 8914, and a text that says which server failed last and how.
    private func reason(_ flight: Flight) -> FailureReason {
        guard let trouble = flight.trouble else { return nobodyAnswered(flight.route) }
        let name = groups[trouble.group.rawValue].group.name
        let server = trouble.server.map { "\($0): " } ?? ""
        return FailureReason(
            code: trouble.failure.extendedError, text: "\(name): \(server)\(trouble.failure.detail)")
    }

    /// No server has failed, and yet there is no answer: in time, or from anybody.
    func nobodyAnswered(_ route: [Step]) -> FailureReason {
        let names = route.map { groups[$0.group.rawValue].group.name }.joined(separator: ", ")
        let isAnybody = route.contains { !groups[$0.group.rawValue].isEmpty }
        return FailureReason(
            code: .noReachableAuthority, text: "\(names): \(isAnybody ? "no answer in time" : "no server to be asked")")
    }

    /// The accounts of a route have no record, and not all of them prove it.
    func unproven(_ route: [Step]) -> FailureReason {
        let names = route.map { groups[$0.group.rawValue].group }.filter { !$0.isProven }.map(\.name)
        return FailureReason(
            code: Failure.unproven.extendedError, text: "\(names.joined(separator: ", ")): \(Failure.unproven.detail)")
    }
}

// MARK: - Replies and the cache

extension Forwarder {
    /// Caches a message group's answer to a flight, and shares it.
    /// - Parameters:
    ///   - isStandIn: a group before this one still owes the answer.
    ///   - isFromStore: the store has it already.
    /// - Returns: the answer as the clients get it.
    private mutating func keep(
        _ best: SecondBest, of flight: Flight, isStandIn: Bool, isFromStore: Bool, at now: Tick
    ) -> Answer {
        var answer = best.answer
        let (key, group) = (flight.key, flight.route[best.step].group)
        let longest = isStandIn ? min(timing.maxTTL, Timing.standInTTL) : timing.maxTTL
        answer.clampTTLs(minimum: min(timing.minTTL, longest), maximum: longest)
        rank(&answer, of: key.name, key.type, at: now)
        guard flight.isCurrent else { return answer }
        keep(answer, by: group, to: key.name.name, key.type, for: key.audience, at: now, isStandIn: isStandIn)
        if store.isOn, !isFromStore, !isStandIn, answer.isCacheable {
            share(
                .answer(answer), by: group, to: key.name.name, key.type, for: key.audience, lifetime: answer.keep,
                at: now)
        }
        return answer
    }

    /// Caches an answer that was asked for under the rules that hold now.
    /// - Parameter group: the group that gave it.
    func keep(
        _ answer: Answer, by group: GroupID, to name: Name, _ type: RecordType, for audience: Audience,
        at now: Tick, isStandIn: Bool = false
    ) {
        cache.store(
            answer, to: name, type: type, for: policy.served(audience, name, type), at: now.seconds,
            isStandIn: isStandIn, teller: group.teller)
    }

    mutating func reply(_ clients: SmallList<Waiter>, _ answer: Answer, age: Reply.Age, by answerer: Answerer) {
        guard !clients.isEmpty else { return }
        let numbers = clients.map { client in
            shares.answered(client.place)
            return client.number
        }
        act(.reply(numbers, answer, age, by: answerer))
    }

    /// Answers a client at once.
    mutating func reply(
        _ client: Asker?, _ answer: Answer, age: Reply.Age = .elapsed(0), by answerer: Answerer = .daemon
    ) {
        guard let client else { return }
        act(.reply(SmallList(client.number), answer, age, by: answerer))
    }

    mutating func replyStale(_ clients: SmallList<Waiter>, _ answer: Answer) {
        counters.servedStale += UInt64(clients.count)
        reply(clients, answer.stale, age: .fixed(timing.staleTTL), by: .stale)
    }

    mutating func replyStale(_ client: Asker, _ answer: Answer) {
        counters.servedStale += 1
        reply(client, answer.stale, age: .fixed(timing.staleTTL), by: .stale)
    }

    mutating func report(_ events: [Event]) {
        for event in events { act(.report(event)) }
    }
}

extension Answer {
    /// The form of an answer when it is given stale: with the code of RFC 8914 that says so.
    fileprivate var stale: Answer {
        var stale = self
        stale.add(.staleAnswer)
        return stale
    }
}
