import Base
import DNSCache
import DNSWire

/// Groups that carry messages: a question is sent to one server after the other, and also to the next one when a server
/// takes longer than usual.
extension Forwarder {
    /// Asks the next server of the group in ``Flight/messages``, or waits until one has room; ends the step when no server
    /// is left and no query is under way.
    mutating func sendMessage(_ flight: Flight, at now: Tick) {
        guard !flight.messages.isWaiting, !isSent(flight, at: now) else { return }
        flight.messages.isWaiting = true
        let group = flight.route[flight.messages.step].group.rawValue
        groups[group].waiting.append(flight.id, of: shares.source(at: flight.place))
    }

    /// - Returns: whether that is done; false: no server that is left has room.
    private mutating func isSent(_ flight: Flight, at now: Tick) -> Bool {
        let messages = flight.messages
        let group = flight.route[messages.step].group
        let place = group.rawValue
        var source: Source?
        if !groups[place].waiting.isEmpty {
            let own = shares.source(at: flight.place)
            if groups[place].waiting.hasOthers(than: own) { source = own }
        }
        let pick: GroupState.Pick =
            isBarred(flight, group)
            ? .nobody
            : groups[place].choose(at: now, for: source) { server in !messages.tried.allSatisfy { $0 != server } }
        switch pick {
        case .server(let server):
            let isFirst = messages.tried.isEmpty
            messages.tried.append(server)
            flight.sent(by: server.exposure)
            let query = send(.message(flight), .message(flight.question), to: server, of: group, at: now)
            messages.underWay.append(query)
            if let after = groups[place].nextAfter(server) {
                deadlines.insert(.late(query), at: now.advanced(milliseconds: after))
            }
            guard isFirst, let other = groups[place].serverToTry(besides: server, at: now) else { return true }
            flight.sent(by: other.exposure)
            _ = send(.measurement(flight), .message(flight.question), to: other, of: group, at: now)
        case .full: return false
        case .nobody:
            if messages.underWay.isEmpty { messagesEnded(flight, at: now) }
        }
        return true
    }

    /// A server takes longer than usual: the next one is asked as well, and the first answer counts. The usual time
    /// only begins a second query and never ends the first: names that the server must look up itself take longer than
    /// those in its cache.
    mutating func askNextAsWell(_ id: TableID, at now: Tick) {
        guard let query = queries[id], case .message(let flight) = query.subject else { return }
        queries[id]?.isOvertaken = true
        sendMessage(flight, at: now)
    }

    /// Servers have room again: the flights that wait for one are sent, of each source one in turn, and its oldest first.
    mutating func sendWaiting(at group: Int, _ now: Tick) {
        if groups[group].waiting.count > 2 * Self.maximumFlights {
            var waiting = exchange(&groups[group].waiting, with: WaitingFlights())
            waiting.removeAll { !isWaiting($0, at: group) }
            groups[group].waiting = waiting
        }
        var isServed = true
        while isServed, !groups[group].isFull(at: now) {
            isServed = false
            for source in groups[group].waiting.sources where sendNext(of: source, at: group, now) { isServed = true }
        }
    }

    private func isWaiting(_ id: TableID, at group: Int) -> Bool {
        guard let flight = flights[id] else { return false }
        return flight.messages.isWaiting && flight.route[flight.messages.step].group.rawValue == group
    }

    /// Sends the oldest flight of a source for which a server has room; false: there is none.
    private mutating func sendNext(of source: Source, at group: Int, _ now: Tick) -> Bool {
        let hasOthers = groups[group].waiting.hasOthers(than: source)
        guard !groups[group].isFull(for: hasOthers ? source : nil, at: now) else { return false }
        var waiting = groups[group].waiting.take(of: source)[...]
        var left: [TableID] = []
        var isServed = false
        while !isServed, let id = waiting.popFirst() {
            guard isWaiting(id, at: group), let flight = flights[id] else { continue }
            flight.messages.isWaiting = false
            if flight.isOverdue {
                // All its clients were answered already; sent now, it would only delay flights whose clients still
                // wait.
                messagesEnded(flight, at: now)
            } else if isSent(flight, at: now) {
                isServed = true
            } else {
                flight.messages.isWaiting = true
                left.append(id)
            }
        }
        groups[group].waiting.putBack(left + waiting, of: source, isNext: !isServed)
        return isServed
    }

