import Base
import Forwarding
import Streams

/// Queries that wait or are silent, and queries that a connection or the server has not answered.
extension ConnectionPlan {
    // MARK: Silent queries

    /// A query's connection may be dead: the query is sent again on another connection, and the first answer wins. A
    /// query that was sent late, since it had waited for room or lost a connection, gets as much time again first.
    mutating func race(_ query: QueryNumber, at now: Tick) {
        guard queries.contains(query) else { return }
        queries[query].patience = now.nanoseconds &- queries[query].asked.nanoseconds
        if !raced.contains(query) { raced.append(query) }
        raceIfDue(query, at: now)
    }

    mutating func raceIfDue(_ number: QueryNumber, at now: Tick) {
        // A query on a draining connection is sent again at once: the network has changed, or the connection is about
        // to end.
        let isDue =
            queries[number].racedAt.map { $0 <= now } ?? false
            || queries[number].connections.contains { connections[$0].isDraining }
        guard isDue else { return }
        endRace(number)
        guard queries[number].connections.count < Self.maximumRacing else { return }
        var newest: ConnectionNumber = 0
        for connection in queries[number].connections.all {
            connections[connection].isDoubted = true
            newest = max(newest, connection)
        }
        if let connection = connection(after: newest, since: queries[number].asked.nanoseconds) {
            send(number, on: connection, at: now)
        } else if hasRoomForAnother {
            dial(for: number, at: now)
        } else {
            _ = wait(number)
        }
    }

    /// Ends the watch of a query's silence.
    mutating func endRace(_ query: QueryNumber) {
        guard queries[query].patience != nil else { return }
        queries[query].patience = nil
        raced.removeAll { $0 == query }
    }

    // MARK: Waiting queries

    /// Makes a query wait for room; false if too many wait.
    mutating func wait(_ query: QueryNumber) -> Bool {
        guard !queries[query].isWaiting else { return true }
        guard waiting.count < StreamLimits.maximumWaiting else { return false }
        waiting.append(query)
        queries[query].isWaiting = true
        return true
    }

    mutating func stopWaiting(_ query: QueryNumber) {
        guard queries[query].isWaiting else { return }
        queries[query].isWaiting = false
        if let index = waiting.firstIndex(of: query) { waiting.remove(at: index) }
    }

    mutating func serveWaiting(mayDial: Bool = true, at now: Tick) {
        while let query = waiting.first {
            if let connection = connection(after: 0, since: 0) {
                stopWaiting(query)
                // A connection that is no longer doubted may carry the query already.
                guard !queries[query].connections.contains(where: { $0 == connection }) else { continue }
                send(query, on: connection, at: now)
            } else if isPaused(at: now) {
                failWaiting(.paused)
            } else if mayDial, self.mayDial {
                dial(for: query, at: now)
            } else {
                return
            }
        }
    }

    /// Fails the waiting queries: no room can be expected. Queries under way on a doubted connection go on there.
    mutating func failWaiting(_ failure: Failure) {
        for query in exchange(&waiting, with: []) {
            queries[query].isWaiting = false
            if queries[query].connections.isEmpty { fail(query, failure) }
        }
    }

    /// The query exists until the action is taken, and may be cancelled before that.
    mutating func fail(_ query: QueryNumber, _ failure: Failure, wasAnswered: Bool = false) {
        act(.fail(query, failure, wasAnswered: wasAnswered))
    }

    // MARK: Unanswered queries

    /// Sends a query again, on a connection made later than this one, unless it is under way elsewhere or waits.
    mutating func sendElsewhere(_ query: QueryNumber, after number: ConnectionNumber, at now: Tick) {
        guard queries[query].connections.isEmpty, !queries[query].isWaiting else { return }
        send(query, after: number, since: queries[query].asked.nanoseconds, at: now)
    }

    /// Handles a connection that cannot take a query: the connection is not to be used any more, or refused the query.
    mutating func notTaken(_ query: QueryNumber, by number: ConnectionNumber, at now: Tick) {
        drain(number)
        guard unload(query, from: number) else { return }
        if queries[query].connections.isEmpty, !queries[query].isWaiting { send(query, at: now) }
        closeUnlessNeeded(number, at: now)
    }

    /// Sends the query again as another request, whatever its state on other connections.
    mutating func rewritten(_ query: QueryNumber, on number: ConnectionNumber, at now: Tick) {
        guard unload(query, from: number) else { return }
        cancelEverywhere(query, at: now)
        if hasRoom(number) { send(query, on: number, at: now) } else { sendOnNew(query, at: now) }
    }

