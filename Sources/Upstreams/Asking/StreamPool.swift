import Base
import Counters
import Forwarding
import Transport

/// One server with its open connections and what was learned about it.
final class StreamPool {
    let server: Server
    var kind: ServerKind
    private let limits: StreamLimits
    /// Queries that are put on a connection before anything has come on it: what the server took at once when it refused some.
    private(set) var mostOnFresh = Int.max
    let tally: UpstreamTallies.ServerTally
    /// Connections without queries; the newest is used first.
    private(set) var idle: [StreamConnection] = []
    /// Connections with queries that may have room for more.
    private(set) var shared: [StreamConnection] = []
    /// Connections that are still being established.
    private(set) var racing: [StreamConnection] = []
    /// The number of open connections.
    private(set) var count = 0
    /// Queries that wait for room, in the order in which they came.
    private var waiting: [StreamQuery] = []
    /// Increases when open connections are not trusted any more: after a change of the network, or of the list of
    /// servers.
    private(set) var epoch = 0
    /// The group does not have the server any more: no query looks here for a connection, nor is an idle one closed from here.
    private var isLetGo = false
    /// The endpoint that was reached last.
    var preferred: Endpoint?
    private var lessons: ConnectionLessons
    /// What the lessons say now.
    private var idleTime: UInt64
    private var queriesPerConnection: Int
    /// The number of the connection that was opened last.
    private var newest = 0
    /// Queries that wait are being put on connections.
    var isServing = false

    init(_ server: Server, _ kind: ServerKind, _ tally: UpstreamTallies.ServerTally) {
        (self.server, self.kind, self.tally, limits) = (server, kind, tally, kind.limits)
        lessons = ConnectionLessons(limits)
        idleTime = limits.idleTime
        queriesPerConnection = limits.queriesPerConnection
    }

    /// Whether its host is a name whose addresses have to be looked up.
    var isLookedUp: Bool { server.endpoints.isEmpty }

    // MARK: Connections

    /// A connection that can take a query now, without opening a new one.
    /// - Parameter wall: Seconds since 1970.
    func connection(at wall: UInt64) -> StreamConnection? {
        sharedConnection(after: 0, at: wall) ?? takeIdle(after: 0, since: 0, at: wall)
    }

    /// A connection that was made after another, and can take a query whose connection is in doubt or lost. An idle one has
    /// shown by an answer that it is alive: since `tick`, when the query was asked, or it may have died together with the other.
    func connection(after serial: Int, since tick: Tick, at wall: UInt64) -> StreamConnection? {
        sharedConnection(after: serial, at: wall) ?? takeIdle(after: serial, since: tick.nanoseconds, at: wall)
    }

    private func sharedConnection(after serial: Int, at wall: UInt64) -> StreamConnection? {
        if let found = shared.last(where: { $0.serial > serial && hasRoom($0) && $0.isTrusted(at: wall) }) {
            return found
        }
        // What was verified too long ago has its answers yet, and no further queries.
        for connection in shared where !connection.isTrusted(at: wall) { connection.retire() }
        return nil
    }

    /// The newest idle connection. Where answers are told apart by their order alone, unsolicited octets that wait in the
    /// socket would be taken for the answer to the next request, so it is read first.
    private func takeIdle(after serial: Int, since: UInt64, at wall: UInt64) -> StreamConnection? {
        while let place = idle.lastIndex(where: { $0.serial > serial && $0.idleSince >= since }) {
            let connection = idle.remove(at: place)
            if !limits.sharesConnections { connection.read() }
            let isUsable = connection.isAtRest && connection.hasRoom
            if isUsable, connection.isTrusted(at: wall) { return connection }
            connection.close()
        }
        return nil
    }

    var mayDial: Bool { count < limits.mostConnections && useful < limits.connections }
    var mayDialAgain: Bool { count < limits.mostConnections }

    /// Until when no connection is opened, because the server took no query on two fresh ones in a row.
    private var restsUntil = Tick(nanoseconds: 0)
    /// The connection on which it took no query, if it has answered none since: its `serial`. That one may have been at
    /// its end anyway; a second one shows that further connections would be in vain.
    private var refusing: Int?

    /// In milliseconds.
    private static let restTime = 1000

    func isResting(at now: Tick) -> Bool { now < restsUntil }

    /// It refused a query, also one that it does not take beside the others.
    func refused(on connection: StreamConnection, at now: Tick) {
        mostOnFresh = max(1, connection.mostAtOnce)
        guard connection.answers == 0, connection.isGoingAway, connection.carried.isEmpty else { return }
        if let refusing, refusing != connection.serial { restsUntil = now.advanced(milliseconds: Self.restTime) }
        refusing = connection.serial
    }

