import Base
import Forwarding

typealias ConnectionNumber = UInt64
/// ``QueryID/number``.
typealias QueryNumber = UInt64

/// The connections to one server and the queries on them, by number: all rules of dialling, sharing, doubting, sending
/// again and closing. A value without sockets; the time is an argument. The owner of the sockets reports events, and
/// carries out the actions in order. `Tests/UpstreamsTests/Scenarios` has an example of each rule.
///
/// | event | consequence |
/// | --- | --- |
/// | a query comes | it goes to the newest connection with room among those with queries, then to the newest idle one; else a connection is dialled, up to ``StreamLimits/connections``; else it waits, up to ``StreamLimits/maximumWaiting``; else it fails |
/// | a connection is dialled | queries are put on it at once; they are sent when it is established |
/// | a connection cannot be made | its queries fail; so do those that wait, unless another connection may take them; the lesson of the closes just before is forgotten |
/// | it cannot be made for a shortage of this machine | its queries wait for room on another, if one may take them, and are reported |
/// | an answer comes | its query is cancelled on other connections; a connection without queries becomes idle |
/// | a connection is idle | it is closed after the time that the server has announced (RFC 7828), or ``StreamLimits/idleTime`` |
/// | connections end beside unanswered queries, twice alike | further ones carry no more queries than these (``ConnectionLessons``) |
/// | a query is to be raced, and was sent long enough ago | its connections are doubted, and it is sent again on one that was made later, or on a new one; at most on ``maximumRacing`` |
/// | a query is overdue | its connections that have been silent since it was sent are doubted; one that is still being made stays |
/// | a connection is doubted | it takes no query until octets come; once it carries none, it may still finish for ``doubtTime``, or until another connection needs its room |
/// | a connection ends, and answers had come on it | its queries are sent again on one that was dialled since, as older ones may be ending too; each at most ``PlannedQuery/mostLosses`` times |
/// | it ends without any answer | its queries are sent again once, unless they have connections of their own (``StreamLimits/retriesOnFresh``) |
/// | it ends before any octet came since it was idle | its queries are sent again, and that does not count: they may never have been read |
/// | the server breaks the protocol | as if it had closed; once for each query |
/// | the server refuses a query unprocessed | it is sent again on a later connection, ``maximumRefusals`` times; a new connection gets at first no more than the server announces |
/// | two new connections in a row take no query | no connection is dialled for ``pauseTime``; queries that would need one fail |
/// | the server goes away (GOAWAY, `Connection: close`) | queries under way on the connection go on; it takes no others |
/// | a connection cannot take a query: it was verified too long ago, or has ended, or unsolicited octets have come | the query goes to another, and that does not count |
/// | the network changes | no connection takes further queries, idle ones are closed, lessons are forgotten, and a pause ends |
/// | the group no longer has the server | as when the network changes, and no connection stays without queries |
struct ConnectionPlan: ~Copyable {
    let limits: StreamLimits
    /// The orders, in sequence, which ``takeAction()`` takes.
    private var actions: [PlanAction] = []
    /// The number of taken `actions`.
    private var taken = 0

    var connectionNumbers = Numbers()
    var queries = Numbered(none: PlannedQuery(at: Tick(nanoseconds: 0)))
    var connections = Numbered(none: PlannedConnection(mostAtOnce: 0))
    /// Connections with queries that may have room for more queries, if connections are shared.
    var shared: [ConnectionNumber] = []
    /// Connections without queries that may take queries, in the order in which they became idle.
    var idle: [ConnectionNumber] = []
    /// Doubted connections without queries, in the same order as ``idle``.
    var quiet: [ConnectionNumber] = []
    /// Queries that wait for room, in order of arrival.
    var waiting: [QueryNumber] = []
    /// Queries that the server has refused, until all events of the same read are reported.
    var refused: [QueryNumber] = []
    /// Queries to send on a further connection when they have been under way long enough.
    var raced: [QueryNumber] = []

