import Base
import Configuration
import Counters
import DNSCache
import Forwarding
import Log
import Transport
import Upstreams

/// The settings in effect, and the parts around the forwarder that follow them. Confined to the forwarder's loop,
/// except ``prepare(_:after:_:_:)``.
///
/// A reload is one ``apply(_:)``, and so is the start: each part compares its present state with the wanted one. The
/// same parts follow the files that settings name, and end in the same changes of the forwarder.
final class SettingsInEffect: @unchecked Sendable {
    // Unchecked: `prepare` uses only constants.
    private(set) var settings = Settings()
    private(set) var numbers = GroupNumbers()
    /// The source of the settings.
    private(set) var provenance = Provenance()
    let upstreams: UpstreamRegistry
    let accounts: Accounts
    let store: Store
    let translation: Translation
    /// Passes a change to the forwarder.
    var change: (Change, Tick) -> Void = { _, _ in }
    private let generations: Generations?
    private let nameFiles: NameFiles
    private let loop: EventLoop
    private let local: LocalServers
    private let cache: DNSCache
    private let frontend: CurrentFrontend
    /// The groups with their servers, as the forwarder has them.
    private(set) var groups: [UpstreamGroup] = []

    init(
        loop: EventLoop, cache: DNSCache, frontend: CurrentFrontend, local: LocalServers, lookup: ServerLookup,
        generations: Generations?, tally: Tally, report: Report
    ) {
        (self.cache, self.frontend, self.local, self.loop) = (cache, frontend, local, loop)
        upstreams = UpstreamRegistry(loop: loop, lookup, tally, report: report)
        accounts = Accounts(loop: loop, report: report)
        store = Store(generations, loop: loop, outbox: upstreams.outbox)
        self.generations = generations
        nameFiles = NameFiles(loop: loop, report: report)
        translation = Translation(lookup, report: report)
        translation.changed = { [unowned self] in translationChanged() }
        local.serversChanged = { [unowned self] in replaceServers() }
        local.hostsChanged = { [unowned self] in change(.hosts($0), now) }
        accounts.serversChanged = { [unowned self] in replaceServers() }
        nameFiles.changed = { [unowned self] in takeOver(at: self.now) }
    }

    /// The assignment of names to groups; nil before the first settings.
    var names: NameLists? { nameFiles.names }

    /// Why no change of the files of names is in effect, in words; nil if changes are.
    var troubleOfNames: String? { nameFiles.trouble }

    /// The state of the files of names, with all their events so far. From any thread but the loop's.
    /// - Parameter settings: The settings in effect; nil if the loop does not run yet.
    private func knownNames(_ settings: Settings?) -> NameLists.Known? {
        guard let settings, settings.hasFilesOfNames else { return nil }
        return waiting { done in
            loop.submit { [self] in done(nameFiles.known(cacheFile: settings.cache.file)) }
        }
    }

    /// The hosts files that cannot be read, and the ignored parts of the others, in words.
    var hostsRemarks: [String] { local.hostsRemarks }

    /// The servers of each group that are named and not asked, by the group's name.
    var leftOut: [String: [LeftOutServer]] { local.leftOut }

    private var now: Tick { Tick(nanoseconds: Clock.now()) }

    /// New settings, and the parts of them that take time or can fail: made on any thread, to be applied on the loop.
    struct Prepared: @unchecked Sendable {
        // Unchecked: made on one thread, used on the loop.
        let settings: Settings
        let names: NameLists
        fileprivate let numbers: GroupNumbers
        fileprivate let provenance: Provenance
        let local: LocalReading
        fileprivate let upstreams: UpstreamRegistry.Prepared
        fileprivate let accounts: Accounts.Prepared
        /// The new store; with the outer nil the store stays.
        fileprivate let store: Store.Prepared??
        /// Whether an account was added, changed or removed.
        let areOtherAccounts: Bool
    }

    /// May be called from any thread.
    /// - Parameters:
    ///   - old: The settings in effect; nil at the start.
    ///   - numbers: Stay as they are if a part fails: a group of refused settings has no number.
    func prepare(
        _ new: Settings, after old: Settings?, _ numbers: inout GroupNumbers, _ provenance: Provenance
    ) throws(StartFailure) -> Prepared {
        var added = numbers
        added.add(new)
        let before = old.map(GroupIdentity.all) ?? [:]
        let accounts = try accounts.prepare(new, after: before, upstreams.lookup.finder)
        if new.sharedCache.server != nil { generations?.read() }
        let isSameStore = old.map {
            $0.sharedCache == new.sharedCache && SharedSettings($0) == SharedSettings(new)
        }
        let prepared = Prepared(
            settings: new, names: try NameLists(new, added, knownNames(old)), numbers: added,
            provenance: provenance,
            local: local.read(new, after: old), upstreams: try UpstreamRegistry.Prepared(new, after: before),
            accounts: accounts, store: isSameStore ?? false ? .none : .some(try Store.Prepared(new.sharedCache)),
            areOtherAccounts: !accounts.renewed.isEmpty || new.accounts.map(\.name) != old?.accounts.map(\.name))
        numbers = added
        return prepared
    }