    /// A query has an answer.
    func answered() { refusing = nil }

    /// How many connections may take further queries, now or when some of theirs have ended.
    private var useful: Int { shared.isEmpty ? count : count - shared.count { !$0.mayTakeMore || !isOpen($0) } }

    /// Whether it is trusted, and has not carried as many queries as it may in its life.
    private func isOpen(_ connection: StreamConnection) -> Bool {
        connection.epoch == epoch && connection.queries < queriesPerConnection
    }

    private func hasRoom(_ connection: StreamConnection) -> Bool { connection.hasRoom && isOpen(connection) }

    func opened(_ connection: StreamConnection) {
        (count, newest) = (count + 1, connection.serial)
        racing.append(connection)
    }

    /// A query was put on the connection.
    func put(_ connection: StreamConnection) {
        guard limits.sharesConnections, connection.carried.count == 1 else { return }
        // It is there already if its only query is asked anew on it.
        if !shared.contains(where: { $0 === connection }) { shared.append(connection) }
    }

    /// The connection has no query any more: it is kept or closed.
    /// - Returns: When an idle connection has to be closed, if that moment has changed.
    func rested(_ connection: StreamConnection, at now: Tick) -> Tick? {
        unshare(connection)
        heedLessons(at: now)
        guard connection.isAtRest, hasRoom(connection), limits.idleTime > 0, !isLetGo else {
            connection.close()
            return nil
        }
        connection.idleSince = now.nanoseconds
        // Of two answers that come together the first may have its owner cancel the second.
        if !idle.contains(where: { $0 === connection }) { idle.append(connection) }
        return nextDeadline
    }

    func decided(_ connection: StreamConnection) { racing.removeAll { $0 === connection } }

    func closed(_ connection: StreamConnection) {
        count -= 1
        unshare(connection)
        idle.removeAll { $0 === connection }
        if !racing.isEmpty { decided(connection) }
    }

    private func unshare(_ connection: StreamConnection) {
        if let place = shared.lastIndex(where: { $0 === connection }) { shared.remove(at: place) }
    }

    func closeIdle() { while let connection = idle.popLast() { connection.close() } }

    func close() {
        waiting = []
        closeIdle()
    }

    /// No existing connection takes a query any more; those with queries close when these are answered.
    func renew() {
        epoch += 1
        preferred = nil
        lessons.forget()
        (idleTime, queriesPerConnection) = (limits.idleTime, limits.queriesPerConnection)
        mostOnFresh = .max
        closeIdle()
    }

    /// What is under way on its connections ends as it may, and is asked again on others; none of them is kept.
    func letGo() {
        isLetGo = true
        renew()
    }

    // MARK: What is learned

    /// The server has ended a connection.
    func closed(_ connection: StreamConnection, _ close: ConnectionLessons.Close, at now: Tick) {
        lessons.take(close, of: connection.serial, newest: newest, at: now)
        heedLessons(at: now)
    }

    private func heedLessons(at now: Tick) {
        (idleTime, queriesPerConnection) = (lessons.idleTime(at: now), lessons.queriesPerConnection(at: now))
    }

    // MARK: Queries that wait

    var hasWaiting: Bool { !waiting.isEmpty }

    /// Adds a query to those that wait; false if too many do.
    func wait(_ query: StreamQuery) -> Bool {
        guard !query.isWaiting else { return true }
        guard waiting.count < StreamLimits.maximumWaiting else { return false }
        waiting.append(query)
        query.isWaiting = true
        return true
    }

    func takeWaiting() -> StreamQuery? {
        guard !waiting.isEmpty else { return nil }
        let query = waiting.removeFirst()
        query.isWaiting = false
        return query
    }

    func forget(_ query: StreamQuery) {
        guard query.isWaiting else { return }
        waiting.removeAll { $0 === query }
        query.isWaiting = false
    }

    // MARK: Time

    /// When ``expire`` has something to do.
    var nextDeadline: Tick? {
        racing.reduce(closeAt.map(Tick.init(nanoseconds:))) { $0.orEarlier($1.dialling.next) }
    }

    /// When the oldest idle connection is closed.
    private var closeAt: UInt64? {
        let isSurplus = idle.count > limits.usualIdle
        return idle.first.map { $0.idleSince + (isSurplus ? min(StreamLimits.surplusTime, idleTime) : idleTime) }
    }

    func expire(at now: Tick) {
        for connection in racing {
            if let next = connection.dialling.next, next <= now { connection.tryNext(at: now) }
        }
        heedLessons(at: now)
        while let closeAt, closeAt <= now.nanoseconds { idle[0].close() }
    }
}
