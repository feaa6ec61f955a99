import Base
import DNSCache
import DNSWire

/// Carries out the orders of flights, and ends flights.
extension Forwarder {
    /// Passes an event to a flight, and carries out its orders.
    mutating func tell(_ flight: Flight, _ event: FlightEvent, at now: Tick) {
        let orders = flight.take(event, desk.rules, at: now)
        if let step = orders.leave { desk.leave(flight, step) }
        if let step = orders.ask {
            if let reason = orders.because, !flight.key.findsServer { counters.fellBack(because: reason) }
            askStoreOrGroup(flight, step, at: now)
        }
        if let gift = orders.give { give(gift, to: flight, at: now) }
        if orders.notesStandIn { desk.noteStandIn(flight, at: now) }
        if orders.schedules { schedule(flight) }
        if orders.ends { end(flight) }
    }

    private mutating func give(_ gift: FlightOrders.Gift, to flight: Flight, at now: Tick) {
        switch gift {
        case .answer(let isStandIn):
            guard let best = flight.takeSecondBest(at: now) else { return }
            let cached = cacheAndShare(best, of: flight, isStandIn: isStandIn, at: now)
            reply(flight, flight.takeClients(), cached, by: best.by)
        case .noRecord(let isStandIn):
            guard let best = flight.takeSecondBest(at: now) else { return }
            let cached = cacheNoRecord(best, of: flight, isStandIn: isStandIn, at: now)
            reply(flight, flight.takeClients(), cached, by: best.by)
        case .stale:
            if let known = known(flight.key, at: now) { replyKnown(flight, flight.takeClients(), known) }
        case .bestSoFar:
            if !flight.clients.isEmpty, !flight.key.findsServer { counters.overdue += 1 }
            giveKnownOrFailure(flight, timedOut: true, at: now)
        case .failure: fail(flight, at: now)
        }
    }

    /// Asks the group of a step that has begun.
    mutating func askGroup(_ flight: Flight, _ step: Int, at now: Tick) {
        let group = flight.route[step].group
        // Under the present settings the group may not learn the name.
        if !flight.isCurrent, !policy.mayAsk(group, flight) {
            return tell(flight, .exhausted(step: step, .failure, nil), at: now)
        }
        // An account behind another group is not asked again for a name of which it has no record, nor is one at the
        // start of the route: see ``Decision/before``. A refresh asks again.
        if step > 0, flight.isWanted, let (code, age) = desk.absence(of: flight.key.name, at: group, now) {
            return tell(flight, noRecordEvent(flight, at: group, by: .daemon, because: code, after: age), at: now)
        }
        if flight.source != .daemon, isNoRecordBudgetSpent(group, flight.key, at: now) {
            counters.pastNoRecordBudget += 1
            desk.notePastBudget(group, at: now)
            return tell(flight, pastBudget(flight, step), at: now)
        }
        noteLastResort(flight, step, at: now)
        desk.ask(flight, step, at: now)
    }

    /// Sets ``Flight/isLastResort`` of a flight that asks the group of this step.
    mutating func noteLastResort(_ flight: Flight, _ step: Int, at now: Tick) {
        let group = desk.rules[flight.route[step].group]
        flight.isLastResort =
            (group.isDown || group.hasPlan) && flight.source != .daemon
            && flight.route[(step + 1)...].allSatisfy { other in
                other.after.isDisjoint(with: .failure) || !desk.rules.hasServers(other)
                    || isNoRecordBudgetSpent(other.group, flight.key, at: now)
            }
    }

    /// Whether an account must not be asked for a client's name, since too many names below its domain had no record.
    /// The limit does not apply to a name of which the cache has addresses of an account, of either family, nor to a
    /// name under way: only the account knows whether a family of such a name has no record.
    mutating func isNoRecordBudgetSpent(_ group: GroupID, _ key: Flight.Key, at now: Tick) -> Bool {
        guard desk.rules[group].carriesAddresses, !desk.isWithinNoRecordBudget(key.name, at: group, now) else {
            return false
        }
        return addressesOfAccounts(key, at: now).isEmpty
    }

    /// The end of a step whose account is not asked: see ``isNoRecordBudgetSpent(_:_:at:)``. An earlier group's failure
    /// remains the reason of the flight's.
    func pastBudget(_ flight: Flight, _ step: Int) -> FlightEvent {
        let trouble = Trouble(failure: .noRecordBudget, group: flight.route[step].group)
        return .exhausted(step: step, .failure, flight.trouble ?? trouble, because: .noRecordBudget)
    }

