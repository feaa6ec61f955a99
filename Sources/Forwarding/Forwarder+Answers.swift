public import Base
import DNSCache
import DNSWire

/// Turns results of groups into answers, and caches, shares and delivers them.
extension Forwarder {
    /// A query was sent: the kernel has its datagram, or an established connection has it. One call is enough.
    public mutating func wrote(_ id: QueryID) { desk.wrote(id.id) }

    /// The kernel has refused a query's datagram, or a connection for the query.
    public mutating func lost(_ id: QueryID) { desk.lost(id.id) }

    /// A query has ended. The call has no effect if the query ended or timed out before.
    /// - Parameter toRepeat: Whether the answer is to the second attempt; the round trip is measured from that attempt.
    public mutating func settle(_ id: QueryID, _ outcome: Outcome, toRepeat: Bool = false, at now: Tick) {
        switch outcome {
        case .answer(let said):
            guard let to = desk.answered(id.id, said.head.responseCode, toRepeat: toRepeat, at: now) else { break }
            let answer = withoutSignatures(said, unlessAskedForBy: to.flight.key)
            // The desk's events come first: the end of an outage removes substitutes, and must not remove the answer
            // cached below.
            handleDeskEvents(at: now)
            // Copies of an answer are costly, so nearly all answers are passed on as they are.
            if let page = desk.bogusAddress(in: answer, of: to.messages.group, under: policy.synthesis) {
                settle(noSuchName(to, since: page), to, at: now)
            } else if to.flight.isBinding || to.flight.key.type == .aaaa && policy.synthesis != nil {
                settleRemade(answer, to, at: now)
            } else {
                settle(answer, to, at: now)
            }
        case .addresses(let results, let reasons):
            let wanted = policy.families(of: id.group)
            guard let found = desk.found(id.id, results, reasons, of: wanted, toRepeat: toRepeat, at: now) else {
                break
            }
            handleDeskEvents(at: now)
            for (lookup, index) in found.names { settle(lookup, results[index], reasons, found, at: now) }
        case .failed(let failure): desk.end(id.id, at: now) { _ in .failed(failure) }
        }
        handleDeskEvents(at: now)
    }

    /// An answer without the records that are for clients with DO alone (RFC 4035 §3.2.1), which some resolvers send
    /// unasked.
    @inline(__always)
    private func withoutSignatures(_ answer: Answer, unlessAskedForBy key: Flight.Key) -> Answer {
        guard case .those(dnssecOK: false, checkingDisabled: _) = key.audience, answer.isSigned else { return answer }
        return answer.withoutSignatures(key.type) ?? answer
    }

    /// A service binding without the hints of a family that `without` or `addressType` leaves out: browsers would dial
    /// these addresses.
    @inline(never)
    private func withoutHintsOfLeftOut(_ answer: Answer, to key: Flight.Key, by group: GroupID?) -> Answer {
        func isLeftOut(_ type: RecordType) -> Bool {
            let reason = policy.route(key.name, type, for: key.audience).reason
            return reason == .typeLeftOut || reason == .familyLeftOut
                || group.map { policy.leavesOut($0, type) } ?? false
        }
        return answer.withoutHints(ipv4: isLeftOut(.a), ipv6: isLeftOut(.aaaa)) ?? answer
    }

    /// Handles the answer of a group that carries messages.
    @inline(__always)
    mutating func settle(_ answer: Answer, _ to: GroupDesk.Answered, at now: Tick) {
        let answer = permitted(
            answer, to: to.flight.key, by: to.flight.isBinding ? nil : to.messages.group, at: now)
        let best = StepAnswer(answer: answer, by: to.by, step: to.messages.step)
        if answer.head.responseCode.isAnswer {
            tell(to.flight, .answered(best), at: now)
        } else {
            tell(to.flight, .refused(best), at: now)
            desk.sendNext(to.messages, at: now)
        }
    }

    /// The answer that replaces an answer with a bogus address, such as the address of a provider's search page.
    @inline(never)
    private func noSuchName(_ to: GroupDesk.Answered, since address: IPAddress) -> Answer {
        let key = to.flight.key
        var answer = Answer.nxDomain(
            key.name.name, type: key.type, negativeTTL: desk.rules.negativeTTL(of: to.messages.group))
        answer.add(.blocked, text: "\(desk.name(of: to.messages.group)): \(address) is one of bogusAddresses")
        return answer
    }

