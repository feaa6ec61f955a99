import Base
import Forwarding
import Streams

/// What connections bring, and how they end.
extension ConnectionPlan {
    // MARK: Connections

    mutating func established(_ number: ConnectionNumber, at now: Tick) {
        guard connections.contains(number) else { return }
        connections[number].isEstablished = true
        lessons.established()
        connections[number].isDoubted = false
        for query in connections[number].carried { queries[query].sent = now }
        serveWaiting(at: now)
    }

    /// Something has come on it, which is told next.
    mutating func heard(_ number: ConnectionNumber, isAnswer: Bool = false) {
        guard connections.contains(number) else { return }
        connections[number].isDoubted = false
        connections[number].idleBefore = 0
        if isAnswer { connections[number].answers += 1 }
    }

    /// It takes no further query, and is closed when none is under way on it.
    mutating func drain(_ number: ConnectionNumber) {
        if connections.contains(number) { connections[number].isDraining = true }
    }

    /// Octets have come, and what they say was told: queries may have ended, so that there is room for others.
    /// - Parameter mostAtOnce: How many requests the server takes at once, as far as it has said so.
    mutating func advanced(_ number: ConnectionNumber, mostAtOnce: Int, at now: Tick) {
        heard(number)
        if connections.contains(number) { connections[number].mostAtOnce = mostAtOnce }
        if !refused.isEmpty { sendRefused(number, at: now) }
        if connections.contains(number) { keepOrClose(number, at: now) }
        serveWaiting(at: now)
    }

    /// The server has said for how long it keeps idle connections (RFC 7828 §3.4).
    /// - Parameter time: In nanoseconds; 0: the connection is to be closed when nothing is under way on it.
    mutating func told(_ number: ConnectionNumber, idleTime time: UInt64) {
        guard time > 0 else { return drain(number) }
        toldIdleTime = time
    }

    /// A query was to be sent on a connection, which is not to be used any more, or does not take it.
    mutating func notTaken(_ query: QueryNumber, by number: ConnectionNumber, at now: Tick) {
        drain(number)
        guard unload(query, from: number) else { return }
        if queries[query].connections.isEmpty, !queries[query].isWaiting { send(query, at: now) }
        keepOrClose(number, at: now)
    }

    // MARK: Queries

    /// The query has its answer.
    /// - Parameter isInSync: Certainly to this request. Else it may be another's, and the connection takes no further query.
    /// - Returns: Whether the answer came on the connection on which it was sent because the first ones were doubted.
    mutating func answered(
        _ query: QueryNumber, on number: ConnectionNumber, isInSync: Bool, at now: Tick
    ) -> Bool {
        guard unload(query, from: number) else { return false }
        refusing = nil
        if !isInSync { drain(number) }
        let isSecond = queries[query].second == number
        cancelEverywhere(query, at: now)
        forget(query)
        return isSecond
    }

    /// The query is to be sent again as another request, whatever becomes of it elsewhere.
    mutating func rewritten(_ query: QueryNumber, on number: ConnectionNumber, at now: Tick) {
        guard unload(query, from: number) else { return }
        cancelEverywhere(query, at: now)
        if hasRoom(number) { send(query, on: number, at: now) } else { sendOnNew(query, at: now) }
    }

    /// The server has not processed it.
    mutating func refused(_ query: QueryNumber, on number: ConnectionNumber) {
        guard unload(query, from: number), queries[query].connections.isEmpty else { return }
        queries[query].refusals += 1
        guard queries[query].refusals <= Self.maximumRefusals else {
            return fail(query, Failure(.unreachable, "refused by the server"))
        }
        refused.append(query)
    }

    private mutating func sendRefused(_ number: ConnectionNumber, at now: Tick) {
        if connections.contains(number) {
            firstFlightLimit = max(1, connections[number].mostAtOnce)
            if connections[number].answers == 0, connections[number].isDraining, connections[number].carried.isEmpty {
                // The first one may have been at its end anyway. A second one shows that others would take nothing either.
                if let refusing, refusing != number { pausedUntil = now.advanced(milliseconds: Self.pauseTime) }
                refusing = number
            }
        }
        for query in exchange(&refused, with: []) where queries.contains(query) {
            sendElsewhere(query, after: number, at: now)
        }
    }