    /// Handles a query that the server has not processed.
    mutating func refused(_ query: QueryNumber, on number: ConnectionNumber) {
        guard unload(query, from: number), queries[query].connections.isEmpty else { return }
        queries[query].refusals += 1
        guard queries[query].refusals <= Self.maximumRefusals else {
            return fail(query, Failure(.unreachable, "refused by the server"))
        }
        refused.append(query)
    }

    mutating func sendRefused(_ number: ConnectionNumber, at now: Tick) {
        if connections.contains(number) {
            firstFlightLimit = max(1, connections[number].mostAtOnce)
            if connections[number].answers == 0, connections[number].isDraining, connections[number].carried.isEmpty {
                // The first such connection may have been at its end anyway. A second connection shows that further
                // connections would take no query either.
                if let refusing, refusing != number { pausedUntil = now.advanced(milliseconds: Self.pauseTime) }
                refusing = number
            }
        }
        for query in exchange(&refused, with: []) where queries.contains(query) {
            sendElsewhere(query, after: number, at: now)
        }
    }

    /// Handles a query that the server has failed to answer: another connection may do better, and this connection
    /// takes no further query.
    mutating func givenUp(_ query: QueryNumber, on number: ConnectionNumber, _ failure: Failure, at now: Tick) {
        drain(number)
        guard queries.contains(query), queries[query].losses == 0 else {
            return failed(query, on: number, failure)
        }
        guard unload(query, from: number) else { return }
        queries[query].losses += 1
        sendElsewhere(query, after: number, at: now)
    }

    /// Only this query has failed; if the query is under way elsewhere as well, it still has a chance.
    mutating func failed(_ query: QueryNumber, on number: ConnectionNumber, _ failure: Failure) {
        guard unload(query, from: number), queries[query].connections.isEmpty else { return }
        fail(query, failure, wasAnswered: true)
    }

    // MARK: Ends

    /// Handles a connection that has ended, or could not be made.
    /// - Parameters:
    ///   - failure: The failure of its queries, unless they are sent again.
    ///   - hasBegun: Whether part of the answer to its only query has come.
    mutating func ended(
        _ number: ConnectionNumber, _ end: LinkEnd, _ failure: Failure, hasBegun: Bool = false, at now: Tick
    ) {
        guard let connection = unlist(number) else { return }
        learn(from: end, of: connection, number, at: now)
        if number > lastSuspect { lastSuspect = newest }
        for query in connection.carried { queries[query].connections.remove(number) }
        let isShort = !connection.isEstablished && failure.kind == .here
        for query in connection.carried where queries[query].connections.isEmpty && !queries[query].isWaiting {
            if isShort, usable > 0, wait(query) { continue }
            // If the server had closed a connection that still seemed open here, that does not count as an attempt.
            // This cannot loop: each further connection was made after the last.
            if connection.idleBefore == 0 {
                let isAlone = connection.carried.count == 1
                let isWorthIt = connection.answers > 0 || connection.isEstablished && limits.retriesOnFresh
                guard isWorthIt, !hasBegun,
                    queries[query].goesOutAgain(after: end, answers: connection.answers, isAlone: isAlone)
                else {
                    fail(query, failure)
                    continue
                }
                queries[query].losses += 1
                if connection.answers == 0 { queries[query].unanswered += 1 }
            }
            sendOnFresh(query, at: now)
        }
        if !refused.isEmpty { sendRefused(number, at: now) }
        // Waiting queries would fail to dial as well.
        if !connection.isEstablished, usable == 0 { failWaiting(failure) }
        serveWaiting(mayDial: connection.isEstablished, at: now)
        guard isShort else { return }
        // A query that another connection took at once has lost no time.
        for query in connection.carried where queries[query].isWaiting && queries[query].connections.isEmpty {
            act(.short(query))
        }
    }

    private mutating func learn(
        from end: LinkEnd, of connection: PlannedConnection, _ number: ConnectionNumber, at now: Tick
    ) {
        guard connection.isEstablished else {
            lessons.unreachable()
            return applyLessons(at: now)
        }
        let isClean: Bool
        switch end {
        case .closedByPeer: isClean = true
        case .reset: isClean = false
        case .finished, .timedOut, .tls, .protocolBroken, .tooSlow: return
        }
        if connection.isDoubted || connection.carried.isEmpty || connection.idleBefore > 0 { return }
        let isAgain = connection.carried.contains { queries[$0].losses > 0 }
        let close = ConnectionLessons.Close(answers: connection.answers, isClean: isClean, isAgain: isAgain)
        lessons.take(close, of: Int(number), newest: Int(newest), at: now)
        applyLessons(at: now)
    }
}
