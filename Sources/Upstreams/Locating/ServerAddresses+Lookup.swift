import Base
import DNSWire
import Forwarding

/// One lookup: the sources are asked in order, the next one beside a silent one, until one has an address.
extension ServerAddresses {
    struct Lookup {
        /// The sources that were not asked yet.
        var left: ArraySlice<Source>
        var attempts: [Attempt] = []
        /// When the newest attempt counts as silent.
        var silentAt: Tick?
        /// When the waiting callers are answered, whatever is known by then.
        var waitUntil: Tick?
        /// Why sources had no address.
        var reasons: [String] = []
        /// Whether one attempt has brought addresses; the others were cancelled.
        var hasFound = false
        /// The shortest TTL found, in seconds.
        var ttl = UInt32.max
        /// Whether one family's answer is missing.
        var isPartial = false
        /// Whether everything was asked again because the network had changed.
        var isRepeated = false
        var leadsBack = false
    }

    /// One source that was asked.
    struct Attempt {
        let source: Source
        var pending: [QueryID]
        let until: Tick
        /// Whether one of its answers was a failure.
        var hasFailed = false
    }

    mutating func beginIfDue(_ name: Name, at now: Tick) {
        guard var entry = entries[name], entry.lookup == nil, entry.lookAt <= now else { return }
        if entry.allFailed || !isUsable(entry) { entry.inVain += 1 }
        entry.lookup = Lookup(left: sources[...])
        entries[name] = entry
        if sources.isEmpty { entries[name]?.lookup?.reasons = ["there is no HTTPDNS and no local resolver to ask"] }
        goOn(name, at: now)
    }

    private func isUsable(_ entry: Entry) -> Bool {
        entry.ports.contains { !endpoints(entry, $0).isEmpty }
    }

    /// Asks the next source; if there is none left, the lookup ends with the last attempt.
    private mutating func goOn(_ name: Name, at now: Tick) {
        guard var lookup = entries[name]?.lookup else { return }
        guard let source = lookup.left.popFirst() else {
            if lookup.attempts.isEmpty { conclude(name, at: now) }
            return
        }
        var attempt = Attempt(source: source, pending: [], until: now.advanced(milliseconds: Self.attemptTime))
        for (group, server, ask) in source.asks(for: name) {
            lastNumber &+= 1
            let id = QueryID(standalone: lastNumber, of: group)
            attempt.pending.append(id)
            asked[id] = name
            actions.append(.ask(id, server, ask))
        }
        lookup.attempts.append(attempt)
        lookup.silentAt = now.advanced(milliseconds: Self.silence)
        entries[name]?.lookup = lookup
    }

    mutating func settle(_ id: QueryID, _ outcome: Outcome, at now: Tick) {
        guard let name = asked.removeValue(forKey: id), var entry = entries[name], var lookup = entry.lookup,
            let place = lookup.attempts.firstIndex(where: { $0.pending.contains(id) })
        else { return }
        let answer = ServerAnswer(outcome)
        lookup.attempts[place].pending.removeAll { $0 == id }
        if answer.isFailure { lookup.attempts[place].hasFailed = true }
        let attempt = lookup.attempts[place]
        let found = lookup.hasFound ? entry.found : []
        let (addresses, own) = usable(answer, beside: found, entry)
        if !addresses.isEmpty {
            cancel(lookup.takes(attempt, ttl: answer.ttl, at: now))
            // IPv6 first (RFC 6724 §2.1).
            entry.found = (found + addresses).sorted { !$0.isIPv4 && $1.isIPv4 }
        } else {
            lookup.add(own == nil ? answer.reason : Self.isOwn, of: attempt.source)
            if lookup.hasFound, answer.isFailure { lookup.isPartial = true }
        }
        if let own {
            lookup.leadsBack = true
            if !entry.leadsBack { actions.append(.report(.leadsBack(name, own))) }
            entry.leadsBack = true
        }
        lookup.attempts.removeAll { $0.pending.isEmpty }
        entry.lookup = lookup
        entries[name] = entry
        if attempt.pending.isEmpty { ended(name, at: now) }
    }

    /// The usable addresses of an answer: limited in number, and without those that lead back to this daemon.
    private func usable(
        _ answer: ServerAnswer, beside others: [IPAddress], _ entry: Entry
    ) -> (addresses: [IPAddress], own: Endpoint?) {
        var usable: [IPAddress] = []
        var own: Endpoint?
        for address in answer.addresses {
            let kept = others + usable
            guard !kept.contains(address),
                kept.count(where: { $0.isIPv4 == address.isIPv4 }) < Self.maximumOfAFamily
            else { continue }
            if let loop = withoutLoops(entry.ports.map { Endpoint(address, port: $0) }).loops.first {
                own = own ?? loop
            } else if address.isOfOneMachine, !address.isIPv6LinkLocal {
                usable.append(address)
            }
        }
        return (usable, own)
    }

