public import Base
public import Configuration
import Control
import Counters
import DNSCache
import Dispatch
import Forwarding
import Log
import Logging
import Synchronization
import Transport
import Upstreams

extension Daemon {
    /// Applies new settings as far as they differ from those in effect, all in one step, while questions are answered
    /// as usual. Keys that need a restart are named in the log. From one thread at a time.
    /// - Throws: What is wrong with the settings; then nothing has changed.
    /// - Parameter origins: Where the settings were given.
    public func reload(_ new: Settings, _ origins: Settings.Origins? = nil) throws(StartFailure) {
        let reloading = settings.reloading(new)
        // The files of names may have changed although the settings are the same.
        try apply(reloading.settings, origins)
        observer.reloads.withLock {
            $0.succeeded += 1
            $0.lastSucceeded = true
            $0.lastSuccess = WallClock.unixSeconds()
        }
        report.reloaded(reloading)
    }

    /// Reports that the settings could not be read; those in effect stay.
    /// - Parameter line: What is wrong, and where.
    public func reloadFailed(_ line: String) {
        observer.reloads.withLock {
            $0.failed += 1
            $0.lastSucceeded = false
        }
        report.reloadFailed(line)
    }

    private func apply(_ new: Settings, _ origins: Settings.Origins?) throws(StartFailure) {
        let (running, proxiesBefore) = settings.applyingProxy(in: environment)
        let (next, proxies) = new.applyingProxy(in: environment)
        let prepared = try forwarderLoop.prepare(
            next, after: running, &numbers, Provenance(origins: origins, proxies: proxies))
        settings = new
        settings.forgetFiles()
        report.proxies(proxies.filter { !proxiesBefore.contains($0) })
        if prepared.areOtherServices || !prepared.renewed.isEmpty || proxies != proxiesBefore { report.service(next) }
        if next.listen != running.listen {
            frontend.change { $0.apply(next.listen) }
            streams.apply(next.listen)
        }
        let isDone = DispatchSemaphore(value: 0)
        forwarderLoop.withCacheRead { [forwarderLoop] in
            forwarderLoop.apply(prepared)
            isDone.signal()
        }
        isDone.wait()
    }
}

extension ForwarderLoop {
    /// New settings, and the parts of them that take time or can fail: made on any thread, to be applied on the loop.
    struct Prepared: @unchecked Sendable {
        // Unchecked: made on one thread, used on the loop.
        let settings: Settings
        let numbers: GroupNumbers
        let names: NameLists
        fileprivate let local: LocalReading
        fileprivate let provenance: Provenance
        fileprivate let carriers: Carriers.Prepared
        /// The accounts whose servers have changed, or the way in which they are asked.
        let renewed: [Settings.Account]
        /// Whether an account was added, changed or removed.
        let areOtherServices: Bool
        /// New reporters by account, for accounts whose reports go somewhere else than before. A value of nil: they report no
        /// more.
        fileprivate let reporters: [String: AbnormalReporter?]
        fileprivate let isOtherStore: Bool
        fileprivate let store: SharedStore?
    }

    /// May be called from any thread.
    /// - Parameter old: the settings in effect; nil at the start.
    func prepare(
        _ new: Settings, after old: Settings?, _ numbers: inout GroupNumbers, _ provenance: Provenance
    ) throws(StartFailure) -> Prepared {
        numbers.add(new)
        let carriers = try Carriers.Prepared(new, after: old)
        var reporters: [String: AbnormalReporter?] = [:]
        for account in new.accounts {
            let before = old?.accounts.first { $0.name == account.name }
            if account.settings.reports == before?.settings.reports { continue }
            reporters.updateValue(try makeReporter(account), forKey: account.name)
        }
        let isOtherStore = old.map { new.hasOtherStore(than: $0) } ?? true
        return Prepared(
            settings: new, numbers: numbers, names: try NameLists(new, numbers),
            local: local.read(new, after: old), provenance: provenance, carriers: carriers,
            renewed: new.accounts.filter { account in
                let before = old?.accounts.first { $0.name == account.name }
                return carriers.isOtherAccess(account.name) || account.settings.dnsIp != before?.settings.dnsIp
                    || account.settings.confIp != before?.settings.confIp
                    || account.settings.isBypassed != before?.settings.isBypassed
            },
            areOtherServices: new.accounts.map(\.name) != old?.accounts.map(\.name),
            reporters: reporters,
            isOtherStore: isOtherStore, store: try isOtherStore ? SharedStore(new.sharedCache) : nil)
    }

