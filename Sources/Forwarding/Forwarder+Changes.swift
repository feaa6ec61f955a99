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
    /// The prefix under which clients get addresses made of A records; nil: they get none.
    case synthesis(NAT64Prefix?)
    /// The hosts file has changed: the names of which it says something else now must not be answered from the cache.
    /// - Parameter others: Those names, by ``HostsTable/names(otherThanIn:)``.
    case hosts(HostsTable, others: Set<Name>)
    /// This machine's addresses or routes have changed: earlier failures are forgotten, queries under way are sent once
    /// more, and the first server of each group is tried again.
    case network
    /// Forgets what is known about some names, and does not cache what is under way. The caller forgets the answers in the
    /// cache.
    case forget(NameScope)
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

        /// By default no answer is suspect.
        public init(routes: Bool = false, groups: Set<GroupID> = []) { (self.routes, self.groups) = (routes, groups) }

        /// Whether no answer is suspect.
        public var isEmpty: Bool { !routes && groups.isEmpty }
    }
}

extension Forwarder {
    /// Takes a change over at once; what it leads to is in the actions.
    public mutating func change(_ change: Change, at now: Tick) {
        switch change {
        case .settings(let policy, let timing, let groups, let renewed, let suspects):
            reconfigure(policy, timing, groups, renewed, suspects, at: now)
        case .servers(let id, let servers):
            policy.setServers(of: desk.setServers(servers, of: id))
            admission.forgetFailures()
            desk.outageEnded(of: id, at: now)
        case .families(let families):
            let before = policy
            policy.setFamilies(families)
            let policy = policy
            // The recorded absence of records was about other families.
            desk.forgetNamesWithoutRecord { policy.families(of: $0) != before.families(of: $0) }
        case .synthesis(let prefix): setSynthesis(prefix)
        case .hosts(let hosts, let others):
            forgetAnswers(of: others)
            outdateLookups { others.contains($0.name) }
            policy.hosts = hosts
        case .network:
            desk.networkChanged(at: now, &actions)
            admission.forgetFailures()
            forgetRanks()
        case .forget(let scope):
            let isMeant = { (key: NameKey) in scope.contains(key.name) }
            desk.forget(isMeant)
            admission.forgetFailures(of: isMeant)
            ranks.forget(isMeant)
            outdateLookups(of: isMeant)
            // An entry of the store does not say of which name it is.
            if case .only(let name) = scope { forgetShared(name) } else { forgetAllShared() }
        case .sharedCache(let settings):
            store.begin(settings, at: now, &actions)
            takeFindings(at: now)
        case .wanted(let preResolve, let keepAlive):
            start(preResolve: preResolve, keepAlive: keepAlive, at: now)
        }
        handleDeskEvents(at: now)
    }

    /// What is under way for these names is not cached, since it would come back as what is known now is given, and nobody
    /// joins it any more.
    mutating func outdateLookups(of isMeant: (NameKey) -> Bool) {
        for flight in flightOf.values where isMeant(flight.key.name) {
            flight.outdate()
            flightOf[flight.key] = nil
        }
        store.outdate(where: isMeant)
        desk.outdateLookups(of: isMeant)
    }

    private mutating func reconfigure(
        _ policy: Policy, _ timing: Timing, _ groups: [UpstreamGroup], _ renewed: Set<GroupID>,
        _ suspects: Change.Suspects, at now: Tick
    ) {
        let before = self.policy
        self.policy = policy
        self.policy.synthesis = before.synthesis
        desk.replace(groups, timing)
        // It knows which groups have had servers.
        if desk.ids.contains(policy.privateNames) { self.policy.setServers(of: desk.group(policy.privateNames)) }
        desk.beginAfresh(renewed)
        if !renewed.isEmpty { admission.forgetFailures() }
        guard !suspects.isEmpty else { return }
        admission.forgetFailures()
        desk.forgetNamesWithoutRecord()
        desk.forgetNoRecordBudgets()
        outdateLookups { _ in true }
        forgetSuspects(suspects, after: before)
        withdrawBarred(at: now)
    }

    /// Takes names back that are under way to a group which may not be told them any more. The questions of those who wait
    /// are asked anew, by the rules of now.
    private mutating func withdrawBarred(at now: Tick) {
        let policy = policy
        let barred = flights.ids.compactMap { flights[$0] }.filter { flight in
            !flight.isCurrent
                && flight.route.indices.contains {
                    flight.isUnderWay($0)
                        && !policy.mayAsk(flight.route[$0].group, flight.key)
                }
        }
        desk.takeBack(unless: { policy.mayAsk($0, $1) }, &actions)
        for flight in barred { beginAnew(flight, at: now) }
    }

    /// Ends a flight, and asks its question again for those who wait. They have waited already, so the moments at which
    /// they get what there is stay the same.
    private mutating func beginAnew(_ flight: Flight, at now: Tick) {
        let (key, phase, clients) = (flight.key, flight.phase, flight.takeClients())
        end(flight)
        for client in clients {
            let source = admission.source(of: client.share)
            admission.answered(client)
            receive(
                key, Asker(number: client.number, source: source, isProven: client.isProven), of: source, at: now)
        }
        if let anew = flightOf[key] { tell(anew, .waitedBefore(phase), at: now) }
    }

    /// Forgets the answers in the cache that are suspect.
    private func forgetSuspects(_ suspects: Change.Suspects, after before: Policy) {
        guard cache.statistics.entries <= Self.mostEntriesToLookThrough else { return cache.removeAll() }
        let accounts = suspects.groups.filter { desk.rules[$0].carriesAddresses }
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
        if names.isEmpty { return }
        if names.count <= Self.mostNamesToForget || cache.statistics.entries <= Self.mostEntriesToLookThrough {
            cache.removeAll { name, _, _ in names.contains(name) }
        } else {
            cache.removeAll()
        }
    }

    /// To forget so few names, a cache of any size is walked through.
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
        for group in desk.ids where policy.leads(to: group) { all.append(overview(of: group)) }
        return all
    }
    /// The state of a group that there is or was.
    public func overview(of group: GroupID) -> GroupOverview {
        desk.overview(of: group, thenTry: policy.steps(of: group).map(\.group).filter { $0 != group })
    }
    /// The name of a group in the configuration, also of one that there was.
    public func name(of group: GroupID) -> String { desk.name(of: group) }
    /// How many questions are under way.
    public var flightsUnderWay: Int { flights.count }
    /// Nil: nothing is shared.
    public var sharedCacheOverview: SharedCacheOverview? { store.settings == nil ? nil : store.overview }

    /// How much is under way, by kind: nothing, once nothing happens any more.
    var underWay: [(what: String, count: Int)] {
        mutating get {
            _ = nextDeadline
            var counts = [
                ("clients", admission.clients), ("flights", flights.count), ("questions", flightOf.count),
                ("deadlines", deadlines.count), ("translations", translations.count),
            ]
            counts += desk.underWay
            return counts
        }
    }
}
