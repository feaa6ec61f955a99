import Base
import DNSCache
import DNSWire

/// One question under way, with the clients that wait for its answer. Equal questions share a flight, so a forger can
/// guess only one ID and one port, however often a question is asked.
///
/// A flight follows its route step by step. All its state is changed here, by ``take(_:_:at:)``:
///
/// | event | becomes | orders |
/// | --- | --- | --- |
/// | begun; the last step ended and leads on | next step with servers: asked | ask it; its hedge is scheduled |
/// | the hedge of the last step is due | next step: asked, beside it | ask it |
/// | a stale answer is due | answered | give it; no hedge while an account is owed |
/// | time is over | answered | give a cached answer, the second best, or a failure |
/// | an answer with records, or one that leads nowhere | step answered | deliver it; end, or if an earlier step may answer, leave the step's servers |
/// | NXDOMAIN that leads nowhere, after another group's NODATA | step ended so | deliver the NODATA: the name exists |
/// | an answer that leads on (NXDOMAIN, NODATA by `thenTryOn`) | step ended so, second best | leave its servers; next step |
/// | NODATA without an SOA, which leads on as "no record" | no record | leave its servers; next step |
/// | SERVFAIL and the like | second best, if no answer is | none: the group asks its next server |
/// | REFUSED | second best, if there is none | the same |
/// | an account's "no record" that leads on | no record, or unproven | next step; a refresh ends where it is unproven |
/// | an account's "no record" that leads nowhere | no record; unproven is a failure | deliver it, once no earlier step may answer |
/// | a group is exhausted | failed or refused | next step; a refresh ends where another group would answer |
/// | a step is not asked after all | failed: another group's answer is only a substitute | end, if no step is asked any more |
/// | no step is asked any more | | the second best is delivered if it is an answer, else fail |
/// | the same, and a group behind the second best has failed | | it is a substitute for that group's answer; a refresh ends |
/// | a client comes after the earlier ones were answered | open | the last step is asked again if it has ended, else hedged |
final class Flight {
    struct Key: Hashable {
        let name: NameKey
        let type: RecordType
        let audience: Audience
        /// Whether the daemon asks the question to find a server: see ``Policy/routeToServer(_:_:)``.
        var findsServer = false

        /// The few audiences are not hashed: the comparison distinguishes them.
        func hash(into hasher: inout Hasher) { hasher.combine(name.digest ^ Int(type.rawValue)) }
        func _rawHashValue(seed: Int) -> Int { name.digest ^ Int(type.rawValue) ^ seed }
    }

    let key: Key
    /// The flight's number in `Forwarder.flights`; the newest flight has the highest serial number.
    let id: TableID
    /// The groups that may be asked, in order.
    let route: [Step]
    /// The state of each step of the route.
    private(set) var steps = InlineArray<64, StepState>(repeating: .ahead)
    private(set) var phase: FlightPhase
    /// When the next step begins although the last step is under way; nil if no time is set.
    private(set) var hedgeAt: Tick?
    /// The answer for the case that no better answer comes.
    private(set) var secondBest: StepAnswer?
    /// When ``secondBest`` came.
    private var secondBestCame = Tick(nanoseconds: 0)
    private(set) var trouble: Trouble?
    /// The bases of the flight's answers, by the rules when the flight began.
    let bases: AnswerBases
    /// Whether ``bases`` agree with the present rules. Else the flight's answer is given but not cached, and no client
    /// joins. False for a flight that finds a server: its answer does not come by the route of clients' questions.
    private(set) var isCurrent: Bool
    /// Whether the flight has ended, so that later events have no effect.
    private(set) var isOver = false
    /// Whether the groups behind the step that is asked are all accounts that must not be asked the name: see
    /// ``NoRecordBudget``. The step's group is then asked, even if the group is down.
    var isLastResort = false
    /// Whether a group is asked for a service binding instead of the account. Declared here, it takes no extra memory.
    let isBinding: Bool
    /// The waiting clients.
    private(set) var clients: SmallList<Waiter>
    /// The source whose flights include this one.
    private(set) var source: Source

    /// The most steps of a route, which names each group once.
    static var maximumSteps: Int { 64 }

