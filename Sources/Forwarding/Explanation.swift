public import Base
public import DNSCache
public import DNSWire

/// The route of a question, the reason for it, and the answer that a client would get now.
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
    /// The groups that may be asked, in order; empty if the daemon answers by itself.
    public var parts: [Part] = []
    /// The cache's answer for a client that sets neither DO nor CD.
    public var held: DNSCache.Held?
    /// The group that gave ``held``; nil if the group is unknown.
    public var origin: GroupOverview?
    /// The answer for the case that no server answers, as clients get it: the cached answer, or the store's expired copy.
    public var stale: Answer?
    /// The answer that a client with neither DO nor CD would get if it asked for recursion.
    public var fate: Fate
    /// Whether private addresses are removed from answers.
    public var refusesPrivate = false
    /// How addresses are sorted; nil if they are not.
    public var ranking: Ranking?

    /// The aliases of ``name`` that groups of the operator define; the queried name first.
    public var aliases: [Alias] = []

    /// A name that is an alias of another, with the group that defines the alias.
    public struct Alias: Sendable, Equatable {
        /// The alias.
        public let name: Name
        /// The group with `alias` that takes the name.
        public let group: GroupOverview
    }

    /// The effect of the network's NAT64 prefix; nil if there is none.
    public var translation: Translation?

    /// How an answer is made from another.
    public enum Translation: Sendable, Equatable {
        /// Without an AAAA record, clients get the A records' addresses under this prefix.
        case addresses(NAT64Prefix)
        /// The queried name is the reverse name of an address under the prefix, and an alias of the explained name.
        case alias(Name)
    }

    /// Addresses are sorted by the speed at which they answer a TCP connection.
    public struct Ranking: Sendable, Equatable {
        /// The TCP port of the trials.
        public var port: UInt16
        /// Whether the order of the addresses is known.
        public var isKnown: Bool
    }
    /// The state of the fleet's store; nil: nothing is shared.
    public var sharedCache: SharedCacheOverview?

    /// An explanation without groups, which are set later.
    public init(_ name: Name, _ type: RecordType, _ rule: PolicyDecision, _ reason: RouteReason, _ fate: Fate) {
        (self.name, self.type, self.rule, self.reason, self.fate) = (name, type, rule, reason, fate)
    }

    /// One group of the route.
    public struct Part: Sendable, Equatable {
        /// The group in its present state.
        public var group: GroupOverview
        /// The ends of the preceding group after which this group is asked; without meaning for the first group.
        public var after: StepEnds
        /// Milliseconds after which the group is asked beside the preceding group; nil if it never is.
        public var hedgeAfter: Int?
        /// Whether the group would be asked.
        public var standing: Standing
        /// The question to the store before the group is asked; nil if there is no question.
        public var sharedQuestion: SharedQuestion?
        /// The store's reply to ``sharedQuestion``; nil if the store was not asked.
        public var stored: Stored?
    }

    /// Whether a group would be asked if the question reached it.
    public enum Standing: Sendable, Equatable {
        /// The group would ask this server.
        case ready(Server)
        case noServer
        /// An account was found to have no record of the name; the account's reason, if it gave one.
        case withoutRecord(String?)
        /// Too many names below the name's domain had no record.
        case budgetSpent
        /// `queriesPerSecond` is reached.
        case planExceeded
        /// Each server has as many queries under way as it may; the question waits.
        case full
        /// Earlier names wait for a server with room, or for the plan; the question waits behind them.
        case waiting
        /// Each server has asked for a pause.
        case paused
        /// The group is not asked for the type, so the answer is NODATA.
        case leftOut
        /// No server answers; another question probes the group.
        case down

        /// Whether the account was found to have no record of the name.
        public var isWithoutRecord: Bool { if case .withoutRecord = self { true } else { false } }
    }

    /// The source of a client's answer.
    public enum Fate: Sendable, Equatable {
        /// See ``RecordType/refusal``.
        case refused
        /// The cache's answer.
        case cached
        /// The daemon's own answer; no server is asked.
        case made(Answer)
        /// The store's copy of an answer of the group with this index in ``Explanation/parts``, if the copy comes in
        /// time; else the group's own answer.
        case stored(Int)
        /// The group with this index in ``Explanation/parts``.
        case asked(Int)
        /// The same question has failed a moment ago, or got a stale answer, so no server is asked again: a stale
        /// answer is given, else this one.
        case failedLately(Answer)
        /// No server can be asked: a stale answer is given, else this one.
        case noServer(Answer)
    }
}

