/// How long the forwarder waits for whom, and how long it remembers, by the configuration.
public struct Timing: Sendable, Equatable {
    /// `[cache]`, seconds.
    public var minTTL: UInt32 = 0
    public var maxTTL: UInt32 = 86400
    public var negativeTTL: UInt32 = 30
    public var staleTTL: UInt32 = 30
    /// Seconds for which a local resolver's answer in the place of HTTPDNS's is kept at most. Whoever makes HTTPDNS
    /// silent for a moment, and answers in the resolver's name, gains no more than this.
    static let standInTTL: UInt32 = 60
    /// Seconds for which "no record" is remembered at most that whoever is on the path may have said: it only spares
    /// the questions that come together from being looked up one by one.
    static let unprovenNegativeTTL: UInt32 = 5
    /// Milliseconds after which a client gets what is stale: just under RFC 8767 §5's 1.8 s.
    public var staleWithin = 1700
    /// Milliseconds after which it gets whatever there is: just under the 4 s after which programs give up or ask anew.
    public var answerWithin = 3800

    /// Milliseconds after which a server that says nothing is asked once more: four times its usual round trip, since
    /// it may have to look up itself, and 1 s while none is known (RFC 6298 §2).
    static func patience(roundTrip: Double?) -> Int {
        guard let roundTrip else { return 1000 }
        return max(shortestPatience, Int(min(4 * roundTrip, 60_000)))
    }

    /// Milliseconds: what a lookup that a server does not have in its cache usually takes.
    static let shortestPatience = 250
    /// `enableReport`: abnormal lookups are said one by one.
    public var reportsLookups = false

    public init() {}

    /// A TTL within `minTTL` and `maxTTL`.
    func clamped(_ ttl: UInt32) -> UInt32 { min(max(ttl, minTTL), maxTTL) }
}

/// What was decided how often, since the start.
public struct Counters: Sendable, Equatable {
    /// Questions that were not in the cache and started a flight, and those that joined one.
    public internal(set) var flights: UInt64 = 0
    public internal(set) var joined: UInt64 = 0
    /// Questions refused because `maximumFlights` were under way, the newest of the source that has the most.
    public internal(set) var refusedFlights: UInt64 = 0
    /// Questions refused because their source had its part of `maximumWaiting` or `maximumClients`.
    public internal(set) var refusedWaiting: UInt64 = 0
    /// Flights an HTTPDNS account should have answered and the next group of their route was asked for.
    public internal(set) var fallbacks: UInt64 = 0
    /// Why the next group was asked in the place of an HTTPDNS account or beside it, by ``FallbackReason``.
    private var fallbackReasons = [UInt64](repeating: 0, count: FallbackReason.allCases.count)
    /// Names past `queriesPerSecond`.
    public internal(set) var pastPlan: UInt64 = 0
    /// Names that HTTPDNS was not asked for, as too many below their domain had no record.
    public internal(set) var pastNoRecordBudget: UInt64 = 0
    /// Answers that private addresses were taken out of.
    public internal(set) var withoutPrivate: UInt64 = 0
    public internal(set) var servedStale: UInt64 = 0
    /// Flights whose clients were answered because time ran out.
    public internal(set) var overdue: UInt64 = 0

    public init() {}

    public func fallbacks(because reason: FallbackReason) -> UInt64 { fallbackReasons[reason.rawValue] }

    mutating func fellBack(because reason: FallbackReason) { fallbackReasons[reason.rawValue] += 1 }
}

/// Why a question went to the next group of its route.
public enum FallbackReason: Int, CaseIterable, Sendable {
    /// HTTPDNS had not answered when `hedgeAfter` was over; it may still.
    case slow
    /// HTTPDNS has no record of the name.
    case noRecord
    /// `queriesPerSecond` is reached.
    case plan
    /// Too many names below the same domain had no record.
    case noRecordBudget
    /// What the last server failed by: see ``Failure/Kind``.
    case timedOut, unreachable, untrusted, unauthorized, tooOften, badAnswer

    public init(_ kind: Failure.Kind) {
        switch kind {
        case .timedOut: self = .timedOut
        case .unreachable: self = .unreachable
        case .untrusted: self = .untrusted
        case .unauthorized: self = .unauthorized
        case .tooOften: self = .tooOften
        case .badAnswer: self = .badAnswer
        }
    }
}
