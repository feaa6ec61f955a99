import Base
import Configuration
import Counters
import Cryptography
import Forwarding
import Log
import Transport
import Upstreams

/// Owns the upstreams of all groups, made and changed by the settings. Confined to the forwarder's loop.
final class UpstreamRegistry {
    /// By `GroupID.rawValue`; nil if the group has no upstream, or no longer.
    private var upstreams: [(any Upstream)?] = []
    /// The access to the servers of each account.
    private(set) var accesses: [GroupID: ServiceAccess] = [:]
    /// The groups that are no longer configured, while queries of theirs may be under way.
    private var gone: Set<GroupID> = []
    /// Finds servers whose host is a name.
    let lookup: ServerLookup
    private let loop: EventLoop
    private let report: Report?
    /// Counts the messages of servers that were not the awaited answers.
    private let tally: Tally
    /// Gathers the queries of a turn, to be sent at its end.
    let outbox = Outbox()
    private let inquiries = Inquiries()
    /// Called with the outcome of each query.
    var settle: Settle = { _, _, _ in }
    /// Called when the kernel has refused a query's datagram, or a connection for the query; perhaps several times.
    var lost: (QueryID) -> Void = { _ in }
    /// Called with each query that was sent.
    var wrote: (QueryID) -> Void = { _ in }

    /// The parts of settings that can fail; made on any thread.
    struct Prepared: @unchecked Sendable {
        // Unchecked: made on one thread, used on the loop.
        /// The names of the groups whose access is new or has changed.
        let renewed: [String]
        /// The new access of accounts whose access has changed, by their groups.
        fileprivate var accesses: [String: ServiceAccess] = [:]
        /// New contexts for groups with encrypted servers that are new or have another verification.
        fileprivate var contexts: [String: TLSClientContext] = [:]

        /// - Parameter old: The identities of the groups in effect; empty at the start.
        init(_ new: Settings, after old: [String: GroupIdentity] = [:]) throws(StartFailure) {
            let others = GroupIdentity.all(new).filter { $1.access != old[$0]?.access }
            renewed = Array(others.keys)
            for account in new.accounts where others[account.name] != nil {
                accesses[account.name] = try ServiceAccess(account)
            }
            for group in new.messageGroups where group.isEncrypted && others[group.name] != nil {
                contexts[group.name] = try TLSClientContext(group.tls, group.section)
            }
        }
    }

    init(loop: EventLoop, _ lookup: ServerLookup, _ tally: Tally, report: Report? = nil) {
        (self.loop, self.lookup, self.tally, self.report) = (loop, lookup, tally, report)
    }

    subscript(group: GroupID) -> (any Upstream)? {
        group.rawValue < upstreams.count ? upstreams[group.rawValue] : nil
    }

    private var all: some Sequence<any Upstream> { upstreams.lazy.compactMap { $0 } }

    /// Applies other settings; queries under way go on.
    func apply(_ settings: Settings, _ prepared: Prepared, _ numbers: GroupNumbers) {
        for (name, access) in prepared.accesses {
            let id = numbers[name]
            accesses[id] = access
            if let account = self[id] as? StreamUpstream {
                account.renew(access)
            } else {
                add(StreamUpstream(loop: loop, access: access), for: id)
            }
        }
        let groups = settings.messageGroups + (settings.resolversAsked.map { [$0] } ?? [])
        let wanted = Set((groups + settings.accounts).map { numbers[$0.name] })
        gone = Set(upstreams.indices.map(GroupID.init)).subtracting(wanted).filter { self[$0] != nil }
        for id in gone { keep([], of: id) }
        for group in groups { apply(group, prepared.contexts[group.name], settings, numbers) }
        lookup.keep(groups.flatMap(\.named) + settings.accounts.compactMap { AbnormalReporter.server(of: $0) })
    }