extension Forwarder {
    /// The fate of a question at this moment. No state changes.
    /// - Parameters:
    ///   - looks: The store's reply for each ``Explanation/Part/sharedQuestion``.
    ///   - source: The source of the client that would ask.
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
        explanation.origin = explanation.held.flatMap { GroupID(origin: $0.origin) }.flatMap {
            desk.ids.contains($0) ? overview(of: $0) : nil
        }
        explanation.sharedCache = sharedCacheOverview
        let flight = Flight(
            key, decision.route, id: flights.nextID, for: Waiter(number: 0, source: source, isProven: true),
            isWanted: true, of: source, after: decision.before, staleAt: nil, answerBy: now,
            isBinding: decision.isBinding)
        let hedges = decision.route.indices.filter { desk.rules.hasServers(decision.route[$0]) }
            .compactMap { flight.hedge(behind: $0, desk.rules, at: now) }
        explanation.parts = decision.route.enumerated().map { index, step in
            noteLastResort(flight, index, at: now)
            var part = Explanation.Part(
                group: overview(of: step.group), after: step.after,
                hedgeAfter: hedges.last { $0.step == index }?.after,
                standing: knownStanding(index, decision, key, at: now) ?? desk.standing(step.group, flight, at: now))
            // The store has no service bindings of accounts' names: see ``askStoreOrGroup(_:_:at:)``.
            if !decision.isBinding { look(for: key, &part, looks, at: now) }
            return part
        }
        let staleCopies = explanation.parts.compactMap { part in
            if case .entry(.answer(let answer), _, isFresh: false)? = part.stored { answer } else { nil }
        }
        explanation.stale = known(key, at: now)?.answer ?? staleCopies.first { !isMadeOfA(key, $0) }
        explanation.stale?.clampTTLs(minimum: timing.staleTTL, maximum: timing.staleTTL)
        // A listener reads the cache first, but for answers of other clients.
        if let held = explanation.held, held.isFresh, !held.isLent {
            explanation.fate = .cached
            return explanation
        }
        switch decision.fate {
        case .answer(let answer, by: _): explanation.fate = .made(answer)
        case .alias: break
        case .cached: explanation.fate = .cached
        case .failedLately(let reason): explanation.fate = .failedLately(failure(key, reason))
        case .noServer(let reason): explanation.fate = .noServer(failure(key, reason))
        case .join(let flight) where flight.isAnswered && decision.known != nil:
            explanation.fate = .failedLately(failure(key, reason(flight)))
        case .join(let flight):
            explanation.fate = .asked(flight.lastUnderWay)
            if flight.isAnswered { follow(Flight(copying: flight), .reopened, &explanation, at: now) }
        case .ask: follow(flight, .begun, &explanation, at: now)
        }
        return explanation
    }

    /// Follows the question as far as its fate can be foreseen, by a flight whose orders are not carried out.
    private mutating func follow(
        _ flight: Flight, _ event: FlightEvent, _ explanation: inout Explanation, at now: Tick
    ) {
        let key = flight.key
        var event = event
        while true {
            let orders = flight.take(event, desk.rules, at: now)
            switch orders.give {
            case .noRecord:
                explanation.fate = .made(flight.secondBest?.answer ?? policy.noData(key.name.name, key.type))
            // Without a service binding, clients use the addresses.
            case .failure where flight.isBinding: explanation.fate = .made(policy.noData(key.name.name, key.type))
            case .failure: explanation.fate = .noServer(failure(key, reason(flight)))
            case .answer:
                if let best = flight.secondBest, case .sharedCache = best.by { explanation.fate = .stored(best.step) }
            default: break
            }
            guard let step = orders.ask else { return }
            guard let next = self.event(of: flight, step, &explanation, at: now) else { return }
            event = next
        }
    }

    /// The next event of a flight after this step has begun; nil: the rest cannot be foreseen.
    private mutating func event(
        of flight: Flight, _ step: Int, _ explanation: inout Explanation, at now: Tick
    ) -> FlightEvent? {
        let (part, group) = (explanation.parts[step], flight.route[step].group)
        noteLastResort(flight, step, at: now)
        if explanation.sharedCache?.budget ?? 0 > 0, case .entry(let content, let elapsed, isFresh: true)? = part.stored
        {
            guard case .answer(let answer) = content else {
                explanation.parts[step].standing = .withoutRecord(nil)
                return noRecordEvent(flight, at: group, by: .sharedCache(group), after: elapsed)
            }
            let said = StepAnswer(answer: answer, by: .sharedCache(group), step: step)
            // The flight knows whether a group's answer leads on; what AAAA is made of is not foreseen.
            if !desk.rules[group].carriesAddresses, !isMadeOfA(flight.key, answer) { return .answered(said) }
            explanation.fate = .stored(step)
            return nil
        }
        switch part.standing {
        case .leftOut:
            explanation.fate = .made(policy.noData(flight.key.name.name, flight.key.type))
            return nil
        case .withoutRecord:
            guard let (code, age) = desk.absence(of: flight.key.name, at: group, now) else { return nil }
            return noRecordEvent(flight, at: group, by: .daemon, because: code, after: age)
        case .budgetSpent: return pastBudget(flight, step)
        case .paused, .down: return .exhausted(step: step, .failure, desk.trouble(of: group))
        // A name that no other group may be asked for waits until the plan has room.
        case .planExceeded where flight.leadsOn(from: step, desk.rules):
            return .exhausted(step: step, .failure, nil)
        default:
            explanation.fate = .asked(step)
            return nil
        }
    }

    /// Why the group of a step is not asked; nil: the group decides.
    private mutating func knownStanding(
        _ step: Int, _ decision: borrowing Decision, _ key: Flight.Key, at now: Tick
    ) -> Explanation.Standing? {
        let group = decision.route[step].group
        guard step < decision.before.count else {
            if decision.route[step].leavesOut { return .leftOut }
            if step > 0, let known = desk.absence(of: key.name, at: group, now) { return .withoutRecord(known.code) }
            return isNoRecordBudgetSpent(group, key, at: now) ? .budgetSpent : nil
        }
        guard decision.before.states[step] != .passedOver else { return nil }
        return .withoutRecord(desk.absence(of: key.name, at: group, now)?.code)
    }
}

