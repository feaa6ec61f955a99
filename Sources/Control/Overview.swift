package import Base
package import Counters
package import DNSCache
package import Forwarding
import Transport

/// The state of the daemon's queues at one moment, with everything that can be read on any thread. It contains no
/// conclusions, since these queues have other work.
package struct Observation: Sendable {
    /// The time of the observation, on the clock of the ticks in the observation.
    var at = Tick(nanoseconds: 0)
    /// The start of the daemon, in seconds since 1970.
    var startedAt: UInt64 = 0
    var now: UInt64 = 0
    /// The groups of upstreams: HTTPDNS, the fallback, and the operator's own.
    package var groups: [GroupOverview] = []
    /// The protocol of each account among the groups, by name.
    package var accounts: [String: AccountWay] = [:]
    /// The servers that a file or key names but that are not asked, by the name of their group.
    package var leftOut: [String: [LeftOutServer]] = [:]
    /// Lasting differences from the settings; a sentence each, without an end.
    package var remarks: [String] = []
    /// The option with which commands read the daemon's configuration, ` -c FILE`; empty for the standard file.
    package var fileOption = ""
    /// The certificate for clients; nil: there is no certificate.
    package var certificate: ShownCertificate?
    /// How IPv4 servers are reached.
    package var reach = IPv4Reach()
    var isStopping = false
    /// Whether questions are accepted, which begins when the cache's file was read.
    package var isOpen = true
    /// The groups with servers that are asked for the names that no pattern takes, in order.
    package var mainRoute: [GroupID] = []
    /// Whether questions fail for more than one name.
    package var hasLostServers = false

    package var cache: DNSCache.Statistics
    /// The most octets of the cache.
    var cacheLimit = 0
    package var counters = Counters()
    /// Names sent to each account, also to those that were removed: see ``Forwarder/namesSent``.
    package var namesSent: [GroupID: UInt64] = [:]
    /// Lookups under way.
    package var flights = 0
    /// The state of the shared cache; nil: no store is configured.
    package var sharedCache: SharedCacheOverview?
    /// The counts of the listeners of each transport that has any.
    var listeners: [(transport: Tally.Transport, counts: Tally.Counts)] = []
    /// The counts of all listeners and of the forwarder's loop.
    package var counts = Tally.Counts()
    /// Durations of the answers that were not in the cache.
    var lookups = Durations()
    /// The counts of each group's servers.
    package var upstreams: [GroupID: [Server: UpstreamTallies.Figures]] = [:]
    var reloads = Reloads()
    var logLinesLost: UInt64 = 0

    /// An idle daemon without upstreams.
    package init(_ cache: DNSCache.Statistics) { self.cache = cache }

    /// Adds the counts of the listeners, and of the answers that did not come from a listener.
    mutating func add(_ listeners: [Tally], _ forwarderLoop: Tally) {
        for transport in Tally.Transport.allCases {
            let tallies = listeners.filter { $0.transport == transport }
            if !tallies.isEmpty { self.listeners.append((transport, Tally.Counts(of: tallies))) }
        }
        (counts, lookups) = (Tally.Counts(of: listeners + [forwarderLoop]), Tally.Counts(of: [forwarderLoop]).durations)
    }

    /// Questions by transport.
    var askedOver: [(transport: Tally.Transport, count: UInt64)] {
        listeners.map { ($0.transport, $0.counts.asked) }.filter { $0.count > 0 }
    }

    var durations: Durations { counts.durations }
}

/// The state and the counts of the daemon at one moment: the single source of `status`, the metrics, the status page
/// and the service manager's status line, which only format it.
@dynamicMemberLookup
package struct Overview: Sendable {
    private var observation: Observation
    let groups: [GroupView]
    /// The last hour, minute by minute.
    let hour: Hour
    /// The last 24 hours and the last 30 days.
    let past: [Course]
    /// The figures of the process; zeros if they were not collected.
    var process = ProcessFigures()

    package init(_ observation: Observation) { self.init(observation, Hour(minutes: [])) }

    init(_ observation: Observation, _ hour: Hour, _ past: [Course] = []) {
        (self.observation, self.hour, self.past) = (observation, hour, past)
        groups = observation.groups.map { group in
            GroupView(
                group, of: observation.accounts[group.name], leftOut: observation.leftOut[group.name] ?? [],
                figures: observation.upstreams[group.id] ?? [:], hour: hour, at: observation.at, wall: observation.now)
        }
    }

    /// The remarks on problems, a sentence each.
    var remarks: [String] {
        let clock =
            "The clock is wrong: it stands before this version was made. Certificates cannot be judged by it."
        let refused = self.reloads.lastFailure.map { ["The last reload was refused, and a restart may fail: \($0)"] }
        return (observation.now < Version.made ? [clock] : []) + (refused ?? []) + observation.remarks
            + (observation.certificate?.remarks(at: observation.now) ?? [])
    }

    /// The same for readers who need no right, as those of the page: a mistake quotes the configuration, perhaps a secret
    /// in a wrong place.
    var withoutMistake: Overview {
        var shown = self
        shown.observation.reloads.lastFailure = self.reloads.lastFailure.map { _ in "httpdnsd status says why" }
        return shown
    }

    package subscript<Value>(dynamicMember path: KeyPath<Observation, Value>) -> Value { observation[keyPath: path] }
}

/// Conclusions from the numbers.
extension Overview {
    enum State: String, Sendable {
        /// Every group in use answers, or was not asked yet.
        case healthy
        /// Names resolve, but not through the groups that should answer.
        case degraded
        /// No group answers; cached answers are still served.
        case down
        case starting, stopping
    }