    /// Handles the desk's events.
    /// - Returns: Whether there were events.
    @discardableResult @inline(__always)
    mutating func handleDeskEvents(at now: Tick) -> Bool {
        guard desk.hasEvents || translations.hasArrivals else { return false }
        return handleAllEvents(at: now)
    }

    @inline(never)
    private mutating func handleAllEvents(at now: Tick) -> Bool {
        while desk.hasEvents || translations.hasArrivals {
            for event in desk.takeEvents() { handle(event, at: now) }
            handleArrivals(at: now)
        }
        return true
    }

    private mutating func handle(_ event: DeskEvent, at now: Tick) {
        switch event {
        case .flight(let flight, let event): tell(flight, event, at: now)
        case .pastPlan: counters.pastPlan += 1
        case .short(let detail):
            counters.short += 1
            (counters.shortOf, counters.shortAt) = (detail, now)
        case .outageEnded(let keys):
            for key in keys {
                // An account's substitutes are of both families, as are those that are made from A records.
                let types = Families(of: key.type) == nil ? [key.type] : [.a, .aaaa]
                for type in types { cache.removeStandIn(key.name.name, type: type) }
            }
        case .lookAgain(let key):
            receive(key, nil, of: .daemon, at: now)
        }
    }

    // MARK: Addresses

    /// Handles the result for both families of a name, whichever the flights asked for.
    private mutating func settle(
        _ lookup: Lookup, _ result: NameAddresses, _ reasons: [AbsenceReason], _ found: GroupDesk.Found, at now: Tick
    ) {
        let (group, answerer) = (found.group, Answerer.server(found.group, found.server))
        lookup.dropEnded()
        // No client waits: the answer is cached only if the group is the first of the route, since the answer of a
        // later group would replace a better one. Addresses for the daemon alone are in no form for clients.
        if lookup.flights.isEmpty ? !policy.asksFirst(group, lookup.key.name) : lookup.findsServer { lookup.outdate() }
        let isShared = store.isOn && found.families == policy.families(of: group)
        guard result.hasAddresses else {
            // The whole fleet would believe a forged report.
            if isShared, lookup.isCurrent, desk.rules[group].isProven {
                for type in [RecordType.a, .aaaa] {
                    share(.noRecord, by: group, to: lookup.key.name, type, for: .everyone, at: now)
                }
            }
            for flight in lookup.flights
            where !askForOther(than: found.families, isNoRecord: true, flight, at: group, now) {
                let code = reasons.code(of: lookup.key.name, Families(of: flight.key.type))
                tell(flight, noRecordEvent(flight, at: group, by: answerer, because: code), at: now)
            }
            return
        }
        let isStandIn = lookup.flights.contains { $0.standsIn($0.step(of: group), desk.rules) }
        let a = cacheFamily(lookup, .a, result, reasons, at: group, isStandIn: isStandIn, now)
        let both = made(of: a, result.ipv6, lookup, at: group, now)
        let aaaa =
            both?.absence ?? cacheFamily(lookup, .aaaa, result, reasons, at: group, isStandIn: isStandIn, now)
        if let both { cacheMade(both, lookup, by: group, at: now, isStandIn: isStandIn) }
        if isShared, lookup.isCurrent, !isStandIn {
            for (type, answer) in [(RecordType.a, a), (.aaaa, aaaa)] {
                guard let answer else { continue }
                share(.answer(answer), by: group, to: lookup.key.name, type, for: .everyone, at: now)
            }
        }
        for flight in lookup.flights where !askForOther(than: found.families, flight, at: group, now) {
            let type = flight.key.type
            if flight.key.findsServer, !lookup.findsServer {
                end(flight, with: whole(result, lookup, type, reasons, at: group), by: answerer)
                continue
            }
            let answer =
                (type == .a
                    ? a : both.flatMap { policy.synthesis(for: flight.key.audience) == nil ? nil : $0.made } ?? aaaa)
                ?? withoutAddresses(lookup, type, result, reasons, at: group)
            if isStandIn { desk.noteStandIn(flight, at: now) }
            end(flight, with: answer, by: answerer)
        }
    }