    /// Whether the group no longer has the server.
    var isRemoved = false
    var lessons: ConnectionLessons
    /// How long an idle connection stays open, in nanoseconds: ``StreamLimits/idleTime``, or as the server announces.
    var idleTime: UInt64
    /// The most queries on a connection in its life, by the present lessons.
    var queriesPerConnection: Int
    /// The connection that was dialled last.
    var newest: ConnectionNumber = 0
    /// The newest connection when another one ended: this connection and older ones may end together with the other.
    var lastSuspect: ConnectionNumber = 0
    /// The most queries on a connection without an answer: once the server has refused a query, as many as it last
    /// announced.
    var firstFlightLimit = Int.max
    /// The last connection on which all queries were refused, unless the server has answered a query since.
    var refusing: ConnectionNumber?
    var pausedUntil = Tick(nanoseconds: 0)

    /// The most connections with the same query, so that an unstable network does not multiply them.
    static let maximumRacing = 3
    /// How often a query may be refused unprocessed before it fails.
    static let maximumRefusals = 3
    /// The time without dialling, in milliseconds.
    static let pauseTime = 1000
    /// How long a doubted connection stays open without queries, in nanoseconds: about as long as the kernel waits for
    /// an acknowledgement before it gives a connection up.
    static let doubtTime: UInt64 = 5_000_000_000

    init(_ limits: StreamLimits) {
        self.limits = limits
        lessons = ConnectionLessons(limits)
        (idleTime, queriesPerConnection) = (limits.idleTime, limits.queriesPerConnection)
    }

    // MARK: Actions

    mutating func act(_ action: PlanAction) { actions.append(action) }

    mutating func takeAction() -> PlanAction? {
        guard taken < actions.count else { return nil }
        let action = actions[taken]
        taken += 1
        if taken == actions.count {
            // `removeAll(keepingCapacity:)` takes some 200 instructions, and there is usually one action.
            while actions.popLast() != nil {}
            taken = 0
        }
        if case .fail(let query, _, _) = action, queries.contains(query) { forget(query) }
        return action
    }

    // MARK: From the question to the answer

    /// Takes a new query.
    /// - Parameter query: The query's number, unique among the queries under way.
    mutating func want(_ query: QueryNumber, at now: Tick) {
        queries.insert(PlannedQuery(at: now), as: query)
        send(query, at: now)
    }

    mutating func send(_ query: QueryNumber, after number: ConnectionNumber = 0, since tick: UInt64 = 0, at now: Tick) {
        guard let other = connection(after: number, since: tick) else { return sendOnNew(query, at: now) }
        send(query, on: other, at: now)
    }

    /// Sends a query that was lost with its connection on a connection dialled later than all that may end with it.
    mutating func sendOnFresh(_ query: QueryNumber, at now: Tick) {
        if let fresh = connection(after: lastSuspect, since: queries[query].asked.nanoseconds) {
            send(query, on: fresh, at: now)
        } else if hasRoomForAnother, !isPaused(at: now) {
            dial(for: query, at: now)
        } else {
            sendOnNew(query, at: now)
        }
    }

    /// A connection that can take a query now, without opening a new one.
    /// - Parameters:
    ///   - number: The connection, doubted or ended, after which the other one must have been made.
    ///   - tick: The moment since which an idle connection must have become idle; an older one may have died, too.
    mutating func connection(after number: ConnectionNumber, since tick: UInt64) -> ConnectionNumber? {
        if let found = shared.last(where: { $0 > number && hasRoom($0) }) { return found }
        while let index = idle.lastIndex(where: { $0 > number && connections[$0].idleSince >= tick }) {
            let found = idle.remove(at: index)
            if hasRoom(found) { return found }
            close(found)
        }
        return nil
    }

    func hasRoom(_ number: ConnectionNumber) -> Bool {
        mayTakeMore(number) && connections[number].carried.count < connections[number].mostAtOnce
            && (connections[number].answers > 0 || connections[number].carried.count < firstFlightLimit)
    }

    /// - Parameter whenHeard: Whether the connection may take more once octets come, if it is doubted.
    func mayTakeMore(_ number: ConnectionNumber, whenHeard: Bool = false) -> Bool {
        (whenHeard || !connections[number].isDoubted) && !connections[number].isDraining
            && connections[number].queries < queriesPerConnection
    }