    /// Applies new settings, all in one turn; on the loop, or before it starts.
    func apply(_ new: Prepared) {
        let now = now
        let isFirst = names == nil
        (settings, numbers, provenance) = (new.settings, new.numbers, new.provenance)
        settings.forgetFiles()
        cache.apply(staleSeconds: settings.cache.staleSeconds, prefetchAt: settings.cache.prefetchAt)
        nameFiles.apply(new.names, settings, numbers)
        let areOtherResolvers = local.apply(settings, new.local)
        upstreams.apply(settings, new.upstreams, numbers)
        accounts.apply(new.accounts, settings, numbers, accesses: upstreams.accesses, at: now)
        if let store = new.store, self.store.apply(store) {
            change(.sharedCache(store == nil ? nil : SharedSettings(settings)), now)
        }
        // Before the policy is made, which includes the families by which servers are reached.
        translation.apply(settings.nat64, areOtherResolvers: areOtherResolvers, at: now)
        let renewed = new.accounts.renewed.map(\.name) + new.upstreams.renewed
        takeOver(renewed: Set(renewed.map { numbers[$0] }), at: now)
        if !isFirst {
            change(.wanted(preResolve: settings.cache.preResolve, keepAlive: settings.cache.keepAliveDomains), now)
        }
        // Last, so that a newly allowed client gets no answer made under old settings.
        frontend.change { $0.apply(new.settings.listen) }
    }

    /// Passes the present settings, servers and names to the forwarder.
    private func takeOver(renewed: Set<GroupID> = [], at now: Tick) {
        guard let names else { return }
        let described = describeGroups()
        for group in groups { upstreams.keep(group.servers, of: group.id) }
        change(
            .settings(
                Policy(
                    settings, numbers, described, names, hosts: local.hosts, network: local.network,
                    reach: translation.reach),
                Timing(settings), groups, renewed: renewed), now)
    }

    /// The servers found by `resolvConf`, or the servers of an account's list, have changed.
    private func replaceServers() {
        let now = now
        translation.networkChanged(at: now)
        let old = groups
        _ = describeGroups()
        change(.otherNetwork(local.network), now)
        for (before, group) in zip(old, groups) where group.servers != before.servers {
            upstreams.keep(group.servers, of: group.id)
            change(.servers(group.id, group.servers), now)
        }
    }

    /// The groups with their present servers, in the order of asking. Informs the other parts that depend on the
    /// servers.
    private func describeGroups() -> UpstreamGroups {
        store.upstream?.apply(settings.sharedIdentities(numbers) { local.servers(of: $0) })
        let described = UpstreamGroups(settings, numbers, services: accounts.servers) { local.servers(of: $0) }
        if described.groups != groups { upstreams.lookup.forgetFailures(at: now) }
        groups = described.groups
        return described
    }

    /// This machine's addresses or routes have changed.
    func networkChanged(at now: Tick) {
        takeLinks()
        local.networkChanged()
        upstreams.networkChanged(settings, numbers)
        // Once: queries under way are repeated each time.
        if !translation.networkChanged(at: now) { reachabilityChanged(at: now) }
    }

    /// Updates the networks on this machine's links, which decide the shares of clients.
    func takeLinks() {
        // If the kernel does not list them, the former networks stay.
        if let networks = Routes.networksOnLinks() { frontend.change { $0.links = Links(networks) } }
    }

    /// The reachability of servers may have changed.
    private func reachabilityChanged(at now: Tick) {
        upstreams.networkChanged(at: now)
        change(.families(settings.families(numbers, translation.reach)), now)
        change(.network, now)
        accounts.networkChanged(at: now)
    }

    /// The way to IPv4 has changed, or clients get other addresses.
    private func translationChanged() {
        let now = now
        change(.synthesis(translation.synthesis), now)
        reachabilityChanged(at: now)
    }

    func expire(at now: Tick) {
        translation.expire(at: now)
        upstreams.expire(at: now)
        accounts.expire(at: now)
    }

    var nextDeadline: Tick? {
        upstreams.nextDeadline.orEarlier(accounts.nextDeadline).orEarlier(translation.nextDeadline)
    }

    func close() {
        local.stop()
        nameFiles.close()
        translation.close()
        upstreams.close()
        accounts.close()
        store.upstream?.close()
    }
}

extension Settings {
    fileprivate var hasFilesOfNames: Bool {
        let (needed, others) = namesAndHosts
        return !(needed + others).allSatisfy { fallback.hosts.contains($0) }
    }
}
