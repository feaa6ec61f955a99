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
    /// Takes over settings that were read again, as far as they differ from those in effect: all in one step, while
    /// questions are answered as ever. What needs a restart is said in the log. From one thread at a time.
    /// - Throws: What is wrong with the settings; then nothing has changed.
    public func reload(_ new: Settings) throws(StartFailure) {
        let reloading = settings.reloading(new)
        if !reloading.applied.isEmpty { try apply(reloading.settings) }
        observer.reloads.withLock {
            $0.succeeded += 1
            $0.lastSucceeded = true
            $0.lastSuccess = WallClock.unixSeconds()
        }
        report.reloaded(reloading)
    }

    /// The settings cannot be read again; those in effect stay.
    /// - Parameter line: What is wrong, and where.
    public func reloadFailed(_ line: String) {
        observer.reloads.withLock {
            $0.failed += 1
            $0.lastSucceeded = false
        }
        report.reloadFailed(line)
    }

    private func apply(_ new: Settings) throws(StartFailure) {
        try new.refuseUnsupported()
        let (running, proxyBefore) = settings.heedingProxy(in: environment)
        let (next, proxy) = new.heedingProxy(in: environment)
        let change = try resolver.change(to: next, from: running)
        settings = new
        settings.forgetFiles()
        if let proxy, proxy != proxyBefore { report.proxy(proxy) }
        if change.isOtherService || proxy != proxyBefore, !(proxy?.isHeeded ?? false) { report.service(next.httpdns) }
        if next.listen != running.listen {
            reception.change { $0.heed(next.listen) }
            streams.heed(next.listen)
        }
        let isDone = DispatchSemaphore(value: 0)
        resolver.withCacheRead { [self] in
            resolver.take(change, in: cache)
            do throws(SystemError) {
                try local.heed(next.fallback, isNeeded: !(next.httpdns?.httpOnly ?? false))
            } catch {
                report.systemFailed(error)
            }
            if next.cacheContext != running.cacheContext { cacheFile?.settingsChanged(context: next.cacheContext) }
            isDone.signal()
        }
        isDone.wait()
    }
}

extension Resolver {
    /// Other settings, and what was made of them where that can fail.
    struct Change: @unchecked Sendable {
        // Unchecked: made on one thread, taken on the loop.
        let settings: Settings
        /// The servers are others, or asked in another way.
        let isOtherService: Bool
        /// Nil: as before.
        let access: ServiceUpstream.Access?
        let isOtherReporter: Bool
        let reporter: AbnormalReporter?
        let suspects: Forwarding.Change.Suspects
    }

    /// Prepares other settings; from any thread.
    func change(to new: Settings, from old: Settings) throws(StartFailure) -> Change {
        let isOtherAccess = new.httpdns.map { !$0.hasAccess(of: old.httpdns) || new.tls != old.tls } ?? false
        let access =
            try isOtherAccess
            ? new.httpdns.map { httpdns throws(StartFailure) in
                try ServiceUpstream.Access(httpdns, new.tls)
            } : nil
        let isOtherReporter = new.httpdns?.reports != old.httpdns?.reports
        return Change(
            settings: new,
            isOtherService: isOtherAccess || new.httpdns?.dnsIp != old.httpdns?.dnsIp
                || new.httpdns?.confIp != old.httpdns?.confIp,
            access: access, isOtherReporter: isOtherReporter, reporter: try isOtherReporter ? makeReporter(new) : nil,
            suspects: new.suspects(after: old))
    }

    /// On the loop.
    func take(_ change: Change, in cache: DNSCache) {
        let (old, new) = (settings, change.settings)
        settings = new
        settings.forgetFiles()
        if change.isOtherService {
            if let access = change.access {
                if let service {
                    service.renew(access)
                } else {
                    service = ServiceUpstream(loop: loop, access: access, tallies: local.tallies)
                }
            }
            service?.keep(new.services)
            followServiceList()
        }
        if change.isOtherReporter {
            reporter?.close()
            reporter = change.reporter
        } else if let httpdns = new.httpdns {
            reporter?.heed(httpdns)
        }
        local.negativeTTL = new.cache.negativeTTL
        local.trustsAD = new.fallback.trustAD
        cache.heed(staleSeconds: new.cache.staleSeconds, prefetchAt: new.cache.prefetchAt)
        let now = Tick(nanoseconds: Clock.now())
        // Those that were found meanwhile stay, unless others are configured.
        let services =
            change.isOtherService
            ? new.services : forwarder.overview(of: .httpdns).servers.map(\.server)
        forwarder.change(
            .settings(
                Policy(new, hosts: forwarder.policy.hosts), Timing(new),
                new.groups(services: services, resolvers: localServers),
                renewed: change.isOtherService ? [.httpdns] : [], change.suspects), at: now)
        if !change.suspects.isEmpty || new.cache.keepAliveDomains != old.cache.keepAliveDomains
            || new.cache.preResolve != old.cache.preResolve
        {
            let known = Set(old.cache.preResolve)
            forwarder.change(
                .wanted(
                    preResolve: new.cache.preResolve.filter { !known.contains($0) },
                    keepAlive: new.cache.keepAliveDomains), at: now)
        }
    }
}

extension Settings {
    /// What of the answers that were found under other settings may not hold under these.
    fileprivate func suspects(after old: Settings) -> Forwarding.Change.Suspects {
        var suspects: Forwarding.Change.Suspects = []
        if domains != old.domains || (httpdns == nil) != (old.httpdns == nil)
            || httpdns?.addressType != old.httpdns?.addressType
        {
            suspects.insert(.routes)
        }
        if httpdns?.routeIp != old.httpdns?.routeIp || httpdns?.routeIpEncrypted != old.httpdns?.routeIpEncrypted
            || httpdns?.httpOnly != old.httpdns?.httpOnly
        {
            suspects.insert(.accountAnswers)
        }
        if fallback.trustAD != old.fallback.trustAD { suspects.insert(.messageAnswers) }
        return suspects
    }
}

extension Settings.HTTPDNS {
    /// Whether requests are written by the same account in the same way.
    fileprivate func hasAccess(of other: Self?) -> Bool {
        credential == other?.credential && routeIp == other?.routeIp && routeIpEncrypted == other?.routeIpEncrypted
            && authExpirySeconds == other?.authExpirySeconds
    }

    /// Where reports go; nil: nowhere.
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
            log.warning("\(rest.joined(separator: ", ")) \(rest.count == 1 ? "needs" : "need") a restart")
        }
    }

    func reloadFailed(_ line: String) {
        say(.error, .reloadFailed, "the configuration stays as it was: \(line)", ["reason": line])
    }
}
