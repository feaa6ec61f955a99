package import Base
package import Counters
package import Forwarding
import Transport

/// Servers that are asked over persistent connections.
///
/// The forwarder decides which server is asked and what follows from a failure. ``ConnectionPlan`` defines the
/// management of connections. This class finds the connections of a server by the server, and a query by its ID.
package final class StreamUpstream: Upstream {
    package var settle: Settle = { _, _, _ in }
    package var wrote: (QueryID) -> Void = { _ in }
    package var lost: (QueryID) -> Void = { _ in }
    /// Called with the progress of new connections; for `probe`.
    package var progressed: (Progress) -> Void = { _ in }
    package let tallies: UpstreamTallies

    let loop: EventLoop
    /// Finds servers whose host is a name; nil if no server has such a host.
    let lookup: ServerFinder?
    /// Sends the queries of a turn together; nil if each is sent alone.
    let outbox: Outbox?
    /// Memory into which the octets of all connections are first read.
    let scratch = Scratch(16_384)
    /// Returns the kind of a server that is asked for the first time.
    private var kind: (Server) throws(Failure) -> ServerKind
    /// The source address, network device and mark of the sockets.
    private(set) var egress: Egress
    /// Returns the present time, for events whose caller gives no time.
    let now: () -> Tick
    /// Returns the seconds since 1970.
    var wall: () -> UInt64 = { WallClock.unixSeconds() }
    private var underWay = Numbered<StreamQuery?>(none: nil)
    private var pools: [Server: StreamPool] = [:]
    /// The pool of the last query: most queries of a turn are for the same server.
    private var latest: StreamPool?
    /// Pools of servers that are no longer asked, as long as they have connections.
    private var leaving: [StreamPool] = []

    /// The progress of a connection.
    package enum Progress {
        /// Connected to this address; the silent addresses, which were tried before it, have not answered yet.
        case connected(Endpoint, silent: [Endpoint])
        /// The certificate was accepted; the text is the TLS version.
        case secured(String)
    }

    init(
        loop: EventLoop, tallies: UpstreamTallies, lookup: ServerFinder? = nil, outbox: Outbox? = nil,
        egress: Egress = Egress(), clock: @escaping () -> Tick = { Tick(nanoseconds: Clock.now()) },
        kind: @escaping (Server) throws(Failure) -> ServerKind
    ) {
        (self.loop, self.tallies, self.lookup, self.outbox) = (loop, tallies, lookup, outbox)
        (self.egress, now, self.kind) = (egress, clock, kind)
    }

    /// Applies changed settings to later queries; queries under way end under the former settings.
    func renew(_ egress: Egress, _ kind: @escaping (Server) throws(Failure) -> ServerKind) {
        (self.egress, self.kind) = (egress, kind)
        keep([])
    }

    package func keep(_ servers: [Server]) {
        latest = nil
        for (server, pool) in pools where !servers.contains(server) {
            pools[server] = nil
            leaving.append(pool)
            pool.tell(at: now()) { $0.remove() }
        }
        leaving.removeAll(where: \.isEmpty)
    }

    /// The pool of a server, made at its first query, so that servers which are only listed have no counters.
    private func pool(_ server: Server) throws(Failure) -> StreamPool {
        if let latest, latest.server == server { return latest }
        latest = pools[server]
        if let latest { return latest }
        let pool = StreamPool(server, try kind(server), tallies.server(server), self)
        (pools[server], latest) = (pool, pool)
        return pool
    }

    package func ask(_ id: QueryID, _ server: Server, _ ask: Ask, at now: Tick) {
        do throws(Failure) {
            let pool = try pool(server)
            let request = try pool.kind.dialect.request(ask, isRewritten: false, at: now, wall: wall())
            let query = StreamQuery(id, pool, ask, request, at: now)
            underWay.insert(query, as: query.number)
            pool.ask(query, at: now)
        } catch {
            settle(id, .failed(error), false)
        }
    }

    package func askAgain(_ id: QueryID) {
        guard let query = underWay.find(id.number) else { return }
        query.pool.race(query.number, at: now())
    }

    package func cancel(_ id: QueryID, isOverdue: Bool) {
        guard let query = underWay.remove(id.number) else { return }
        query.pool.cancel(query.number, isOverdue: isOverdue, at: now())
    }

    /// The query with a number, if it is under way.
    func query(_ number: QueryNumber) -> StreamQuery? { underWay.find(number) }

    func end(_ query: StreamQuery, _ outcome: Outcome, toRepeat: Bool = false) {
        underWay.remove(query.number)
        settle(query.id, outcome, toRepeat)
    }

    // MARK: Time

    /// No work is due before this moment. It may be earlier than ``firstDeadline``, since work can be postponed.
    package private(set) var nextDeadline: Tick?

    /// Notes that work is due at this moment.
    func wake(at moment: Tick?) { nextDeadline = nextDeadline.orEarlier(moment) }

    package func expire(at now: Tick) {
        guard let due = nextDeadline, due <= now else { return }
        nextDeadline = nil
        for pool in allPools { pool.expire(at: now) }
        leaving.removeAll(where: \.isEmpty)
        nextDeadline = firstDeadline
    }

    private var allPools: [StreamPool] { leaving.isEmpty ? Array(pools.values) : pools.values + leaving }

    /// The moment at which the first work of all pools is due.
    var firstDeadline: Tick? { allPools.reduce(nil) { $0.orEarlier($1.nextDeadline) } }

    package var isIdle: Bool { underWay.count == 0 }
    package func networkChanged() { for pool in pools.values { pool.networkChanged() } }

    package func close() {
        underWay = Numbered(none: nil)
        for pool in allPools { pool.close() }
    }
}
