import Base
import Forwarding

typealias ConnectionNumber = UInt64
typealias QueryNumber = UInt64

/// The connections to one server and the queries on them, by number: all rules of dialling, sharing, doubting, sending again and
/// closing. A value without sockets; the time is an argument. Whoever has the sockets tells it what happens, and carries out its
/// actions in their order. `Tests/UpstreamsTests/Scenarios` has an example of each rule.
///
/// | what happens | what follows |
/// | --- | --- |
/// | a query comes | it goes to the newest connection with room among those with queries, then to the newest idle one; else a connection is dialled, up to ``StreamLimits/connections``; else it waits, up to ``StreamLimits/maximumWaiting``; else it fails |
/// | a connection is dialled | queries are put on it at once; they are sent when it is established |
/// | a connection cannot be made | its queries fail; so do those that wait, unless another connection may take them; what the closes just before seemed to show is forgotten |
/// | an answer comes | its query is cancelled on other connections; a connection without queries becomes idle |
/// | a connection is idle | it is closed after the time that the server has told (RFC 7828), that its closes have shown (``ConnectionLessons``), or ``StreamLimits/idleTime`` |
/// | a query is to be raced, and was sent long enough ago | its connections are doubted, and it is sent once more on one that was made later, or on a new one; at most on ``maximumRacing`` |
/// | a connection is doubted | it takes no query until octets come; once it carries none, it may still finish for ``doubtTime``, or until another connection needs its place |
/// | a connection ends, and answers had come on it | its queries go out again on a later one, each at most ``PlannedQuery/mostLosses`` times |
/// | it ends without any answer | its queries go out again once, unless they are asked on connections of their own (``StreamLimits/retriesOnFresh``) |
/// | it ends before anything came since it was idle | its queries go out again, and that does not count: they may never have been read |
/// | the server breaks the protocol | as if it had closed; once for each query |
/// | the server refuses a query unprocessed | it goes out again on a later connection, ``maximumRefusals`` times; a new connection gets no more at first than the server says that it takes |
/// | two new connections in a row take nothing | no connection is dialled for ``pauseTime``; queries that would need one fail |
/// | the server goes away (GOAWAY, `Connection: close`) | queries under way on the connection go on; it takes no others |
/// | a connection turns out not to take a query: it was verified too long ago, or has ended, or unsolicited octets have come | the query goes to another, and that does not count |
/// | the network changes | no connection takes further queries, idle ones are closed, and what was learned is forgotten |
/// | the group has the server no more | as when the network changes, and no connection is kept without queries |
struct ConnectionPlan: ~Copyable {
    let limits: StreamLimits
    /// What is to be done, in this order. Taken by ``takeAction()``.
    private var actions: [PlanAction] = []
    /// How many of `actions` were taken.
    private var taken = 0

    private var queryNumbers = Numbers()
    var connectionNumbers = Numbers()
    var queries = Numbered(none: PlannedQuery(at: Tick(nanoseconds: 0)))
    var connections = Numbered(none: PlannedConnection(mostAtOnce: 0))
    /// Connections that carry queries and may have room for more, where connections are shared.
    var shared: [ConnectionNumber] = []
    /// Connections without queries that may take some, in the order in which they became idle.
    var idle: [ConnectionNumber] = []
    /// Doubted connections without queries, in that order as well.
    var quiet: [ConnectionNumber] = []
    /// Queries that wait for room, in the order in which they came.
    var waiting: [QueryNumber] = []
    /// Queries that the server has refused, until all that has come with that was told.
    var refused: [QueryNumber] = []
    /// Queries that are to be sent on a further connection when they have been under way for long enough.
    var raced: [QueryNumber] = []

    /// The group does not have the server any more.
    var isRemoved = false
    var lessons: ConnectionLessons
    /// What the lessons and the server say now: nanoseconds, and the most queries on a connection in its life.
    var (idleTime, queriesPerConnection): (UInt64, Int)
    /// For how long the server keeps idle connections, as it has said; in nanoseconds.
    var toldIdleTime: UInt64?
    /// The connection that was dialled last.
    var newest: ConnectionNumber = 0
    /// The most queries on a connection that has answered none; lower once the server has refused one.
    var firstFlightLimit = Int.max
    /// The last connection on which all queries were refused, unless the server has answered one since.
    var refusing: ConnectionNumber?
    var pausedUntil = Tick(nanoseconds: 0)