    /// Asks again for a flight if the request lacked a family, since `addressType` has changed after it was sent: the
    /// flight's family, or after "no record" either family, since the name may have addresses of the other one.
    private mutating func askForOther(
        than asked: Families, isNoRecord: Bool = false, _ flight: Flight, at group: GroupID, _ now: Tick
    ) -> Bool {
        let families = policy.families(of: group)
        guard flight.isCurrent, let own = Families(of: flight.key.type), families.contains(own),
            !asked.isSuperset(of: isNoRecord ? families : own)
        else { return false }
        desk.lookUp(flight, at: group, now)
        return true
    }

    /// The answer for a family without addresses when the other family has some. This answer does not lead to the next
    /// group, which could then insert any address. The answer lives as long as the addresses of the other family: an
    /// earlier request would be billed and bring nothing new. A family that was not asked for has no such answer.
    private func withoutAddresses(
        _ lookup: Lookup, _ type: RecordType, _ result: NameAddresses, _ reasons: [AbsenceReason], at group: GroupID
    ) -> Answer {
        let (own, other) = type == .a ? (result.ipv4, result.ipv6) : (result.ipv6, result.ipv4)
        var ttl = desk.rules.negativeTTL(of: group)
        if case .noRecord = own, case .addresses(_, let ofOther) = other { ttl = max(ttl, timing.clamped(ofOther)) }
        var answer = Answer.noData(lookup.key.name, type: type, negativeTTL: ttl)
        say(reasons.code(of: lookup.key.name, Families(of: type)), of: group, in: &answer)
        return answer
    }

    /// The answer for a server's name that a client asks for at the same moment: its addresses may be private, and none
    /// are made of others.
    private func whole(
        _ result: NameAddresses, _ lookup: Lookup, _ type: RecordType, _ reasons: [AbsenceReason], at group: GroupID
    ) -> Answer {
        guard case .addresses(let addresses, let ttl) = type == .a ? result.ipv4 : result.ipv6 else {
            return withoutAddresses(lookup, type, result, reasons, at: group)
        }
        return .addresses(lookup.key.name, type: type, addresses, ttl: timing.clamped(ttl))
    }

    /// Caches the result for one family of a name.
    /// - Returns: The answer; nil if the family was not asked for.
    private mutating func cacheFamily(
        _ lookup: Lookup, _ type: RecordType, _ result: NameAddresses, _ reasons: [AbsenceReason], at group: GroupID,
        isStandIn: Bool, _ now: Tick
    ) -> Answer? {
        let name = lookup.key.name
        var answer: Answer
        switch type == .a ? result.ipv4 : result.ipv6 {
        case .addresses(let addresses, let ttl):
            let permitted = lookup.findsServer ? addresses : permitted(addresses, of: name, at: now)
            if permitted.isEmpty {
                // This is an answer, not a failure: another group could give the same private addresses.
                answer = policy.noPermittedAddress(name, type, for: timing.clamped(ttl))
            } else {
                answer = Answer.addresses(name, type: type, permitted, ttl: timing.clamped(ttl))
            }
        case .noRecord: answer = withoutAddresses(lookup, type, result, reasons, at: group)
        default: return nil
        }
        if isStandIn { answer.limitToStandIn() }
        // A server's addresses may be private, and are in no order of clients.
        if !lookup.findsServer { rank(&answer, of: lookup.key, type, at: now) }
        if lookup.isCurrent, policy.mayCache(type, of: name, by: group) {
            cacheAnswer(
                answer, by: group, to: lookup.key, type, for: .everyone, at: now, isStandIn: isStandIn,
                basis: type == .a ? lookup.bases.ipv4 : lookup.bases.ipv6)
        }
        return answer
    }

    /// An account has no record of a flight's name.
    /// - Parameters:
    ///   - code: See ``AbsenceReason/code``.
    ///   - elapsed: The age of the finding, in seconds.
    func noRecordEvent(
        _ flight: Flight, at group: GroupID, by answerer: Answerer, because code: String? = nil,
        after elapsed: UInt32 = 0
    ) -> FlightEvent {
        var answer = noRecord(flight.key.name.name, flight.key.type, at: group, because: code)
        answer.spend(seconds: Int(elapsed))
        return .withoutRecord(
            StepAnswer(answer: answer, by: answerer, step: flight.step(of: group)), isProven: desk.rules[group].isProven
        )
    }

    /// The answer when an account has no record and no other group may be asked.
    func noRecord(_ name: Name, _ type: RecordType, at group: GroupID?, because code: String?) -> Answer {
        var answer = policy.noData(name, type)
        if let group { say(code, of: group, in: &answer) }
        return answer
    }

