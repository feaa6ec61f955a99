import Base
import DNSWire

/// Ends queries.
extension GroupDesk {
    /// A question that was answered.
    struct Answered {
        let messages: MessageStep
        let by: Answerer

        var flight: Flight { messages.flight }
    }

    /// The result of an account's request for names.
    struct Found {
        /// The lookups, which have ended, with the index of each one's result in the response.
        var names = SmallList<(lookup: Lookup, index: Int)>()
        /// The families that the request was for.
        let families: Families
        let group: GroupID
        let server: Server
    }

    /// The kernel or an established connection has taken a query. At each such call the query counts as sent, since it
    /// can be read on the way, and as billed.
    mutating func wrote(_ id: TableID) {
        // A whole query is costly to copy.
        let left = queries.change(id) { query in
            query.isWritten = true
            return (query.subject, query.group, query.server.exposure)
        }
        if let left { noteWritten(left.0, left.1, left.2) }
    }

    /// The kernel has refused a query's datagram, which is repeated as if it was lost on the way, or a connection for
    /// the query, which waits.
    mutating func lost(_ id: TableID) { queries.change(id) { $0.isLost = !$0.isWritten || $0.isLost } }

    /// Counts a query that was sent.
    private mutating func noteWritten(_ subject: Query.Subject, _ group: GroupID, _ exposure: Exposure) {
        switch subject {
        case .names(let lookups, _):
            groups[group.rawValue].counters.names += UInt64(lookups.count)
            for lookup in lookups { for flight in lookup.flights { note(exposure, of: flight) } }
        case .message(let messages), .measurement(let messages): note(exposure, of: messages.flight)
        }
    }

    /// Ends a query; no other function does. The states of its server and its step change for any reason; after a
    /// failure, its question goes to another server.
    /// - Returns: The query; nil if it had ended before.
    @discardableResult
    mutating func end(_ id: TableID, at now: Tick, as verdict: (Query) -> ServerChoice.Verdict) -> Query? {
        guard let query = queries.remove(id) else { return nil }
        if case .message(let messages) = query.subject { messages.underWay.removeAll { $0 == id } }
        let verdict = verdict(query)
        var hasAnswered = false
        switch verdict {
        // An answer proves that the query was sent.
        case .answered:
            hasAnswered = true
            if !query.isWritten { noteWritten(query.subject, query.group, query.server.exposure) }
        case .failed(let failure) where failure.kind == .here: noteShort(failure, at: now)
        case .failed(let failure) where failure.kind == .refusedTogether: hasAnswered = true
        case .failed:
            groups[query.group.rawValue].counters.failures += 1
            failedQueries += 1
        case .withdrawn: break
        }
        let said = groups[query.group.rawValue].choice.ended(query, verdict, at: now)
        for event in said { actions.append(.report(event)) }
        // Other servers of the group may still count as failed.
        if hasAnswered, !said.isEmpty || groups[query.group.rawValue].nextLook != nil {
            outageEnded(of: query.group, at: now)
        }
        noteTraits(of: query.group.rawValue)
        if case .failed(let failure) = verdict { goOn(query, after: failure, at: now) }
        return query
    }

    /// A server has answered with a message.
    /// - Parameter toRepeat: Whether the answer is to the second attempt; the round trip is measured from that attempt.
    /// - Returns: The question that the answer is for; nil if the answer is not needed. After a refusal, call
    ///   ``sendNext(_:at:)`` next.
    mutating func answered(_ id: TableID, _ code: ResponseCode, toRepeat: Bool, at now: Tick) -> Answered? {
        let query = end(id, at: now) { query in
            if case .names = query.subject { return .failed(Self.answerToAnother) }
            return .answered(hasAnswer: code.isAnswer, toRepeat: toRepeat)
        }
        guard let query, case .message(let messages) = query.subject else { return nil }
        if code.isAnswer { messages.hasAnswer = true }
        if code == .refused { messages.hasRefused = true } else if !code.isAnswer { messages.hasFailed = true }
        return Answered(messages: messages, by: .server(query.group, query.server))
    }

