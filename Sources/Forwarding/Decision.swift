import Base
import DNSCache
import DNSWire

/// What becomes of a question at a moment: ``Forwarder/receive(_:_:for:from:of:recursionDesired:at:)`` acts on it, and
/// ``Forwarder/explain(_:_:_:at:)`` puts it into words.
enum Decision {
    /// The daemon itself makes the answer; no group is asked.
    case answer(Answer)
    /// The cache has a fresh answer.
    case cached
    /// The same question is under way.
    case join(Flight)
    /// The same question has failed a moment ago, so no group is asked: a stale answer is given, else a failure.
    case failedLately(FailureReason)
    /// No group can answer: a stale answer is given, else a failure.
    case nobody(FailureReason)
    /// Too many names below the same domain had no record at this account, and no other group can be asked.
    case budgetSpent(GroupID)
    /// The groups of a route are asked, but for the first ones.
    case ask([Step], StepsBefore)
}

extension Forwarder {
    /// Decides about a question. Nothing changes by it.
    /// - Parameters:
    ///   - isClients: A client asks it, and not the daemon itself.
    ///   - recursionDesired: false: it is answered only from the cache and local data (RFC 1034 §4.3.1).
    /// - Returns: the decision, and what the cache holds if that was looked at.
    mutating func decide(
        _ key: Flight.Key, isClients: Bool, recursionDesired: Bool, at now: Tick
    ) -> (Decision, known: DNSCache.Held?) {
        let (name, type) = (key.name.name, key.type)
        let route: [Step]
        switch policy.route(key.name, type, for: key.audience) {
        case .answer(let answer): return (.answer(answer), nil)
        case .ask(let steps):
            route = steps
        case .serviceBinding(let steps):
            route = steps
            let before = desk.withoutRecord(steps, key.name, at: now)
            if before.count == steps.count { return (.answer(policy.notSupported(name, type)), nil) }
            if desk.rules.carriesAddresses(steps[before.count]) {
                return (.answer(policy.noServiceBinding(name, type)), nil)
            }
        }
        var before = desk.withoutRecord(route, key.name, at: now)
        if before.count == route.count, !before.isLastUnproven { return (.answer(policy.noRecord(name, type)), nil) }
        let known = cache.find(name, type: type, for: key.audience, at: now.seconds)
        if before.count == route.count { return (.nobody(unproven(route)), known) }
        if isClients, let known, known.isFresh { return (.cached, known) }
        if !recursionDesired {
            // RFC 8914 §4.21: this daemon has no upstream for the name.
            return (.answer(.failure(name, type: type, .refused, extendedError: .notAuthoritative)), known)
        }
        if let flight = flightOf[key] { return (.join(flight), known) }
        if let failure = failures.value(key, at: now), failure.timesInARow >= RecentFailure.mostTimes {
            return (.failedLately(failure.reason), known)
        }
        let first = route[before.count].group
        if isClients, isNoRecordBudgetSpent(first, key, known, at: now) {
            before.addPastBudget()
            guard route[before.count...].contains(where: { desk.rules.hasServers($0) }) else {
                return (.budgetSpent(first), known)
            }
        }
        return (.ask(route, before), known)
    }

    /// Whether a group must not be asked for a name because too many names below its domain had no record. The limit
    /// does not apply to a name with addresses of either family in the cache, nor to one that is already under way: for such
    /// names, only the group can say that there is no record of this family.
    private mutating func isNoRecordBudgetSpent(
        _ group: GroupID, _ key: Flight.Key, _ known: DNSCache.Held?, at now: Tick
    ) -> Bool {
        guard desk.rules[group].carriesAddresses, known?.answer.head.answerCount ?? 0 == 0,
            !desk.isWithinNoRecordBudget(key.name, at: group, now)
        else { return false }
        let other = cache.find(
            key.name.name, type: key.type == .a ? .aaaa : .a, for: key.audience, at: now.seconds)
        return other?.answer.head.answerCount ?? 0 == 0
    }
}