    /// - Parameters:
    ///   - waiter: The client that asks; nil if the daemon itself asks.
    ///   - isWanted: See ``FlightPhase/open(isWanted:staleAt:answerBy:)``; false for an A question of a refresh, too.
    ///   - before: The known state of the route's first steps, whose groups are not asked.
    ///   - staleAt: When a stale answer is given; nil if there is none.
    init(
        _ key: Key, _ route: [Step], id: TableID, for waiter: Waiter?, isWanted: Bool, of source: Source,
        after before: StepsBefore, staleAt: Tick?, answerBy: Tick, isBinding: Bool = false,
        bases: AnswerBases = AnswerBases()
    ) {
        (self.key, self.route, self.id, self.isBinding, isCurrent) = (key, route, id, isBinding, !key.findsServer)
        (self.bases, self.source, clients) = (bases, source, SmallList(waiter))
        phase = .open(isWanted: isWanted, staleAt: staleAt, answerBy: answerBy)
        for step in before.states.indices { steps[step] = before.states[step] }
    }

    /// A copy whose changes do not affect the flight.
    init(copying flight: Flight) {
        (key, id, route, steps, phase) = (flight.key, flight.id, flight.route, flight.steps, flight.phase)
        (secondBest, secondBestCame) = (flight.secondBest, flight.secondBestCame)
        (trouble, isCurrent) = (flight.trouble, flight.isCurrent)
        (isBinding, bases, clients, source) = (flight.isBinding, flight.bases, flight.clients, flight.source)
    }

    // MARK: Waiting clients

    func add(_ waiter: Waiter) { clients.append(waiter) }

    /// Removes the waiting clients, to answer them now.
    func takeClients() -> SmallList<Waiter> { exchange(&clients, with: SmallList()) }

    /// Removes the second best answer, to give it now: its TTLs have run since it came.
    func takeSecondBest(at now: Tick) -> StepAnswer? {
        secondBest?.answer.spend(seconds: Int(now.seconds &- secondBestCame.seconds))
        return exchange(&secondBest, with: nil)
    }

    private func hold(_ best: StepAnswer, at now: Tick) { (secondBest, secondBestCame) = (best, now) }

    /// Counts the flight for another source from now on.
    func count(for source: Source) { self.source = source }

    /// Marks that the rules have changed: see ``isCurrent``.
    func outdate() { isCurrent = false }

    /// Marks the flight as over.
    func end() { isOver = true }
}

// MARK: - The machine

extension Flight {
    /// Changes the flight by an event.
    /// - Returns: The orders that follow.
    func take(_ event: FlightEvent, _ rules: FlightRules, at now: Tick) -> FlightOrders {
        var orders = FlightOrders()
        guard !isOver else { return orders }
        switch event {
        case .begun:
            begin(after: .any, rules, at: now, &orders)
            orders.schedules = true
        case .wanted: becomeWanted(rules, at: now, &orders)
        case .reopened: reopen(rules, at: now, &orders)
        case .waitedBefore(let phase): waited(as: phase, &orders)
        case .due(let stale): due(stale, rules, at: now, &orders)
        case .failed(let trouble): self.trouble = trouble
        case .refused(let refusal):
            // An answer of an earlier group is better than SERVFAIL and the like, which are better than REFUSED.
            let isRefused = refusal.answer.head.responseCode == .refused
            if isRefused ? secondBest == nil : secondBest?.answer.head.responseCode.isAnswer != true {
                hold(refusal, at: now)
            }
        case .answered(let answer): answered(answer, rules, at: now, &orders)
        case .stored(let answer): deliver(answer, rules, at: now, &orders)
        case .withoutRecord(let answer, let isProven): withoutRecord(answer, isProven, rules, at: now, &orders)
        case .exhausted(let step, let end, let trouble, let because):
            exhausted(step, end, trouble, because, rules, at: now, &orders)
        case .staleFound:
            guard case .open(let isWanted, nil, let answerBy) = phase else { break }
            // Both times are counted from the question.
            let sooner = UInt64(rules.timing.answerWithin - rules.timing.staleWithin) * 1_000_000
            let staleAt = Tick(nanoseconds: answerBy.nanoseconds - sooner)
            phase = .open(isWanted: isWanted, staleAt: staleAt, answerBy: answerBy)
            orders.schedules = true
        case .dropped(let step):
            steps[step] = .failed
            if isDone { orders.end() }
        case .storeIsSilent: conclude(rules, &orders)
        }
        let isGiven = if case .noRecord(isStandIn: true)? = orders.give { true } else { wasAnswered }
        orders.notesStandIn = isGiven && route.indices.contains { isOwed($0, rules) }
        return orders
    }

    /// Begins the next step, or concludes if there is none.
    private func begin(
        after end: StepEnds, because: FallbackReason? = nil, _ rules: FlightRules, at now: Tick,
        _ orders: inout FlightOrders
    ) {
        hedgeAt = nil
        guard let step = nextStep(after: end, rules) else { return conclude(rules, &orders) }
        for passed in (last.map { $0 + 1 } ?? 0)..<step {
            steps[passed] = route[passed].after.isDisjoint(with: end) ? .passedOver : .withoutServer
        }
        steps[step] = .asked
        if hedge(rules, at: now), step > 0 { orders.schedules = true }
        (orders.ask, orders.because) = (step, because)
    }

