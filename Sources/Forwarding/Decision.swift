import Base
import DNSCache
import DNSWire

/// The fate of a question at a moment, with its reason:
/// ``Forwarder/receive(_:_:for:from:by:recursionDesired:at:)`` acts on it, and
/// ``Forwarder/explain(_:_:_:of:at:)`` words it. Copying a decision would cost some 360 instructions a question.
struct Decision: ~Copyable {
    let reason: RouteReason
    /// The row of the rules that gives the route; nil: the question finds a server, or no group is asked.
    let row: Policy.Row?
    fileprivate(set) var fate = Fate.cached
    /// The groups that may be asked, in order; none if their answers would change nothing.
    fileprivate(set) var route: [Step] = []
    /// The known state of the route's first steps.
    fileprivate(set) var before = StepsBefore()
    /// Whether the route is asked for a service binding instead of the account.
    fileprivate(set) var isBinding = false
    /// The cached answer, if the cache was read.
    fileprivate(set) var known: DNSCache.Held?

    enum Fate {
        /// The daemon, or a group that answers by itself, makes the answer; no server is asked.
        case answer(Answer, by: GroupID? = nil)
        /// See ``Route/alias(of:by:)``.
        case alias(of: Name, by: GroupID?)
        /// The cache has a fresh answer.
        case cached
        /// The same question is under way.
        case join(Flight)
        /// The same question has failed a moment ago, so no group is asked: a stale answer is given, else a failure.
        case failedLately(FailureReason)
        /// No group can answer: a stale answer is given, else a failure.
        case noServer(FailureReason)
        /// The groups of the route are asked, from the first one after ``Decision/before``.
        case ask
    }
}

extension Forwarder {
    /// Decides about a question. No state changes.
    /// - Parameters:
    ///   - isClients: Whether a client asks the question; else the daemon asks it to refresh an answer.
    ///   - recursionDesired: If false, the answer comes only from the cache and local data (RFC 1034 §4.3.1).
    ///   - source: The source of the client, or of the client whose question caused a refresh.
    mutating func decide(
        _ key: Flight.Key, isClients: Bool, recursionDesired: Bool, of source: Source, at now: Tick
    ) -> Decision {
        let (route, reason, row) =
            key.findsServer
            ? (policy.routeToServer(key.name, key.type), .addresses, nil)
            : policy.route(key.name, key.type, for: key.audience, isOfThisHost: source.isThisHost)
        var decision = Decision(reason: reason, row: row)
        decision.fate = fate(
            of: key, by: route, isClients: isClients, recursionDesired: recursionDesired, &decision, at: now)
        return decision
    }

    private mutating func fate(
        of key: Flight.Key, by route: Route, isClients: Bool, recursionDesired: Bool, _ decision: inout Decision,
        at now: Tick
    ) -> Decision.Fate {
        let (name, type) = (key.name.name, key.type)
        switch route {
        case .answer(let answer, by: let group): return .answer(answer, by: group)
        case .alias(of: let target, by: let group): return .alias(of: target, by: group)
        case .ask(let steps):
            decision.before = desk.withoutRecord(steps, key.name, at: now)
            decision.route = steps
        case .serviceBinding(let steps, let asked):
            if let answer = bind(key, to: steps, asked: asked, &decision, at: now) { return .answer(answer) }
        }
        let steps = decision.route
        let count = decision.before.count
        if count == steps.count, !decision.before.isLastUnproven {
            let group = steps.last?.group
            let code = group.flatMap { desk.absence(of: key.name, at: $0, now)?.code }
            return .answer(noRecord(name, type, at: group, because: code))
        }
        decision.known = known(key, at: now)
        if count == steps.count { return .noServer(unproven(steps)) }
        if isClients, decision.known?.isFresh ?? false { return .cached }
        if !recursionDesired {
            // RFC 8914 §4.21: this daemon has no upstream for the name.
            return .answer(.failure(name, type: type, .refused, extendedError: .notAuthoritative))
        }
        if let flight = flightOf[key] {
            decision.route = flight.route
            return .join(flight)
        }
        if let reason = admission.failures.value(key, at: now) {
            return decision.isBinding && decision.known == nil
                ? .answer(policy.noData(name, type)) : .failedLately(reason)
        }
        return .ask
    }

    /// Takes the route of a service binding.
    /// - Returns: The answer, if no group is asked.
    @inline(never)
    private mutating func bind(
        _ key: Flight.Key, to steps: [Step], asked: Int?, _ decision: inout Decision, at now: Tick
    ) -> Answer? {
        let before = desk.withoutRecord(steps, key.name, at: now)
        // As for other types, no account behind the next group is asked.
        let others = steps[before.count...].filter { !desk.rules.carriesAddresses($0) }
        if before.count < steps.count, desk.rules.carriesAddresses(steps[before.count]) {
            if !others.isEmpty, addressesLeft(notOfAccounts: key, at: now) > 0 {
                decision.route = policy.limited(others, to: key.type)
                return nil
            }
            guard let asked else { return policy.noData(key.name.name, key.type) }
            (decision.route, decision.isBinding) = ([steps[asked]], true)
            return nil
        }
        decision.route = policy.limited(Array(steps[..<before.count]) + others, to: key.type)
        decision.before = desk.withoutRecord(decision.route, key.name, at: now)
        return decision.before.count == decision.route.count ? policy.notSupported(key.name.name, key.type) : nil
    }

    /// The remaining seconds of the cached addresses of a name that another group gave since the accounts have no record
    /// of it; 0 if there are none. So long, the accounts are not asked for the name.
    private func addressesLeft(notOfAccounts key: Flight.Key, at now: Tick) -> UInt32 {
        let known = knownOfBoth(key.name.name, for: key.audience, at: now).filter(\.isFresh)
        let isOfAccounts = known.contains { held in
            held.isStandIn || held.audience.isOfAccounts
                || GroupID(origin: held.origin).map { desk.rules[$0].carriesAddresses } ?? false
        }
        return isOfAccounts ? 0 : known.filter { $0.answer.head.answerCount > 0 }.map(\.left).max() ?? 0
    }

    /// The longest time for which an answer is cached, in seconds. A service binding of a name without a record at the
    /// accounts is passed on whole until the accounts are asked for the name again: they may have addresses that its
    /// hints do not have.
    mutating func longestTTL(of answer: Answer, to key: Flight.Key, at now: Tick) -> UInt32 {
        guard key.type == .https || key.type == .svcb, answer.answersToTheType > 0,
            case .serviceBinding(let steps, _) = policy.route(key.name, key.type, for: key.audience).route
        else { return timing.maxTTL }
        let accounts = steps.prefix { desk.rules.carriesAddresses($0) }
        let absences = accounts.map { step in
            desk.absence(of: key.name, at: step.group, now).map { desk.rules.negativeTTL(of: step.group) - $0.elapsed }
                ?? 0
        }
        return absences.min().map { min(timing.maxTTL, max($0, addressesLeft(notOfAccounts: key, at: now))) }
            ?? timing.maxTTL
    }
}