    mutating func send(_ query: QueryNumber, on number: ConnectionNumber, at now: Tick) {
        stopWaiting(query)
        let idleSince = exchange(&connections[number].idleSince, with: 0)
        if idleSince > 0 { connections[number].idleBefore = now.nanoseconds &- idleSince }
        connections[number].queries += 1
        connections[number].carried.append(query)
        if limits.sharesConnections, connections[number].carried.count == 1, !shared.contains(number) {
            shared.append(number)
        }
        let isRace = !queries[query].connections.isEmpty
        if isRace, queries[query].second == nil { queries[query].second = number }
        queries[query].connections.append(number)
        queries[query].sent = now
        act(.send(query, on: number, wasIdle: idleSince > 0, isRace: isRace))
    }

    mutating func sendOnNew(_ query: QueryNumber, at now: Tick) {
        applyLessons(at: now)
        if isPaused(at: now) {
            fail(query, .paused)
        } else if mayDial {
            dial(for: query, at: now)
        } else if !wait(query) {
            fail(query, Failure(.unreachable, "too many queries wait for a connection to it"))
        }
    }

    mutating func dial(for query: QueryNumber, at now: Tick) {
        if connections.count >= limits.mostConnections, let first = quiet.first { close(first) }
        let number = connectionNumbers.next()
        connections.insert(PlannedConnection(mostAtOnce: limits.atOnce), as: number)
        newest = number
        act(.dial(number))
        send(query, on: number, at: now)
    }

    /// Takes the answer to a query.
    /// - Parameter isInSync: Whether the answer is certainly for this query. Otherwise it may be for another query, and
    ///   the connection takes no further query.
    /// - Returns: Whether the answer came on the second connection, used because the first ones were doubted.
    mutating func answered(_ query: QueryNumber, on number: ConnectionNumber, isInSync: Bool, at now: Tick) -> Bool {
        guard unload(query, from: number) else { return false }
        refusing = nil
        if !isInSync { drain(number) }
        let isSecond = queries[query].second == number
        cancelEverywhere(query, at: now)
        forget(query)
        return isSecond
    }

    /// Removes a query from a connection.
    /// - Returns: False if the query was not on the connection.
    mutating func unload(_ query: QueryNumber, from number: ConnectionNumber) -> Bool {
        guard connections.contains(number) else { return false }
        guard let index = connections[number].carried.firstIndex(of: query) else { return false }
        connections[number].carried.remove(at: index)
        queries[query].connections.remove(number)
        return true
    }

    /// Cancels a query on all its connections.
    mutating func cancelEverywhere(_ query: QueryNumber, at now: Tick) {
        while let number = queries[query].connections.popLast() {
            if let index = connections[number].carried.firstIndex(of: query) {
                connections[number].carried.remove(at: index)
            }
            // Without request IDs, the next answer would be taken for the answer to another request.
            guard limits.sharesConnections else {
                close(number)
                continue
            }
            act(.cancel(query, on: number))
            closeUnlessNeeded(number, at: now)
        }
    }

    /// Cancels a query for which no client waits any more.
    /// - Parameter isOverdue: Whether no answer came within the time of an attempt. A connection that has been silent
    ///   since the query was sent is doubted.
    mutating func cancel(_ query: QueryNumber, isOverdue: Bool = false, at now: Tick) {
        guard queries.contains(query) else { return }
        if isOverdue {
            for number in queries[query].connections.all where connections[number].heardAt < queries[query].sent {
                connections[number].isDoubted = true
            }
        }
        cancelEverywhere(query, at: now)
        forget(query)
        serveWaiting(at: now)
    }

    /// Removes a query that has ended.
    mutating func forget(_ query: QueryNumber) {
        endRace(query)
        stopWaiting(query)
        queries.remove(query)
    }

    /// Whether a connection carries a query.
    func isOn(_ query: QueryNumber, _ connection: ConnectionNumber) -> Bool {
        queries.contains(query) && queries[query].connections.contains { $0 == connection }
    }
}

extension Failure {
    static let paused = Failure(.unreachable, "the server refuses requests on new connections")
}
