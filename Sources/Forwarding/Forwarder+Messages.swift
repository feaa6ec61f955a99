import Base
import DNSCache
import DNSWire

/// Groups that carry messages: a question is sent to one server after the other, and also to the next one when a server
/// takes longer than usual.
extension Forwarder {
    /// Asks the next server of the group in ``Flight/messages``, or waits until one has room; ends the step when no server
    /// is left and no query is under way.
    mutating func sendMessage(_ flight: Flight, at now: Tick) {
        guard let messages = flight.messages, !messages.isWaiting, !isSent(flight, messages, at: now) else { return }
        messages.isWaiting = true
        let group = flight.route[messages.step].group.rawValue
        groups[group].waiting.append(flight.id, of: shares.source(at: flight.crowd.share))
    }

    /// - Returns: whether that is done; false: no server that is left has room.
    private mutating func isSent(_ flight: Flight, _ messages: Messages, at now: Tick) -> Bool {
        let group = flight.route[messages.step].group
        let place = group.rawValue
        var source: Source?
        if !groups[place].waiting.isEmpty {
            let own = shares.source(at: flight.crowd.share)
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
            if messages.underWay.isEmpty { messagesEnded(flight, messages, at: now) }
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
            waiting.removeAll { self.waiting($0, at: group) == nil }
            groups[group].waiting = waiting
        }
        var isServed = true
        while isServed, !groups[group].isFull(at: now) {
            isServed = false
            for source in groups[group].waiting.sources where sendNext(of: source, at: group, now) { isServed = true }
        }
    }

    /// A flight that waits for a server of a group; nil: it does not any more.
    private func waiting(_ id: TableID, at group: Int) -> (flight: Flight, messages: Messages)? {
        guard let flight = flights[id], let messages = flight.messages, messages.isWaiting,
            flight.route[messages.step].group.rawValue == group
        else { return nil }
        return (flight, messages)
    }

    /// Sends the oldest flight of a source for which a server has room; false: there is none.
    private mutating func sendNext(of source: Source, at group: Int, _ now: Tick) -> Bool {
        let hasOthers = groups[group].waiting.hasOthers(than: source)
        guard !groups[group].isFull(for: hasOthers ? source : nil, at: now) else { return false }
        var waiting = groups[group].waiting.take(of: source)[...]
        var left: [TableID] = []
        var isServed = false
        while !isServed, let id = waiting.popFirst() {
            guard let (flight, messages) = self.waiting(id, at: group) else { continue }
            messages.isWaiting = false
            if flight.isAnswered {
                // All its clients were answered already; sent now, it would only delay flights whose clients still
                // wait.
                messagesEnded(flight, messages, at: now)
            } else if isSent(flight, messages, at: now) {
                isServed = true
            } else {
                messages.isWaiting = true
                left.append(id)
            }
        }
        groups[group].waiting.putBack(left + waiting, of: source, isNext: !isServed)
        return isServed
    }

    /// A step's servers have all failed or refused.
    private mutating func messagesEnded(_ flight: Flight, _ messages: Messages, at now: Tick) {
        let isRefused = messages.hasRefused && !messages.hasFailed
        let group = flight.route[messages.step].group.rawValue
        var trouble: Trouble?
        if messages.tried.isEmpty, let failure = groups[group].lastFailure {
            // No server was asked, since all are paused: the reason is their last failure.
            trouble = Trouble(failure: failure, group: groups[group].id, server: groups[group].current)
        }
        tell(
            flight, .exhausted(step: messages.step, isRefused ? .refused : .failure, trouble, because: nil), at: now)
    }

    /// A server of the group in ``Flight/messages`` has answered.
    mutating func settle(_ flight: Flight, _ answer: Answer, by answerer: Answerer, at now: Tick) {
        guard let messages = flight.messages else { return }
        let end = StepEnds(of: answer)
        guard end == .failure || end == .refused else {
            return tell(flight, .answered(step: messages.step, answer, by: answerer), at: now)
        }
        if end == .failure { messages.hasFailed = true } else { messages.hasRefused = true }
        tell(flight, .refused(step: messages.step, answer, by: answerer), at: now)
        sendMessage(flight, at: now)
    }
}
