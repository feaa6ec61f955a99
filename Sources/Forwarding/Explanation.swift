public import Base
public import DNSCache
public import DNSWire

/// Where a question goes and why, and what a client that asks it now would get.
public struct Explanation: Sendable, Equatable {
    /// The name that is explained.
    public var name: Name
    /// The type of the question that is explained.
    public var type: RecordType
    /// The pattern that decides about the name.
    public var rule: PolicyDecision
    /// The group that takes the name; nil if the name is reserved.
    public var taker: GroupOverview?
    /// Why the question takes its route.
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

    /// The names that are aliases of it by groups of the operator's, that which was asked for first.
    public var aliases: [Alias] = []

    /// A name that is an alias of another, and the group that says so.
    public struct Alias: Sendable, Equatable {
        /// The alias.
        public let name: Name
        /// The group with `alias` that takes the name.
        public let group: GroupOverview
    }

    /// What the prefix of the network's translator changes; nil: nothing.
    public var translation: Translation?

    /// How an answer is made of another.
    public enum Translation: Sendable, Equatable {
        /// Where there is no AAAA record, clients get the A records' addresses under this prefix.
        case addresses(NAT64Prefix)
        /// The name that was asked for is the reverse name of an address under the prefix, and an alias of the one that is explained.
        case alias(Name)
    }

    /// Addresses are given in the order in which they answer a TCP connection.
    public struct Ranking: Sendable, Equatable {
        /// The TCP port that is connected to.
        public var port: UInt16
        /// Whether that order is known.
        public var isKnown: Bool

        /// The parameters are those of the properties.
        public init(port: UInt16, isKnown: Bool) { (self.port, self.isKnown) = (port, isKnown) }
    }
    /// The state of the fleet's store; nil: nothing is shared.
    public var sharedCache: SharedCacheOverview?

    /// Without groups; they are set afterwards.
    public init(_ name: Name, _ type: RecordType, _ rule: PolicyDecision, _ reason: RouteReason, _ fate: Fate) {
        (self.name, self.type, self.rule, self.reason, self.fate) = (name, type, rule, reason, fate)
    }

    /// One group of the route.
    public struct Part: Sendable, Equatable {
        /// The group, as it is now.
        public var group: GroupOverview
        /// How the group before must end; means nothing for the first.
        public var after: StepEnds
        /// Milliseconds after which it is asked beside the group before; nil: it is not.
        public var hedgeAfter: Int?
        /// Whether it would be asked.
        public var standing: Standing
        /// What the store is asked before the group is; nil if it is not.
        public var sharedQuestion: SharedQuestion?
        /// What the store has for that; nil if it was not asked.
        public var stored: Stored?

        /// Without a look into the store.
        public init(_ group: GroupOverview, after: StepEnds, hedgeAfter: Int? = nil, _ standing: Standing) {
            (self.group, self.after, self.hedgeAfter, self.standing) = (group, after, hedgeAfter, standing)
        }
    }

    /// Whether a group would be asked if the question came to it.
    public enum Standing: Sendable, Equatable {
        /// This server of it.
        case ready(Server)
        case noServer
        /// An HTTPDNS account was found to have no record of the name; why, in its own word, if it has said so.
        case withoutRecord(String?)
        /// Too many names below its domain had no record.
        case budgetSpent
        /// `queriesPerSecond` is reached.
        case planExceeded
        /// Each server has as much under way as it may; the question waits.
        case full
        /// Names that have their turn before it wait for a server with room, or for the plan: it waits until something has
        /// become of them.
        case waiting
        /// Each server has asked for a pause.
        case paused
        /// It is not asked for the type: there is no such record.
        case leftOut
        /// No server answers, and another question finds out when one does.
        case down

        /// Whether the account was found to have no record of the name.
        public var isWithoutRecord: Bool { if case .withoutRecord = self { true } else { false } }
    }

