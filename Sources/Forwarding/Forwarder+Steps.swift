public import Base
import DNSCache
import DNSWire

/// How a flight goes along its route, and how each query ends.
extension Forwarder {
    /// The next of a flight's groups that has servers and is asked when the one before has ended so; nil if there is
    /// none.
    private mutating func nextStep(of flight: Flight, after end: StepEnds) -> Int? {
        (flight.begun..<flight.route.count).first { step in
            !flight.route[step].after.isDisjoint(with: end) && !groups[flight.route[step].group.rawValue].isEmpty
        }
    }

    /// Whether what a flight waits for now could be asked elsewhere.
    mutating func hasNextStep(_ flight: Flight) -> Bool { nextStep(of: flight, after: .failure) != nil }

    /// Asks the next group of a flight's route, or ends the flight when there is none and nobody else is under way.
    /// - Parameter end: how the group before has ended; a route's first step begins after any.
    mutating func beginNextStep(of flight: Flight, after end: StepEnds = .failure, at now: Tick) {
        flight.hedgeAt = nil
        // It made room for another meanwhile.
        guard flights[flight.id] != nil else { return }
        guard let step = nextStep(of: flight, after: flight.begun == 0 ? .all : end) else {
            return settleIfDone(flight, at: now)
        }
        flight.begun = step + 1
        flight.underWay.insert(step)
        hedge(flight, at: now)
        let group = flight.route[step].group
        groups[group.rawValue].counters.questions += 1
        switch groups[group.rawValue].group.carries {
        case .addresses: lookUp(flight, at: group, now)
        case .messages:
            flight.messagesBegun = Messages(step: step)
            sendMessage(flight, at: now)
        }
    }

    /// Sets the moment at which the next step begins too, for a flight that somebody wants.
    mutating func hedge(_ flight: Flight, at now: Tick) {
        guard flight.isWanted, flight.isLastUnderWay, let next = nextStep(of: flight, after: .failure),
            let hedgeAfter = flight.route[next].hedgeAfter,
            groups[flight.route[flight.begun - 1].group.rawValue].group.carriesAddresses
        else { return }
        flight.hedgeAt = now.advanced(milliseconds: hedgeAfter)
    }

    /// A step has ended without an answer to give: the next one begins, unless it has already.
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

    /// Clients have come for a flight whose last step has had its say, of which nothing is left in the cache for them.
    mutating func askLastStepAgain(_ flight: Flight, at now: Tick) {
        guard flight.begun > 1, !flight.isLastUnderWay else { return }
        flight.begun -= 1
        beginNextStep(of: flight, after: flight.route[flight.begun].after, at: now)
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
        let roundTrip = groups[place].place(of: server).flatMap { groups[place].servers[$0].health.roundTrip }
        let patience = Timing.patience(roundTrip: roundTrip)
        if patience < timeout { deadlines.insert(.silence(id), at: now.advanced(milliseconds: patience)) }
        groups[place].counters.queries += 1
        groups[place].underWay += 1
        act(.ask(QueryID(group, id), server, ask))
        return id
    }

    private mutating func takeQuery(_ id: TableID) -> Query? {
        guard let query = queries.remove(id) else { return nil }
        groups[query.group.rawValue].underWay -= 1
        groups[query.group.rawValue].ended(query.server)
        if case .message(let flight) = query.subject { flight.messages.underWay.removeAll { $0 == id } }
        return query
    }

    /// A server is silent: the datagram may be lost (RFC 1035 §4.2.1), or the connection dead without anybody having
    /// said so. The first answer counts, and the attempt ends when it would have.
    mutating func askAgain(_ id: TableID, at now: Tick) {
        guard var query = queries[id], query.repeated == nil else { return }
        // Nobody is asked again who is no longer in the list, or who must not be told the name any more.
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

    /// Nobody waits for a query any more. One whose server was overtaken by the next goes on: how long it takes, or
    /// that it does not answer, decides whom the next questions are put to.
    mutating func leave(_ id: TableID) {
        guard let query = queries[id] else { return }
        guard !query.isOvertaken else {
            queries[id]?.subject = .measurement
            return
        }
        _ = takeQuery(id)
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
        case (.message(let flight), .answer(let answer)):
            reportAnswered(answer.head.responseCode.isAnswer)
            settle(flight, permitted(answer, to: flight.key, at: now), at: now)
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
        report(groups[query.group.rawValue].failed(query.server, failure, at: now))
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