    /// A server has answered a request for names.
    /// - Parameters:
    ///   - wanted: The families that the account is asked for now. "No record" of fewer families is not recorded.
    ///   - toRepeat: See ``answered(_:_:toRepeat:at:)``.
    mutating func found(
        _ id: TableID, _ results: [NameAddresses], _ reasons: [AbsenceReason], of wanted: Families, toRepeat: Bool,
        at now: Tick
    ) -> Found? {
        let query = end(id, at: now) { query in
            guard case .names(let lookups, _) = query.subject else { return .failed(Self.answerToAnother) }
            let speaks = lookups.count > 1 || results.contains { $0.name == lookups[0].key.name }
            return speaks ? .answered(hasAnswer: true, toRepeat: toRepeat) : .failed(Self.answerWithoutTheName)
        }
        guard let query, case .names(let lookups, let families) = query.subject else { return nil }
        let group = query.group.rawValue
        var found = Found(families: families, group: query.group, server: query.server)
        for (index, result) in results.enumerated() {
            guard let lookup = lookups.first(where: { $0.key.name == result.name }), lookup.query == id else {
                continue
            }
            lookup.query = nil
            groups[group].remove(lookup)
            if result.hasAddresses {
                groups[group].counters.withoutRecordInARow = 0
            } else {
                groups[group].counters.withoutRecordInARow += 1
                groups[group].noRecordBudget.charge(lookup.key.name, at: now)
                if lookup.isCurrent, families.isSuperset(of: wanted) {
                    let code = reasons.code(of: lookup.key.name)
                    noRecord(lookup.key, because: code, after: 0, at: query.group, now)
                }
            }
            found.names.append((lookup, index))
        }
        for lookup in lookups where lookup.query == id {
            lookup.wasLeftOut = true
            lookup.query = nil
            groups[group].outbox.append(lookup)
        }
        return found
    }

    private static var answerToAnother: Failure { Failure(.badAnswer, "an answer to something else") }
    private static var answerWithoutTheName: Failure {
        Failure(.badAnswer, "the answer does not speak of the name asked")
    }

    private mutating func goOn(_ query: Query, after failure: Failure, at now: Tick) {
        let group = query.group.rawValue
        if case .names(let lookups, let families) = query.subject {
            report(
                AbnormalLookup(
                    group: query.group, names: lookups.map(\.key.name), families: families, server: query.server,
                    failure: failure, spend: now.milliseconds(since: query.sent), fellBack: false))
        }
        if failure.kind == .here { return stopHere(query, failure) }
        let trouble = Trouble(failure: failure, group: query.group, server: query.server)
        switch query.subject {
        case .names(let lookups, _):
            for lookup in lookups where lookup.query != nil {
                lookup.trouble = trouble
                for flight in lookup.flights { tell(flight, .failed(trouble)) }
                if failure.kind == .refusedTogether || failure.kind == .badAnswer, lookups.count > 1 {
                    // One unusual name must not cost the other names of its request their answers.
                    lookup.wasLeftOut = true
                } else {
                    lookup.tried.append(query.number)
                }
                lookup.query = nil
                groups[group].outbox.append(lookup)
            }
        case .message(let messages):
            tell(messages.flight, .failed(trouble))
            messages.hasFailed = true
            sendNext(messages, at: now)
        case .measurement: break
        }
    }

    /// Ends an attempt for a shortage of this machine. The server is not to blame, and no other server or group is
    /// asked for this reason: the step ends once no query of it is under way.
    private mutating func stopHere(_ query: Query, _ failure: Failure) {
        let trouble = Trouble(failure: failure, group: query.group)
        switch query.subject {
        case .names(let lookups, _):
            for lookup in lookups where lookup.query != nil {
                lookup.query = nil
                groups[query.group.rawValue].remove(lookup)
                for flight in lookup.flights {
                    let step = flight.step(of: query.group)
                    tell(flight, .exhausted(step: step, .failure, trouble))
                }
            }
        case .message(let messages):
            guard messages.underWay.isEmpty, !messages.isWaiting else { return }
            tell(messages.flight, .exhausted(step: messages.step, .failure, trouble))
        case .measurement: break
        }
    }

