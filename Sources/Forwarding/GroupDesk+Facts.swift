import Base
import DNSWire

/// Knowledge about groups, and its limits.
extension GroupDesk {
    // MARK: Names without a record

    /// The groups at the start of a route that are known to have no record of a name. A group that leaves the type out
    /// has an answer instead.
    mutating func withoutRecord(_ route: [Step], _ key: NameKey, at now: Tick) -> StepsBefore {
        var before = StepsBefore()
        while before.count < route.count, !route[before.count].leavesOut {
            let group = route[before.count].group.rawValue
            guard groups[group].namesWithoutRecord.value(key, at: now) != nil else { break }
            before.addWithoutRecord(isProven: rules.groups[group].isProven)
            if before.count < route.count, !route[before.count].after.contains(.noRecord) { before.addAll(of: route) }
        }
        return before
    }

    /// Whether a group can be asked for a name: see ``NoRecordBudget``; always true for a name under way.
    mutating func isWithinNoRecordBudget(_ key: NameKey, at group: GroupID, _ now: Tick) -> Bool {
        let index = group.rawValue
        return groups[index].noRecordBudget.hasRoom(for: key.name, at: now) || groups[index].lookups[key] != nil
    }

    /// Logs that a name is not sent to a group, since too many names below its domain had no record.
    mutating func notePastBudget(_ group: GroupID, at now: Tick) {
        if groups[group.rawValue].noRecordNews.isNews(at: now) { actions.append(.report(.noRecordBudgetSpent(group))) }
    }

    /// Records that a group has no record of a name.
    /// - Parameters:
    ///   - code: See ``AbsenceReason/code``.
    ///   - elapsed: The age of the finding, in seconds.
    mutating func noRecord(
        _ key: NameKey, because code: String? = nil, after elapsed: UInt32, at group: GroupID, _ now: Tick
    ) {
        let seconds = rules.negativeTTL(of: group)
        groups[group.rawValue].namesWithoutRecord.insert(
            key, code, until: now.advanced(milliseconds: Int(seconds - min(elapsed, seconds)) * 1000))
    }

    /// The finding that a group has no record of a name, with the service's reason and the age in seconds; nil if there
    /// is none.
    func absence(of key: NameKey, at group: GroupID, _ now: Tick) -> (code: String?, elapsed: UInt32)? {
        guard let (code, until) = groups[group.rawValue].namesWithoutRecord.fact(key, at: now) else { return nil }
        let (seconds, left) = (rules.negativeTTL(of: group), UInt32(until.milliseconds(since: now) / 1000))
        return (code, seconds - min(left, seconds))
    }

    // MARK: Forgetting

    /// Forgets which names groups have no record of.
    mutating func forgetNamesWithoutRecord(at isMeant: (GroupID) -> Bool) {
        each { if isMeant($0.id) { $0.namesWithoutRecord.removeAll() } }
    }

    /// Changes each group.
    mutating func each(_ change: (inout GroupState) -> Void) {
        for group in groups.indices { change(&groups[group]) }
    }

    /// Resets the states of groups' servers, for instance since the account has changed.
    mutating func beginAfresh(_ renewed: Set<GroupID>, at now: Tick) {
        for group in groups.indices where renewed.contains(GroupID(group)) {
            groups[group].beginAfresh()
            noteTraits(of: group)
            endStandIns(of: GroupID(group), at: now)
        }
    }

    // MARK: State for the outside

    /// See ``Forwarder/underWay``.
    var underWay: [(what: String, count: Int)] {
        let names = groups.reduce(0) { $0 + $1.lookups.count + $1.outbox.count + $1.underWay + $1.waiting.count }
        let ofServers = groups.reduce(0) { sum, group in group.servers.reduce(sum) { $0 + $1.underWay } }
        return [
            ("names of groups", names), ("queries of servers", ofServers), ("queries", queries.count),
            ("deadlines of queries", deadlines.count),
        ]
    }

    /// The bogus address in an answer, if it has one: see ``UpstreamGroup/bogusAddresses``. An address under the prefix
    /// of the network's translator is judged by the IPv4 address in it, too.
    func bogusAddress(in answer: Answer, of group: GroupID, under prefix: NAT64Prefix?) -> IPAddress? {
        let bogus = groups[group.rawValue].group.bogusAddresses
        guard !bogus.isEmpty else { return nil }
        return answer.firstAddress { address in
            let inside = prefix?.ipv4(in: address) ?? address
            return bogus.contains { $0.contains(address) || $0.contains(inside) }
        }
    }

    func name(of group: GroupID) -> String { groups[group.rawValue].group.name }

    var ids: [GroupID] { groups.indices.map { GroupID($0) } }

    func overview(of group: GroupID, thenTry: [Step]) -> GroupOverview {
        GroupOverview(groups[group.rawValue], thenTry: thenTry)
    }

    /// See ``Forwarder/namesSent``.
    var namesSent: [GroupID: UInt64] {
        groups.reduce(into: [:]) { names, state in
            if state.group.carriesAddresses { names[state.id] = state.counters.names }
        }
    }

    /// Why no server of a group is asked: see ``GroupState/trouble``.
    func trouble(of group: GroupID) -> Trouble? { groups[group.rawValue].trouble }

    /// Whether a group would be asked if a flight reached it. No state changes: the group is a copy.
    func standing(_ group: GroupID, _ flight: Flight, at now: Tick) -> Explanation.Standing {
        guard rules[group].hasServers else { return .noServer }
        var group = groups[group.rawValue]
        guard group.group.carriesAddresses else {
            switch group.pick(MessageStep(flight, flight.step(of: group.id)), rules, at: now) {
            case .full, .pastPlan: return .full
            case .noServer: return .paused
            case .down: return .down
            case .server(let index, _, _): return .ready(group.servers[index].server)
            }
        }
        let known = group.lookups[flight.key.name]
        // A lookup for the other family is under way, and the question joins that lookup.
        if let query = known?.query, let server = queries[query]?.server { return .ready(server) }
        let own = known?.joined(by: flight) ?? Lookup(flight.key.name, for: flight, at: now)
        if let known, let index = group.outbox.firstIndex(where: { $0 === known }) {
            group.outbox[index] = own
        } else {
            group.outbox.append(own)
        }
        group.plan?.fill(at: now)
        group.putInTurn(at: now)
        var next = 0
        while next < group.outbox.count {
            let isOwn = group.outbox[next] === own
            switch group.next(from: &next, rules, at: now) {
            case .send(let lookups, let index, let isTrial):
                if lookups.contains(where: { $0 === own }) { return .ready(group.servers[index].server) }
                group.choice.asked(index, for: nil, isTrial: isTrial, at: now)
            case .abandon(let lookup, _, let reason) where lookup === own:
                return reason == .plan ? .planExceeded : group.choice.isDown ? .down : .paused
            case .waitForPlan where isOwn: return .planExceeded
            case .wait where isOwn: return .full
            case .wait, .waitForPlan: return .waiting
            case .abandon, .drop: continue
            }
        }
        return .waiting
    }
}
