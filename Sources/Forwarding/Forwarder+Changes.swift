public import Base
import DNSCache
public import DNSWire

/// What a forwarder at work is told of besides questions and outcomes.
public enum Change {
    /// Other settings, in one step.
    ///
    /// What is under way ends as it may, and is told to those who wait for it; if answers are suspect nobody new joins
    /// it, none of it is kept, and a name that a group may not be told any more is not sent to it. What is cached and
    /// suspect is forgotten.
    /// - Parameters:
    ///   - renewed: Groups that are asked by another account or in another way: nothing known of their servers holds.
    case settings(Policy, Timing, [UpstreamGroup], renewed: Set<GroupID>, Suspects)
    /// A group's servers are others now; queries under way to the former ones end as they may.
    case servers(GroupID, [Server])
    /// The families that HTTPDNS is asked for.
    case families(Families)
    /// What the hosts file speaks of, or spoke of, must not come from the cache.
    case hosts(HostsTable)
    /// This machine's addresses or routes: nothing that failed before is held against anybody, what is under way is
    /// asked once more, and the first server of each group is tried again.
    case network
    /// What was found out about a name, or about all names. The answers are the cache's to forget.
    case forget(Name?)
    /// `preResolve` and `keepAliveDomains`.
    case wanted(preResolve: [Name], keepAlive: [Name])

    /// Which of the answers known so far may hold no more.
    public struct Suspects: OptionSet, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Names may have to be asked elsewhere, or to be answered from here: answers for which other groups would be
        /// asked now.
        public static var routes: Suspects { Suspects(rawValue: 1) }
        /// The HTTPDNS account may say something else: the answers of all names that go to one.
        public static var accountAnswers: Suspects { Suspects(rawValue: 2) }
        /// What the others say may be told otherwise: all answers that no HTTPDNS account gave.
        public static var messageAnswers: Suspects { Suspects(rawValue: 4) }
    }
}

extension Forwarder {
    public mutating func change(_ change: Change, at now: Tick) {
        switch change {
        case .settings(let policy, let timing, let groups, let renewed, let suspects):
            reconfigure(policy, timing, groups, renewed, suspects)
        case .servers(let id, let servers):
            var group = groups[id.rawValue].group
            group.servers = servers
            groups[id.rawValue].replace(group)
            failures.removeAll()
        case .families(let families):
            // "No record" was said of other families.
            if policy.families != families { forgetNamesWithoutRecord() }
            policy.families = families
        case .hosts(let hosts):
            forgetAnswers(of: Set(hosts.allNames + policy.hosts.allNames))
            policy.hosts = hosts
        case .network:
            for place in groups.indices { groups[place].networkChanged(at: now) }
            failures.removeAll()
            for id in queries.ids { askAgain(id, at: now) }
        case .forget(let name?):
            let key = NameKey(name)
            for place in groups.indices { groups[place].namesWithoutRecord.remove { $0 == key } }
            failures.remove { $0.name == key }
        case .forget(nil):
            forgetNamesWithoutRecord()
            failures.removeAll()
        case .wanted(let preResolve, let keepAlive):
            start(preResolve: preResolve, keepAlive: keepAlive, at: now)
        }
    }

    private mutating func forgetNamesWithoutRecord() {
        for place in groups.indices { groups[place].namesWithoutRecord.removeAll() }
    }

    /// Gives each group its place; those that are there already keep what is known of them.
    mutating func replaceGroups(_ new: [UpstreamGroup]) {
        for place in groups.indices where !new.contains(where: { $0.id.rawValue == place }) {
            var gone = groups[place].group
            gone.servers = []
            groups[place].replace(gone)
        }
        for group in new {
            while groups.count <= group.id.rawValue {
                groups.append(
                    GroupState(UpstreamGroup(GroupID(groups.count), [], .messages, .lastThatAnswered, timeout: 0)))
            }
            groups[group.id.rawValue].replace(group)
        }
    }

    private mutating func reconfigure(
        _ policy: Policy, _ timing: Timing, _ groups: [UpstreamGroup], _ renewed: Set<GroupID>,
        _ suspects: Change.Suspects
    ) {
        let before = self.policy
        (self.policy, self.timing) = (policy, timing)
        replaceGroups(groups)
        for place in self.groups.indices where renewed.contains(GroupID(place)) { self.groups[place].beginAfresh() }
        if !renewed.isEmpty { failures.removeAll() }
        guard !suspects.isEmpty else { return }
        generation += 1
        flightOf = [:]
        failures.removeAll()
        forgetNamesWithoutRecord()
        for place in self.groups.indices {
            self.groups[place].lookups = [:]
            self.groups[place].noRecordBudget.removeAll()
        }
        guard cache.statistics.entries <= Self.mostEntriesToLookThrough else { return cache.removeAll() }
        let carriers = Set(groups.filter(\.carriesAddresses).map(\.id))
        cache.removeAll { name, type, audience in
            // An account's answers are for everyone, a resolver's for those who would have asked it the same.
            if suspects.contains(.messageAnswers), audience != .everyone { return true }
            let route = policy.route(name, type)
            if suspects.contains(.accountAnswers), route.begins(with: carriers) { return true }
            return !route.leads(whereLeads: before.route(name, type))
                || policy.refusesPrivate(name) != before.refusesPrivate(name)
        }
    }

    /// To look through more would keep questions waiting for longer than some hundredths of a second.
    static var mostEntriesToLookThrough: Int { 50_000 }

    private func forgetAnswers(of names: Set<Name>) {
        guard names.count <= Self.mostNamesToForget else { return cache.removeAll() }
        for name in names { cache.remove(name) }
    }

    /// Forgetting one name is a walk through the cache; so many cost more than to begin afresh.
    private static var mostNamesToForget: Int { 64 }
}

// MARK: What can be seen from outside

extension Forwarder {
    /// The groups that may be asked, by their numbers.
    public var groupOverviews: [GroupOverview] {
        var all: [GroupOverview] = []
        for group in groups.indices.lazy.map(GroupID.init) where policy.leads(to: group) {
            all.append(overview(of: group))
        }
        return all
    }
    public func overview(of group: GroupID) -> GroupOverview {
        GroupOverview(
            groups[group.rawValue], thenTry: policy.steps(of: group).map(\.group).filter { $0 != group })
    }
    public var flightsUnderWay: Int { flights.count }
}