    /// Sets the moment at which the next step begins beside this one, for a flight with waiting clients.
    private func hedge(_ rules: FlightRules, at now: Tick) -> Bool {
        guard isWanted, let last, isUnderWay(last), let next = hedge(behind: last, rules, at: now) else { return false }
        hedgeAt = now.advanced(milliseconds: next.after)
        return true
    }

    /// Ends a step without an answer: the next step begins, unless it has begun.
    private func end(
        _ step: Int, as state: StepState, after end: StepEnds, because: FallbackReason? = nil, _ rules: FlightRules,
        at now: Tick, _ orders: inout FlightOrders
    ) {
        steps[step] = state
        if step == last {
            begin(after: end, because: because, rules, at: now, &orders)
        } else {
            conclude(rules, &orders)
        }
    }

    /// Ends the flight if no step can still answer.
    private func conclude(_ rules: FlightRules, _ orders: inout FlightOrders) {
        guard isDone else { return }
        guard let secondBest, secondBest.answer.head.responseCode.isAnswer, !wasAnswered else {
            orders.give = .failure
            return
        }
        let step = secondBest.step
        if rules.carriesAddresses(route[step]) { return deliverNoRecord(of: step, rules, &orders) }
        // It leads on, and a group behind it still owes an answer.
        let isOwed = ((step + 1)..<route.count).contains { steps[$0] == .failed || steps[$0] == .unproven }
        // In a refresh, it does not replace that group's earlier answer.
        if isOwed, !isWanted { return orders.end() }
        deliverSecondBest(of: step, isStandIn: isOwed, rules, &orders)
    }

    /// Gives an account's proven "no record", which is the second best answer.
    private func deliverNoRecord(of step: Int, _ rules: FlightRules, _ orders: inout FlightOrders) {
        orders.give = .noRecord(isStandIn: standsIn(step, rules))
        orders.end()
    }

    private func deliver(_ best: StepAnswer, _ rules: FlightRules, at now: Tick, _ orders: inout FlightOrders) {
        hold(best, at: now)
        deliverSecondBest(of: best.step, rules, &orders)
    }

    private func deliverSecondBest(
        of step: Int, isStandIn: Bool = false, _ rules: FlightRules, _ orders: inout FlightOrders
    ) {
        steps[step] = .answered
        orders.give = .answer(isStandIn: isStandIn || standsIn(step, rules))
        guard has(.asked, in: 0..<step) else { return orders.end() }
        // An earlier step was slow; if it still answers, its answer replaces this one in the cache. This step's other
        // servers have nothing to add, and their failure leads nowhere.
        close()
        orders.leave = orders.leave ?? step
    }

    /// Marks the waiting clients as answered.
    private func close() { phase = .answered(isWanted: isWanted, isStale: false) }

    /// Whether an account's answer was given stale, and the next group's answer, a substitute, would not be cached
    /// beside it.
    private func isNextNeedless(after end: StepEnds, _ rules: FlightRules) -> Bool {
        guard case .answered(_, isStale: true) = phase, let next = nextStep(after: end, rules) else { return false }
        return !rules.carriesAddresses(route[next]) && standsIn(next, rules)
    }

    private func becomeWanted(_ rules: FlightRules, at now: Tick, _ orders: inout FlightOrders) {
        switch phase {
        case .open(_, let staleAt, _):
            phase = .open(
                isWanted: true, staleAt: staleAt, answerBy: now.advanced(milliseconds: rules.timing.answerWithin))
            _ = hedge(rules, at: now)
            orders.schedules = true
        // The flight is reopened for the client, or the client waits for a flight that needs this one's A records.
        case .answered: phase = .answered(isWanted: true, isStale: false)
        }
    }

    private func waited(as before: FlightPhase, _ orders: inout FlightOrders) {
        guard case .open(_, let formerStaleAt, let formerAnswerBy) = before,
            case .open(let isWanted, let staleAt, let answerBy) = phase
        else { return }
        let sooner = (staleAt: staleAt.map { min($0, formerStaleAt ?? $0) }, answerBy: min(answerBy, formerAnswerBy))
        orders.schedules = sooner != (staleAt, answerBy)
        phase = .open(isWanted: isWanted, staleAt: sooner.staleAt, answerBy: sooner.answerBy)
    }

