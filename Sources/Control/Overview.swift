package import Base
package import Counters
package import DNSCache
import DNSWire
package import Forwarding

/// How the daemon is and what it has done, at one moment: the one value that `status`, the metrics, the status page and
/// the service manager's line are made of.
package struct Overview: Sendable {
    /// The clock's time it was taken at, on the scale of the ticks in it.
    var at = Tick(nanoseconds: 0)
    /// Seconds since 1970.
    var startedAt: UInt64 = 0
    var now: UInt64 = 0
    /// `encryptType`; nil without HTTPDNS.
    package var encryption: String?
    /// The HTTPDNS servers in the order they are wanted, and which of them is asked.
    package var services: [ServerState] = []
    package var currentService = 0
    package var resolvers: [ServerState] = []
    /// `httpOnly`: the local resolvers are never asked.
    package var isHTTPOnly = false
    var isStopping = false
    /// What the cache's file holds is known: questions are taken on.
    package var isOpen = true

    var cache: DNSCache.Statistics
    /// The most the cache may take, in octets.
    var cacheLimit = 0
    package var counters = Counters()
    /// What was put to HTTPDNS, and to the local resolvers.
    package var account = GroupCounters()
    package var local = GroupCounters()
    package var limits = Limits()
    var questions: [Questions] = []
    /// By ``ResponseKind``.
    var responses = [UInt64](repeating: 0, count: ResponseKind.count)
    var durations = Durations()
    var prefetches: UInt64 = 0
    package var upstreams: [UpstreamTallies.Answered: Durations] = [:]
    package var connections: [Server: UpstreamTallies.Connections] = [:]
    var reloads = Reloads(at: 0)
    var logLinesLost: UInt64 = 0
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
        if let service, service.isFailing || currentService != 0 { return .degraded }
        if let resolver, resolver.isFailing { return .degraded }
        return .healthy
    }

    /// Whether a question that is asked now, and is not cached, can be expected to be answered: questions are taken on, and
    /// somebody may be asked who did not fail within the last half minute. Who failed longer ago is tried with the next
    /// question, and may answer.
    var isReady: Bool {
        isOpen && !isStopping && sources.contains { !$0.isFailing || !$0.failedLately(at: at) }
    }

    /// Who may be asked.
    var sources: [ServerState] { services + (isHTTPOnly ? [] : resolvers) }
    /// The HTTPDNS server that is asked now.
    var service: ServerState? { services.indices.contains(currentService) ? services[currentService] : nil }
    /// The local resolver that is asked first: the one that answered last, as far as is known.
    var resolver: ServerState? {
        guard !isHTTPOnly else { return nil }
        return resolvers.first { !$0.isFailing } ?? resolvers.first
    }

    /// 0…1; nil before the first question that the cache could have answered. What is answered from no cache and nobody is
    /// asked about, as the watchdog's own questions, does not count.
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

extension ServerState {
    /// Its last attempt failed.
    var isFailing: Bool { health.consecutiveFailures > 0 }
    /// It was asked at least once.
    var isKnown: Bool { health.answers + health.failures > 0 }

    func isPaused(at now: Tick) -> Bool { health.pausedUntil.map { now < $0 } ?? false }

    fileprivate func failedLately(at now: Tick) -> Bool {
        health.lastFailureAt.map { now.milliseconds(since: $0) < Self.lately } ?? false
    }

    private static let lately = 30_000

    /// Without the port that everybody expects.
    func name(usualPort: UInt16) -> String {
        guard server.port == usualPort, case .address(let address, _) = server.host else { return server.description }
        return address.description
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