    /// Adds an account's reason to its answer without addresses.
    private func say(_ code: String?, of group: GroupID, in answer: inout Answer) {
        if let code { answer.add(.other, text: "\(desk.name(of: group)): \(code)") }
    }

    // MARK: The cache

    /// Caches a message group's answer to a flight, and shares it.
    /// - Parameters:
    ///   - isStandIn: Whether an earlier group still owes the answer.
    /// - Returns: The answer for the clients.
    mutating func cacheAndShare(
        _ best: StepAnswer, of flight: Flight, isStandIn: Bool, at now: Tick
    ) -> Answer {
        let (key, group) = (flight.key, flight.route[best.step].group)
        var answer = existing(best.answer, key, of: flight, before: best.step, at: now)
        var longest = flight.isBinding ? timing.maxTTL : longestTTL(of: answer, to: key, at: now)
        if isStandIn { longest = min(longest, Timing.standInTTL) }
        // `minTTL` has applied to an entry of the store, and to the A records from which the answer is made. It is a time
        // in the cache, so it does not apply to an answer that is not cached, as one made from stale records.
        let isMade = policy.synthesis != nil && answer.addresses.contains(where: policy.isTranslated)
        let isOfServer = if case .server = best.by { true } else { false }
        let isStretched = answer.isCacheable && !isMade && isOfServer && !flight.isBinding
        answer.clampTTLs(minimum: isStretched ? min(timing.minTTL(of: answer), longest) : 0, maximum: longest)
        if !key.findsServer { rank(&answer, of: key.name, key.type, at: now) }
        guard flight.isCurrent else { return answer }
        cacheAnswer(
            answer, by: group, to: key.name, key.type, for: key.audience, at: now,
            isStandIn: isStandIn || isMade && isSubstituteForA(key, at: now), basis: flight.bases.ofMessages)
        // Whether the name exists may be known to this daemon alone.
        let isAsGiven = answer.head.responseCode == best.answer.head.responseCode
        if store.isOn, isOfServer, !isStandIn, !flight.isBinding, answer.isCacheable, !isMade, isAsGiven {
            share(.answer(answer), by: group, to: key.name.name, key.type, for: key.audience, at: now)
        }
        return answer
    }

    /// An answer as clients get it. NXDOMAIN holds for all types of a name (RFC 8020): of a name that the hosts file has,
    /// or of which the cache has an account's addresses, it says that there is no such record. An answer with signatures
    /// stays, since clients may check it.
    /// - Parameters:
    ///   - flight: The flight with the answer: an account does not count if it had no record of the name in this flight.
    ///   - step: The step of the answer.
    @inline(__always)
    func existing(
        _ answer: Answer, _ key: Flight.Key, of flight: Flight? = nil, before step: Int = 0, at now: Tick
    ) -> Answer {
        answer.head.responseCode == .nxDomain && exists(answer, key, flight, step, at: now)
            ? answer.withoutDenial : answer
    }

    @inline(never)
    private func exists(
        _ answer: Answer, _ key: Flight.Key, _ flight: Flight?, _ step: Int, at now: Tick
    ) -> Bool {
        guard !key.findsServer, !answer.isSigned else { return false }
        return policy.isInHosts(key.name, key.type)
            || addressesOfAccounts(key, at: now).contains {
                $0.isFresh && !$0.isStandIn && flight?.isWithoutRecord($0.origin, before: step, desk.rules) != true
            }
    }

    /// The cached answers with addresses of a name, of either family, that an account gave.
    func addressesOfAccounts(_ key: Flight.Key, at now: Tick) -> [DNSCache.Held] {
        knownOfBoth(key.name.name, for: key.audience, at: now)
            .filter { $0.audience.isOfAccounts && $0.answer.head.answerCount > 0 }
    }

    /// The cached answers for A and AAAA of a name.
    func knownOfBoth(_ name: Name, for audience: Audience, at now: Tick) -> [DNSCache.Held] {
        [.a, .aaaa].compactMap { cache.find(name, type: $0, for: audience, at: now.seconds) }
    }