    /// The most connections that one query may be under way on, so that an unstable network does not multiply them.
    static let maximumRacing = 3
    /// How often a query may be refused unprocessed before it fails.
    static let maximumRefusals = 3
    /// In milliseconds.
    static let pauseTime = 1000
    /// For how long a doubted connection is kept without queries, in nanoseconds: about as long as the kernel waits until it
    /// gives up a connection whose octets nobody acknowledges.
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

    // MARK: Queries

    /// A query comes.
    mutating func want(at now: Tick) -> QueryNumber {
        let query = queryNumbers.next()
        queries.insert(PlannedQuery(at: now), as: query)
        send(query, at: now)
        return query
    }

    /// Nobody waits for its answer any more.
    mutating func cancel(_ query: QueryNumber, at now: Tick) {
        guard queries.contains(query) else { return }
        cancelEverywhere(query, at: now)
        forget(query)
        serveWaiting(at: now)
    }

    /// The query's connection may be dead: it is sent again on another, and the first answer wins. If it was sent later than it came,
    /// as after it had waited for room or lost a connection, it is given as long again.
    mutating func race(_ query: QueryNumber, at now: Tick) {
        guard queries.contains(query) else { return }
        queries[query].patience = now.nanoseconds &- queries[query].asked.nanoseconds
        if !raced.contains(query) { raced.append(query) }
        raceIfDue(query, at: now)
    }

    private mutating func raceIfDue(_ number: QueryNumber, at now: Tick) {
        // What was sent before the network was another is not waited for, and what else takes no further queries is about to end.
        let isDue =
            queries[number].racedAt.map { $0 <= now } ?? false
            || queries[number].isOn { connections[$0].isDraining }
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
        } else if hasPlace {
            dial(for: number, at: now)
        } else {
            _ = wait(number)
        }
    }

    /// Its silence is of no interest any more.
    private mutating func endRace(_ query: QueryNumber) {
        guard queries[query].patience != nil else { return }
        queries[query].patience = nil
        raced.removeAll { $0 == query }
    }

    /// It has ended.
    mutating func forget(_ query: QueryNumber) {
        endRace(query)
        stopWaiting(query)
        queries.remove(query)
        queryNumbers.release(query)
    }

    /// Whether a connection carries it.
    func isOn(_ query: QueryNumber, _ connection: ConnectionNumber) -> Bool {
        queries.contains(query) && queries[query].isOn { $0 == connection }
    }

    // MARK: Queries that wait

    /// False if too many do.
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
                // One that is doubted no more may carry it already.
                guard !queries[query].isOn({ $0 == connection }) else { continue }
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

    /// Nothing can be expected of waiting. What is under way on a connection that is doubted goes on there.
    mutating func failWaiting(_ failure: Failure) {
        for query in exchange(&waiting, with: []) {
            queries[query].isWaiting = false
            if queries[query].connections.isEmpty { fail(query, failure) }
        }
    }

    /// It is there until the action is taken, and may be cancelled before that.
    mutating func fail(_ query: QueryNumber, _ failure: Failure, wasAnswered: Bool = false) {
        act(.fail(query, failure, wasAnswered: wasAnswered))
    }

    // MARK: Time and change

    /// When ``expire(at:)`` has something to do.
    var nextDeadline: Tick? {
        var next = raced.reduce(Tick?.none) { $0.orEarlier(queries[$1].racedAt) }
        if let first = idle.first { next = next.orEarlier(idleEnd(of: first)) }
        if let first = quiet.first { next = next.orEarlier(quietEnd(of: first)) }
        return next
    }

    mutating func expire(at now: Tick) {
        for query in raced where queries.contains(query) { raceIfDue(query, at: now) }
        heedLessons(at: now)
        while let first = idle.first, idleEnd(of: first) <= now { close(first) }
        while let first = quiet.first, quietEnd(of: first) <= now { close(first) }
    }

    /// No existing connection takes a query any more; those with queries close when these are answered.
    mutating func networkChanged() {
        for connection in connections.numbers { drain(connection) }
        for connection in idle + quiet { close(connection) }
        lessons.forget()
        toldIdleTime = nil
        (idleTime, queriesPerConnection) = (limits.idleTime, limits.queriesPerConnection)
        firstFlightLimit = .max
    }

    /// The group does not have the server any more: what is under way ends as it may, and no connection is kept.
    mutating func remove() {
        isRemoved = true
        networkChanged()
    }

    /// Another time may be learned from how connections have ended, or forgotten.
    mutating func heedLessons(at now: Tick) {
        idleTime = lessons.idleTime(told: toldIdleTime, at: now)
        queriesPerConnection = lessons.queriesPerConnection(at: now)
    }
}

extension Failure {
    static let paused = Failure(.unreachable, "the server refuses requests on new connections")
}
