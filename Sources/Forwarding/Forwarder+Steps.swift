public import Base
import DNSCache
import DNSWire

/// How a flight goes along its route, and how each query ends.
extension Forwarder {
    /// The next of a flight's groups that has servers; nil if there is none.
    private mutating func nextStep(of flight: Flight) -> Int? {
        (flight.begun..<flight.route.count).first { !groups[flight.route[$0].group.rawValue].isEmpty }
    }

    /// Whether what a flight waits for now could be asked elsewhere.
    mutating func hasNextStep(_ flight: Flight) -> Bool { nextStep(of: flight) != nil }

    /// Asks the next group of a flight's route, or ends the flight when there is none and nobody else is under way.
    mutating func beginNextStep(of flight: Flight, at now: Tick) {
        flight.hedgeAt = nil
        // It made room for another meanwhile.
        guard flights[flight.id] != nil else { return }
        guard let step = nextStep(of: flight) else { return settleIfDone(flight, at: now) }
        flight.begun = step + 1
        flight.underWay.insert(step)
        hedge(flight, at: now)
        let group = flight.route[step].group
        switch groups[group.rawValue].group.carries {
        case .addresses: lookUp(flight, at: group, now)
        case .messages: sendMessage(flight, step, at: now)
        }
    }

    /// Sets the moment at which the next step begins too, for a flight that somebody wants.
    mutating func hedge(_ flight: Flight, at now: Tick) {
        guard flight.isWanted, flight.isLastUnderWay, let next = nextStep(of: flight),
            let hedgeAfter = flight.route[next].hedgeAfter
        else { return }
        flight.hedgeAt = now.advanced(milliseconds: hedgeAfter)
    }

    /// A step has ended without an answer: the next one begins, unless it has already.
    mutating func stepEnded(_ step: Int, of flight: Flight, at now: Tick) {
        flight.underWay.remove(step)
        // Another step may have ended the flight.
        guard flights[flight.id] != nil else { return }
        if step == flight.begun - 1 {
            beginNextStep(of: flight, at: now)
        } else {
            settleIfDone(flight, at: now)
        }
    }

    /// Clients have come for a flight whose last step has had its say, of which nothing is left in the cache for them.
    mutating func askLastStepAgain(_ flight: Flight, at now: Tick) {
        guard flight.begun > 1, !flight.isLastUnderWay else { return }
        flight.begun -= 1
        beginNextStep(of: flight, at: now)
    }

    // MARK: Queries

    /// Puts something to a server.
    mutating func send(_ subject: Query.Subject, _ ask: Ask, to server: Server, of group: GroupID, at now: Tick)
        -> TableID
    {
        let place = group.rawValue
        groups[place].asked(server)
        let id = queries.insert(Query(group: group, server: server, sent: now, subject: subject))
        let timeout = groups[place].group.timeout
        deadlines.insert(.query(id), at: now.advanced(milliseconds: timeout))
        let patience = Timing.patience(roundTrip: groups[place].roundTrip(of: server))
        if patience < timeout { deadlines.insert(.silence(id), at: now.advanced(milliseconds: patience)) }
        groups[place].counters.queries += 1
        groups[place].underWay += 1
        act(.ask(QueryID(group, id), server, ask))
        return id
    }

    private mutating func takeQuery(_ id: TableID) -> Query? {
        guard let query = queries.remove(id) else { return nil }
        groups[query.group.rawValue].underWay -= 1
        if case .message(let flight, _, _) = query.subject { flight.queries = flight.queries.filter { $0 != id } }
        return query
    }

    /// A server is silent: the datagram may be lost (RFC 1035 §4.2.1), or the connection dead without anybody having
    /// said so. The first answer counts, and the attempt ends when it would have.
    mutating func askAgain(_ id: TableID, at now: Tick) {
        guard var query = queries[id], query.repeated == nil else { return }
        // Nobody is asked again who is no longer in the list, or who must not be told the name any more.
        guard groups[query.group.rawValue].group.servers.contains(query.server) else { return }
        if case .message(let flight, _, _) = query.subject, isBarred(flight, query.group) { return }
        query.repeated = now
        queries[id] = query
        groups[query.group.rawValue].counters.repeats += 1
        act(.askAgain(QueryID(query.group, id)))
    }