    /// An attempt has ended, with addresses or without.
    private mutating func ended(_ name: Name, at now: Tick) {
        guard let lookup = entries[name]?.lookup else { return }
        if lookup.hasFound { conclude(name, at: now) } else { goOn(name, at: now) }
    }

    private mutating func conclude(_ name: Name, at now: Tick) {
        guard var entry = entries[name], let lookup = entry.lookup else { return }
        cancel(lookup.attempts)
        (entry.lookup, entry.looked) = (nil, now)
        if !lookup.leadsBack { entry.leadsBack = false }
        var seconds = entry.inVain > 0 ? entry.pause : Self.pauseAfterFailure
        if lookup.hasFound {
            // The TTL of one family says nothing about the missing other one.
            let ttl = lookup.isPartial ? 0 : lookup.ttl
            seconds = Int(min(max(ttl, Self.lifetimes.lowerBound), Self.lifetimes.upperBound))
            (entry.failure, entry.allFailed) = (nil, false)
        } else {
            entry.failure = lookup.reasons.joined(separator: "; ")
        }
        entry.lookAt = now.advanced(milliseconds: seconds * 1000)
        let isLost = !isUsable(entry)
        if isLost != entry.isLost {
            entry.isLost = isLost
            actions.append(.report(isLost ? .lost(name, entry.failure ?? "") : .found(name)))
        }
        entries[name] = entry
        if lookup.waitUntil != nil { actions.append(.tell(name)) }
    }

    mutating func cancel(_ attempts: [Attempt]) {
        for id in attempts.flatMap(\.pending) {
            asked[id] = nil
            actions.append(.cancel(id))
        }
    }

    // MARK: Time

    var nextDeadline: Tick? {
        guard !asked.isEmpty else { return nil }
        return entries.values.reduce(nil) { earliest, entry in
            guard let lookup = entry.lookup else { return earliest }
            return lookup.attempts.reduce(earliest.orEarlier(lookup.silentAt).orEarlier(lookup.waitUntil)) {
                $0.orEarlier($1.until)
            }
        }
    }

    mutating func expire(at now: Tick) {
        guard !asked.isEmpty else { return }
        for name in entries.keys {
            endAttempts(name, at: now)
            breakSilence(name, at: now)
            if let until = entries[name]?.lookup?.waitUntil, until <= now {
                entries[name]?.lookup?.waitUntil = nil
                actions.append(.tell(name))
            }
        }
    }

    private mutating func endAttempts(_ name: Name, at now: Tick) {
        guard var lookup = entries[name]?.lookup else { return }
        let over = lookup.attempts.filter { $0.until <= now }
        guard !over.isEmpty else { return }
        lookup.attempts.removeAll { $0.until <= now }
        lookup.isPartial = lookup.hasFound
        for attempt in over { lookup.add("no answer within \(Self.attemptTime) ms", of: attempt.source) }
        entries[name]?.lookup = lookup
        cancel(over)
        ended(name, at: now)
    }

    private mutating func breakSilence(_ name: Name, at now: Tick) {
        guard let lookup = entries[name]?.lookup, let silentAt = lookup.silentAt, silentAt <= now else { return }
        entries[name]?.lookup?.silentAt = nil
        if lookup.left.isEmpty {
            actions += (lookup.attempts.last?.pending ?? []).map { .askAgain($0) }
        } else {
            goOn(name, at: now)
        }
    }
}

extension ServerAddresses.Lookup {
    /// An attempt has brought addresses: no further source is asked, but its other answer is awaited.
    /// - Returns: The other attempts, which are no longer needed.
    fileprivate mutating func takes(
        _ attempt: ServerAddresses.Attempt, ttl: UInt32, at now: Tick
    ) -> [ServerAddresses.Attempt] {
        let others = attempts.filter { $0.source != attempt.source }
        attempts.removeAll { $0.source != attempt.source }
        (left, silentAt, hasFound) = ([], nil, true)
        self.ttl = min(self.ttl, ttl)
        isPartial = isPartial || attempt.hasFailed
        let soon = now.advanced(milliseconds: ServerAddresses.resolutionDelay)
        waitUntil = waitUntil.map { min($0, soon) }
        return others
    }

    /// Records why a source has no address; once for each source.
    fileprivate mutating func add(_ reason: String, of source: ServerAddresses.Source) {
        let text = "\(source): \(reason)"
        if !reasons.contains(text) { reasons.append(text) }
    }
}

extension ServerAddresses.Source: CustomStringConvertible {
    var description: String {
        switch self {
        case .account(let server): "HTTPDNS \(server)"
        case .resolver(let server): "local resolver \(server)"
        }
    }

    /// Queries for both families; for an account in one request, which is billed once.
    fileprivate func asks(for name: Name) -> [(GroupID, Server, Ask)] {
        switch self {
        case .account(let server): [(.httpdns, server, .addresses([name], .both))]
        case .resolver(let server):
            [RecordType.aaaa, .a].map { (.fallback, server, .message(MessageQuestion(name: name, type: $0))) }
        }
    }
}