    mutating func report(_ lookup: AbnormalLookup) {
        if rules.timing.reportsLookups { actions.append(.reportLookup(lookup)) }
    }

    // MARK: Outages

    /// Notes that another group's answer to a flight is a substitute for those that groups owe, until it expires.
    mutating func noteStandIn(_ flight: Flight, at now: Tick) {
        // An answer without a basis, or of an outdated flight, is not cached, and the daemon may not ask its groups for the
        // name.
        guard flight.isCurrent, flight.bases != AnswerBases() else { return }
        let end = now.advanced(milliseconds: Int(Timing.standInTTL) * 1000)
        for step in flight.route.indices where flight.isOwed(step, rules) {
            let group = flight.route[step].group.rawValue
            let from = groups[group].standIns.value(flight.key, at: now) ?? now
            groups[group].standIns.insert(flight.key, from, until: end)
            if groups[group].nextLook == nil, groups[group].isFailing { scheduleLook(group, Self.firstLook, at: now) }
        }
    }

    /// Seconds from the failure of a group to its first probe, which asks for a name that another group has answered;
    /// the time doubles with each probe, up to ``longestLook``.
    private static var firstLook: Int { 2 }
    private static var longestLook: Int { 32 }

    /// Probes a failed group as long as substitutes for its answers exist: otherwise its return would be noticed only
    /// when they expire.
    mutating func lookAgain(_ group: Int, at now: Tick) {
        // An earlier probe may have taken the place of the one that this deadline is for.
        guard let last = groups[group].nextLook, last.at <= now else { return }
        groups[group].nextLook = nil
        guard let key = groups[group].standIns.first(at: now, where: { $0 <= now }) else { return }
        // The group answers: the substitute is for a question that was under way when the last server returned.
        guard groups[group].isFailing else { return outageEnded(of: GroupID(group), at: now) }
        scheduleLook(group, min(2 * last.pause, Self.longestLook), at: now)
        tell(.lookAgain(key))
    }

    private mutating func scheduleLook(_ group: Int, _ pause: Int, at now: Tick) {
        let moment = now.advanced(milliseconds: pause * 1000)
        groups[group].nextLook = (pause, moment)
        schedule(.outage(group), at: moment)
    }

    /// An outage is over, or may be: the next one is probed like a first one.
    private mutating func endLooks(_ group: Int, at now: Tick) {
        guard let next = groups[group].nextLook, next.at > now.advanced(milliseconds: Self.firstLook * 1000) else {
            return
        }
        scheduleLook(group, Self.firstLook, at: now)
    }

    /// A group answers again: the substitutes for its answers are removed, so the next question asks the group. A further
    /// substitute is not removed for this reason within a minute: a question that fails only at this group is asked
    /// there at most twice a minute.
    private mutating func outageEnded(of group: GroupID, at now: Tick) {
        let index = group.rawValue
        if !groups[index].isFailing { endLooks(index, at: now) }
        let end = now.advanced(milliseconds: Int(Timing.standInTTL) * 1000)
        let keys = groups[index].standIns.keys(at: now) { $0 <= now }
        for key in keys { groups[index].standIns.insert(key, end, until: end) }
        if !keys.isEmpty { tell(.outageEnded(keys)) }
    }

    /// A group may answer again, since its servers, the way of asking them or the network has changed: all substitutes
    /// for its answers are removed.
    mutating func endStandIns(of group: GroupID, at now: Tick) {
        endLooks(group.rawValue, at: now)
        let keys = groups[group.rawValue].standIns.keys(at: now)
        groups[group.rawValue].standIns.removeAll()
        if !keys.isEmpty { tell(.outageEnded(keys)) }
    }

    /// Groups may not be asked these questions any more: a probe would ask another group, or none. The substitutes are
    /// removed, since nothing else would end them if the former rules came back.
    mutating func endStandIns(where isMeant: (GroupID, Flight.Key) -> Bool) {
        var ended: [Flight.Key] = []
        each { group in
            let id = group.id
            group.standIns.remove { key in
                guard isMeant(id, key) else { return false }
                ended.append(key)
                return true
            }
        }
        if !ended.isEmpty { tell(.outageEnded(ended)) }
    }
}