    var state: State {
        if self.isStopping { return .stopping }
        if !self.isOpen { return .starting }
        if sources.isEmpty || areAllFailing && self.hasLostServers { return .down }
        if areAllFailing || lacksRecords || lacksFallback { return .degraded }
        if let account, account.asked?.isFailing ?? false || account.isSwitched { return .degraded }
        return routedGroups.contains(where: \.isFailing) ? .degraded : .healthy
    }

    /// Whether an uncached question can be expected to be answered now: questions are accepted, and some server has not
    /// failed within the last half minute, or only for one name. A server with an older failure is tried with the next
    /// question, and may answer.
    var isReady: Bool {
        self.isOpen && !self.isStopping && !sources.isEmpty
            && !(self.hasLostServers && sources.allSatisfy { $0.isFailing && $0.failedLately })
    }

    /// Whether the last attempt at each main server failed.
    var areAllFailing: Bool { sources.allSatisfy(\.isFailing) }
    /// Whether HTTPDNS answers, but has had no record of so many names that HTTPDNS may be useless.
    var lacksRecords: Bool { account.map { $0.counters.withoutRecordInARow >= Self.fewestNames } ?? false }
    static let fewestNames = 20
    /// Whether questions fail because no server exists for the names that HTTPDNS does not answer.
    var lacksFallback: Bool {
        guard let account, let fallback, fallback.servers.isEmpty, mainGroups.allSatisfy({ $0.id == .httpdns }),
            successor(of: account, after: .noRecord) == nil
        else { return false }
        return hour.minutes.suffix(Self.recentMinutes).contains { $0.failed > 0 }
    }
    private static let recentMinutes = 5

    /// The HTTPDNS account of `[httpdns]`; nil without an account.
    var account: GroupView? { groups.first { $0.id == .httpdns } }
    /// The group of `[fallback]`; nil if the group is not used.
    var fallback: GroupView? { groups.first { $0.id == .fallback } }
    /// The only group that is asked instead of an account or beside it; nil for no group, or more than one.
    var substitute: String? {
        let next = Set(groups.filter(\.isAccount).flatMap(\.thenTry))
        return next.count == 1 ? groups.first { next.contains($0.id) }?.title : nil
    }
    /// The groups of ``Observation/mainRoute``.
    var mainGroups: [GroupView] { self.mainRoute.compactMap { id in groups.first { $0.id == id } } }
    /// The groups for the other names, except the group for private names.
    var otherGroups: [GroupView] { groups.filter { !$0.isForPrivateNames && !self.mainRoute.contains($0.id) } }
    /// ``mainGroups``, then ``otherGroups``.
    var routedGroups: [GroupView] { mainGroups + otherGroups }
    /// The group that answers after this end of the group; nil: no group does.
    func successor(of group: GroupView, after end: StepEnds = .failure) -> GroupView? {
        guard group.thenTryOn.contains(end) else { return nil }
        return group.thenTry.lazy.compactMap { id in groups.first { $0.id == id } }
            .first { !$0.servers.isEmpty && !$0.isFailing }
    }

    /// The servers for the names that no pattern takes; if there are none, the servers for the other names.
    var sources: [ServerView] { (mainGroups.isEmpty ? otherGroups : mainGroups).flatMap(\.servers) }

    /// The cache's share of the questions for which it was searched, 0…1; nil without such questions. The daemon's own
    /// lookups do not count.
    var hitRate: Double? {
        let all = self.cache.hits + self.cache.misses
        return all == 0 ? nil : Double(self.cache.hits) / Double(all)
    }

    var uptimeSeconds: UInt64 { self.now > self.startedAt ? self.now - self.startedAt : 0 }

    /// Why another group was asked instead of HTTPDNS or beside it, the most frequent reason first.
    var fallbacks: [(reason: FallbackReason, count: UInt64)] {
        FallbackReason.allCases.map { ($0, self.counters.fallbacks(because: $0)) }.filter { $0.1 > 0 }
            .sorted { $0.1 > $1.1 }
    }
}

extension FallbackReason {
    /// The reasons that are failures of a server.
    static let failures: [FallbackReason] = [
        .timedOut, .unreachable, .untrusted, .insecure, .unauthorized, .tooOften, .denied, .badAnswer,
    ]

    /// The reason as a label of metrics and in JSON.
    var label: String { words.label }
    /// The reason in a sentence.
    var text: String { words.text }

    private var words: (label: String, text: String) {
        switch self {
        case .slow: ("slow", "HTTPDNS was slow (hedgeAfter)")
        case .noRecord: ("no_record", "HTTPDNS has no record of the name")
        case .plan: ("plan", "queriesPerSecond was reached")
        case .noRecordBudget: ("no_record_budget", "too many names below its domain had no record")
        case .signed: ("signed", "the client validates (signed)")
        case .timedOut: ("timed_out", "HTTPDNS did not answer in time")
        case .unreachable: ("unreachable", "HTTPDNS could not be reached")
        case .untrusted: ("untrusted", "the certificate of HTTPDNS was refused")
        case .insecure: ("insecure", "TLS with HTTPDNS could not be agreed on")
        case .unauthorized: ("unauthorized", "HTTPDNS refused the account")
        case .tooOften: ("too_often", "HTTPDNS was asked too often")
        case .denied: ("denied", "HTTPDNS did not serve the account")
        case .badAnswer: ("bad_answer", "HTTPDNS failed, or its answer was no use")
        }
    }
}
