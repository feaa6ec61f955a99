public import Base
import DNSCache
public import DNSWire

/// A change for a running forwarder.
public enum Change {
    /// Other settings take effect, all in one step.
    ///
    /// Flights under way go on, and their clients get the answers. A query to a group that may no longer learn the name
    /// is cancelled, and its question is asked again under the new rules.
    /// - Parameters:
    ///   - renewed: Groups with another account or another way of asking: their servers' states are reset.
    case settings(Policy, Timing, [UpstreamGroup], renewed: Set<GroupID>)
    /// A group has other servers; queries under way to the former servers go on.
    case servers(GroupID, [Server])
    /// The address families that each account is asked for.
    case families([GroupID: Families])
    /// The prefix of the AAAA records that are made from A records; nil if none are made.
    case synthesis(NAT64Prefix?)
    /// The hosts file has changed.
    case hosts(HostsTable)
    /// This machine's addresses or routes have changed: earlier failures are forgotten, queries under way are repeated,
    /// and the first server of each group is tried again.
    case network
    /// This machine is in another network: see ``Policy/network``.
    case otherNetwork(UInt64)
    /// The fleet's store is set, has changed, or is removed.
    case sharedCache(SharedSettings?)
    /// `preResolve` and `keepAliveDomains`.
    case wanted(preResolve: [Name], keepAlive: [Name])
}

extension Forwarder {
    /// Applies a change at once; its consequences are in the actions.
    public mutating func change(_ change: Change, at now: Tick) {
        switch change {
        case .settings(let policy, let timing, let groups, let renewed):
            reconfigure(policy, timing, groups, renewed, at: now)
        case .servers(let id, let servers):
            let group = desk.setServers(servers, of: id)
            obey { $0.setServers(of: group) }
            admission.failures.removeAll()
            desk.endStandIns(of: id, at: now)
            withdrawBarred(at: now)
            desk.askInsteadOfRemoved(id, at: now)
            preResolveAgain(at: now)
        case .families(let families):
            let before = policy
            obey { $0.setFamilies(families) }
            let policy = policy
            // The recorded absences of records were about other families.
            desk.forgetNamesWithoutRecord { policy.families(of: $0) != before.families(of: $0) }
        case .synthesis(let prefix): if prefix != policy.synthesis { obey { $0.synthesis = prefix } }
        case .hosts(let hosts): obey { $0.hosts = hosts }
        case .network:
            desk.networkChanged(at: now)
            admission.failures.removeAll()
            // The results of trials belong to the former network.
            for id in ranks.forgetAll() { act(.trial(.end(TrialID(id)))) }
            store.networkChanged(at: now, &desk.actions)
            preResolveAgain(at: now)
        case .otherNetwork(let network): if network != policy.network { obey { $0.network = network } }
        case .sharedCache(let settings):
            store.begin(settings, at: now, &desk.actions)
            takeFindings(at: now)
        case .wanted(let preResolve, let keepAlive):
            start(preResolve: preResolve, keepAlive: keepAlive, at: now)
        }
        handleDeskEvents(at: now)
    }

    /// Forgets all knowledge about some names, in the cache too, and does not cache answers under way.
    /// - Returns: The number of answers that were in the cache.
    public mutating func forget(_ scope: NameScope, at now: Tick) -> Int {
        let isMeant = { (key: NameKey) in scope.contains(key.name) }
        desk.each { $0.namesWithoutRecord.remove(where: isMeant) }
        admission.failures.remove { isMeant($0.name) }
        ranks.forget(isMeant)
        outdate(where: { key, _ in isMeant(key.name) }, lookups: { key, _ in isMeant(key) })
        if case .only(let name) = scope {
            forgetShared(name)
        } else if store.settings != nil {
            // An entry of the store does not contain its name, so all entries become invalid.
            act(.shared(.beginGeneration))
        }
        defer { handleDeskEvents(at: now) }
        var count = cache.remove(scope)
        // An alias has the answers of its target.
        for target in policy.targets(of: scope) { count += forget(.only(target), at: now) }
        return count
    }

    /// Changes the rules. The bases of cached answers are compared at their next use, the bases of answers under way
    /// are compared at once.
    private mutating func obey(_ change: (inout Policy) -> Void) {
        change(&policy)
        let policy = policy
        cache.obey(policy.basis)
        desk.endStandIns { !policy.mayAsk($0, $1) || policy.bases($1) == AnswerBases() }
        // Without bases, a server is looked for, or a client of another host asks for a name that the hosts file has for
        // this host: such an answer is not cached, and may come from the former servers.
        outdate {
            $1 == AnswerBases() || $1 != policy.bases($0)
        } lookups: { name, bases in
            // A type that the account leaves out has no bases.
            bases == AnswerBases()
                || ![RecordType.a, .aaaa].contains {
                    let now = policy.bases(Flight.Key(name: name, type: $0, audience: .plain))
                    return (bases.ipv4, bases.ipv6) == (now.ipv4, now.ipv6)
                }
        }
    }

