public import Base
import DNSCache
import DNSWire

/// How a flight follows its route, and how queries end.
extension Forwarder {
    /// The next group of a flight's route that has servers and is to be asked after this end of the step before; nil if
    /// there is none.
    private mutating func nextStep(of flight: Flight, after end: StepEnds) -> Int? {
        (flight.begun..<flight.route.count).first { step in
            !flight.route[step].after.isDisjoint(with: end) && !groups[flight.route[step].group.rawValue].isEmpty
        }
    }

    /// Whether there is another group that a flight's question could go to.
    mutating func hasNextStep(_ flight: Flight) -> Bool { nextStep(of: flight, after: .failure) != nil }

    /// Begins the next step of a flight's route, or ends the flight when there is none and no step is under way.
    /// - Parameter end: how the step before has ended; a route's first step begins after any.
    mutating func beginNextStep(of flight: Flight, after end: StepEnds = .failure, at now: Tick) {
        flight.hedgeAt = nil
        // The flight was ended meanwhile to make room for another.
        guard flights[flight.id] != nil else { return }
        let end = flight.begun == 0 ? .all : end
        guard let step = nextStep(of: flight, after: end) else { return settleIfDone(flight, at: now) }
        for place in flight.begun...step where !flight.route[place].after.isDisjoint(with: end) {
            // Also one that has no servers at present.
            if groups[flight.route[place].group.rawValue].group.carriesAddresses { flight.owing.insert(place) }
        }
        flight.begun = step + 1
        flight.underWay.insert(step)
        hedge(flight, at: now)
        askStoreOrGroup(flight, step, at: now)
    }

    /// Asks the group of a step that has begun.
    mutating func askGroup(_ flight: Flight, _ step: Int, at now: Tick) {
        let group = flight.route[step].group
        groups[group.rawValue].counters.questions += 1
        switch groups[group.rawValue].group.carries {
        case .addresses: lookUp(flight, at: group, now)
        case .messages:
            flight.messagesBegun = Messages(step: step)
            sendMessage(flight, at: now)
        }
    }

    /// Sets the moment at which the next step begins beside this one, for a flight that clients wait for, and schedules it.
    mutating func hedge(_ flight: Flight, at now: Tick) {
        guard flight.isWanted, flight.isLastUnderWay, let next = nextStep(of: flight, after: .failure),
            let hedgeAfter = flight.route[next].hedgeAfter,
            groups[flight.route[flight.begun - 1].group.rawValue].group.carriesAddresses
        else { return }
        flight.hedgeAt = now.advanced(milliseconds: hedgeAfter)
        schedule(flight)
    }

    /// A step has ended without an answer to give: the next one begins, unless it has begun already.
    mutating func stepEnded(_ step: Int, of flight: Flight, after end: StepEnds = .failure, at now: Tick) {
        flight.underWay.remove(step)
        // Another step may have ended the flight.
        guard flights[flight.id] != nil else { return }
        if step == flight.begun - 1 {
            beginNextStep(of: flight, after: end, at: now)
        } else {
            settleIfDone(flight, at: now)
        }
    }

    /// Asks the last step again for clients that came after it had answered, when its answer is not in the cache for
    /// them.
    mutating func askLastStepAgain(_ flight: Flight, at now: Tick) {
        guard flight.begun > 1, !flight.isLastUnderWay else { return }
        flight.begun -= 1
        beginNextStep(of: flight, after: flight.route[flight.begun].after, at: now)
    }

    // MARK: Queries

    /// Sends a query to a server.
    mutating func send(_ subject: Query.Subject, _ ask: Ask, to server: Server, of group: GroupID, at now: Tick)
        -> TableID
    {
        let place = group.rawValue
        var holder: Source?
        if groups[place].group.concurrency > 0 {
            switch subject {
            case .message(let flight), .measurement(let flight): holder = shares.source(at: flight.place)
            case .names: break
            }
        }
        groups[place].asked(server, for: holder)
        let id = queries.insert(Query(group: group, server: server, sent: now, subject: subject, holder: holder))
        let timeout = groups[place].group.timeout
        deadlines.insert(.query(id), at: now.advanced(milliseconds: timeout))
        let patience = Timing.patience(roundTrip: groups[place].roundTrip(of: server))
        if patience < timeout { deadlines.insert(.silence(id), at: now.advanced(milliseconds: patience)) }
        groups[place].counters.queries += 1
        groups[place].underWay += 1
        act(.ask(QueryID(group, id), server, ask))
        return id
    }

