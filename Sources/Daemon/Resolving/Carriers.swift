import Base
import Configuration
import Control
import Counters
import Cryptography
import Forwarding
import HTTPDNS
import Log
import Transport
import Upstreams

/// Owns the upstreams of all groups, made and changed by the settings. Confined to the forwarder's loop.
final class Carriers {
    let tallies = UpstreamTallies()
    /// Of HTTPDNS accounts.
    private var accounts: [GroupID: ServiceUpstream] = [:]
    private var messages: [GroupID: GroupUpstream] = [:]
    /// The deadlines of those upstreams that were asked something; the others have none.
    private var deadlines: [(group: GroupID?, next: () -> Tick?)] = []
    private var asked: Set<GroupID> = []
    /// The groups that are not configured any more, while queries of theirs may be under way.
    private var gone: Set<GroupID> = []
    /// The upstream that was looked up last: most questions of a turn are for the same group.
    private var latest: (group: GroupID, upstream: any Upstream)?
    /// Whether the addresses of servers are looked up.
    private var looksUp = false
    /// A second upstream for the account, by which servers' addresses are looked up: an upstream reports its outcomes
    /// to one owner.
    private var lookupAccount: ServiceUpstream?
    private let lookup: ServerLookup
    private let loop: EventLoop
    private let report: Report?
    /// Holds the queries of a turn; to be sent at its end.
    let outbox = Outbox()
    private let inquiries = Inquiries()
    /// Whether a question was ever explained.
    private var inquires = false
    /// Called with the outcome of each query.
    var settle: Settle = { _, _, _ in } {
        didSet {
            for upstream in accounts.values { upstream.settle = settle }
            for upstream in messages.values { upstream.settle = settle }
        }
    }

    /// The parts made from settings that can fail; made on any thread.
    struct Prepared: @unchecked Sendable {
        // Unchecked: made on one thread, used on the loop.
        /// The new access of accounts that are asked in another way than before, by their groups.
        fileprivate var accesses: [String: ServiceUpstream.Access] = [:]
        /// New contexts for groups with encrypted servers that were not there before or are verified in another way.
        fileprivate var contexts: [String: TLSClientContext] = [:]
        func isOtherAccess(_ group: String) -> Bool { accesses[group] != nil }

        /// - Parameter old: the settings in effect; nil at the start.
        init(_ new: Settings, after old: Settings?) throws(StartFailure) {
            for account in new.accounts {
                let before = old?.accounts.first { $0.name == account.name }
                if let before, account.settings.hasAccess(of: before.settings), account.tls == before.tls { continue }
                accesses[account.name] = try ServiceUpstream.Access(account)
            }
            for group in new.messageGroups where group.isEncrypted {
                let before = old?.messageGroups.first { $0.name == group.name }
                if let before, before.isEncrypted, before.tls == group.tls { continue }
                contexts[group.name] = try TLSClientContext(group.tls, group.path)
            }
        }
    }

    init(loop: EventLoop, _ lookup: ServerLookup, report: Report? = nil) {
        (self.loop, self.lookup, self.report) = (loop, lookup, report)
    }

    subscript(group: GroupID) -> (any Upstream)? {
        if let latest, latest.group == group { return latest.upstream }
        guard let upstream = upstream(of: group) else { return nil }
        latest = (group, upstream)
        if asked.insert(group).inserted { deadlines.append((group, { upstream.nextDeadline })) }
        return upstream
    }

    /// How the servers of an account are asked.
    func access(of group: GroupID) -> ServiceUpstream.Access? { accounts[group]?.access }

    /// Applies other settings; queries under way go on.
    func apply(_ settings: Settings, _ prepared: Prepared, _ numbers: GroupNumbers) {
        latest = nil
        for (name, access) in prepared.accesses {
            let id = numbers[name]
            if id == .httpdns { lookupAccount?.renew(access) }
            if let account = accounts[id] {
                account.renew(access)
            } else {
                let account = ServiceUpstream(loop: loop, access: access, tallies: tallies)
                account.settle = settle
                accounts[id] = account
            }
        }
        let groups = settings.messageGroups
        let wanted = Set((groups.map(\.name) + settings.accounts.map(\.name)).map { numbers[$0] })
        gone = Set(accounts.keys).union(messages.keys).subtracting(wanted)
        for id in gone { upstream(of: id)?.keep([]) }
        for group in groups {
            let id = numbers[group.name]
            let context = prepared.contexts[group.name]
            let upstream =
                messages[id]
                ?? GroupUpstream(
                    DNSAnswers(negativeTTL: 0), tls: context, loop: loop, tallies: tallies, lookup: lookup.finder,
                    outbox: outbox)
            if messages[id] == nil {
                upstream.settle = settle
                upstream.answers.otherCase = { [report] in report?.otherCase($0) }
                messages[id] = upstream
            } else if let context {
                upstream.renew(context)
            }
            upstream.answers.apply(group, settings.cache)
        }
    }

