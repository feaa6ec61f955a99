public import Base
import DNSCache
import DNSWire

/// Queries to servers, and how they end.
extension Forwarder {
    /// Sends a query to a server.
    mutating func send(_ subject: Query.Subject, _ ask: Ask, to server: Server, of group: GroupID, at now: Tick)
        -> TableID
    {
        let place = group.rawValue
        var holder: Source?
        if groups[place].group.concurrency > 0 {
            switch subject {
            case .message(let flight), .measurement(let flight): holder = shares.source(at: flight.crowd.share)
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
        if case .message(let flight) = query.subject { flight.messages?.underWay.removeAll { $0 == id } }
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
            tell(flight, .failed(Trouble(failure: failure, group: query.group, server: query.server)), at: now)
            flight.messages?.hasFailed = true
            sendMessage(flight, at: now)
        case .measurement: break
        }
    }
}
