public import Base

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

/// The state of a group at one moment; the group's properties are members, too.
@dynamicMemberLookup
public struct GroupOverview: Sendable, Equatable {
    private let group: UpstreamGroup
    /// The servers, in the order of preference.
    public let servers: [ServerState]
    /// The server that is asked now; nil if there are no servers.
    public let current: Server?
    /// Counts of the group's queries.
    public let counters: GroupCounters
    /// The groups that are asked after one of ``thenTryOn``, for this group's own names.
    public let thenTry: [GroupID]
    /// The ends of this group after which others are asked.
    public let thenTryOn: StepEnds
    /// The groups that are asked when no server of this group answers.
    public var successors: [GroupID] { thenTryOn.contains(.failure) ? thenTry : [] }

    /// Each parameter sets the property of the same name.
    init(
        _ group: UpstreamGroup, _ servers: [ServerState], current: Server? = nil,
        counters: GroupCounters = GroupCounters(), thenTry: [GroupID] = [], thenTryOn: StepEnds = .any
    ) {
        (self.group, self.servers) = (group, servers)
        (self.thenTry, self.thenTryOn) = (thenTry, thenTryOn)
        (self.current, self.counters) = (current ?? servers.first?.server, counters)
    }

    init(_ state: GroupState, thenTry steps: [Step]) {
        self.init(
            state.group, state.servers, current: state.current?.server, counters: state.counters,
            thenTry: steps.map(\.group), thenTryOn: steps.first?.after ?? [])
    }

    public subscript<Value>(dynamicMember property: KeyPath<UpstreamGroup, Value>) -> Value {
        group[keyPath: property]
    }

    /// When a server that is passed over is asked again, with the first question from that moment on; nil if the server
    /// is not passed over.
    public func nextTry(of server: ServerState, at now: Tick) -> Tick? {
        let pause = server.health.pausedUntil.flatMap { now < $0 ? $0 : nil }
        // Of an account, only servers before the current one are tried.
        let first = servers.first { $0.server == current || $0.server == server.server }?.server
        let isTried = server.server != current && (!group.carriesAddresses || first != current)
        return [pause, isTried ? server.setAside?.until : nil].compactMap(\.self).max()
    }
}
