package import Base
package import Counters
import DNSWire
package import Forwarding
import Streams
import Transport

/// Servers that are asked over kept connections, with as many queries on each as its conversation has room for.
///
/// The forwarder decides which server is asked and what follows from a failure. This class manages the connections: one
/// with room is used before a new one is opened, one that sends unsolicited octets is closed, and a query that the
/// server closed unanswered is sent again at once.
package final class StreamUpstream: Upstream {
    package var settle: Settle = { _, _, _ in }
    /// Called with the progress of fresh connections; for `probe`.
    package var progressed: (Progress) -> Void = { _ in }
    package let tallies: UpstreamTallies

    let loop: EventLoop
    /// Finds servers whose host is a name; nil where no server has one.
    let lookup: ServerFinder?
    /// Sends the queries of a turn together; nil: each is sent by itself.
    let outbox: Outbox?
    /// Memory that the octets of all connections are read into first.
    let scratch = Scratch(16_384)
    /// Says how a server is asked that is asked for the first time.
    private var kind: (Server) throws(Unaskable) -> ServerKind
    private let clock: () -> Tick
    /// Gives the seconds since 1970.
    var wall: () -> UInt64 = { WallClock.unixSeconds() }
    private var underWay = UnderWay<StreamQuery>()
    private var pools: [Server: StreamPool] = [:]
    /// The pool of the last query: most queries of a turn are for the same.
    private var latest: StreamPool?
    /// Pools of servers that are not asked any more, as long as they have connections.
    private var leaving: [StreamPool] = []
    /// Queries that are to be asked again when they have been under way for long enough.
    private var doubts: [StreamQuery] = []
    private var (numbers, serials) = (UInt64(0), 0)
    /// A buffer that is kept to be reused.
    private var events: [ConversationEvent] = []

    /// The most connections that one query may be under way on, so that an unstable network does not multiply them.
    private static let maximumConnections = 3

    /// How far a connection has come.
    package enum Progress {
        case connected
        /// The certificate was accepted; with the TLS version.
        case secured(String)
    }

    /// - Parameter clock: Gives the time for events that no call brought.
    init(
        loop: EventLoop, tallies: UpstreamTallies, lookup: ServerFinder? = nil, outbox: Outbox? = nil,
        clock: @escaping () -> Tick = { Tick(nanoseconds: Clock.now()) },
        kind: @escaping (Server) throws(Unaskable) -> ServerKind
    ) {
        (self.loop, self.tallies, self.lookup, self.outbox) = (loop, tallies, lookup, outbox)
        (self.clock, self.kind) = (clock, kind)
    }

    /// Servers are asked in other ways from now on; queries under way go on.
    func renew(_ kind: @escaping (Server) throws(Unaskable) -> ServerKind) {
        self.kind = kind
        keep([])
    }

    package func keep(_ servers: [Server]) {
        latest = nil
        for (server, pool) in pools where !servers.contains(server) {
            pool.letGo()
            pools[server] = nil
            leaving.append(pool)
        }
        leaving.removeAll { $0.count == 0 }
    }

    /// Made when a server is first asked, so that servers which are only listed have no counters.
    private func pool(_ server: Server) throws(Unaskable) -> StreamPool {
        if let latest, latest.server == server { return latest }
        latest = pools[server]
        if let latest { return latest }
        let pool = StreamPool(server, try kind(server), tallies.server(server))
        (pools[server], latest) = (pool, pool)
        return pool
    }

    package func ask(_ id: QueryID, _ server: Server, _ ask: Ask, at now: Tick) {
        let wall = wall()
        let pool: StreamPool
        let query: StreamQuery
        do throws(Unaskable) {
            pool = try self.pool(server)
            numbers &+= 1
            query = StreamQuery(id, numbers, pool, ask, at: now)
            query.request = try pool.kind.dialect.request(ask, isRewritten: false, at: now, wall: wall)
        } catch {
            return settle(id, .failed(error.failure), false)
        }
        underWay.insert(query)
        let connection = pool.connection(at: wall)
        // A query that did not fit a datagram was already counted as a datagram.
        if server.kind != .plain {
            pool.tally.connected(isSecure: pool.kind.security.isSecure, isReused: connection != nil)
        }
        if let connection { connection.put(query, at: now) } else { putOnFreshConnection(query, at: now) }
    }

    /// The query's connection may be dead: it is sent again on a fresh one, and the first answer wins. If it was sent later than
    /// it was asked, as after it had waited for room or lost a connection, it is given as long again.
    package func askAgain(_ id: QueryID) {
        guard let query = underWay[id] else { return }
        let now = now()
        query.patience = now.nanoseconds &- query.asked.nanoseconds
        doubts.append(query)
        doubtIfDue(query, at: now)
    }

    private func doubtIfDue(_ query: StreamQuery, at now: Tick) {
        // What was sent before the network was another is not waited for.
        let isDue = query.doubtedAt.map { $0 <= now } ?? false || query.connections.contains { $0.isOld }
        guard isDue, query.patience != nil else { return wake(at: query.doubtedAt) }
        trust(query)
        guard query.connections.count < Self.maximumConnections else { return }
        var newest = 0
        for connection in query.connections {
            connection.suspect()
            newest = max(newest, connection.serial)
        }
        if let connection = query.pool.connection(after: newest, since: query.asked, at: wall()) {
            putAgain(query, on: connection, at: now)
        } else if query.pool.mayDialAgain {
            dial(query, at: now, isRepeat: true)
        } else {
            _ = query.pool.wait(query)
        }
    }

    private func putAgain(_ query: StreamQuery, on connection: StreamConnection, at now: Tick) {
        if !query.connections.isEmpty, query.repeated == nil { query.repeated = connection }
        connection.put(query, at: now)
    }

    /// Its silence is of no interest any more.
    private func trust(_ query: StreamQuery) {
        guard query.patience != nil else { return }
        query.patience = nil
        doubts.removeAll { $0 === query }
    }

    package func cancel(_ id: QueryID) {
        guard let query = underWay.remove(id) else { return }
        trust(query)
        query.pool.forget(query)
        for connection in query.connections { connection.drop(query, at: now()) }
        serveWaiting(query.pool, at: now())
    }

    func putOnFreshConnection(_ query: StreamQuery, at now: Tick) {
        guard !query.pool.isResting(at: now) else {
            return end(query, .failed(Failure(.unreachable, "the server refuses requests on new connections")))
        }
        if query.pool.mayDial { return dial(query, at: now) }
        guard query.pool.wait(query) else {
            return end(query, .failed(Failure(.unreachable, "too many queries wait for a connection to it")))
        }
    }

    private func dial(_ query: StreamQuery, at now: Tick, isRepeat: Bool = false) {
        serials += 1
        let connection = StreamConnection(query.pool, serial: serials, upstream: self)
        query.pool.opened(connection)
        if isRepeat, query.repeated == nil { query.repeated = connection }
        connection.put(query, at: now)
        connection.begin(at: now)
    }

    func serveWaiting(_ pool: StreamPool, at now: Tick) {
        // A connection that cannot be made ends at once, and leads here again.
        guard !pool.isServing else { return }
        pool.isServing = true
        defer { pool.isServing = false }
        while pool.hasWaiting {
            if let connection = pool.connection(at: wall()) {
                // One that is silent no more may carry it already.
                if let query = pool.takeWaiting(), !query.isOn(connection) { putAgain(query, on: connection, at: now) }
            } else if pool.mayDial, let query = pool.takeWaiting() {
                dial(query, at: now, isRepeat: !query.connections.isEmpty)
            } else {
                return
            }
        }
    }

    func end(_ query: StreamQuery, _ outcome: Outcome, toRepeat: Bool = false) {
        underWay.remove(query.id)
        query.pool.forget(query)
        trust(query)
        settle(query.id, outcome, toRepeat)
    }

    func isUnderWay(_ query: StreamQuery) -> Bool { underWay[query.id] === query }

    // MARK: Events of connections

    func now() -> Tick { clock() }

    func takeEvents() -> [ConversationEvent] { Swift.exchange(&events, with: []) }

    func giveBack(_ events: inout [ConversationEvent]) {
        // `removeAll(keepingCapacity:)` takes some 400 instructions, and there is usually one event.
        while events.popLast() != nil {}
        swap(&self.events, &events)
    }

    // MARK: Time

    /// No work is due before; what was due then may have been postponed.
    package private(set) var nextDeadline: Tick?

    /// Work is due at this moment.
    func wake(at moment: Tick?) { nextDeadline = nextDeadline.orEarlier(moment) }

    package func expire(at now: Tick) {
        guard let due = nextDeadline, due <= now else { return }
        nextDeadline = nil
        for pool in allPools { pool.expire(at: now) }
        for query in doubts { doubtIfDue(query, at: now) }
        leaving.removeAll { $0.count == 0 }
        nextDeadline = firstDeadline
    }

    private var allPools: [StreamPool] { leaving.isEmpty ? Array(pools.values) : pools.values + leaving }

    /// When work is due, looked up in all pools.
    var firstDeadline: Tick? {
        doubts.reduce(allPools.reduce(nil) { $0.orEarlier($1.nextDeadline) }) { $0.orEarlier($1.doubtedAt) }
    }

    package var isIdle: Bool { underWay.count == 0 }
    package func networkChanged() { for pool in pools.values { pool.renew() } }

    package func close() {
        let open = underWay.all.flatMap { Array($0.connections) }
        (underWay, doubts) = (UnderWay(), [])
        for connection in open { connection.close() }
        for pool in allPools { pool.close() }
    }
}