    /// A step's servers have all failed or refused.
    private mutating func messagesEnded(_ flight: Flight, at now: Tick) {
        let step = flight.messages.step
        let isRefused = flight.messages.hasRefused && !flight.messages.hasFailed
        let state = groups[flight.route[step].group.rawValue]
        if flight.lastFailure == nil, let failure = state.lastFailure, let server = state.current {
            // No server was asked, since all are paused: the reason is their last failure.
            (flight.lastFailure, flight.lastFailed) = (failure, (state.id, server))
        }
        if !isRefused, step == flight.begun - 1, hasNextStep(flight) {
            guard flight.isWanted else {
                // The group answered before, and that answer is not replaced by another group's.
                return remove(flight)
            }
            flight.owing.insert(step)
            failed(step, of: flight, at: now)
        }
        stepEnded(step, of: flight, after: isRefused ? .refused : .failure, at: now)
    }

    /// A server of a step's group has answered.
    mutating func settle(_ flight: Flight, _ answer: Answer, by answerer: Answerer, at now: Tick) {
        let step = flight.messages.step
        guard let end = StepEnds(of: answer) else {
            flight.answerer = answerer
            return finish(flight, answer, of: step, at: now)
        }
        switch end {
        case .failure, .refused:
            // An answer of an earlier group is better than a SERVFAIL or the like.
            if flight.secondBest?.answer.head.responseCode.isAnswer != true {
                (flight.secondBest, flight.answerer) = ((answer, flight.route[step].group), answerer)
            }
            if end == .failure { flight.messages.hasFailed = true } else { flight.messages.hasRefused = true }
            sendMessage(flight, at: now)
        default:
            (flight.secondBest, flight.answerer) = ((answer, flight.route[step].group), answerer)
            let isLast = !flight.route[(step + 1)...].contains { $0.after.contains(end) }
            if isLast { return finish(flight, answer, of: step, at: now) }
            for query in flight.messages.underWay { leave(query) }
            stepEnded(step, of: flight, after: end, at: now)
        }
    }

    /// Caches a message group's answer and gives it to the clients.
    /// - Parameters:
    ///   - group: the group that gave it; nil: the step's.
    ///   - isFromStore: the store has it already.
    mutating func finish(
        _ flight: Flight, _ answer: Answer, of step: Int, by group: GroupID? = nil, isFromStore: Bool = false,
        at now: Tick
    ) {
        flight.underWay.remove(step)
        flight.wasAnswered = true
        var answer = answer
        let longest = flight.isOwed ? min(timing.maxTTL, Timing.standInTTL) : timing.maxTTL
        answer.clampTTLs(minimum: min(timing.minTTL, longest), maximum: longest)
        let (key, group) = (flight.key, group ?? flight.route[step].group)
        rank(&answer, of: key.name, key.type, at: now)
        keep(
            answer, by: group, to: key.name.name, key.type, for: key.audience, flight.generation, at: now,
            isStandIn: flight.isOwed)
        if !flight.failed.isEmpty { standsIn(flight, at: now) }
        if shared.isOn, !isFromStore, !flight.isOwed, answer.isCacheable {
            share(
                .answer(answer), by: group, to: key.name.name, key.type, for: key.audience, lifetime: answer.keep,
                flight.generation, at: now)
        }
        if flight.isOutranked(step) {
            // The step before it was slow; if it still answers, its answer replaces this one in the cache.
            give(flight, answer)
        } else {
            finish(flight, answer)
        }
    }
}

extension StepEnds {
    /// How an answer ends a group's step so that another group may be asked; nil: it has records, so it does not.
    fileprivate init?(of answer: Answer) {
        switch answer.head.responseCode {
        case .noError where answer.head.answerCount > 0: return nil
        case .noError: self = .noData
        case .nxDomain: self = .nxDomain
        case .refused: self = .refused
        default: self = .failure
        }
    }
}
