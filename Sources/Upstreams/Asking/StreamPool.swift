import Base
import Counters
import DNSWire
import Forwarding
import Streams

/// One server with its connections. The pool carries out its plan's actions, and reports events to the plan.
final class StreamPool {
    let server: Server
    let kind: ServerKind
    let tally: UpstreamTallies.ServerTally
    unowned let upstream: StreamUpstream
    /// The endpoint that answered last, which is dialled first.
    private(set) var preferred: Endpoint?
    /// Endpoints whose connection left a query unanswered and had brought no answer, the latest last. They are dialled
    /// after all others.
    private(set) var avoided: [Endpoint] = []
    private static let mostAvoided = 16
    /// The overdue queries since the last answer, of which the server may be slow with the names of some.
    private var overdue = 0
    private static let mostOverdue = 2
    private var plan: ConnectionPlan
    private var connections = Numbered<StreamConnection?>(none: nil)
    private var isPerforming = false

    init(
        _ server: Server, _ kind: consuming ServerKind, _ tally: UpstreamTallies.ServerTally, _ upstream: StreamUpstream
    ) {
        (self.server, self.tally, self.upstream) = (server, tally, upstream)
        plan = ConnectionPlan(kind.limits)
        self.kind = kind
    }

    /// Whether the server's host is a name whose addresses must be looked up.
    var isLookedUp: Bool { server.endpoints.isEmpty }
    /// Whether the server's name is looked up again once all of its endpoints are avoided.
    var mayHaveMoved: Bool { isLookedUp && overdue > Self.mostOverdue }
    var isEmpty: Bool { plan.connections.count == 0 }

    // MARK: Queries

    func ask(_ query: StreamQuery, at now: Tick) {
        plan.want(query.number, at: now)
        perform(at: now)
    }

    /// Cancels a query. If its time has passed while its connection was being made, the addresses count as failed:
    /// they take connections, and no handshake ends.
    func cancel(_ query: QueryNumber, isOverdue: Bool, at now: Tick) {
        if isOverdue, plan.queries.contains(query) {
            let isUnmade = plan.queries[query].connections.contains {
                connections.find($0).map { !$0.dialling.attempts.isEmpty } ?? false
            }
            if isUnmade, isLookedUp { upstream.lookup?.allFailed(server, now) }
            overdue += 1
            avoidCarriers(of: query)
        }
        tell(at: now) { $0.cancel(query, isOverdue: isOverdue, at: now) }
    }

    func race(_ query: QueryNumber, at now: Tick) {
        avoidCarriers(of: query)
        tell(at: now) { $0.race(query, at: now) }
    }

    private func avoidCarriers(of query: QueryNumber) {
        for number in plan.queries.find(query).connections.all { avoid(number, mayBeSlow: true) }
    }

    /// Reports an event to the plan, and carries out its actions.
    func tell(at now: Tick, _ what: (inout ConnectionPlan) -> Void) {
        what(&plan)
        perform(at: now)
    }

    // MARK: Connections

    func happened(_ event: ConversationEvent, on number: ConnectionNumber, at now: Tick) {
        switch event {
        case .answered(let query, let answer): answered(query, answer, on: number, at: now)
        case .refused(let query):
            plan.refused(query, on: number)
            // A server with a limit takes some.
            if plan.carried(number).isEmpty { avoid(number) }
        case .failed(let query, let failure): plan.failed(query, on: number, Failure(failure))
        case .givenUp(let query, let failure):
            avoid(number)
            plan.givenUp(query, on: number, Failure(failure), at: now)
        case .goingAway: plan.drain(number)
        }
        // Its consequences follow when all events of the same read are reported, which the connection signals next.
    }

    private func answered(
        _ number: QueryNumber, _ answer: ConversationAnswer, on connection: ConnectionNumber, at now: Tick
    ) {
        plan.heard(connection, isAnswer: true, at: now)
        guard plan.isOn(number, connection), let query = upstream.query(number) else { return }
        let reading = kind.dialect.read(answer, to: query.ask, isRewritten: query.isRewritten, at: now)
        if let tenths = kind.dialect.keepAlive { plan.announced(connection, idleTime: UInt64(tenths) * 100_000_000) }
        switch reading {
        case .retryRewritten where !query.isRewritten: rewrite(query, on: connection, at: now)
        case .retryRewritten:
            plan.failed(number, on: connection, Failure(.badAnswer, "not understood, however it is asked"))
        case .retryOnOtherConnection(let failure):
            avoid(connection)
            plan.givenUp(number, on: connection, failure, at: now)
        case .outcome(let outcome, let code, let isInSync):
            prove(connection)
            let isSecond = plan.answered(number, on: connection, isInSync: isInSync, at: now)
            tally.answered(code, nanoseconds: now.nanoseconds &- query.asked.nanoseconds)
            upstream.end(query, outcome, toRepeat: isSecond)
        }
    }

