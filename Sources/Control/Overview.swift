package import Base
package import Counters
package import DNSCache
import DNSWire
package import Forwarding
import Transport

/// How the daemon is and what it has done, at one moment: the one value that `status`, the metrics, the status page and
/// the service manager's line are made of.
package struct Overview: Sendable {
    /// The clock's time it was taken at, on the scale of the ticks in it.
    var at = Tick(nanoseconds: 0)
    /// Seconds since 1970.
    var startedAt: UInt64 = 0
    var now: UInt64 = 0
    /// Who may be asked: HTTPDNS, the local resolvers, and the groups of the operator's own.
    package var groups: [Group] = []
    var isStopping = false
    /// What the cache's file holds is known: questions are taken on.
    package var isOpen = true

    var cache: DNSCache.Statistics
    /// The most the cache may take, in octets.
    var cacheLimit = 0
    package var counters = Counters()
    package var limits = Limits()
    var questions: [Questions] = []
    /// By ``ResponseKind``.
    var responses = [UInt64](repeating: 0, count: ResponseKind.count)
    var durations = Durations()
    var prefetches: UInt64 = 0
    package var upstreams: [Server: UpstreamTallies.Figures] = [:]
    var reloads = Reloads(at: 0)
    var logLinesLost: UInt64 = 0
    /// Zeros where nobody has asked.
    var process = ProcessFigures()
    /// Questions in each of the last minutes, at most sixty, the newest last; nil where nobody counts them.
    var minutes: [UInt64]?
    /// Questions since the last of them was over.
    var thisMinute: UInt64 = 0

    /// Of a daemon that has done nothing and has nobody to ask.
    package init(_ cache: DNSCache.Statistics) { self.cache = cache }

    /// What a bound has kept out since the start, and how near some are.
    package struct Limits: Sendable {
        package var flights = 0
        package var refusedForRoom: UInt64 = 0
        package var tcpClients = 0
        package var clients = StreamCounters()
        package var mismatches = MismatchCounters()
    }

    /// Questions over one transport, from one family, by ``QuestionKind``.
    struct Questions: Sendable {
        let transport: Tally.Transport
        let isIPv4: Bool
        var counts = [UInt64](repeating: 0, count: QuestionKind.count)
    }
}

/// What follows from the numbers.
extension Overview {
    enum State: String, Sendable {
        /// Whoever is to be asked answers, or nobody was asked yet.
        case healthy
        /// Names resolve, but not in the way they should.
        case degraded
        /// Nobody who may be asked answers; what is cached is still served.
        case down
        case starting, stopping
    }

    var state: State {
        if isStopping { return .stopping }
        if !isOpen { return .starting }
        if sources.allSatisfy(\.isFailing) { return .down }
        if let account, account.asked?.isFailing ?? false || account.isSwitched { return .degraded }
        if fallback?.asked?.isFailing ?? false || ownGroups.contains(where: \.isFailing) { return .degraded }
        return .healthy
    }

    /// Whether a question that is asked now, and is not cached, can be expected to be answered: questions are taken on,
    /// and somebody may be asked who did not fail within the last half minute. Who failed longer ago is tried with the
    /// next question, and may answer.
    var isReady: Bool {
        isOpen && !isStopping && sources.contains { !$0.isFailing || !$0.failedLately(at: at) }
    }

    /// The HTTPDNS account of `[httpdns]`; nil without one.
    var account: Group? { groups.first { $0.id == .httpdns } }
    /// The local resolvers; nil if nobody asks them.
    var fallback: Group? { groups.first { $0.id == .fallback } }
    /// Those of `[upstreams.NAME]`.
    var ownGroups: [Group] { groups.filter(\.isOwn) }
    /// Who is asked for names that no group of the operator's own takes; where there is nobody, who is asked for the
    /// others.
    var sources: [ServerState] {
        let main = groups.filter { !$0.isOwn }.flatMap(\.servers)
        return main.isEmpty ? groups.flatMap(\.servers) : main
    }

    /// 0…1; nil before the first question that the cache could have answered. What is answered from no cache and nobody
    /// is asked about, as the watchdog's own questions, does not count.
    var hitRate: Double? {
        let all = cache.hits + counters.flights + counters.joined
        return all == 0 ? nil : Double(cache.hits) / Double(all)
    }

    var asked: UInt64 { questions.reduce(0) { $0 + $1.counts.reduce(0, +) } }
    var uptimeSeconds: UInt64 { now > startedAt ? now - startedAt : 0 }

    /// Why local resolvers were asked in the place of HTTPDNS or beside it, the busiest reason first.
    var fallbacks: [(reason: FallbackReason, count: UInt64)] {
        FallbackReason.allCases.map { ($0, counters.fallbacks(because: $0)) }.filter { $0.1 > 0 }
            .sorted { $0.1 > $1.1 }
    }
}

extension FallbackReason {
    /// As a label and in JSON.
    var label: String {
        switch self {
        case .slow: "slow"
        case .noRecord: "no_record"
        case .plan: "plan"
        case .noRecordBudget: "no_record_budget"
        case .timedOut: "timed_out"
        case .unreachable: "unreachable"
        case .untrusted: "untrusted"
        case .unauthorized: "unauthorized"
        case .tooOften: "too_often"
        case .badAnswer: "bad_answer"
        }
    }

    /// In words.
    var text: String {
        switch self {
        case .slow: "HTTPDNS was slow (hedgeAfter)"
        case .noRecord: "HTTPDNS has no record of the name"
        case .plan: "queriesPerSecond was reached"
        case .noRecordBudget: "too many names below its domain had no record"
        case .timedOut: "HTTPDNS did not answer in time"
        case .unreachable: "HTTPDNS could not be reached"
        case .untrusted: "its certificate was refused"
        case .unauthorized: "it refused the account"
        case .tooOften: "it was asked too often"
        case .badAnswer: "its answer was no use"
        }
    }
}
