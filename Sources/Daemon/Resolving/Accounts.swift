import Base
import Configuration
import Forwarding
import HTTPDNS
import Log
import Transport
import Upstreams

/// The parts of HTTPDNS accounts beside their upstreams: the servers in use, lists of further servers, reports, and
/// logged lookups. Confined to the forwarder's loop.
final class Accounts {
    /// The present servers of each account: the servers of `dnsIp`, until `confIp` gives others.
    private(set) var servers: [GroupID: [Server]] = [:]
    /// Called when a list has given an account other servers.
    var serversChanged: () -> Void = {}
    /// `confIp`.
    private var lists: [GroupID: ServiceList] = [:]
    /// `enableReport`.
    private var reporters: [GroupID: AbnormalReporter] = [:]
    /// `trace`: the session IDs in accounts' requests.
    private(set) var sessions: [GroupID: String] = [:]
    /// `debug`.
    private var debugged: Set<GroupID> = []
    private let loop: EventLoop
    private let report: Report

    init(loop: EventLoop, report: Report) { (self.loop, self.report) = (loop, report) }

    /// The parts of settings that can fail; made on any thread.
    struct Prepared: @unchecked Sendable {
        // Unchecked: made on one thread, used on the loop.
        /// The accounts whose servers or access have changed.
        let renewed: [Settings.Group]
        /// By account, if the destination of reports or the way there has changed. With a value of nil there are no
        /// more reports.
        fileprivate var reporters: [String: AbnormalReporter?] = [:]
    }

    /// May be called from any thread.
    /// - Parameters:
    ///   - old: The identities of the groups in effect; empty at the start.
    ///   - finder: Finds the servers of reports; called on the loop.
    func prepare(
        _ new: Settings, after old: [String: GroupIdentity], _ finder: ServerFinder
    ) throws(StartFailure) -> Prepared {
        let identities = GroupIdentity.all(new)
        func differs<Part: Equatable>(_ account: Settings.Group, _ part: (GroupIdentity) -> Part) -> Bool {
            identities[account.name].map(part) != old[account.name].map(part)
        }
        var prepared = Prepared(
            renewed: new.accounts.filter { account in
                differs(account, \.access) || differs(account, \.services)
            })
        for account in new.accounts where differs(account, \.reports) {
            let reporter =
                account.enableReport
                ? try AbnormalReporter(account, loop: loop, finder: finder, report: report) : nil
            prepared.reporters.updateValue(reporter, forKey: account.name)
        }
        return prepared
    }

    /// Applies other settings.
    /// - Parameter accesses: The present access of each account.
    func apply(
        _ new: Prepared, _ settings: Settings, _ numbers: GroupNumbers,
        accesses: [GroupID: ServiceAccess], at now: Tick
    ) {
        let present = Set(settings.accounts.map { numbers[$0.name] })
        servers = servers.filter { present.contains($0.key) }
        let (renewed, reporting) = (new.renewed.map { numbers[$0.name] }, new.reporters.map { numbers[$0.key] })
        for id in lists.keys where !present.contains(id) || renewed.contains(id) {
            lists.removeValue(forKey: id)?.close()
        }
        for id in reporters.keys where !present.contains(id) || reporting.contains(id) {
            reporters.removeValue(forKey: id)?.close()
        }
        for account in new.renewed {
            let id = numbers[account.name]
            servers[id] = account.services
            guard !account.confIp.isEmpty, !account.isBypassed, let access = accesses[id] else {
                continue
            }
            let list = ServiceList(account, access: access, loop: loop, report: report, at: now)
            list.changed = { [unowned self] in
                servers[id] = $0.map { Server($0, .account) }
                serversChanged()
            }
            lists[id] = list
        }
        for (name, reporter) in new.reporters { reporters[numbers[name]] = reporter }
        for account in settings.accounts { reporters[numbers[account.name]]?.apply(account) }
        sessions = accesses.compactMapValues(\.account.sessionID)
        debugged = Set(settings.accounts.filter(\.debug).map { numbers[$0.name] })
    }

    func logs(_ account: GroupID) -> Bool { !debugged.isEmpty && debugged.contains(account) }

    func add(_ lookup: AbnormalLookup) { reporters[lookup.group]?.add(lookup) }

    /// A query has failed.
    /// - Parameter servers: The group's servers.
    func failed(_ group: GroupID, _ servers: @autoclosure () -> [ServerState], at now: Tick) {
        if let list = lists[group], servers().allSatisfy({ $0.health.consecutiveFailures > 0 }) {
            list.askSoon(at: now)
        }
    }

    func networkChanged(at now: Tick) { for list in lists.values { list.askSoon(at: now) } }

    func expire(at now: Tick) {
        for list in lists.values { list.expire(at: now) }
        for reporter in reporters.values { reporter.expire(at: now) }
    }

    var nextDeadline: Tick? {
        // The deadline is read in each turn of the loop.
        if lists.isEmpty, reporters.isEmpty { return nil }
        return reporters.values.reduce(lists.values.lazy.map(\.nextDeadline).min()) { $0.orEarlier($1.nextDeadline) }
    }

    func close() {
        for list in lists.values { list.close() }
        for reporter in reporters.values { reporter.close() }
    }
}