    private func rewrite(_ query: StreamQuery, on connection: ConnectionNumber, at now: Tick) {
        query.isRewritten = true
        do throws(Failure) {
            query.request = try kind.dialect.request(query.ask, isRewritten: true, at: now, wall: upstream.wall())
            plan.rewritten(query.number, on: connection, at: now)
        } catch {
            plan.cancel(query.number, at: now)
            upstream.end(query, .failed(error))
        }
    }

    /// An established connection takes its queries.
    func established(_ number: ConnectionNumber, at now: Tick) {
        for query in plan.carried(number) {
            if let query = upstream.query(query) { upstream.wrote(query.id) }
        }
        tell(at: now) { $0.established(number, at: now) }
    }

    func ended(_ connection: StreamConnection, _ end: LinkEnd, _ failure: Failure, hasBegun: Bool = false) {
        let now = upstream.now()
        if !plan.carried(connection.number).isEmpty, failure.kind != .here { avoid(connection.number) }
        connections.remove(connection.number)
        tell(at: now) { $0.ended(connection.number, end, failure, hasBegun: hasBegun, at: now) }
    }

    /// An answer has come on a connection.
    private func prove(_ number: ConnectionNumber) {
        overdue = 0
        guard let connection = connections.find(number), let endpoint = connection.unproven else { return }
        connection.unproven = nil
        preferred = endpoint
        avoided.removeAll { $0 == endpoint }
        if isLookedUp { upstream.lookup?.worked(server, endpoint) }
    }

    /// A connection leaves a query unanswered: if no answer has come on it, another endpoint may do better.
    private func avoid(_ number: ConnectionNumber, mayBeSlow: Bool = false) {
        guard let endpoint = connections.find(number)?.unproven else { return }
        if !mayBeSlow { overdue = Self.mostOverdue + 1 }
        if preferred == endpoint { preferred = nil }
        avoided = avoided.filter { $0 != endpoint }.suffix(Self.mostAvoided - 1) + [endpoint]
    }

    // MARK: Actions

    private func perform(at now: Tick) {
        // The consequences of an action are handled after it, not inside it.
        guard !isPerforming else { return }
        isPerforming = true
        while let action = plan.takeAction() { perform(action, at: now) }
        isPerforming = false
        upstream.wake(at: plan.nextDeadline)
    }

    private func perform(_ action: PlanAction, at now: Tick) {
        switch action {
        case .dial(let number):
            let connection = StreamConnection(number, self)
            connections.insert(connection, as: number)
            connection.begin(at: now)
        case .send(let number, let connectionNumber, let wasIdle, let isRace):
            guard let query = upstream.query(number), let connection = connections.find(connectionNumber) else {
                return
            }
            guard connection.takes(wasIdle: wasIdle, at: upstream.wall()) else {
                return plan.notTaken(number, by: connectionNumber, at: now)
            }
            count(query, isReused: plan.isEstablished(connectionNumber))
            connection.send(query, isApart: isRace)
            if plan.isEstablished(connectionNumber) { upstream.wrote(query.id) }
        case .cancel(let number, let connection): connections.find(connection)?.cancel(number)
        case .close(let number): connections.remove(number)?.close()
        case .fail(let number, let failure, let wasAnswered):
            guard let query = upstream.query(number) else { return }
            if wasAnswered { tally.answered(.servFail, nanoseconds: now.nanoseconds &- query.asked.nanoseconds) }
            upstream.end(query, .failed(failure))
        case .short(let number): if let query = upstream.query(number) { upstream.lost(query.id) }
        }
    }

    private func count(_ query: StreamQuery, isReused: Bool) {
        // A query that did not fit a datagram was already counted as a query.
        guard !query.isCounted, server.kind != .plain else { return }
        query.isCounted = true
        tally.connected(isReused: isReused)
    }

    // MARK: Time and change

    /// When ``expire(at:)`` has work.
    var nextDeadline: Tick? { connections.all.reduce(plan.nextDeadline) { $0.orEarlier($1?.dialling.next) } }

    func expire(at now: Tick) {
        for connection in connections.all { connection?.expire(at: now) }
        tell(at: now) { $0.expire(at: now) }
    }

    func networkChanged() {
        (preferred, avoided, overdue) = (nil, [], 0)
        // Queries under way are raced at once. Their silence says nothing about the present network.
        for connection in connections.all { connection?.unproven = nil }
        tell(at: upstream.now()) { $0.networkChanged() }
    }

    /// Closes all connections at once; no further event is reported.
    func close() {
        for connection in connections.all { connection?.close() }
        // Each connection refers to this pool, too.
        connections = Numbered(none: nil)
    }
}