    /// The cached answer to a question. A service binding is not given stale: its hints are an account's addresses of
    /// their time, and clients without it use the present ones. A stale NXDOMAIN says no more than a new one would.
    @inline(__always)
    mutating func known(_ key: Flight.Key, at now: Tick) -> DNSCache.Held? {
        guard !key.findsServer else { return nil }
        var held = cache.find(key.name.name, type: key.type, for: key.audience, at: now.seconds)
        guard let known = held, !known.isFresh else { return held }
        if key.type == .https || key.type == .svcb, mayBeBound(key) { return nil }
        held?.answer = existing(known.answer, key, at: now)
        return held
    }

    /// Whether the cached answers to a question may be service bindings with an account's addresses; the account may
    /// have no record of the name by now.
    @inline(never)
    private mutating func mayBeBound(_ key: Flight.Key) -> Bool {
        if case .serviceBinding(_, asked: _?) = policy.route(key.name, key.type, for: key.audience).route {
            true
        } else {
            false
        }
    }

    /// Gives a stale answer, else a failure, when no step can answer any more.
    private mutating func fail(_ flight: Flight, at now: Tick) {
        // The store may still have an answer, which is better than a failure.
        if store.isWaitedFor(by: flight.id, at: now) || lookForA(flight, after: nil, at: now) { return }
        failFinally(flight, at: now)
    }

    mutating func failFinally(_ flight: Flight, at now: Tick) {
        // A resolver that answers SERVFAIL was reached, and caches the failure itself. A shortage of this machine may
        // be over soon.
        if secondBest(of: flight) == nil, !flight.wasAnswered, flight.isCurrent, flight.trouble?.failure.isOwn != true {
            admission.failed(flight.key, reason(flight), at: now)
            noteUnanswered(flight)
        }
        giveKnownOrFailure(flight, timedOut: false, at: now)
        end(flight)
    }

    /// Gives the cached answer, which may have come meanwhile by another question; else the second best or a failure.
    private mutating func giveKnownOrFailure(_ flight: Flight, timedOut: Bool, at now: Tick) {
        if let known = known(flight.key, at: now) {
            replyKnown(flight, flight.takeClients(), known)
        } else {
            giveFailure(flight, timedOut: timedOut, at: now)
        }
    }

    /// Gives the clients of a flight their answer, and ends it.
    mutating func end(_ flight: Flight, with answer: Answer, age: Reply.Age = .elapsed(0), by answerer: Answerer) {
        reply(flight, flight.takeClients(), answer, age: age, by: answerer)
        end(flight)
    }

    /// Removes a flight that has ended.
    mutating func end(_ flight: Flight) {
        // An account was slow, and the next group has answered beside it.
        if let last = flight.last, last > 0, !flight.isDone { desk.withdraw(flight) }
        // The refresh of a made answer waits for the refresh of the A records, which has found nothing.
        let waiting = flight.takeClients()
        if !waiting.isEmpty { reply(flight, waiting, failure(flight.key, reason(flight)), by: .noServer) }
        guard flights.remove(flight.id) != nil else { return }
        flight.end()
        admission.end(flight.source)
        let exposure = desk.end(flight)
        if !flight.key.findsServer { counters.ended(exposure) }
        flightOf.remove(flight, forKey: flight.key)
        store.ended(flight.id)
        if !translations.isEmpty { translations.ended(flight.id) }
    }

    // MARK: Failures in words

    private mutating func giveFailure(_ flight: Flight, timedOut: Bool, at now: Tick) {
        let clients = flight.takeClients()
        if flight.isBinding {
            // Without a service binding, clients use the addresses.
            let none = policy.noData(flight.key.name.name, flight.key.type)
            return reply(flight, clients, none, by: .noServer)
        }
        if let absence = translations.absence(of: flight.id) {
            // The A records are not known yet, but the absence of an AAAA record is.
            return reply(flight, clients, absence.answer.unkept, by: absence.by)
        }
        if let best = secondBest(of: flight) {
            let answer = explained(best, of: flight)
            let existing = existing(answer, flight.key, of: flight, before: best.step, at: now)
            reply(flight, clients, existing.unkept, by: best.by)
        } else {
            var reason = reason(flight)
            if timedOut { reason.code = .noReachableAuthority }
            reply(flight, clients, failure(flight.key, reason), by: .noServer)
        }
    }

    /// The second best answer to give. REFUSED counts as an answer only if every server of the group has refused:
    /// another server might have answered.
    private func secondBest(of flight: Flight) -> StepAnswer? {
        flight.secondBest.flatMap { best in
            best.answer.head.responseCode == .refused && flight.steps[best.step] != .refused ? nil : best
        }
    }