    private func reopen(_ rules: FlightRules, at now: Tick, _ orders: inout FlightOrders) {
        phase = .open(
            isWanted: true, staleAt: nil, answerBy: now.advanced(milliseconds: rules.timing.answerWithin))
        if hedgeAt == nil { _ = hedge(rules, at: now) }
        orders.schedules = true
        // The last step's answer is not cached for this client, or the client would not be here.
        guard !isDone, let last, !isUnderWay(last) else { return }
        steps[last] = .ahead
        begin(after: route[last].after, rules, at: now, &orders)
    }

    private func due(_ stale: DNSCache.Held?, _ rules: FlightRules, at now: Tick, _ orders: inout FlightOrders) {
        if let hedgeAt, let last, hedgeAt <= now {
            let group = rules[route[last].group]
            let because = group.carriesAddresses ? group.downBecause ?? .slow : nil
            begin(after: .failure, because: because, rules, at: now, &orders)
        }
        if case .open(let isWanted, let staleAt, let answerBy) = phase {
            if let staleAt, staleAt <= now {
                phase = .open(isWanted: isWanted, staleAt: nil, answerBy: answerBy)
                if let stale {
                    orders.give = .stale
                    // The next group's answer is no longer needed, and would not be cached beside an account's.
                    let isOwed = stale.audience.isOfAccounts && standsIn(route.count, rules)
                    phase = .answered(isWanted: isWanted, isStale: isOwed)
                    if isOwed { hedgeAt = nil }
                }
            } else if answerBy <= now {
                orders.give = .bestSoFar
                close()
            }
        }
        orders.schedules = true
    }

    private func answered(
        _ best: StepAnswer, _ rules: FlightRules, at now: Tick, _ orders: inout FlightOrders
    ) {
        let end = StepEnds(of: best.answer)
        let exists = end == .nxDomain && hasName(before: best.step)
        guard let end, let next = next(after: best, rules) else {
            guard exists, let secondBest else { return deliver(best, rules, at: now, &orders) }
            (steps[best.step], orders.leave) = (.nxDomain, best.step)
            return deliverSecondBest(of: secondBest.step, rules, &orders)
        }
        // A name that is unknown to this group may still have records.
        let isUnknown = end.intersection(next.after).contains(.noRecord)
        if !isUnknown, !exists { hold(best, at: now) }
        orders.leave = best.step
        let state = isUnknown ? StepState.noRecord : StepState(end.subtracting(.noRecord))
        self.end(best.step, as: state, after: end, rules, at: now, &orders)
    }

    private func withoutRecord(
        _ best: StepAnswer, _ isProven: Bool, _ rules: FlightRules, at now: Tick, _ orders: inout FlightOrders
    ) {
        let (step, state) = (best.step, isProven ? StepState.noRecord : .unproven)
        guard step + 1 < route.count, route[step + 1].after.contains(.noRecord) else {
            if isProven {
                steps[step] = state
                hold(best, at: now)
                // An earlier account is slow, and may still have a record.
                return has(.asked, in: 0..<step) ? () : deliverNoRecord(of: step, rules, &orders)
            }
            trouble = Trouble(failure: .unproven, group: route[step].group)
            return end(step, as: state, after: .failure, rules, at: now, &orders)
        }
        steps[step] = state
        // In a refresh, another group's answer does not replace the group's earlier answer.
        if !isProven, !isWanted { return orders.end() }
        // An earlier account may be slow, and still answer.
        if isNextNeedless(after: .noRecord, rules) { return isDone ? orders.end() : () }
        // The next group was needless while this account could answer.
        if isDone, let last, steps[last] == .noRecord {
            return begin(after: .noRecord, because: .noRecord, rules, at: now, &orders)
        }
        end(step, as: state, after: .noRecord, because: .noRecord, rules, at: now, &orders)
    }

    private func exhausted(
        _ step: Int, _ end: StepEnds, _ trouble: Trouble?, _ because: FallbackReason?, _ rules: FlightRules,
        at now: Tick, _ orders: inout FlightOrders
    ) {
        if let trouble { self.trouble = trouble }
        if trouble?.failure.kind == .here || rules.carriesAddresses(route[step]) && isNextNeedless(after: end, rules) {
            // A shortage of this machine is no reason to ask the next group, and no answer is needed that is not cached.
            (steps[step], hedgeAt) = (.failed, nil)
            return conclude(rules, &orders)
        }
        if !isWanted, end == .failure {
            // In a refresh, another group's answer does not replace the group's earlier answer.
            let leadsOn = step == last && nextStep(after: end, rules) != nil
            if leadsOn || rules.carriesAddresses(route[step]) { return orders.end() }
        }
        self.end(step, as: StepState(end), after: end, because: because, rules, at: now, &orders)
    }
}