    /// Applies new settings; on the loop, or before it starts.
    func apply(_ new: Prepared) {
        let now = Tick(nanoseconds: Clock.now())
        let (old, oldNames) = (settings, nameFiles.names)
        (settings, numbers) = (new.settings, new.numbers)
        provenance = new.provenance
        settings.forgetFiles()
        nameFiles.replace(new.names, settings, numbers)
        carriers.apply(new.settings, new.carriers, new.numbers)
        cache.apply(staleSeconds: settings.cache.staleSeconds, prefetchAt: settings.cache.prefetchAt)
        let hosts = local.hosts
        local.apply(new.settings, new.local)
        let others = local.hosts.names(otherThanIn: hosts)
        if !others.isEmpty { forwarder.change(.hosts(local.hosts, others: others), at: now) }
        let accounts = Set(settings.accounts.map { numbers[$0.name] })
        for (id, list) in serviceLists where !accounts.contains(id) {
            list.close()
            serviceLists[id] = nil
        }
        services = services.filter { accounts.contains($0.key) }
        for account in new.renewed {
            services[numbers[account.name]] = account.services
            followServiceList(of: account, at: now)
        }
        for (name, reporter) in new.reporters {
            reporters[numbers[name]]?.close()
            reporters[numbers[name]] = reporter
        }
        for (id, reporter) in reporters where !accounts.contains(id) {
            reporter.close()
            reporters[id] = nil
        }
        for account in settings.accounts { reporters[numbers[account.name]]?.apply(account.settings) }
        debugged = Set(settings.accounts.filter(\.settings.debug).map { numbers[$0.name] })
        if new.isOtherStore { replaceStore(new.store, at: now) }
        let suspects =
            oldNames.map { new.settings.suspects(after: old, numbers, areNamesOther: $0 != new.names) }
            ?? Forwarding.Change.Suspects()
        takeOver(renewed: Set(new.renewed.map { numbers[$0.name] }), suspects, at: now)
        nameFiles.follow()
        guard oldNames != nil else { return }
        if !suspects.isEmpty { contextChanged(AnswerContext(settings, numbers, new.names)) }
        if !suspects.isEmpty || settings.cache.keepAliveDomains != old.cache.keepAliveDomains
            || settings.cache.preResolve != old.cache.preResolve
        {
            let known = Set(old.cache.preResolve)
            forwarder.change(
                .wanted(
                    preResolve: settings.cache.preResolve.filter { !known.contains($0) },
                    keepAlive: settings.cache.keepAliveDomains), at: now)
        }
    }

    /// Tells the forwarder the present settings, servers and names.
    func takeOver(
        renewed: Set<GroupID> = [], _ suspects: Forwarding.Change.Suspects = Forwarding.Change.Suspects(), at now: Tick
    ) {
        guard let names = nameFiles.names else { return }
        let described = UpstreamGroups(settings: settings, numbers: numbers)
        let groups = described.groups(services: services) { local.servers(of: $0) }
        carriers.lookUp(settings, services: services[.httpdns] ?? [], resolvers: local.found, at: now)
        for group in groups { carriers.keep(group.servers, of: group.id) }
        identifyShared()
        forwarder.change(
            .settings(
                Policy(settings, numbers, groups: groups, routes: described.routes, names, hosts: local.hosts),
                Timing(settings), groups, renewed: renewed, suspects), at: now)
    }

    /// The servers found by `resolvConf` have changed.
    func replaceResolvers() {
        lookUpServers()
        identifyShared()
        let described = UpstreamGroups(settings: settings, numbers: numbers)
        for group in described.groups(services: services, servers: { local.servers(of: $0) })
        where !group.carriesAddresses {
            let before = forwarder.overview(of: group.id).servers.map(\.server)
            if group.servers != before { replaceServers(of: group.id, group.servers) }
        }
    }

    /// The sources for the addresses of servers may have changed.
    func lookUpServers() {
        carriers.lookUp(
            settings, services: services[.httpdns] ?? [], resolvers: local.found, at: Tick(nanoseconds: Clock.now()))
    }

    /// The servers of a group have changed.
    func replaceServers(of group: GroupID, _ servers: [Server]) {
        carriers.keep(servers, of: group)
        forwarder.change(.servers(group, servers), at: Tick(nanoseconds: Clock.now()))
    }

    /// The files of names have changed.
    func replaceNames(_ names: NameLists) {
        takeOver(Forwarding.Change.Suspects(routes: true), at: Tick(nanoseconds: Clock.now()))
        contextChanged(AnswerContext(settings, numbers, names))
    }
}

extension Settings {
    /// Which answers of the time under other settings may be wrong under these.
    /// - Parameter areNamesOther: the files of names have changed.
    fileprivate func suspects(
        after old: Settings, _ numbers: GroupNumbers, areNamesOther: Bool
    ) -> Forwarding.Change.Suspects {
        let (words, oldWords) = (groupWords, old.groupWords)
        let others = words.filter { name, word in oldWords[name].map { $0 != word } ?? false }
        return Forwarding.Change.Suspects(
            routes: areNamesOther || domains != old.domains || (httpdns == nil) != (old.httpdns == nil)
                || ways != old.ways
                || accounts.map(\.settings.addressType) != old.accounts.map(\.settings.addressType),
            groups: Set(others.keys.map { numbers[$0] }))
    }
}

extension Settings.HTTPDNS {
    /// The destination of reports; the outer nil: they are disabled.
    fileprivate var reports: ReportURL?? { enableReport ? .some(reportUrl) : .none }
}

extension Report {
    func reloaded(_ reloading: Settings.Reloading) {
        if reloading.applied.isEmpty {
            say(.notice, .reloaded, "the configuration was read again, nothing has changed")
        } else {
            let keys = reloading.applied.joined(separator: ", ")
            say(
                .notice, .reloaded, "the configuration was read again: \(keys)",
                ["keys": keys])
        }
        let rest = reloading.needingRestart
        if !rest.isEmpty {
            let words =
                rest.count == 1
                ? "needs a restart; until then it stays as it was" : "need a restart; until then they stay as they were"
            log.warning("\(rest.joined(separator: ", ")) \(words)")
        }
    }

    func reloadFailed(_ line: String) {
        say(.error, .reloadFailed, "the configuration stays as it was: \(line)", ["reason": line])
    }
}
