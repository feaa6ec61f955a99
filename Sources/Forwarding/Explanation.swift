public import Base
public import DNSCache
public import DNSWire

/// Where a question goes and why, and what a client that asks it now would get.
public struct Explanation: Sendable, Equatable {
    public var name: Name
    public var type: RecordType
    public var rule: PolicyDecision
    /// The group that takes the name; nil if the name is reserved.
    public var taker: GroupOverview?
    public var reason: RouteReason
    /// The groups that may be asked, in order; none if it is answered from here whatever happens.
    public var parts: [Part] = []
    /// What the cache holds for a client that sets neither DO nor CD.
    public var held: DNSCache.Held?
    /// The group that gave ``held``; nil if that is not known.
    public var teller: GroupOverview?
    /// What such a client would get, if it asked for recursion.
    public var fate: Fate
    /// Whether private addresses are taken out of answers.
    public var refusesPrivate = false
    /// How addresses are put in order; nil: they are given as they came.
    public var ranking: Ranking?

    /// Addresses are given in the order in which they answer a TCP connection.
    public struct Ranking: Sendable, Equatable {
        public var port: UInt16
        /// Whether that order is known.
        public var isKnown: Bool

        public init(port: UInt16, isKnown: Bool) { (self.port, self.isKnown) = (port, isKnown) }
    }
    /// The state of the fleet's store; nil: nothing is shared.
    public var sharedCache: SharedCacheOverview?

    public init(_ name: Name, _ type: RecordType, _ rule: PolicyDecision, _ reason: RouteReason, _ fate: Fate) {
        (self.name, self.type, self.rule, self.reason, self.fate) = (name, type, rule, reason, fate)
    }

    /// One group of the route.
    public struct Part: Sendable, Equatable {
        public var group: GroupOverview
        /// How the group before must end; means nothing for the first.
        public var after: StepEnds
        /// Milliseconds after which it is asked beside the group before; nil: it is not.
        public var hedgeAfter: Int?
        public var standing: Standing
        /// What the store is asked before the group is; nil if it is not.
        public var sharedQuestion: SharedQuestion?
        /// What the store has for that; nil if it was not asked.
        public var stored: Stored?

        public init(_ group: GroupOverview, after: StepEnds, hedgeAfter: Int? = nil, _ standing: Standing) {
            (self.group, self.after, self.hedgeAfter, self.standing) = (group, after, hedgeAfter, standing)
        }
    }

    /// Whether a group would be asked if the question came to it.
    public enum Standing: Sendable, Equatable {
        /// This server of it.
        case ready(Server)
        case noServer
        /// An HTTPDNS account was found to have no record of the name.
        case withoutRecord
        /// Too many names below its domain had no record.
        case budgetSpent
        /// `queriesPerSecond` is reached.
        case planExceeded
        /// Each server has as much under way as it may; the question waits.
        case full
        /// Each server has asked for a pause.
        case paused
    }

    public enum Fate: Sendable, Equatable {
        /// As ``RecordType/refusal`` says.
        case refused
        /// What the cache holds.
        case cached
        /// Made by the daemon itself; no server is asked.
        case made(Answer)
        /// What the store has of the group at this place of ``Explanation/parts``, if it says so in time; else that group.
        case stored(Int)
        /// The group at this place of ``Explanation/parts``.
        case asked(Int)
        /// The same question has failed a moment ago, so no server is asked: a stale answer is given, else this one.
        case failedLately(Answer)
        /// No server can be asked: a stale answer is given, else this one.
        case nobody(Answer)
    }
}