    /// Closes the upstreams of groups that are not configured any more, as soon as nothing is under way there.
    private func closeGone() {
        for id in gone where upstream(of: id)?.isIdle ?? true {
            upstream(of: id)?.close()
            (accounts[id], messages[id], latest) = (nil, nil, nil)
            gone.remove(id)
            asked.remove(id)
            deadlines.removeAll { $0.group == id }
        }
    }

    /// Sets the sources for the addresses of servers whose host is a name; each source is asked for its own names only.
    /// - Parameters:
    ///   - services: the servers of HTTPDNS.
    ///   - resolvers: those of `resolvConf`.
    func lookUp(_ settings: Settings, services: [Server], resolvers: [Endpoint], at now: Tick) {
        let servers = settings.messageGroups.flatMap(\.named)
        if !looksUp, !servers.isEmpty {
            looksUp = true
            deadlines.append((nil, { [lookup] in lookup.nextDeadline }))
        }
        guard looksUp else { return }
        lookup.keep(servers)
        var account: (upstream: any Upstream, servers: [Server])?
        if !servers.isEmpty, !services.isEmpty, let access = access(of: .httpdns) {
            let upstream = lookupAccount ?? ServiceUpstream(loop: loop, access: access, tallies: tallies)
            lookupAccount = upstream
            account = (upstream, services)
        } else {
            lookupAccount = nil
        }
        lookup.ask(account: account, resolvers: servers.isEmpty ? [] : resolvers.map { Server($0) }, at: now)
    }

    /// Asks servers for an operator; see ``Inquiry``.
    /// - Parameter done: called later with what each target says.
    /// - Returns: false if too many inquire already.
    func inquire(
        _ targets: [Inquiry.Target], at now: Tick, _ done: @escaping ([Inquiry.Said]) -> Void
    ) -> Bool {
        var upstreams: [GroupID: any Upstream] = [:]
        for group in Set(targets.map(\.group)) {
            upstreams[group] =
                access(of: group).map { ServiceUpstream(loop: loop, access: $0) }
                ?? messages[group]?.apart(lookup: lookup.onlooker)
        }
        let inquiry = Inquiry(targets, upstreams, at: now)
        return begin(inquiry, at: now) { done(inquiry.said) }
    }

    /// - Parameter done: called later, when the inquiry is over.
    /// - Returns: false if too many inquire already.
    func begin(_ inquiry: any Inquiring, at now: Tick, _ done: @escaping () -> Void) -> Bool {
        guard inquiries.hasRoom else { return false }
        if !inquires {
            inquires = true
            deadlines.append((nil, { [inquiries] in inquiries.nextDeadline }))
        }
        inquiries.begin(inquiry, at: now, done)
        return true
    }

    /// Ends the loop's turn.
    func endTurn() {
        if !gone.isEmpty { closeGone() }
        if inquires { inquiries.endTurn() }
    }

    /// Sets the servers of a group.
    func keep(_ servers: [Server], of group: GroupID) { self[group]?.keep(servers) }

    /// Messages that were not the awaited answers.
    var mismatches: MismatchCounters {
        messages.values.reduce(into: MismatchCounters()) { $0.add($1.answers.mismatches) }
    }

    /// Passes on the progress of fresh connections, for `probe`.
    func follow(_ progressed: @escaping (StreamUpstream.Progress) -> Void) {
        for upstream in accounts.values { upstream.progressed = progressed }
        for upstream in messages.values { upstream.progressed = progressed }
    }

    func networkChanged(at now: Tick) {
        for upstream in all { upstream.networkChanged() }
        lookup.networkChanged(at: now)
    }

    func close() {
        for upstream in all { upstream.close() }
        inquiries.close()
        lookup.close()
    }

    func expire(at now: Tick) {
        for upstream in all { upstream.expire(at: now) }
        inquiries.expire(at: now)
        lookup.expire(at: now)
    }

    var nextDeadline: Tick? {
        var next: Tick?
        for deadline in deadlines { next = next.orEarlier(deadline.next()) }
        return next
    }

    private func upstream(of group: GroupID) -> (any Upstream)? { accounts[group] ?? messages[group] }

    private var all: [any Upstream] { accounts.values.map { $0 } + messages.values.map { $0 } }
}

extension Settings.HTTPDNS {
    /// Whether requests use the same account in the same way.
    fileprivate func hasAccess(of other: Self) -> Bool {
        credential == other.credential && routeIp == other.routeIp && routeIpEncrypted == other.routeIpEncrypted
            && authExpirySeconds == other.authExpirySeconds
    }
}

extension DNSAnswers {
    fileprivate func apply(_ group: Settings.Group, _ cache: Settings.Cache) {
        negativeTTL = cache.negativeTTL
        trustsAD = group.trustAD
        clientSubnet = group.routeIp
    }
}