    mutating func takeQuery(_ id: TableID) -> Query? {
        guard let query = queries.remove(id) else { return nil }
        groups[query.group.rawValue].underWay -= 1
        groups[query.group.rawValue].ended(query)
        if case .message(let flight) = query.subject { flight.messages.underWay.removeAll { $0 == id } }
        return query
    }

    /// Asks a silent server once more: the datagram may be lost (RFC 1035 §4.2.1), or the connection dead without a
    /// sign. The first answer counts, and the attempt's deadline stays the same.
    mutating func askAgain(_ id: TableID, at now: Tick) {
        guard var query = queries[id], query.repeated == nil else { return }
        // A server that was removed from the list, or a name that the group may no longer be told, is not asked again.
        guard groups[query.group.rawValue].group.servers.contains(query.server) else { return }
        switch query.subject {
        case .message(let flight) where isBarred(flight, query.group): return
        case .measurement: return
        case .message, .names: break
        }
        query.repeated = now
        queries[id] = query
        groups[query.group.rawValue].counters.repeats += 1
        act(.askAgain(QueryID(query.group, id)))
    }

    /// The answer to a query is not wanted any more. A query whose server was overtaken goes on all the same: its time,
    /// or its failure, decides the order of servers for later questions.
    mutating func leave(_ id: TableID) {
        guard let query = queries[id] else { return }
        if query.isOvertaken, case .message(let flight) = query.subject {
            queries[id]?.subject = .measurement(flight)
            return
        }
        _ = takeQuery(id)
        act(.cancel(QueryID(query.group, id)))
    }

    /// A query has ended. If it ended or timed out before, nothing changes.
    /// - Parameter toRepeat: Whether the answer is to the second attempt; its round trip counts from there.
    public mutating func settle(_ id: QueryID, _ outcome: Outcome, toRepeat: Bool = false, at now: Tick) {
        guard let query = takeQuery(id.id) else { return }
        let sent = toRepeat ? query.repeated ?? query.sent : query.sent
        func reportAnswered(_ hasAnswer: Bool) {
            let events = groups[query.group.rawValue].answered(
                query.server, hasAnswer, roundTrip: now.milliseconds(since: sent), at: now)
            guard !events.isEmpty else { return }
            report(events)
            outageEnded(of: query.group, at: now)
        }
        switch (query.subject, outcome) {
        case (.names(let lookups, let families), .addresses(let results)):
            reportAnswered(true)
            settle(lookups, id.id, results, families, query, at: now)
        case (.message(let flight), .answer(let answer)):
            reportAnswered(answer.head.responseCode.isAnswer)
            settle(
                flight, permitted(answer, to: flight.key, at: now), by: .server(query.group, query.server), at: now)
        case (.measurement, .answer(let answer)): reportAnswered(answer.head.responseCode.isAnswer)
        case (_, .failed(let failure)): fail(query, failure, at: now)
        case (.names, .answer), (.message, .addresses), (.measurement, .addresses):
            fail(query, Failure(.badAnswer, "an answer to something else"), at: now)
        }
    }

    mutating func timedOut(_ id: TableID, at now: Tick) {
        guard let query = takeQuery(id) else { return }
        act(.cancel(QueryID(query.group, id)))
        let timeout = groups[query.group.rawValue].group.timeout
        fail(query, Failure(.timedOut, "no answer within \(timeout) ms"), at: now)
    }

    mutating func fail(_ query: Query, _ failure: Failure, at now: Tick) {
        groups[query.group.rawValue].counters.failures += 1
        failedQueries += 1
        report(groups[query.group.rawValue].failed(query, failure, at: now))
        switch query.subject {
        case .names(let lookups, let families): fail(lookups, families, query, failure, at: now)
        case .message(let flight):
            (flight.lastFailure, flight.lastFailed) = (failure, (query.group, query.server))
            flight.messages.hasFailed = true
            sendMessage(flight, at: now)
        case .measurement: break
        }
    }
}

extension StepEnds {
    fileprivate static let all: StepEnds = [.failure, .refused, .nxDomain, .noData, .noRecord]
}