    func failure(_ key: Flight.Key, _ reason: FailureReason?) -> Answer {
        var answer = Answer.failure(key.name.name, type: key.type, .servFail)
        if let reason { answer.add(reason.code, text: reason.text) }
        return answer
    }

    /// Adds an extended error that names the group, since no other group was or will be asked; to an answer that leads on,
    /// the groups as well that have not answered in time.
    private func explained(_ best: StepAnswer, of flight: Flight) -> Answer {
        guard best.answer.extendedErrors.isEmpty else { return best.answer }
        var answer = best.answer
        let (code, name) = (answer.head.responseCode, desk.name(of: flight.route[best.step].group))
        if code == .refused {
            answer.add(.other, text: "\(name): every server refuses the question")
        } else if code.isAnswer {
            let silent = flight.route.indices.filter { flight.isUnderWay($0) }.map { flight.route[$0] }
            answer.add(.noReachableAuthority, text: "\(name): \(code); \(noServerAnswered(silent).text)")
        } else {
            answer.add(.noReachableAuthority, text: "\(name): no server has more to say than \(code)")
        }
        return answer
    }

    /// Why a flight failed: the code of RFC 8914, with a text that names the last server that failed and its failure.
    func reason(_ flight: Flight) -> FailureReason {
        guard let trouble = flight.trouble else { return noServerAnswered(flight.route) }
        let name = desk.name(of: trouble.group)
        let server = trouble.server.map { "\($0.publicDescription): " } ?? ""
        return FailureReason(
            code: trouble.failure.extendedError, text: "\(name): \(server)\(trouble.failure.publicDetail)")
    }

    /// The reason if no server has failed, but no answer has come in time or at all.
    func noServerAnswered(_ route: [Step]) -> FailureReason {
        let names = route.map { desk.name(of: $0.group) }.joined(separator: ", ")
        let hasServers = route.contains { desk.rules.hasServers($0) }
        return FailureReason(
            code: .noReachableAuthority, text: "\(names): \(hasServers ? "no answer in time" : "no server to be asked")"
        )
    }

    /// The failure when the accounts of a route report no record, and not all of them prove it.
    func unproven(_ route: [Step]) -> FailureReason {
        let names = route.filter { !desk.rules[$0.group].isProven }.map { desk.name(of: $0.group) }
        return FailureReason(
            code: Failure.unproven.extendedError, text: "\(names.joined(separator: ", ")): \(Failure.unproven.detail)")
    }
}

// MARK: - Replies

extension Forwarder {
    /// Answers clients of a flight.
    mutating func reply(
        _ flight: Flight, _ clients: SmallList<Waiter>, _ answer: Answer, age: Reply.Age = .elapsed(0),
        by answerer: Answerer
    ) {
        guard !clients.isEmpty else { return }
        let numbers = clients.map { client in
            admission.answered(client)
            return client.number
        }
        let way = desk.exposure(of: flight)
        let others = translations.isEmpty ? numbers : takeOwn(numbers, answer, age, by: answerer, way: way)
        if !others.isEmpty { act(.reply(others, answer, age, by: answerer, way: way)) }
    }

    /// Answers a client at once.
    mutating func reply(
        _ client: AskingClient?, _ answer: Answer, age: Reply.Age = .elapsed(0), by answerer: Answerer = .daemon,
        way: Exposure = .none
    ) {
        guard let client else { return }
        if Translations.isOne(client.number) {
            return translations.answered(client.number, answer, age, by: answerer, way: way)
        }
        act(.reply(SmallList(client.number), answer, age, by: answerer, way: way))
    }

    /// Gives the cached answer, which is stale, or fresh if it has come meanwhile by another question.
    mutating func replyKnown(_ flight: Flight, _ clients: SmallList<Waiter>, _ known: DNSCache.Held) {
        guard !known.isFresh else {
            return reply(flight, clients, known.answer, age: .elapsed(known.elapsed), by: .cache)
        }
        counters.servedStale += UInt64(clients.count)
        reply(flight, clients, known.answer.stale, age: .fixed(timing.staleTTL), by: .stale)
    }

    mutating func replyKnown(_ client: AskingClient, _ known: DNSCache.Held) {
        guard !known.isFresh else { return reply(client, known.answer, age: .elapsed(known.elapsed), by: .cache) }
        counters.servedStale += 1
        reply(client, known.answer.stale, age: .fixed(timing.staleTTL), by: .stale)
    }
}

extension Answer {
    /// The stale form of an answer, with the code of RFC 8914 (§4.4, §4.20).
    fileprivate var stale: Answer {
        var stale = self
        stale.add(head.responseCode == .nxDomain ? .staleNXDomainAnswer : .staleAnswer)
        return stale
    }
}
