package import Base
package import Counters
import DNSWire
package import Forwarding
import Streams
package import Transport

/// Servers that are asked over kept connections, with as many queries on each as its conversation has room for.
///
/// The forwarder decides which server is asked and what follows from a failure. This class manages the connections: one
/// with room is used before a new one is opened, one that sends unsolicited octets is closed, and a query that the
/// server closed unanswered is sent again at once.
package class StreamUpstream: Upstream {
    package final var settle: Settle = { _, _, _ in }
    /// Called with the progress of fresh connections; for `probe`.
    package final var progressed: (Progress) -> Void = { _ in }
    package final let tallies: UpstreamTallies

    final let loop: EventLoop
    /// Finds servers whose host is a name; nil where no server has one.
    final let lookup: ServerFinder?
    /// Sends the queries of a turn together; nil: each is sent by itself.
    final let outbox: Outbox?
    /// Memory that the octets of all connections are read into first.
    final let scratch = Scratch(16_384)
    /// Makes the dialect of a server that is asked for the first time.
    private final var makeDialect: (Server) -> any Dialect
    private final let clock: () -> Tick
    private final var underWay = UnderWay<StreamQuery>()
    private final var pools: [Server: StreamPool] = [:]
    /// The pool of the last query: most queries of a turn are for the same.
    private final var latest: StreamPool?
    private final var (numbers, serials) = (UInt64(0), 0)
    /// A buffer that is kept to be reused.
    private final var events: [ConversationEvent] = []

    /// The most connections that one query may be under way on, so that an unstable network does not multiply them.
    private static let maximumConnections = 3
    /// How often a query may be refused unprocessed before it fails.
    private static let maximumRefusals = 3
    /// How often a query may lose its connection to the server's closing while others on it are answered.
    private static let maximumRetries = 3

    /// How far a connection has come.
    package enum Progress {
        case connected
        /// The certificate was accepted; with the TLS version.
        case secured(String)
    }

    /// - Parameter clock: Gives the time for events that no call brought.
    package init(
        loop: EventLoop, tallies: UpstreamTallies, lookup: ServerFinder? = nil, outbox: Outbox? = nil,
        clock: @escaping () -> Tick = { Tick(nanoseconds: Clock.now()) },
        makeDialect: @escaping (Server) -> any Dialect
    ) {
        (self.loop, self.tallies, self.lookup, self.outbox) = (loop, tallies, lookup, outbox)
        (self.clock, self.makeDialect) = (clock, makeDialect)
    }

    /// Servers are asked with other dialects from now on; queries under way go on.
    final func renew(_ makeDialect: @escaping (Server) -> any Dialect) {
        self.makeDialect = makeDialect
        keep([])
    }

    package final func keep(_ servers: [Server]) {
        latest = nil
        for (server, pool) in pools where !servers.contains(server) {
            pool.letGo()
            pools[server] = nil
        }
    }

    /// Made when a server is first asked, so that servers which are only listed have no counters.
    private final func pool(_ server: Server) -> StreamPool {
        if let latest, latest.server == server { return latest }
        let pool = pools[server] ?? StreamPool(server, makeDialect(server), tallies.server(server))
        (pools[server], latest) = (pool, pool)
        return pool
    }

    package final func ask(_ id: QueryID, _ server: Server, _ ask: Ask, at now: Tick) {
        let pool = pool(server)
        let wall = WallClock.unixSeconds()
        numbers &+= 1
        let query = StreamQuery(id, numbers, pool, ask, at: now)
        do throws(Unaskable) {
            query.request = try pool.dialect.request(ask, isAnew: false, at: now, wall: wall)
        } catch {
            return settle(id, .failed(error.failure), false)
        }
        underWay.insert(query)
        let connection = pool.connection(at: wall)
        // A query that did not fit a datagram was already counted as a datagram.
        if server.kind != .plain {
            pool.tally.connected(isSecure: pool.dialect.isSecure, isReused: connection != nil)
        }
        if let connection { connection.put(query, at: now) } else { putOnFreshConnection(query, at: now) }
    }

    /// The query's connection may be dead: it is sent again on a fresh one, and the first answer wins.
    package final func askAgain(_ id: QueryID) {
        guard let query = underWay[id], !query.connections.isEmpty,
            query.connections.count < Self.maximumConnections
        else { return }
        var newest = 0
        for connection in query.connections {
            connection.suspect()
            newest = max(newest, connection.serial)
        }
        let now = now()
        if let connection = query.pool.connection(after: newest) {
            if query.repeated == nil { query.repeated = connection }
            connection.put(query, at: now)
        } else if query.pool.mayDialAgain {
            dial(query, at: now, isRepeat: true)
        }
    }

    package final func cancel(_ id: QueryID) {
        guard let query = underWay.remove(id) else { return }
        let now = now()
        query.pool.forget(query)
        for connection in query.connections { connection.drop(query, at: now) }
        serveWaiting(query.pool, at: now)
    }

    private final func putOnFreshConnection(_ query: StreamQuery, at now: Tick) {
        guard !query.pool.isResting(at: now) else {
            return end(query, .failed(Failure(.unreachable, "the server refuses requests on new connections")))
        }
        if query.pool.mayDial { return dial(query, at: now) }
        guard query.pool.wait(query) else {
            return end(query, .failed(Failure(.unreachable, "too many queries wait for a connection to it")))
        }
    }

    private final func dial(_ query: StreamQuery, at now: Tick, isRepeat: Bool = false) {
        serials += 1
        let connection = StreamConnection(query.pool, serial: serials, upstream: self)
        query.pool.opened(connection)
        if isRepeat, query.repeated == nil { query.repeated = connection }
        connection.put(query, at: now)
        connection.begin(at: now)
    }

    private final func serveWaiting(_ pool: StreamPool, at now: Tick) {
        while pool.hasWaiting {
            if let connection = pool.connection(at: WallClock.unixSeconds()) {
                pool.takeWaiting()?.put(on: connection, at: now)
            } else if pool.mayDial, let query = pool.takeWaiting() {
                dial(query, at: now)
            } else {
                return
            }
        }
    }

    private final func end(_ query: StreamQuery, _ outcome: Outcome, toRepeat: Bool = false) {
        underWay.remove(query.id)
        settle(query.id, outcome, toRepeat)
    }

    // MARK: Events of connections

    final func now() -> Tick { clock() }

    final func takeEvents() -> [ConversationEvent] { Swift.exchange(&events, with: []) }

    final func giveBack(_ events: inout [ConversationEvent]) {
        // `removeAll(keepingCapacity:)` takes some 400 instructions, and there is usually one event.
        while events.popLast() != nil {}
        swap(&self.events, &events)
    }

    /// A query was answered, and its connection does not carry it any more.
    final func answered(
        _ query: StreamQuery, _ answer: ConversationAnswer, on connection: StreamConnection, at now: Tick
    ) {
        let pool = connection.pool
        query.connections.removeAll { $0 === connection }
        switch pool.dialect.read(answer, to: query.ask, isAnew: query.isAnew, at: now) {
        case .askAnew where !query.isAnew: askAnew(query, on: connection, at: now)
        case .askAnew:
            failed(query, Failure(.badAnswer, "not understood, however it is asked"), on: connection, at: now)
        case .askElsewhere(let failure): askElsewhere(query, failure, on: connection, at: now)
        case .outcome(let outcome, let code, let isInStep):
            for other in query.connections { other.drop(query, at: now) }
            if !isInStep { connection.retire() }
            pool.answered()
            pool.tally.answered(code, nanoseconds: now.nanoseconds &- query.sent.nanoseconds)
            end(query, outcome, toRepeat: query.repeated === connection)
        }
    }

    /// Once more, on another connection; this one takes nothing more.
    /// - Parameter failure: What it is when that has been tried.
    final func askElsewhere(_ query: StreamQuery, _ failure: Failure, on connection: StreamConnection, at now: Tick) {
        connection.retire()
        guard query.retries == 0 else { return failed(query, failure, on: connection, at: now) }
        query.connections.removeAll { $0 === connection }
        query.retries += 1
        if query.connections.isEmpty { putElsewhere(query, after: connection, at: now) }
    }

    private final func askAnew(_ query: StreamQuery, on connection: StreamConnection, at now: Tick) {
        for other in query.connections { other.drop(query, at: now) }
        query.connections = SmallList()
        query.isAnew = true
        do throws(Unaskable) {
            query.request = try connection.pool.dialect.request(
                query.ask, isAnew: true, at: now, wall: WallClock.unixSeconds())
        } catch {
            return end(query, .failed(error.failure))
        }
        if connection.hasRoom { connection.put(query, at: now) } else { putOnFreshConnection(query, at: now) }
    }

    /// The server has not processed a query.
    final func refused(_ query: StreamQuery, on connection: StreamConnection, at now: Tick) {
        query.connections.removeAll { $0 === connection }
        guard query.connections.isEmpty else { return }
        query.refusals += 1
        connection.pool.refused(on: connection, at: now)
        guard query.refusals <= Self.maximumRefusals else {
            return end(query, .failed(Failure(.unreachable, "refused by the server")))
        }
        putElsewhere(query, after: connection, at: now)
    }

    final func failed(_ query: StreamQuery, _ failure: Failure, on connection: StreamConnection, at now: Tick) {
        query.connections.removeAll { $0 === connection }
        guard query.connections.isEmpty else { return }
        connection.pool.tally.answered(.servFail, nanoseconds: now.nanoseconds &- query.sent.nanoseconds)
        end(query, .failed(failure))
    }

    /// Queries on the connection have ended, so that there may be room for others.
    final func advanced(_ connection: StreamConnection, at now: Tick) {
        let pool = connection.pool
        if connection.carried.isEmpty { wake(at: pool.rested(connection, at: now)) }
        if pool.hasWaiting { serveWaiting(pool, at: now) }
    }

    /// A connection is gone, or has to be closed.
    /// - Parameter failure: The failure of the queries under way on it; nil: no answer is awaited.
    final func lost(_ connection: StreamConnection, _ failure: Failure?, isClosedByServer: Bool = false) {
        guard !connection.isClosed else { return }
        let carried = connection.takeCarried()
        connection.close()
        let now = now()
        for query in carried { query.connections.removeAll { $0 === connection } }
        for query in carried where query.connections.isEmpty && underWay[query.id] === query {
            // A server that closes after some answers ends the connections of many queries until that is known of it.
            let most = connection.answers > 0 ? Self.maximumRetries : 1
            if isClosedByServer, query.retries < most, connection.mayHaveBeenClosedBefore(query) {
                // The server had closed a connection that still seemed open here: that does not count as an attempt. This
                // ends of itself, since each further connection was made after the last.
                if !connection.isSilentSinceIdle { query.retries += 1 }
                putElsewhere(query, after: connection, at: now)
            } else {
                end(query, .failed(failure ?? Failure(.unreachable, "closed")))
            }
        }
        serveWaiting(connection.pool, at: now)
    }

    /// Sends a query once more, on a connection made later than this one.
    private final func putElsewhere(_ query: StreamQuery, after connection: StreamConnection, at now: Tick) {
        let other = connection.pool.connection(after: connection.serial)
        if let other { other.put(query, at: now) } else { putOnFreshConnection(query, at: now) }
    }

    // MARK: Time

    /// No work is due before; what was due then may have been postponed.
    package final private(set) var nextDeadline: Tick?

    /// Work is due at this moment.
    final func wake(at moment: Tick?) { nextDeadline = nextDeadline.orEarlier(moment) }

    package final func expire(at now: Tick) {
        guard let due = nextDeadline, due <= now else { return }
        for pool in pools.values { pool.expire(at: now) }
        nextDeadline = firstDeadline
    }

    /// When work is due, looked up in all pools.
    final var firstDeadline: Tick? { pools.values.reduce(nil) { $0.orEarlier($1.nextDeadline) } }

    package final func networkChanged() { for pool in pools.values { pool.renew() } }

    package final func close() {
        let open = underWay.all.flatMap { Array($0.connections) }
        underWay = UnderWay()
        for connection in open { connection.close() }
        for pool in pools.values { pool.close() }
    }
}
