import Base
import DNSCache
import DNSWire

/// Assigns questions and names to servers, and queues the rest.
extension GroupDesk {
    // MARK: Messages

    /// Asks the next server for a flight, or waits until a server has room; ends the step when no server is left and no
    /// query is under way.
    mutating func sendNext(_ messages: MessageStep, at now: Tick) {
        if messages.wasLeft, messages.flight.isAnswered { return drop(messages) }
        guard !messages.isWaiting, !isSent(messages, at: now) else { return }
        messages.isWaiting = true
        groups[messages.group.rawValue].waiting.append(messages, of: messages.flight.source)
    }

    /// - Returns: false if no server that is left has room.
    private mutating func isSent(_ messages: MessageStep, at now: Tick) -> Bool {
        let (flight, group) = (messages.flight, messages.group.rawValue)
        func ask(_ subject: Query.Subject, of index: Int, isTrial: Bool) -> TableID {
            send(
                subject, .message(flight.question), to: index, of: group, for: flight.source, isTrial: isTrial,
                at: now)
        }
        switch groups[group].pick(messages, rules, at: now) {
        case .server(let index, let isTrial, let other):
            messages.tried.append(groups[group].servers[index].number)
            messages.underWay.append(ask(.message(messages), of: index, isTrial: isTrial))
            if let other { _ = ask(.measurement(messages), of: other, isTrial: true) }
        case .full, .pastPlan: return false
        case .noServer, .down: if messages.underWay.isEmpty { end(messages) }
        }
        return true
    }

    /// A step's servers have all failed or refused.
    private mutating func end(_ messages: MessageStep) {
        let isRefused = messages.hasRefused && !messages.hasFailed
        // If no server was asked, the reason is why the servers are paused.
        let trouble = messages.tried.isEmpty ? groups[messages.group.rawValue].trouble : nil
        tell(messages.flight, .exhausted(step: messages.step, isRefused ? .refused : .failure, trouble))
    }

    /// Sends no further query of the step, since no client waits for the answer.
    private mutating func drop(_ messages: MessageStep) {
        messages.wasLeft = true
        if messages.underWay.isEmpty { tell(messages.flight, .dropped(step: messages.step)) }
    }

    /// Sends waiting flights when servers have room again: each source in turn, its oldest flight first.
    private mutating func sendWaiting(at group: Int, _ now: Tick) {
        if groups[group].waiting.count > 2 * Shares.flights { groups[group].waiting.compact() }
        var isServed = true
        while isServed, !groups[group].choice.isFull(at: now) {
            isServed = false
            for source in groups[group].waiting.sources where sendNext(of: source, at: group, now) {
                isServed = true
            }
        }
    }

    /// Sends the oldest flight of a source for which a server has room; false if there is none.
    private mutating func sendNext(of source: Source, at group: Int, _ now: Tick) -> Bool {
        let hasOthers = groups[group].waiting.hasOthers(than: source)
        guard !groups[group].choice.isFull(for: hasOthers ? source : nil, at: now) else { return false }
        var waiting = groups[group].waiting.take(of: source)[...]
        var left: [MessageStep] = []
        var isServed = false
        while !isServed, let messages = waiting.popFirst() {
            guard messages.isWaiting else { continue }
            messages.isWaiting = false
            if messages.flight.isAnswered {
                // The clients have their answers; the question would only delay flights whose clients still wait.
                drop(messages)
            } else if isSent(messages, at: now) {
                isServed = true
            } else {
                messages.isWaiting = true
                left.append(messages)
            }
        }
        groups[group].waiting.putBack(left + waiting, of: source, isNext: !isServed)
        return isServed
    }

    // MARK: Names

    /// Ends a turn of the loop: sends the names gathered in it, as many in a request as the group allows. No name waits
    /// for a later turn, unless ``GroupState/maximumRequests`` are under way or the plan is exceeded.
    mutating func endTurn(_ policy: Policy, at now: Tick) {
        for group in groups.indices {
            if !groups[group].outbox.isEmpty {
                sendGathered(by: group, policy.families(of: GroupID(group)), at: now)
            }
            if !groups[group].waiting.isEmpty { sendWaiting(at: group, now) }
        }
    }

