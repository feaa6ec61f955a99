import Base
import Configuration
import Forwarding
import HTTPDNS
import Log
import Transport
import Upstreams

/// What HTTPDNS accounts have beside their upstreams: the servers that are asked, lists of further servers, reports, and
/// lookups that are logged. Confined to the forwarder's loop.
final class Accounts {
    /// The present servers of each: those of `dnsIp`, until `confIp` gives others.
    private(set) var servers: [GroupID: [Server]] = [:]
    /// Called when a list has given an account other servers.
    var serversChanged: () -> Void = {}
    /// `confIp`.
    private var lists: [GroupID: ServiceList] = [:]
    /// `enableReport`.
    private var reporters: [GroupID: AbnormalReporter] = [:]
    /// `trace`: what goes along with an account's requests.
    private(set) var sessions: [GroupID: String] = [:]
    /// `debug`.
    private var debugged: Set<GroupID> = []
    private let loop: EventLoop
    private let report: Report

    init(loop: EventLoop, report: Report) { (self.loop, self.report) = (loop, report) }

    /// The parts made from settings that can fail; made on any thread.
    struct Prepared: @unchecked Sendable {
        // Unchecked: made on one thread, used on the loop.
        /// The accounts whose servers have changed, or the way in which they are asked.
        let renewed: [Settings.Group]
        /// By account, where reports go somewhere else than before. A value of nil: no more reports.
        fileprivate var reporters: [String: AbnormalReporter?] = [:]
    }

    /// May be called from any thread.
    /// - Parameters:
    ///   - old: of the settings in effect; none at the start.
    ///   - finder: finds the servers that take reports; called on the loop.
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

    /// Takes over other settings.
    /// - Parameter accesses: how each account is asked now.
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
    /// - Parameter areAllFailing: whether the group's servers have all failed the last time.
    func failed(_ group: GroupID, areAllFailing: @autoclosure () -> Bool, at now: Tick) {
        if let list = lists[group], areAllFailing() { list.serversFailed(at: now) }
    }

    func networkChanged(at now: Tick) { for list in lists.values { list.networkChanged(at: now) } }

    func expire(at now: Tick) {
        for list in lists.values { list.expire(at: now) }
        for reporter in reporters.values { reporter.expire(at: now) }
    }

    var nextDeadline: Tick? {
        // Asked for in each turn of the loop.
        if lists.isEmpty, reporters.isEmpty { return nil }
        return reporters.values.reduce(lists.values.lazy.map(\.nextDeadline).min()) { $0.orEarlier($1.nextDeadline) }
    }

    func close() {
        for list in lists.values { list.close() }
        for reporter in reporters.values { reporter.close() }
    }
}
