public import Base
import DNSWire

/// The times of the forwarder: how long it waits and how long it caches, by the configuration.
public struct Timing: Sendable, Equatable {
    /// The shortest time for which an answer with records of the queried type is cached, in seconds.
    public var minTTL: UInt32 = 0
    /// The shortest time for an answer without such a record (NODATA, NXDOMAIN), in seconds.
    public var negativeMinTTL: UInt32 = 0
    /// The longest time for which an answer is cached, in seconds.
    public var maxTTL: UInt32 = 86400
    /// `negativeTTL` of the configuration, in seconds.
    public var negativeTTL: UInt32 = 30
    /// The TTL of "no record" where no SOA says otherwise, in seconds.
    public var noRecordTTL: UInt32 { min(max(negativeTTL, negativeMinTTL), maxTTL) }
    /// The TTL of stale answers, in seconds.
    public var staleTTL: UInt32 = 30
    /// The longest time, in seconds, for which a local resolver's substitute for an HTTPDNS answer is cached. An
    /// attacker who silences HTTPDNS for a moment and forges the resolver's answer gains no more than this.
    static let standInTTL: UInt32 = 60
    /// The longest time, in seconds, for which an unproven "no record", which an attacker on the path may have written,
    /// is cached. This time only spares lookups for questions that come together.
    static let unprovenNegativeTTL: UInt32 = 5
    /// Milliseconds after which a client gets a stale answer: just under the 1.8 s of RFC 8767 §5.
    public var staleWithin = 1700
    /// Milliseconds after which a client gets the best answer so far, or a failure: just under the 4 s after which
    /// programs give up or repeat the question.
    public var answerWithin = 3800

    /// Milliseconds after which a silent server is asked again: four times its usual round trip, since the server may
    /// have to look the name up itself; 1 s while no round trip is known (RFC 6298 §2).
    static func patience(roundTrip: Double?) -> Int {
        guard let roundTrip else { return 1000 }
        return max(shortestPatience, Int(min(4 * roundTrip, 60_000)))
    }

    /// The usual time, in milliseconds, of a lookup that is not in a server's cache.
    static let shortestPatience = 250
    /// `enableReport`, `debug`: whether abnormal lookups are reported one by one.
    public var reportsLookups = false

    /// The defaults of the configuration.
    public init() {}

    /// A TTL within `minTTL` and `maxTTL`.
    func clamped(_ ttl: UInt32) -> UInt32 { min(max(ttl, minTTL), maxTTL) }

    /// The shortest time for which an answer of a server is cached, in seconds.
    func minTTL(of answer: Answer) -> UInt32 {
        minTTL == negativeMinTTL || answer.answersToTheType > 0 ? minTTL : negativeMinTTL
    }
}

/// Counts of decisions since the start. The daemon's questions that find servers are not counted.
public struct Counters: Sendable, Equatable {
    /// Questions that were not in the cache and began a flight.
    public internal(set) var flights: UInt64 = 0
    /// Questions that were not in the cache, and waited for the answer to an equal question.
    public internal(set) var joined: UInt64 = 0
    /// Questions refused since ``Shares/flights`` were under way: the newest question of the source with the most.
    public internal(set) var refusedFlights: UInt64 = 0
    /// Questions refused since their source had its share of ``Shares/waiting`` or ``Shares/clients``.
    public internal(set) var refusedWaiting: UInt64 = 0
    /// Flights of HTTPDNS names for which the next group of their route was asked.
    public internal(set) var fallbacks: UInt64 = 0
    /// Why the next group was asked instead of an HTTPDNS account or beside it, by ``FallbackReason``.
    private var fallbackReasons = [UInt64](repeating: 0, count: FallbackReason.allCases.count)
    /// Names past `queriesPerSecond`.
    public internal(set) var pastPlan: UInt64 = 0
    /// Names that HTTPDNS was not asked for, since too many names below their domain had no record.
    public internal(set) var pastNoRecordBudget: UInt64 = 0
    /// Answers from which private addresses were removed.
    public internal(set) var withoutPrivate: UInt64 = 0
    /// Addresses that were tried for `[cache] rank`, and took the connection.
    public internal(set) var rankAnswered: UInt64 = 0
    /// Addresses that were tried and did not take the connection in time.
    public internal(set) var rankFailed: UInt64 = 0
    /// Clients that got a stale answer.
    public internal(set) var servedStale: UInt64 = 0
    /// Queries that could not be sent for a shortage of this machine.
    public internal(set) var short: UInt64 = 0
    /// The reason of the last such query; empty if there was none.
    public internal(set) var shortOf = ""
    /// The time of the last such query; nil if there was none.
    public internal(set) var shortAt: Tick?
    /// Flights whose clients were answered because time ran out.
    public internal(set) var overdue: UInt64 = 0
    /// Ended flights that could not be read on the way: see ``Exposure``.
    public internal(set) var sentEncrypted: UInt64 = 0
    /// Flights that could be read only on this machine.
    public internal(set) var sentToLoopback: UInt64 = 0
    /// Flights that could be read on the way.
    public internal(set) var sentInClear: UInt64 = 0

    /// All counts are 0.
    public init() {}

    /// The number of times that the next group was asked for one reason.
    public func fallbacks(because reason: FallbackReason) -> UInt64 { fallbackReasons[reason.rawValue] }

    mutating func ended(_ exposure: Exposure) {
        switch exposure {
        case .none: break
        case .loopback: sentToLoopback += 1
        case .encrypted: sentEncrypted += 1
        case .clear: sentInClear += 1
        }
    }

    mutating func fellBack(because reason: FallbackReason) {
        fallbackReasons[reason.rawValue] += 1
        if reason != .slow, reason != .noRecord { fallbacks += 1 }
    }
}

/// Why a question went to the next group of its route.
public enum FallbackReason: Int, CaseIterable, Sendable {
    /// HTTPDNS had not answered within `hedgeAfter`; it still may.
    case slow
    /// HTTPDNS has no record of the name.
    case noRecord
    /// `queriesPerSecond` is reached.
    case plan
    /// Too many names below the same domain had no record.
    case noRecordBudget
    /// The client validates, and HTTPDNS's addresses have no signatures.
    case signed
    /// The failure of the last server: see ``Failure/Kind``.
    case timedOut, unreachable, untrusted, insecure, unauthorized, tooOften, denied, badAnswer

    /// The reason that follows from a failure; nil for a shortage of this machine, after which no other group is asked.
    public init?(_ kind: Failure.Kind) {
        switch kind {
        case .timedOut: self = .timedOut
        case .unreachable: self = .unreachable
        case .untrusted: self = .untrusted
        case .insecure: self = .insecure
        case .unauthorized: self = .unauthorized
        case .tooOften: self = .tooOften
        case .denied: self = .denied
        case .badAnswer, .refusedTogether: self = .badAnswer
        case .here: return nil
        }
    }
}
