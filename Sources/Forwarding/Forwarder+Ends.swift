import Base
import DNSCache
import DNSWire

/// The ends of flights: answers to the waiting clients.
extension Forwarder {
    /// Ends the flight if no step can still answer: with a stale answer, else a failure.
    mutating func settleIfDone(_ flight: Flight, at now: Tick) {
        guard flight.isDone else { return }
        if let (answer, group) = flight.secondBest, answer.head.responseCode.isAnswer {
            return finish(flight, answer, of: flight.messages.step, by: group, at: now)
        }
        // The store may still have an answer, which is better than a failure.
        if shared.isOn, isLooking(flight, at: now) { return }
        let key = flight.key
        // A resolver that says SERVFAIL was reached, and caches the failure itself.
        if flight.secondBest == nil, !flight.wasAnswered { remember(flight, at: now) }
        if let known = cache.find(key.name.name, type: key.type, for: key.audience, at: now.seconds) {
            // Fresh, if it came meanwhile to a question with other bits.
            if known.isFresh {
                reply(takeClients(of: flight), known.answer, age: .elapsed(known.elapsed), by: .cache)
            } else {
                replyStale(takeClients(of: flight), known.answer)
            }
            remove(flight)
        } else {
            finish(flight, failureAnswer(flight, timedOut: false))
        }
    }

    private mutating func remember(_ flight: Flight, at now: Tick) {
        guard flight.generation == generation else { return }
        let before = failures.value(flight.key, at: now)?.timesInARow ?? 0
        failures.insert(
            flight.key, RecentFailure(timesInARow: before + 1, reason: reason(flight)),
            until: now.advanced(milliseconds: RecentFailure.time))
    }

    func failureAnswer(_ flight: Flight, timedOut: Bool) -> Answer {
        if let (refusal, group) = flight.secondBest { return explained(refusal, group) }
        var reason = reason(flight)
        if timedOut { reason.code = .noReachableAuthority }
        var answer = Answer.failure(flight.key.name.name, type: flight.key.type, .servFail, extendedError: nil)
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
        guard let failure = flight.lastFailure else { return nobodyAnswered(flight.route) }
        guard let (group, server) = flight.lastFailed else { return FailureReason(code: failure.extendedError) }
        let name = groups[group.rawValue].group.name
        return FailureReason(
            code: failure.extendedError,
            text: server.map { "\(name): \($0): \(failure.detail)" } ?? "\(name): \(failure.detail)")
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

    /// Answers all waiting clients and ends the flight.
    mutating func finish(_ flight: Flight, _ answer: Answer) {
        give(flight, answer)
        remove(flight)
    }

    /// Answers all waiting clients; the flight goes on.
    mutating func give(_ flight: Flight, _ answer: Answer) {
        reply(takeClients(of: flight), answer, age: .elapsed(0), by: flight.answerer)
    }

    /// Removes the waiting clients from the flight, to be answered now.
    func takeClients(of flight: Flight) -> SmallList<Waiter> {
        flight.isOverdue = true
        return exchange(&flight.clients, with: SmallList())
    }

    mutating func remove(_ flight: Flight) {
        // An account that was slow, beside which the next one has answered.
        if flight.begun > 1, !flight.isDone { withdraw(flight) }
        if flights.remove(flight.id) != nil {
            shares.end(flight.place)
            counters.ended(flight.exposure)
        }
        flightOf.remove(flight, forKey: flight.key)
        if !refusing.isEmpty, flights.count < Self.maximumFlights / 2 { refusing = [] }
        if let messages = flight.messagesBegun { for query in messages.underWay { leave(query) } }
    }

    /// Caches an answer, unless it was asked for under rules that do not hold any more.
    /// - Parameter group: the group that gave it.
    func keep(
        _ answer: Answer, by group: GroupID, to name: Name, _ type: RecordType, for audience: Audience,
        _ generation: Int, at now: Tick, isStandIn: Bool = false
    ) {
        guard generation == self.generation else { return }
        cache.store(
            answer, to: name, type: type, for: policy.served(audience, name, type), at: now.seconds,
            isStandIn: isStandIn, teller: group.teller)
    }
}

extension Forwarder {
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