extension Forwarder {
    /// What becomes of a question at this moment. Nothing changes by it.
    /// - Parameters:
    ///   - looks: what the store has for each ``Explanation/Part/sharedQuestion``.
    ///   - source: that of the client that would ask.
    public mutating func explain(
        _ name: Name, _ type: RecordType, _ looks: StoreLooks = StoreLooks(), of source: Source = .host, at now: Tick
    ) -> Explanation {
        var explanation = Explanation(name, type, policy.rule(for: name, type), policy.reason(name, type), .refused)
        if case .group(let group) = explanation.rule.taker { explanation.taker = overview(of: group) }
        guard type.refusal == nil else { return explanation }
        explanation.refusesPrivate = (type == .a || type == .aaaa) && policy.refusesPrivate(name)
        explanation.ranking = ranking(name, type, at: now)
        explanation.held = cache.find(name, type: type, for: .plain, at: now.seconds)
        explanation.teller = explanation.held.flatMap { GroupID(teller: $0.teller) }.flatMap {
            desk.ids.contains($0) ? overview(of: $0) : nil
        }
        explanation.sharedCache = sharedCacheOverview
        let key = Flight.Key(name: NameKey(name), type: type, audience: .plain)
        let decision = decide(key, isClients: true, recursionDesired: true, at: now).0
        switch policy.route(key.name, type, for: key.audience) {
        case .answer: break
        case .ask(let route), .serviceBinding(let route):
            describe(route, key, decision, looks, source, &explanation, at: now)
        }
        // A listener looks into the cache first.
        if explanation.held?.isFresh ?? false {
            explanation.fate = .cached
            return explanation
        }
        switch decision {
        case .answer(let answer): explanation.fate = .made(answer)
        case .cached: explanation.fate = .cached
        case .failedLately(let reason): explanation.fate = .failedLately(failure(key, reason))
        case .nobody(let reason): explanation.fate = .nobody(failure(key, reason))
        case .budgetSpent: explanation.fate = .nobody(failure(key, FailureReason(code: .blocked)))
        case .ask, .join: follow(key, &explanation)
        }
        return explanation
    }

    /// What each group of a route would do with the question.
    private mutating func describe(
        _ route: [Step], _ key: Flight.Key, _ decision: Decision, _ looks: StoreLooks, _ source: Source,
        _ explanation: inout Explanation, at now: Tick
    ) {
        var before = desk.withoutRecord(route, key.name, at: now)
        if case .ask(_, let decided) = decision { before = decided }
        // The daemon answers HTTPS and SVCB in the place of an account.
        if case .answer = decision, before.count < route.count { return }
        for (index, step) in route.enumerated() {
            let standing: Explanation.Standing =
                if index >= before.count {
                    desk.standing(step.group, key, of: source, at: now)
                } else if before.isBudgetSpent, index == before.count - 1 {
                    .budgetSpent
                } else {
                    .withoutRecord
                }
            var part = Explanation.Part(
                overview(of: step.group), after: step.after, hedgeAfter: step.hedgeAfter, standing)
            look(for: key, &part, looks, at: now)
            explanation.parts.append(part)
        }
    }

    /// Which group of the route will be asked, as far as can be seen now.
    private func follow(_ key: Flight.Key, _ explanation: inout Explanation) {
        let skipped = explanation.parts.prefix { $0.standing == .withoutRecord }.count
        let first = explanation.parts[skipped...].firstIndex {
            $0.standing != .noServer && $0.standing != .budgetSpent && !$0.after.isEmpty
        }
        var last = first
        let isStoreAwaited = explanation.sharedCache.map { $0.budget > 0 } ?? false
        while let place = last {
            if isStoreAwaited, case .entry(let content, _, isFresh: true)? = explanation.parts[place].stored {
                guard content == .noRecord else {
                    explanation.fate = .stored(place)
                    return
                }
                explanation.parts[place].standing = .withoutRecord
                guard place + 1 < explanation.parts.count, explanation.parts[place + 1].after.contains(.noRecord) else {
                    explanation.fate = .made(policy.noRecord(key.name.name, key.type))
                    return
                }
                last = explanation.parts[(place + 1)...].firstIndex {
                    $0.standing != .noServer && $0.after.contains(.noRecord)
                }
                continue
            }
            switch explanation.parts[place].standing {
            case .ready, .full:
                explanation.fate = .asked(place)
                return
            case .planExceeded where !explanation.parts[(place + 1)...].contains(where: \.takesFailures):
                // The name waits until the plan has room.
                explanation.fate = .asked(place)
                return
            default: last = explanation.parts[(place + 1)...].firstIndex(where: \.takesFailures)
            }
        }
        explanation.fate = .nobody(failure(key, nobodyAnswered(explanation.parts.map { Step($0.group.id) })))
    }
}

extension Explanation.Part {
    /// Whether a question comes to it because the group before has failed.
    fileprivate var takesFailures: Bool { standing != .noServer && after.contains(.failure) }
}

extension Audience {
    /// The audience of clients that set neither DO nor CD, as nearly all do.
    fileprivate static let plain = Audience.those(dnssecOK: false, checkingDisabled: false)
}