    /// Detaches the flights and lookups of these questions: their answers are given but not cached, since they may be
    /// wrong, and no client joins them.
    /// - Parameter lookups: Whether an account's lookup of a name is meant.
    private mutating func outdate(
        where isMeant: (Flight.Key, AnswerBases) -> Bool, lookups isMeantOfAccounts: (NameKey, AnswerBases) -> Bool
    ) {
        outdateFlights { isMeant($0.key, $0.bases) }
        let policy = policy
        store.outdate {
            isMeant($0.key, $0.bases)
                || $0.isAccount && $0.question.families != policy.families(of: $0.question.group)
        }
        desk.each { $0.outdateLookups(where: isMeantOfAccounts) }
    }

    /// Detaches what is under way to groups that had another account or other servers when it was asked: a former
    /// account's "no record" would count as the new account's, and the fleet's store would have a former answer under
    /// the present key.
    private mutating func outdate(askedOf groups: Set<GroupID>) {
        outdateFlights { $0.route.contains { groups.contains($0.group) } }
        store.outdate { groups.contains($0.question.group) }
        desk.each { if groups.contains($0.id) { $0.outdateLookups { _, _ in true } } }
    }

    private mutating func outdateFlights(where isMeant: (Flight) -> Bool) {
        for flight in flightOf.values where isMeant(flight) {
            flight.outdate()
            flightOf[flight.key] = nil
        }
    }

    private mutating func reconfigure(
        _ new: Policy, _ timing: Timing, _ groups: [UpstreamGroup], _ renewed: Set<GroupID>, at now: Tick
    ) {
        let before = policy
        obey { policy in
            let synthesis = policy.synthesis
            policy = new
            policy.synthesis = synthesis
        }
        var former: [[Server]] = []
        for id in desk.ids { former.append(desk.group(id).servers) }
        desk.replace(groups, timing)
        // The desk knows which groups have had servers.
        if desk.ids.contains(policy.privateNames) { self.policy.setServers(of: desk.group(policy.privateNames)) }
        desk.beginAfresh(renewed, at: now)
        var others = renewed
        for (id, servers) in zip(desk.ids, former) where desk.group(id).servers != servers {
            desk.endStandIns(of: id, at: now)
            others.insert(id)
        }
        outdate(askedOf: others)
        admission.failures.removeAll()
        let policy = policy
        desk.forgetNamesWithoutRecord {
            !policy.trusts($0, as: before) || policy.families(of: $0) != before.families(of: $0)
        }
        withdrawBarred(at: now)
        for id in others { desk.askInsteadOfRemoved(id, at: now) }
    }

    /// Takes back names that are under way to a group which may no longer learn them. Their clients' questions are
    /// asked again under the present rules; so are questions that wait for A records, which may have a new source.
    private mutating func withdrawBarred(at now: Tick) {
        let policy = policy
        let barred = flights.ids.compactMap { flights[$0] }.filter { flight in
            !flight.isCurrent
                && (translations.isAwaited(by: flight.id)
                    || flight.route.indices.contains {
                        flight.isUnderWay($0) && !policy.mayAsk(flight.route[$0].group, flight)
                    })
        }
        desk.takeBack(unless: { policy.mayAsk($0, $1) }, at: now)
        beginAgain(barred, at: now)
    }

    /// Ends flights, and asks their questions again for their clients. The clients' deadlines stay as they were.
    private mutating func beginAgain(_ ended: [Flight], at now: Tick) {
        let questions = ended.map { ($0.key, $0.phase, $0.takeClients()) }
        // All flights end before the first question is asked again: its answer may be for another of these flights.
        for flight in ended {
            desk.withdraw(flight)
            end(flight)
        }
        for (key, phase, clients) in questions {
            for client in clients {
                admission.answered(client)
                if Translations.isOne(client.number), !translations.awaits(client.number) { continue }
                let asker = Asker(client.source, isProven: client.isProven)
                let asking = AskingClient(number: client.number, asker: asker, waitedBefore: phase)
                receive(key, asking, of: client.source, at: now)
            }
        }
    }
}

// MARK: State for the outside

extension Forwarder {
    /// The groups that may be asked, by their numbers.
    public var groupOverviews: [GroupOverview] {
        var all: [GroupOverview] = []
        for group in desk.ids where policy.leads(to: group) { all.append(overview(of: group)) }
        return all
    }
    /// The state of a group that exists or existed.
    public func overview(of group: GroupID) -> GroupOverview {
        desk.overview(of: group, thenTry: policy.steps(of: group).filter { $0.group != group })
    }
    /// The name of a group in the configuration, or of a group that was removed.
    public func name(of group: GroupID) -> String { desk.name(of: group) }
    /// The number of questions under way.
    public var flightsUnderWay: Int { flights.count }
    /// The state of the store; nil if no store is configured.
    public var sharedCacheOverview: SharedCacheOverview? { store.settings == nil ? nil : store.overview }

    /// How much is under way, by kind; empty when all work has ended.
    var underWay: [(what: String, count: Int)] {
        mutating get {
            _ = nextDeadline
            var counts = [
                ("clients", admission.clients.all), ("flights", flights.count), ("questions", flightOf.count),
                ("deadlines", deadlines.count), ("translations", translations.count),
            ]
            counts += desk.underWay
            return counts
        }
    }
}