    /// Nobody waits for a query any more.
    mutating func cancel(_ id: TableID) {
        guard let query = takeQuery(id) else { return }
        act(.cancel(QueryID(query.group, id)))
    }

    /// A query ended. One that ended before, or timed out, changes nothing.
    /// - Parameter toRepeat: The server answered what it was asked again; its round trip counts from there.
    public mutating func settle(_ id: QueryID, _ outcome: Outcome, toRepeat: Bool = false, at now: Tick) {
        guard let query = takeQuery(id.id) else { return }
        let sent = toRepeat ? query.repeated ?? query.sent : query.sent
        func reportAnswered(_ hasAnswer: Bool) {
            report(
                groups[query.group.rawValue].answered(
                    query.server, hasAnswer, roundTrip: now.milliseconds(since: sent), at: now))
        }
        switch (query.subject, outcome) {
        case (.names(let lookups, let families), .addresses(let results)):
            reportAnswered(true)
            settle(lookups, id.id, results, families, query, at: now)
        case (.message(let flight, let step, let tried), .answer(let answer)):
            reportAnswered(answer.head.responseCode.isAnswer)
            let permitted = permitted(answer, to: flight.key, at: now)
            settle(flight, step, permitted, excluding: tried + [query.server], at: now)
        case (_, .failed(let failure)): fail(query, failure, at: now)
        case (.names, .answer), (.message, .addresses):
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
        report(groups[query.group.rawValue].failed(query.server, failure, at: now))
        switch query.subject {
        case .names(let lookups, let families): fail(lookups, families, query, failure, at: now)
        case .message(let flight, let step, let tried):
            flight.lastFailure = failure
            sendMessage(flight, step, excluding: tried + [query.server], at: now)
        }
    }

    // MARK: Groups that carry whole messages

    /// Whether other rules hold since a flight began, by which its name must not go to a group.
    private func isBarred(_ flight: Flight, _ group: GroupID) -> Bool {
        flight.generation != generation && !policy.mayAsk(group, flight.key.name.name)
    }

    /// Asks the next server of a step's group.
    /// - Parameter tried: those that have been asked.
    mutating func sendMessage(_ flight: Flight, _ step: Int, excluding tried: [Server] = [], at now: Tick) {
        let group = flight.route[step].group
        guard !isBarred(flight, group), let server = groups[group.rawValue].choose(excluding: tried, at: now) else {
            return stepEnded(step, of: flight, at: now)
        }
        let subject = Query.Subject.message(flight, step: step, tried: tried)
        let query = send(subject, .message(flight.question), to: server, of: group, at: now)
        flight.queries = flight.queries + [query]
    }

    private mutating func settle(
        _ flight: Flight, _ step: Int, _ answer: Answer, excluding tried: [Server], at now: Tick
    ) {
        guard answer.head.responseCode.isAnswer else {
            flight.refusal = answer
            return sendMessage(flight, step, excluding: tried, at: now)
        }
        flight.underWay.remove(step)
        flight.wasAnswered = true
        var answer = answer
        let longest = flight.isOwed ? min(timing.maxTTL, Timing.standInTTL) : timing.maxTTL
        answer.clampTTLs(minimum: min(timing.minTTL, longest), maximum: longest)
        let key = flight.key
        keep(
            answer, to: key.name.name, key.type, for: key.audience, flight.generation, at: now, isStandIn: flight.isOwed
        )
        if flight.isOutranked(step) {
            // The group before it was slow; what that still says replaces this in the cache.
            give(flight, answer)
        } else {
            finish(flight, answer)
        }
    }
}

extension ResponseCode {
    /// Whether a resolver that says so has answered the question, rather than said that it could not or would not.
    fileprivate var isAnswer: Bool { self == .noError || self == .nxDomain }
}
