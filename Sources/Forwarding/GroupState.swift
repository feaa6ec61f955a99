public import Base
import DNSCache

/// A group, and what was found out about its servers.
struct GroupState {
    private(set) var group: UpstreamGroup
    private(set) var servers: [ServerState]
    /// Who is asked now; always one of `servers`, if there are any.
    private(set) var current: Server?
    var counters = GroupCounters()
    /// Queries under way.
    var underWay = 0
    /// `namesPerSecond`.
    var plan: TokenBucket?
    /// A deadline says when the plan has room; one is enough, however many turns find it exceeded.
    var isPlanAwaited = false
    /// Of a group that carries addresses: the names under way, and those of them that go out when the turn ends.
    var lookups: [NameKey: Lookup] = [:]
    var outbox: [Lookup] = []
    var noRecordBudget = NoRecordBudget()
    var noRecordNews = News()
    /// Names of which it has no record.
    var namesWithoutRecord = Remembered<NameKey, Void>(atMost: maximumNamesWithoutRecord)

    /// With `Choice.inOrder`: when the first server is tried again while another is in use.
    private var returnAt: Tick?
    private var isProbing = false
    /// Failed attempts in a row at the current server since it became so.
    private var failedAttempts = 0

    /// Some 1.5 MB; a name forgotten too early is looked up once more.
    static let maximumNamesWithoutRecord = 8192

    init(_ group: UpstreamGroup) {
        self.group = group
        servers = group.servers.map { ServerState($0, health: ServerHealth()) }
        current = group.servers.first
        if group.namesPerSecond > 0 { plan = TokenBucket(perSecond: group.namesPerSecond) }
    }

    var id: GroupID { group.id }

    var isEmpty: Bool { servers.isEmpty }

    /// Other settings or servers. What is known of servers that stay is kept.
    mutating func replace(_ new: UpstreamGroup) {
        if new.namesPerSecond != group.namesPerSecond {
            plan = new.namesPerSecond > 0 ? TokenBucket(perSecond: new.namesPerSecond) : nil
        }
        let isOtherList = new.servers != group.servers
        group = new
        guard isOtherList else { return }
        servers = new.servers.map { server in
            servers.first { $0.server == server } ?? ServerState(server, health: ServerHealth())
        }
        if !new.servers.contains(where: { $0 == current }) { current = new.servers.first }
        (failedAttempts, returnAt, isProbing) = (0, nil, false)
    }

    /// What is known of the servers holds no more, nor what they said: they are asked by another account, say.
    mutating func beginAfresh() {
        namesWithoutRecord.removeAll()
        for place in servers.indices { servers[place].health = ServerHealth() }
        current = group.servers.first
        (failedAttempts, returnAt, isProbing) = (0, nil, false)
    }

    /// See ``ServerHealth/roundTrip``.
    func roundTrip(of server: Server) -> Double? {
        servers.firstIndex { $0.server == server }.flatMap { servers[$0].health.roundTrip }
    }

    /// Why the server that is asked now failed last.
    var lastFailure: Failure? {
        servers.firstIndex { $0.server == current }.flatMap { servers[$0].health.lastFailure }
    }

    /// The server for a question that those in `tried` did not answer; nil when all were tried or want to be left alone.
    func choose(excluding tried: [Server], at now: Tick) -> Server? {
        func isOpen(_ place: Int) -> Bool {
            !tried.contains(servers[place].server) && !servers[place].health.isPaused(at: now)
        }
        guard let start = servers.firstIndex(where: { $0.server == current }) else { return nil }
        if start > 0, !isProbing, isOpen(0), let returnAt, returnAt <= now { return servers[0].server }
        for offset in servers.indices {
            let place = (start + offset) % servers.count
            if isOpen(place) { return servers[place].server }
        }
        return nil
    }

    /// A request goes out to a server: if it is the first one while another is in use, its answer decides.
    mutating func asked(_ server: Server) {
        if server == servers.first?.server, server != current { isProbing = true }
    }

    /// - Parameter hasAnswer: false for SERVFAIL and the like: it is there, but another may know better.
    mutating func answered(_ server: Server, _ hasAnswer: Bool, roundTrip: Int, at now: Tick) -> [Event] {
        guard let place = servers.firstIndex(where: { $0.server == server }) else { return [] }
        var events: [Event] = []
        if servers[place].health.answered(roundTrip: roundTrip, at: now) {
            events.append(.answersAgain(id, server))
        }
        switch group.choice {
        case .lastThatAnswered:
            if hasAnswer { current = server }
        case .inOrder:
            if server == current { failedAttempts = 0 }
            guard place == 0, let former = current, former != server else { break }
            events.append(.returned(id, from: former, to: server))
            (current, failedAttempts, returnAt, isProbing) = (server, 0, nil, false)
        }
        return events
    }

    mutating func failed(_ server: Server, _ failure: Failure, at now: Tick) -> [Event] {
        guard let place = servers.firstIndex(where: { $0.server == server }) else { return [] }
        var events: [Event] = []
        if servers[place].health.failed(failure, at: now) { events.append(.failing(id, server, failure)) }
        guard case .inOrder(let switchAfter, let minutes) = group.choice else { return events }
        let returnAfter = now.advanced(milliseconds: minutes * 60_000)
        if server == current {
            failedAttempts += 1
            guard failedAttempts >= max(1, switchAfter), servers.count > 1 else { return events }
            let next = servers[(place + 1) % servers.count].server
            (current, failedAttempts, returnAt, isProbing) = (next, 0, returnAfter, false)
            events.append(.switched(id, from: server, to: next))
        } else if place == 0 {
            (returnAt, isProbing) = (returnAfter, false)
        }
        return events
    }

    /// Another network: what failed may work, and the first server is tried again with the next request.
    mutating func networkChanged(at now: Tick) {
        for place in servers.indices { servers[place].health.endPause() }
        failedAttempts = 0
        if current != servers.first?.server { (returnAt, isProbing) = (now, false) }
        for lookup in lookups.values { lookup.tried = [] }
    }
}

/// One server of a group, and how it is.
public struct ServerState: Sendable, Equatable {
    public let server: Server
    public internal(set) var health = ServerHealth()

    public init(_ server: Server, health: ServerHealth) {
        (self.server, self.health) = (server, health)
    }
}

/// What was put to a group's servers, since the start.
public struct GroupCounters: Sendable, Equatable {
    public init() {}

    /// Requests and messages, and the names asked for in them.
    public internal(set) var queries: UInt64 = 0
    public internal(set) var names: UInt64 = 0
    /// Queries that a silent server was asked a second time.
    public internal(set) var repeats: UInt64 = 0
    public internal(set) var failures: UInt64 = 0
}

/// How a group is at one moment.
public struct GroupOverview: Sendable, Equatable {
    public let id: GroupID
    /// In the order of preference.
    public let servers: [ServerState]
    /// Who is asked now; nil without servers.
    public let current: Server?
    public let counters: GroupCounters

    init(_ state: GroupState) {
        (id, servers, current, counters) = (state.id, state.servers, state.current, state.counters)
    }
}
