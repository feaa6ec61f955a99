public import Base
public import DNSWire

/// Counts of the queries to a group's servers, since the start.
public struct GroupCounters: Sendable, Equatable {
    /// Questions that reached the group at any step, except the daemon's own questions for servers' addresses.
    public internal(set) var questions: UInt64 = 0
    /// Requests and messages to the group's servers.
    public internal(set) var queries: UInt64 = 0
    /// Names in the requests that were sent to an account, counted each time.
    public internal(set) var names: UInt64 = 0
    /// Second attempts at silent servers.
    public internal(set) var repeats: UInt64 = 0
    /// Attempts that failed: see ``Failure``.
    public internal(set) var failures: UInt64 = 0
    /// Names without a record at an account, since the last name with a record.
    public internal(set) var withoutRecordInARow: UInt64 = 0
}

/// The state of a group at one moment.
public struct GroupOverview: Sendable, Equatable {
    /// The number of the group.
    public let id: GroupID
    /// The group's name in the configuration.
    public let name: String
    /// The group's name in sentences.
    public let title: String
    /// Whether the group is an HTTPDNS account, which is asked only for addresses of names.
    public let carriesAddresses: Bool
    /// The group's own answer; nil if its servers are asked.
    public let answer: GroupAnswer?
    /// Whether the group's answers are shared in the fleet's store.
    public let isShared: Bool
    /// Addresses that turn an answer into NXDOMAIN.
    public let bogusAddresses: [Network]
    /// Milliseconds for one attempt.
    public let timeout: Int
    /// The servers, in the order of preference.
    public let servers: [ServerState]
    /// The server that is asked now; nil if there are no servers.
    public let current: Server?
    /// Counts of the group's queries.
    public let counters: GroupCounters
    /// The groups that are asked when this group has no answer for its own names.
    public let thenTry: [GroupID]

    /// Each parameter sets the property of the same name.
    init(
        _ group: UpstreamGroup, _ servers: [ServerState], current: Server? = nil,
        counters: GroupCounters = GroupCounters(), thenTry: [GroupID] = []
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

    /// When a server that is passed over is asked again, with the first question from that moment on; nil if the server
    /// is not passed over.
    public func nextTry(of server: ServerState, at now: Tick) -> Tick? {
        let pause = server.health.pausedUntil.flatMap { now < $0 ? $0 : nil }
        // Of an account, only servers before the current one are tried.
        let first = servers.first { $0.server == current || $0.server == server.server }?.server
        let isTried = server.server != current && (!carriesAddresses || first != current)
        return [pause, isTried ? server.setAside?.until : nil].compactMap(\.self).max()
    }
}