    /// The server has failed to answer it, and may do better on another connection; this one takes no further query.
    mutating func givenUp(
        _ query: QueryNumber, on number: ConnectionNumber, _ failure: Failure, at now: Tick
    ) {
        drain(number)
        guard queries.contains(query), queries[query].losses == 0 else {
            return failed(query, on: number, failure)
        }
        guard unload(query, from: number) else { return }
        queries[query].losses += 1
        sendElsewhere(query, after: number, at: now)
    }

    /// Only this query has failed. That it is under way elsewhere as well leaves it a chance.
    mutating func failed(
        _ query: QueryNumber, on number: ConnectionNumber, _ failure: Failure
    ) {
        guard unload(query, from: number), queries[query].connections.isEmpty else { return }
        fail(query, failure, wasAnswered: true)
    }

    /// Takes a query off a connection.
    /// - Returns: False if it is not on it.
    private mutating func unload(_ query: QueryNumber, from number: ConnectionNumber) -> Bool {
        guard connections.contains(number) else { return false }
        guard let index = connections[number].carried.firstIndex(of: query) else { return false }
        connections[number].carried.remove(at: index)
        queries[query].connections.remove(number)
        return true
    }

    /// Its answer is not wanted from any connection.
    mutating func cancelEverywhere(_ query: QueryNumber, at now: Tick) {
        while let number = queries[query].connections.popLast() {
            if let index = connections[number].carried.firstIndex(of: query) {
                connections[number].carried.remove(at: index)
            }
            // Where requests are not told apart, the next answer would be taken for that of another.
            guard limits.sharesConnections else {
                close(number)
                continue
            }
            act(.cancel(query, on: number))
            keepOrClose(number, at: now)
        }
    }

    // MARK: Ends

    /// A connection has ended, or could not be made.
    /// - Parameters:
    ///   - failure: That of its queries, unless they are sent again.
    ///   - hasBegun: Part of the answer to its only query has come.
    mutating func ended(
        _ number: ConnectionNumber, _ end: LinkEnd, _ failure: Failure, hasBegun: Bool = false, at now: Tick
    ) {
        guard let connection = unlist(number) else { return }
        learn(from: end, of: connection, number, at: now)
        for query in connection.carried { queries[query].connections.remove(number) }
        for query in connection.carried where queries[query].connections.isEmpty && !queries[query].isWaiting {
            // That the server had closed a connection which still seemed open here does not count as an attempt. This ends of
            // itself, since each further connection was made after the last.
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
            sendElsewhere(query, after: number, at: now)
        }
        if !refused.isEmpty { sendRefused(number, at: now) }
        // Whoever waits would only dial in vain as well.
        if !connection.isEstablished, usable == 0 { failWaiting(failure) }
        serveWaiting(mayDial: connection.isEstablished, at: now)
    }

    private mutating func learn(
        from end: LinkEnd, of connection: PlannedConnection, _ number: ConnectionNumber, at now: Tick
    ) {
        guard connection.isEstablished else {
            lessons.unreachable()
            return heedLessons(at: now)
        }
        let isClean: Bool
        switch end {
        case .closedByPeer: isClean = true
        case .reset: isClean = false
        case .finished, .timedOut, .untrusted, .protocolBroken, .tooSlow: return
        }
        if connection.isDoubted { return }
        let close: ConnectionLessons.Close
        if !connection.carried.isEmpty, connection.idleBefore == 0 {
            let isAgain = connection.carried.contains { queries[$0].losses > 0 }
            close = .busy(answers: connection.answers, isClean: isClean, isAgain: isAgain)
        } else if isClean {
            let since = connection.carried.isEmpty ? connection.idleSince : now.nanoseconds &- connection.idleBefore
            close = .idle(now.nanoseconds &- since)
        } else {
            return
        }
        lessons.take(close, of: Int(number), newest: Int(newest), at: now)
        heedLessons(at: now)
    }
}
