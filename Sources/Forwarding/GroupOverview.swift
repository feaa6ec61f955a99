public import Base
public import DNSWire

/// Counts of the queries to a group's servers, since the start.
public struct GroupCounters: Sendable, Equatable {
    /// All counts are 0.
    public init() {}

    /// Questions that came to the group, also those that another group had no answer to; not those for its servers.
    public internal(set) var questions: UInt64 = 0
    /// Requests and messages.
    public internal(set) var queries: UInt64 = 0
    /// Names in the requests to an account that were written, counted each time that their request was.
    public internal(set) var names: UInt64 = 0
    /// Second attempts at silent servers.
    public internal(set) var repeats: UInt64 = 0
    /// Attempts that failed: see ``Failure``.
    public internal(set) var failures: UInt64 = 0
    /// Names, since the last one with a record, of which an account had none.
    public internal(set) var withoutRecordInARow: UInt64 = 0
}

/// The state of a group at one moment.
public struct GroupOverview: Sendable, Equatable {
    /// The number of the group.
    public let id: GroupID
    /// The group's name in the configuration.
    public let name: String
    /// What it is called in sentences.
    public let title: String
    /// Whether it is an HTTPDNS account, which is asked for the addresses of names alone.
    public let carriesAddresses: Bool
    /// What it answers by itself; nil: its servers are asked.
    public let answer: GroupAnswer?
    /// Whether its answers are shared in the store of the fleet.
    public let isShared: Bool
    /// An answer with one of these addresses is NXDOMAIN.
    public let bogusAddresses: [Network]
    /// Milliseconds for one attempt.
    public let timeout: Int
    /// In the order of preference.
    public let servers: [ServerState]
    /// The server that is asked now; nil without servers.
    public let current: Server?
    /// What was asked of the group how often.
    public let counters: GroupCounters
    /// The groups that are asked when this one has no answer to a question of its own names.
    public let thenTry: [GroupID]

    /// The parameters are those of the properties.
    public init(
        _ group: UpstreamGroup, _ servers: [ServerState], current: Server? = nil,
        counters: GroupCounters = GroupCounters(),
        thenTry: [GroupID] = []
    ) {
        (id, name, carriesAddresses, timeout) = (group.id, group.name, group.carriesAddresses, group.timeout)
        (title, answer, isShared) = (group.title, group.answer, group.isShared)
        bogusAddresses = group.bogusAddresses
        (self.servers, self.current, self.counters) = (servers, current ?? servers.first?.server, counters)
        self.thenTry = thenTry
    }

    init(_ state: GroupState, thenTry: [GroupID]) {
        self.init(
            state.group, state.servers, current: state.current?.server, counters: state.counters, thenTry: thenTry)
    }

    /// When a server that is passed over is asked again: with the first question from that moment on. Nil: it is not
    /// passed over.
    public func nextTry(of server: ServerState, at now: Tick) -> Tick? {
        let pause = server.health.pausedUntil.flatMap { now < $0 ? $0 : nil }
        // Of an account only servers before the current one are tried.
        let first = servers.first { $0.server == current || $0.server == server.server }?.server
        let isTried = server.server != current && (!carriesAddresses || first != current)
        return [pause, isTried ? server.setAside?.until : nil].compactMap(\.self).max()
    }
}