    /// What a client would get, and from whom.
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
        /// The same question has failed a moment ago, or was given a stale answer, so no server is asked for it anew: a
        /// stale answer is given, else this one.
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
        let route = policy.route(NameKey(name), type, isOfThisHost: source.isThisHost).route
        if case .alias(of: let target, by: let group) = route {
            var explanation = explain(target, type, looks, of: source, at: now)
            if let group {
                explanation.aliases.insert(Explanation.Alias(name: name, group: overview(of: group)), at: 0)
            } else {
                explanation.translation = .alias(name)
            }
            return explanation
        }
        let key = Flight.Key(name: NameKey(name), type: type, audience: .plain)
        let decision = decide(key, isClients: true, recursionDesired: true, of: source, at: now)
        var explanation = Explanation(name, type, policy.rule(for: name, type), decision.reason, .refused)
        if case .group(let group) = explanation.rule.taker { explanation.taker = overview(of: group) }
        guard type.refusal == nil else { return explanation }
        explanation.refusesPrivate = (type == .a || type == .aaaa) && policy.refusesPrivate(name)
        if type == .aaaa, !decision.route.isEmpty {
            explanation.translation = policy.synthesis.map { .addresses($0) }
        }
        explanation.ranking = ranking(name, type, at: now)
        explanation.held = cache.find(name, type: type, for: .plain, at: now.seconds)
        explanation.teller = explanation.held.flatMap { GroupID(teller: $0.teller) }.flatMap {
            desk.ids.contains($0) ? overview(of: $0) : nil
        }
        explanation.sharedCache = sharedCacheOverview
        let flight = Flight(
            key, decision.route, id: flights.nextID, for: Waiter(number: 0, source: source, isProven: true),
            of: source, after: decision.before, staleAt: nil, answerBy: now)
        explanation.parts = decision.route.enumerated().map { index, step in
            var part = Explanation.Part(
                overview(of: step.group), after: step.after, hedgeAfter: step.hedgeAfter,
                knownStanding(index, decision, key, at: now) ?? desk.standing(step.group, flight, at: now))
            look(for: key, &part, looks, at: now)
            return part
        }
        // A listener looks into the cache first.
        if explanation.held?.isFresh ?? false {
            explanation.fate = .cached
            return explanation
        }
        switch decision.fate {
        case .answer(let answer, by: _): explanation.fate = .made(answer)
        case .alias: break
        case .cached: explanation.fate = .cached
        case .failedLately(let reason): explanation.fate = .failedLately(failure(key, reason))
        case .nobody(let reason): explanation.fate = .nobody(failure(key, reason))
        case .budgetSpent: explanation.fate = .nobody(failure(key, FailureReason(code: .blocked)))
        case .join(let flight) where flight.isAnswered && explanation.held != nil:
            explanation.fate = .failedLately(failure(key, reason(flight)))
        case .join(let flight):
            explanation.fate = .asked(flight.lastUnderWay)
            if flight.isAnswered { follow(Flight(copying: flight), .reopened, &explanation, at: now) }
        case .ask: follow(flight, .begun, &explanation, at: now)
        }
        return explanation
    }

    /// Follows the question as far as can be seen now, by a flight of which nothing is carried out.
    private mutating func follow(
        _ flight: Flight, _ event: FlightEvent, _ explanation: inout Explanation, at now: Tick
    ) {
        let key = flight.key
        var event = event
        while true {
            let orders = flight.take(event, desk.rules, at: now)
            switch orders.give {
            case .noRecord:
                explanation.fate = .made(flight.secondBest?.answer ?? policy.noRecord(key.name.name, key.type))
            case .failure: explanation.fate = .nobody(failure(key, reason(flight)))
            default: break
            }
            guard let step = orders.ask else { return }
            guard let next = self.event(of: flight, step, &explanation) else { return }
            event = next
        }
    }

    /// What happens to a flight of which a step has begun; nil: that is its fate as far as can be seen now.
    private mutating func event(of flight: Flight, _ step: Int, _ explanation: inout Explanation) -> FlightEvent? {
        let (part, group) = (explanation.parts[step], flight.route[step].group)
        if explanation.sharedCache?.budget ?? 0 > 0, case .entry(let content, _, isFresh: true)? = part.stored {
            guard content == .noRecord else {
                explanation.fate = .stored(step)
                return nil
            }
            explanation.parts[step].standing = .withoutRecord(nil)
            return noRecordEvent(flight, at: group, by: .sharedCache(group))
        }
        switch part.standing {
        case .leftOut:
            explanation.fate = .made(policy.leftOut(flight.key.name.name, flight.key.type))
            return nil
        case .paused, .down: return .exhausted(step: step, .failure, desk.trouble(of: group), because: nil)
        // A name that no other group may be asked for waits until the plan has room.
        case .planExceeded where flight.nextStep(after: .failure, desk.rules) != nil:
            return .exhausted(step: step, .failure, nil, because: nil)
        default:
            explanation.fate = .asked(step)
            return nil
        }
    }

    /// Why the group of one of the first steps is not asked; nil: that depends on the group.
    private func knownStanding(
        _ step: Int, _ decision: borrowing Decision, _ key: Flight.Key, at now: Tick
    ) -> Explanation.Standing? {
        guard step < decision.before.count else {
            return policy.leavesOut(decision.route[step].group, key.type) ? .leftOut : nil
        }
        return switch decision.before.state(of: step) {
        case .failed: .budgetSpent
        case .passedOver: nil
        default: .withoutRecord(desk.absenceCode(of: key.name, at: decision.route[step].group, now))
        }
    }
}

extension Audience {
    /// The audience of clients that set neither DO nor CD, as nearly all do, and of the daemon's own questions.
    static let plain = Audience.those(dnssecOK: false, checkingDisabled: false)
}