extension Audience {
    /// The audience of clients that set neither DO nor CD, as nearly all do, and of the daemon's own questions.
    static let plain = Audience.those(dnssecOK: false, checkingDisabled: false)
}

/// The replies of the fleet's store to an operator's reads.
public struct StoreLooks: Sendable {
    /// For each question, the store's reply, or why the reply is unknown.
    public var found: [SharedQuestion: StoreLook]
    /// The time of the reads, in seconds since 1970.
    public var wall: UInt64

    /// By default, no reply is known.
    public init(_ found: [SharedQuestion: StoreLook] = [:], wall: UInt64 = 0) {
        (self.found, self.wall) = (found, wall)
    }
}

/// The result of one read.
public enum StoreLook: Sendable, Equatable {
    case found(SharedFinding)
    case failed(String)
}

extension Explanation {
    /// The store's entry for a group.
    public enum Stored: Sendable, Equatable {
        case nothing
        /// The group's answer, `elapsed` seconds old. An expired answer is given only when no server answers.
        case entry(SharedContent, elapsed: UInt32, isFresh: Bool)
        /// An entry that is not given: it has expired, is in the future, or is earlier than the daemon's own answer.
        case outOfTime
        /// Why the entry is unknown.
        case unknown(String)
    }
}

extension Forwarder {
    /// Sets the question to the store before a group is asked, and the store's reply.
    func look(for key: Flight.Key, _ part: inout Explanation.Part, _ looks: StoreLooks, at now: Tick) {
        guard let settings = store.settings, part.group.isShared, part.standing != .noServer,
            !part.standing.isWithoutRecord, store.budget(at: now) != nil
        else { return }
        let question = sharedQuestion(part.group.id, key.name.name, key.type, for: key.audience)
        part.sharedQuestion = question
        switch looks.found[question] {
        case nil: break
        case .failed(let why): part.stored = .unknown(why)
        case .found(.nothing): part.stored = .nothing
        case .found(.entry(let entry, let isStaleCopy)):
            var content = entry.content.clampedToOwnTTL(timing.maxTTL)
            if case .answer(let answer) = content { content = .answer(withoutMapped(answer, to: key)) }
            // A clock learns from the entries that it judges; here only a copy of the clock learns.
            var clock = store.clock
            let known = storedAt(key, by: part.group.id, at: now)
            switch clock.worth(entry, isStaleCopy: isStaleCopy, settings, after: known, wall: looks.wall, at: now) {
            case .fresh(let elapsed, _) where content.isUsable(after: elapsed, isOfAccount: true):
                part.stored = .entry(content, elapsed: elapsed, isFresh: true)
            case .stale(let elapsed): part.stored = .entry(content, elapsed: elapsed, isFresh: false)
            case .fresh, .nothing, .ahead: part.stored = .outOfTime
            }
        }
    }
}
