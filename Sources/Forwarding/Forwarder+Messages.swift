import Base
import DNSCache
import DNSWire

/// Groups that carry messages: a question is sent to one server after the other, and also to the next one when a server
/// takes longer than usual.
extension Forwarder {
    /// Whether other rules have come into effect since a flight began, by which its name must not go to a group.
    func isBarred(_ flight: Flight, _ group: GroupID) -> Bool {
        flight.generation != generation && !policy.mayAsk(group, flight.key.name.name, flight.key.type)
    }

    /// Asks the next server of the group in ``Flight/messages``; ends the step when no server is left and no query is
    /// under way.
    mutating func sendMessage(_ flight: Flight, at now: Tick) {
        let messages = flight.messages
        guard !messages.isWaiting else { return }
        let group = flight.route[messages.step].group
        let place = group.rawValue
        let pick: GroupState.Pick =
            isBarred(flight, group)
            ? .nobody
            : groups[place].choose(at: now) { server in !messages.tried.allSatisfy { $0 != server } }
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
            guard isFirst, let other = groups[place].serverToTry(besides: server, at: now) else { return }
            flight.sent(by: other.exposure)
            _ = send(.measurement, .message(flight.question), to: other, of: group, at: now)
        case .full:
            messages.isWaiting = true
            groups[place].waiting.append(flight.id)
        case .nobody:
            if messages.underWay.isEmpty { messagesEnded(flight, at: now) }
        }
    }

    /// A server takes longer than usual: the next one is asked as well, and the first answer counts. The usual time
    /// only begins a second query and never ends the first: names that the server must look up itself take longer than
    /// those in its cache.
    mutating func askNextAsWell(_ id: TableID, at now: Tick) {
        guard let query = queries[id], case .message(let flight) = query.subject else { return }
        queries[id]?.isOvertaken = true
        sendMessage(flight, at: now)
    }

    /// Servers have room again: the flights that wait for one are sent, the oldest first.
    mutating func sendWaiting(at group: Int, _ now: Tick) {
        var waiting = groups[group].waiting[...]
        groups[group].waiting = []
        while let id = waiting.popFirst() {
            guard let flight = flights[id], flight.messages.isWaiting else { continue }
            flight.messages.isWaiting = false
            guard !flight.isOverdue else {
                // All its clients were answered already; sent now, it would only delay flights whose clients still
                // wait.
                messagesEnded(flight, at: now)
                continue
            }
            sendMessage(flight, at: now)
            if flight.messages.isWaiting { break }
        }
        groups[group].waiting += waiting
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
            flight.isOwed = true
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
            if flight.secondBest?.head.responseCode.isAnswer != true {
                (flight.secondBest, flight.answerer) = (answer, answerer)
            }
            if end == .failure { flight.messages.hasFailed = true } else { flight.messages.hasRefused = true }
            sendMessage(flight, at: now)
        default:
            (flight.secondBest, flight.secondBestBy) = (answer, flight.route[step].group)
            flight.answerer = answerer
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
