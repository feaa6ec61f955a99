import Base
import Counters
import DNSWire
import Forwarding
import Streams
import Transport

/// What comes of queries on connections.
extension StreamUpstream {
    /// A query was answered, and its connection does not carry it any more.
    func answered(
        _ query: StreamQuery, _ answer: ConversationAnswer, on connection: StreamConnection, at now: Tick
    ) {
        let pool = connection.pool
        query.connections.removeAll { $0 === connection }
        switch pool.kind.dialect.read(answer, to: query.ask, isRewritten: query.isRewritten, at: now) {
        case .retryRewritten where !query.isRewritten: retryRewritten(query, on: connection, at: now)
        case .retryRewritten:
            failed(query, Failure(.badAnswer, "not understood, however it is asked"), on: connection, at: now)
        case .retryOnOtherConnection(let failure): retryOnOtherConnection(query, failure, on: connection, at: now)
        case .outcome(let outcome, let code, let isInSync):
            for other in query.connections { other.drop(query, at: now) }
            if !isInSync { connection.retire() }
            pool.answered()
            pool.tally.answered(code, nanoseconds: now.nanoseconds &- query.asked.nanoseconds)
            end(query, outcome, toRepeat: query.repeated === connection)
        }
    }

    /// Once more, on another connection; this one takes nothing more.
    /// - Parameter failure: What it is when that has been tried.
    func retryOnOtherConnection(_ query: StreamQuery, _ failure: Failure, on connection: StreamConnection, at now: Tick)
    {
        connection.retire()
        guard query.retries == 0 else { return failed(query, failure, on: connection, at: now) }
        query.connections.removeAll { $0 === connection }
        query.retries += 1
        if query.connections.isEmpty { putElsewhere(query, after: connection, at: now) }
    }

    private func retryRewritten(_ query: StreamQuery, on connection: StreamConnection, at now: Tick) {
        for other in query.connections { other.drop(query, at: now) }
        query.connections = SmallList()
        query.isRewritten = true
        do throws(Unaskable) {
            query.request = try connection.pool.kind.dialect.request(
                query.ask, isRewritten: true, at: now, wall: wall())
        } catch {
            return end(query, .failed(error.failure))
        }
        if connection.hasRoom { connection.put(query, at: now) } else { putOnFreshConnection(query, at: now) }
    }

    /// The server has not processed a query.
    func refused(_ query: StreamQuery, on connection: StreamConnection, at now: Tick) {
        query.connections.removeAll { $0 === connection }
        guard query.connections.isEmpty else { return }
        query.refusals += 1
        connection.pool.refused(on: connection, at: now)
        guard query.refusals <= StreamQuery.maximumRefusals else {
            return end(query, .failed(Failure(.unreachable, "refused by the server")))
        }
        putElsewhere(query, after: connection, at: now)
    }

    func failed(_ query: StreamQuery, _ failure: Failure, on connection: StreamConnection, at now: Tick) {
        query.connections.removeAll { $0 === connection }
        guard query.connections.isEmpty else { return }
        connection.pool.tally.answered(.servFail, nanoseconds: now.nanoseconds &- query.asked.nanoseconds)
        end(query, .failed(failure))
    }

    /// Queries on the connection have ended, so that there may be room for others.
    func advanced(_ connection: StreamConnection, at now: Tick) {
        let pool = connection.pool
        if connection.carried.isEmpty { wake(at: pool.rested(connection, at: now)) }
        if pool.hasWaiting { serveWaiting(pool, at: now) }
    }

    /// A connection is gone, or has to be closed.
    /// - Parameter failure: The failure of the queries under way on it; nil: no answer is awaited.
    func lost(_ connection: StreamConnection, _ failure: Failure?, after end: ConnectionEnd = .givenUp) {
        guard !connection.isClosed else { return }
        let carried = connection.takeCarried()
        connection.close()
        let now = now()
        for query in carried { query.connections.removeAll { $0 === connection } }
        for query in carried where query.connections.isEmpty && !query.isWaiting && isUnderWay(query) {
            guard connection.loss(of: query, isAlone: carried.count == 1).goesOutAgain(after: end) else {
                self.end(query, .failed(failure ?? Failure(.unreachable, "closed")))
                continue
            }
            // That the server had closed a connection which still seemed open here does not count as an attempt. This ends of
            // itself, since each further connection was made after the last.
            if !connection.isSilentSinceIdle {
                query.retries += 1
                if connection.answers == 0 { query.unanswered += 1 }
            }
            putElsewhere(query, after: connection, at: now)
        }
        serveWaiting(connection.pool, at: now)
    }

    /// Sends a query once more, on a connection made later than this one.
    private func putElsewhere(_ query: StreamQuery, after connection: StreamConnection, at now: Tick) {
        let other = connection.pool.connection(after: connection.serial, since: query.asked, at: wall())
        if let other { other.put(query, at: now) } else { putOnFreshConnection(query, at: now) }
    }
}