    /// Caches an account's "no record" for a flight.
    mutating func cacheNoRecord(_ best: StepAnswer, of flight: Flight, isStandIn: Bool, at now: Tick) -> Answer {
        var answer = best.answer
        if isStandIn { answer.limitToStandIn() }
        guard flight.isCurrent else { return answer }
        cacheAnswer(
            answer, by: flight.route[best.step].group, to: flight.key.name, flight.key.type,
            for: flight.key.audience, at: now, isStandIn: isStandIn, basis: flight.bases.ofMessages)
        return answer
    }

    /// Caches an answer to a question that was asked under the present rules.
    /// - Parameters:
    ///   - group: The group that gave the answer.
    ///   - basis: The basis of the answer under the present rules, if known.
    func cacheAnswer(
        _ answer: Answer, by group: GroupID, to key: NameKey, _ type: RecordType, for audience: Audience,
        at now: Tick, isStandIn: Bool, basis: Basis? = nil
    ) {
        let name = key.name
        if isStandIn, type == .aaaa, isMadeKnown(name, for: audience, at: now) { return }
        let served = policy.served(audience, name, type)
        cache.store(
            answer, to: name, type: type, for: served, at: now.seconds, isStandIn: isStandIn, origin: group.origin,
            basis: basis ?? policy.basis(key, type, served))
    }

    /// Whether the cache has AAAA records that are made of an account's addresses: no substitute replaces what an
    /// account has answered, and the cache does not know these records as an account's.
    private func isMadeKnown(_ name: Name, for audience: Audience, at now: Tick) -> Bool {
        guard policy.synthesis != nil else { return false }
        let known = knownOfBoth(name, for: audience.isOfAccounts ? .plain : audience, at: now)
        return known.count == 2 && known[0].audience.isOfAccounts && !known.contains(where: \.isStandIn)
    }

    // MARK: Private addresses

    // `domains.privateAddresses = "refuse"`: a public name must not lead a browser to a machine of this network (DNS
    // rebinding). Such addresses are removed from answers of upstreams and of the store before caching, so hits need no
    // check.

    /// An account's addresses of one family without the private addresses, unless the name may have them.
    private mutating func permitted(_ addresses: [IPAddress], of name: Name, at now: Tick) -> [IPAddress] {
        guard policy.refusesPrivate(name), addresses.contains(where: policy.isPrivate) else { return addresses }
        countPrivate(at: now)
        return addresses.filter { !policy.isPrivate($0) }
    }

    /// A group's answer without private addresses and hints that are left out. The queried name decides, not the target
    /// of an alias: browsers derive a page's rights from the name in its URL.
    /// - Parameters:
    ///   - group: The group whose addresses the answer has; nil for the accounts', as in ``bound(_:to:at:)``.
    ///   - ttl: The least time for which the answer is kept if it had no other addresses, in seconds.
    mutating func permitted(
        _ said: Answer, to key: Flight.Key, by group: GroupID?, for ttl: UInt32 = 0, at now: Tick
    ) -> Answer {
        let name = key.name.name
        let isBinding = key.type == .https || key.type == .svcb
        let answer = isBinding ? withoutHintsOfLeftOut(said, to: key, by: group) : said
        // A server may be in a private network; its certificate proves its identity.
        guard !key.findsServer, policy.refusesPrivate(name), let rest = answer.without(policy.isPrivate) else {
            return answer
        }
        countPrivate(at: now)
        guard answer.head.responseCode == .noError, answer.answersToTheType > 0, rest.answersToTheType == 0 else {
            return rest
        }
        return policy.noPermittedAddress(name, key.type, for: ttl)
    }

    mutating func countPrivate(at now: Tick) {
        counters.withoutPrivate += 1
        if privateNews.isNews(at: now) { act(.report(.privateRefused)) }
    }
}

extension Answer {
    /// The answer with NOERROR: the name exists, and has no such record.
    fileprivate var withoutDenial: Answer {
        var answer = self
        (answer.head.responseCode, answer.head.authenticData) = (.noError, false)
        return answer
    }

    /// The answer for the waiting clients alone, since a better one may come: no cache keeps it, nor does a client.
    var unkept: Answer {
        var answer = self
        answer.clampTTLs(minimum: 0, maximum: 0)
        (answer.keep, answer.isCacheable) = (0, false)
        return answer
    }

    /// Limits a substitute for another answer to a minute.
    mutating func limitToStandIn() { clampTTLs(minimum: 0, maximum: Timing.standInTTL) }
}