    private func apply(
        _ group: Settings.Group, _ context: TLSClientContext?, _ settings: Settings, _ numbers: GroupNumbers
    ) {
        let id = numbers[group.name]
        let known = self[id] as? GroupUpstream
        let upstream =
            known
            ?? GroupUpstream(
                DNSAnswers(negativeTTL: 0, tally: tally), tls: context, loop: loop, egress: group.egress,
                lookup: lookup.finder, outbox: outbox)
        if known == nil {
            upstream.answers.otherCase = { [report] in report?.otherCase($0) }
            add(upstream, for: id)
        } else {
            upstream.renew(context, group.egress)
        }
        upstream.answers.apply(group, settings.cache)
    }

    private func add(_ upstream: any Upstream, for group: GroupID) {
        while upstreams.count <= group.rawValue { upstreams.append(nil) }
        (upstream.settle, upstream.wrote, upstream.lost) = (settle, wrote, lost)
        upstreams[group.rawValue] = upstream
    }

    /// Closes the upstreams of groups that are no longer configured, as soon as no query is under way there.
    private func closeGone() {
        for id in gone where self[id]?.isIdle ?? true {
            upstreams[id.rawValue]?.close()
            (upstreams[id.rawValue], accesses[id]) = (nil, nil)
            gone.remove(id)
        }
    }

    /// Other upstreams with the same access, for an ``Inquiry``.
    /// - Parameter progressed: Called with the progress of new connections.
    func apart(
        _ groups: some Sequence<GroupID>, lookup: ServerFinder,
        progressed: @escaping (StreamUpstream.Progress) -> Void = { _ in }
    ) -> [GroupID: any Upstream] {
        groups.reduce(into: [:]) { upstreams, id in
            if let access = accesses[id] {
                let account = StreamUpstream(loop: loop, access: access)
                account.progressed = progressed
                upstreams[id] = account
            } else if let group = (self[id] as? GroupUpstream)?.apart(lookup: lookup) {
                group.progressed = progressed
                upstreams[id] = group
            }
        }
    }

    /// - Parameter done: Called later, when the inquiry is over.
    /// - Returns: false if too many inquiries are under way.
    func begin(_ inquiry: any Inquiring, at now: Tick, _ done: @escaping () -> Void) -> Bool {
        guard inquiries.hasRoom else { return false }
        inquiries.begin(inquiry, at: now, done)
        return true
    }

    /// Ends the loop's turn.
    func endTurn() {
        if !gone.isEmpty { closeGone() }
        inquiries.endTurn()
    }

    /// The counts of each group's servers.
    var figures: [GroupID: [Server: UpstreamTallies.Figures]] {
        var figures: [GroupID: [Server: UpstreamTallies.Figures]] = [:]
        for id in upstreams.indices.map(GroupID.init) { figures[id] = tallies(of: id)?.figures }
        return figures
    }

    private func tallies(of group: GroupID) -> UpstreamTallies? {
        (self[group] as? StreamUpstream)?.tallies ?? (self[group] as? GroupUpstream)?.tallies
    }

    /// Sets the servers of a group, and forgets the connections and counts of its other servers.
    func keep(_ servers: [Server], of group: GroupID) {
        self[group]?.keep(servers)
        tallies(of: group)?.keep(servers)
    }

    /// The resolvers of `resolvConf` may be needed in this network, although they were not in the former network.
    func networkChanged(_ settings: Settings, _ numbers: GroupNumbers) {
        guard let group = settings.resolversAsked, self[numbers[group.name]] == nil else { return }
        apply(group, nil, settings, numbers)
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
        var next = lookup.nextDeadline.orEarlier(inquiries.nextDeadline)
        for case let upstream? in upstreams { next = next.orEarlier(upstream.nextDeadline) }
        return next
    }
}

extension DNSAnswers {
    fileprivate func apply(_ group: Settings.Group, _ cache: Settings.Cache) {
        negativeTTL = cache.negativeTTL
        trustsAD = group.trustAD
        clientSubnet = group.routeIp
    }
}

extension Settings {
    /// The resolvers of `resolvConf` as a group of their own, while they are asked: each upstream costs each turn of
    /// the loop some instructions.
    fileprivate var resolversAsked: Group? {
        isLookupNeeded || nat64.isSearched(Routes.families()) ? resolvers : nil
    }
}
