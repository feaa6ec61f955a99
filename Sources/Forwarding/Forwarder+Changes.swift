public import Base
import DNSCache
public import DNSWire

/// Changes that a running forwarder is told of.
public enum Change {
    /// Other settings, in one step.
    ///
    /// Flights under way go on, and their clients get the answers. If answers are suspect, no further client joins
    /// these flights, and their answers are not cached. What is under way to a group that may no longer be told the name
    /// is cancelled, and asked anew by the new rules. Suspect answers in the cache are forgotten.
    /// - Parameters:
    ///   - renewed: Groups with another account or another way of asking: what is known of their servers is forgotten.
    case settings(Policy, Timing, [UpstreamGroup], renewed: Set<GroupID>, Suspects)
    /// A group has other servers now; queries under way to the former ones go on.
    case servers(GroupID, [Server])
    /// The address families that each account is asked for.
    case families([GroupID: Families])
    /// The hosts file has changed: the names of which it says something else now must not be answered from the cache.
    /// - Parameter others: Those names, by ``HostsTable/names(otherThanIn:)``.
    case hosts(HostsTable, others: Set<Name>)
    /// This machine's addresses or routes have changed: earlier failures are forgotten, queries under way are sent once
    /// more, and the first server of each group is tried again.
    case network
    /// Forgets what is known about a name, or about all names, and does not cache what is under way. The caller forgets the
    /// answers in the cache.
    case forget(Name?)
    /// There is a store to share answers by, another one than before, or none any more.
    case sharedCache(SharedSettings?)
    /// `preResolve` and `keepAliveDomains`.
    case wanted(preResolve: [Name], keepAlive: [Name])

    /// The known answers that new settings may have made wrong.
    public struct Suspects: Sendable {
        /// Names may go to other groups, or be answered by the daemon: suspect are the answers for which other groups
        /// would be asked now.
        public var routes: Bool
        /// These groups may answer otherwise, or be believed otherwise: suspect are the answers to questions that may go
        /// to one of them.
        public var groups: Set<GroupID>

        public init(routes: Bool = false, groups: Set<GroupID> = []) { (self.routes, self.groups) = (routes, groups) }

        public var isEmpty: Bool { !routes && groups.isEmpty }
    }
}

extension Forwarder {
    public mutating func change(_ change: Change, at now: Tick) {
        switch change {
        case .settings(let policy, let timing, let groups, let renewed, let suspects):
            reconfigure(policy, timing, groups, renewed, suspects, at: now)
        case .servers(let id, let servers):
            var group = groups[id.rawValue].group
            group.servers = servers
            groups[id.rawValue].replace(group)
            policy.setServers(of: group)
            describeGroups()
            failures.removeAll()
            outageEnded(of: id, at: now)
        case .families(let families):
            let before = policy
            policy.setFamilies(families)
            // The recorded absence of records was about other families.
            for group in groups.indices.map(GroupID.init) where policy.families(of: group) != before.families(of: group)
            {
                groups[group.rawValue].namesWithoutRecord.removeAll()
            }
        case .hosts(let hosts, let others):
            forgetAnswers(of: others)
            outdateLookups { others.contains($0.name) }
            policy.hosts = hosts
        case .network:
            for place in groups.indices {
                groups[place].networkChanged(at: now)
                outageEnded(of: GroupID(place), at: now)
            }
            failures.removeAll()
            forgetRanks()
            for id in queries.ids { askAgain(id, at: now) }
        case .forget(let name?):
            let key = NameKey(name)
            for place in groups.indices { groups[place].namesWithoutRecord.remove { $0 == key } }
            failures.remove { $0.name == key }
            ranks.forget(key)
            outdateLookups { $0 == key }
            forgetShared(name)
        case .forget(nil):
            forgetNamesWithoutRecord()
            forgetRanks()
            failures.removeAll()
            outdateLookups { _ in true }
            forgetAllShared()
        case .sharedCache(let settings):
            store.begin(settings, at: now, &actions)
            takeFindings(at: now)
        case .wanted(let preResolve, let keepAlive):
            start(preResolve: preResolve, keepAlive: keepAlive, at: now)
        }
    }

    /// What is under way for these names is not cached, since it would come back as what is known now is given, and nobody
    /// joins it any more.
    private mutating func outdateLookups(of isMeant: (NameKey) -> Bool) {
        for flight in flightOf.values where isMeant(flight.key.name) {
            flight.outdate()
            flightOf[flight.key] = nil
        }
        store.outdate(where: isMeant)
        for place in groups.indices {
            for lookup in groups[place].lookups.values where isMeant(lookup.key) {
                lookup.outdate()
                groups[place].lookups[lookup.key] = nil
            }
        }
    }

    private mutating func forgetNamesWithoutRecord() {
        for place in groups.indices { groups[place].namesWithoutRecord.removeAll() }
    }

    /// Puts each group in its place; groups that stay keep what is known of them.
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
        describeGroups()
    }

    private mutating func describeGroups() {
        rules.groups = groups.map {
            FlightRules.GroupTraits(hasServers: !$0.isEmpty, carriesAddresses: $0.group.carriesAddresses)
        }
    }

    private mutating func reconfigure(
        _ policy: Policy, _ timing: Timing, _ groups: [UpstreamGroup], _ renewed: Set<GroupID>,
        _ suspects: Change.Suspects, at now: Tick
    ) {
        let before = self.policy
        (self.policy, rules.timing) = (policy, timing)
        replaceGroups(groups)
        for place in self.groups.indices where renewed.contains(GroupID(place)) { self.groups[place].beginAfresh() }
        if !renewed.isEmpty { failures.removeAll() }
        guard !suspects.isEmpty else { return }
        failures.removeAll()
        forgetNamesWithoutRecord()
        outdateLookups { _ in true }
        for place in self.groups.indices {
            self.groups[place].noRecordBudget.removeAll()
        }
        forgetSuspects(suspects, after: before)
        withdrawBarred(at: now)
    }

    /// Forgets the answers in the cache that are suspect.
    private func forgetSuspects(_ suspects: Change.Suspects, after before: Policy) {
        guard cache.statistics.entries <= Self.mostEntriesToLookThrough else { return cache.removeAll() }
        let accounts = suspects.groups.filter { groups[$0.rawValue].group.carriesAddresses }
        let (policy, all) = (policy, suspects.groups)
        cache.removeAll { name, type, audience in
            let standing = policy.standing(name, type, audience)
            return standing.route.asks(audience.isOfAccounts ? accounts : all)
                || standing != before.standing(name, type, audience)
        }
    }

    /// With more entries than this, walking the cache would hold up questions for longer than some hundredths of a
    /// second.
    static var mostEntriesToLookThrough: Int { 50_000 }

    private func forgetAnswers(of names: Set<Name>) {
        if names.count <= Self.mostNamesToForget {
            for name in names { cache.remove(name) }
        } else if cache.statistics.entries <= Self.mostEntriesToLookThrough {
            cache.removeAll { name, _, _ in names.contains(name) }
        } else {
            cache.removeAll()
        }
    }

    /// Forgetting one name walks the whole cache; for more names than this, one walk asks of each entry whether it is to be
    /// forgotten.
    private static var mostNamesToForget: Int { 8 }

    private mutating func forgetAllShared() {
        if store.settings != nil { act(.shared(.beginGeneration)) }
    }
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
    public func name(of group: GroupID) -> String { groups[group.rawValue].group.name }
    public var flightsUnderWay: Int { flights.count }
    /// Nil: nothing is shared.
    public var sharedCacheOverview: SharedCacheOverview? { store.settings == nil ? nil : store.overview }
}