    private mutating func sendGathered(by group: Int, _ families: Families, at now: Tick) {
        // Routes have changed, and the account is no longer asked for either family.
        if families.isEmpty {
            let lookups = groups[group].outbox
            groups[group].removeGathered(lookups.count)
            for lookup in lookups { abandon(lookup, at: GroupID(group), nil, because: nil, families, now) }
            return
        }
        groups[group].plan?.fill(at: now)
        groups[group].putInTurn(at: now)
        var taken = 0
        gathering: while taken < groups[group].outbox.count {
            switch groups[group].next(from: &taken, rules, at: now) {
            case .send(let lookups, let index, let isTrial):
                let names = lookups.map(\.key.name)
                let id = send(
                    .names(lookups, families), .addresses(names, families), to: index, of: group, for: nil,
                    isTrial: isTrial, at: now)
                for lookup in lookups { (lookup.query, lookup.wasSent) = (id, true) }
            case .drop(let lookup):
                groups[group].remove(lookup)
                for flight in lookup.flights { tell(flight, .dropped(step: flight.step(of: GroupID(group)))) }
            case .abandon(let lookup, let trouble, let reason):
                if reason == .plan {
                    noteExceeded(group, at: now)
                    tell(.pastPlan)
                }
                abandon(lookup, at: GroupID(group), trouble, because: reason, families, now)
            case .wait: break gathering
            case .waitForPlan:
                noteExceeded(group, at: now)
                if !groups[group].isPlanAwaited { schedule(.plan(group), at: groups[group].plan?.nextRoom ?? now) }
                groups[group].isPlanAwaited = true
                break gathering
            }
        }
        groups[group].removeGathered(taken)
    }

    private mutating func noteExceeded(_ group: Int, at now: Tick) {
        if groups[group].plan?.news.isNews(at: now) ?? false { actions.append(.report(.planExceeded(GroupID(group)))) }
    }

    /// Removes a name from the group's queue; the name's flights go on to their next steps.
    private mutating func abandon(
        _ lookup: Lookup, at group: GroupID, _ trouble: Trouble?, because reason: FallbackReason?,
        _ families: Families, _ now: Tick
    ) {
        groups[group.rawValue].remove(lookup)
        var fellBack = false
        for flight in lookup.flights {
            let step = flight.step(of: group)
            fellBack = fellBack || flight.isWanted && flight.leadsOn(from: step, rules)
            tell(flight, .exhausted(step: step, .failure, trouble, because: reason))
        }
        report(
            AbnormalLookup(
                group: group, names: [lookup.key.name], families: families, server: nil, failure: trouble?.failure,
                spend: now.milliseconds(since: lookup.started), fellBack: fellBack))
    }

    // MARK: Names that must not be sent

    /// Takes back names from groups that may no longer be asked for them, whether they wait for their turn, for a
    /// connection, or for a repetition. The caller ends the flights.
    /// - Parameter mayAsk: Whether the group may be asked the question, by the present rules.
    mutating func takeBack(unless mayAsk: (GroupID, Flight.Key) -> Bool, at now: Tick) {
        func isBarred(_ lookup: Lookup, _ group: GroupID) -> Bool {
            // A group that leaves out one family is asked for the other family.
            !lookup.isCurrent
                && ![.a, .aaaa].contains { mayAsk(group, Flight.Key(name: lookup.key, type: $0, audience: .everyone)) }
                && !lookup.flights.contains { $0.key.findsServer && mayAsk(group, $0.key) }
        }
        for id in queries.ids {
            guard let query = queries[id] else { continue }
            let isMeant =
                switch query.subject {
                case .message(let messages):
                    !messages.flight.isCurrent && !mayAsk(query.group, messages.flight.key)
                case .names(let lookups, _): lookups.contains { isBarred($0, query.group) }
                // The flight may have ended, so that it does not know whether it is current.
                case .measurement(let messages):
                    !mayAsk(query.group, messages.flight.key)
                        || !groups[query.group.rawValue].choice.servers.contains { $0.number == query.number }
                }
            guard isMeant, cancel(id, as: .withdrawn, at: now) != nil,
                case .names(let lookups, _) = query.subject
            else { continue }
            // The request's other names are sent again.
            for lookup in lookups where lookup.query == id {
                lookup.query = nil
                groups[query.group.rawValue].outbox.append(lookup)
            }
        }
        for group in groups.indices {
            for lookup in groups[group].outbox where isBarred(lookup, GroupID(group)) { groups[group].remove(lookup) }
            groups[group].outbox.removeAll { isBarred($0, GroupID(group)) }
        }
    }
}
