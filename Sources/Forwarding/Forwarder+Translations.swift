import Base
import DNSCache
import DNSWire

/// DNS64 (RFC 6147): on a network without IPv4, names without an AAAA record get addresses under the network's NAT64
/// prefix.
///
/// | result for AAAA | clients get |
/// | --- | --- |
/// | records | the records, less mapped IPv4 addresses and refused private ones; if none is left, as NODATA (§5.1.4) |
/// | NXDOMAIN | NXDOMAIN (§5.1.2) |
/// | NODATA, or only failures that servers reported | AAAA made from the A records, if there are any (§5.1.2, §5.1.6) |
/// | the same, to a client that sets DO and CD | the result: the client makes AAAA by itself (§5.5) |
/// | the same with signatures, to a client that sets DO | the result: the client may check it, and the daemon does not (§5.5) |
/// | none: no server has answered | a stale answer, else the failure |
/// | NODATA, and the A records are not known in time, or not at all | NODATA, which is not cached, by clients either |
/// | NODATA, and that there are no A records is stale, or said by a substitute | the same |
///
/// An account answers for both families at once. For other groups, A is a question of its own under the rules of all
/// questions; the AAAA question waits meanwhile, as long as it waits for servers. The made answer is cached as the
/// answer for AAAA, so a hit costs the same as any hit, and is right only under the same prefix. It is not shared with
/// other daemons.
extension Forwarder {
    /// The prefix for the AAAA answers of a flight; nil if the flight's answer is given as it comes.
    private func synthesis(_ key: Flight.Key) -> NAT64Prefix? {
        guard key.type == .aaaa, !key.findsServer else { return nil }
        return policy.synthesis(for: key.audience)
    }

    /// Whether clients get an answer that is made from the A records, if there are any, instead of this one.
    func isMadeOfA(_ key: Flight.Key, _ answer: Answer) -> Bool {
        synthesis(key) != nil && answer.lacksTheType && !answer.isSigned
    }

    /// An answer without IPv4 addresses mapped into IPv6, which are no AAAA records where these are made from A
    /// (RFC 6147 §5.1.4).
    func withoutMapped(_ answer: Answer, to key: Flight.Key) -> Answer {
        guard synthesis(key) != nil else { return answer }
        return answer.without { $0.unmapped.isIPv4 && !$0.isIPv4 } ?? answer
    }

    /// Handles a message group's answer that clients get in a changed form: a service binding with other hints, or AAAA
    /// made from A.
    @inline(never)
    mutating func settleRemade(_ said: Answer, _ to: GroupDesk.Answered, at now: Tick) {
        var answer = said
        if to.flight.isBinding {
            answer.clampTTLs(minimum: timing.minTTL(of: answer), maximum: timing.maxTTL)
            answer = bound(answer, to: to.flight.key, at: now)
        }
        if synthesis(to.flight.key) != nil {
            answer = permitted(
                withoutMapped(answer, to: to.flight.key), to: to.flight.key, by: to.messages.group, at: now)
            let absence = StepAnswer(answer: answer, by: to.by, step: to.messages.step)
            if answer.head.responseCode.isAnswer, lookForA(to.flight, after: absence, at: now) { return }
        }
        settle(answer, to, at: now)
    }

    /// Asks for the A records of a flight's name, if its answer is to be made from them.
    /// - Parameter absence: The result for AAAA; nil if the flight's clients are about to get the failure.
    /// - Returns: false if the answer is given as it is.
    @inline(never)
    mutating func lookForA(_ flight: Flight, after absence: StepAnswer?, at now: Tick) -> Bool {
        let said = absence ?? flight.secondBest
        guard let said, isMadeOfA(flight.key, said.answer),
            flight.isCurrent || policy.route(flight.key.name, .aaaa).route.asks([flight.route[said.step].group])
        else { return false }
        if let absence { desk.leave(flight, absence.step) }
        if translations.isAwaited(by: flight.id) {
            if let absence { translations.add(absence, of: flight.id) }
            return true
        }
        let number = translations.add(.synthesis(flight.id, absence: absence))
        let source = flight.source
        let key = Flight.Key(name: flight.key.name, type: .a, audience: flight.key.audience)
        // The refresh of a made answer is the refresh of the A records.
        receive(
            key, AskingClient(number: number, asker: Asker(source), takesCached: flight.isWanted), of: source, at: now)
        return true
    }

    /// Asks the target of which the queried name is an alias.
    @inline(never)
    mutating func follow(
        _ key: Flight.Key, _ client: AskingClient?, to target: Name, of source: Source, at now: Tick
    ) {
        let asking = client.map { client in
            AskingClient(
                number: translations.add(.alias(key.name.name, key.type, client)), asker: client.asker,
                recursionDesired: client.recursionDesired, takesCached: client.takesCached,
                waitedBefore: client.waitedBefore)
        }
        let targetKey = Flight.Key(
            name: NameKey(target), type: key.type, audience: key.audience, findsServer: key.findsServer)
        receive(targetKey, asking, of: source, at: now)
    }

    /// Passes an answer to the forwarder's own questions among these numbers, and returns the other numbers.
    @inline(never)
    mutating func takeOwn(
        _ numbers: SmallList<ClientNumber>, _ answer: Answer, _ age: Reply.Age, by answerer: Answerer, way: Exposure
    ) -> SmallList<ClientNumber> {
        for number in numbers where Translations.isOne(number) {
            translations.answered(number, answer, age, by: answerer, way: way)
        }
        var others = numbers
        others.removeAll(where: Translations.isOne)
        return others
    }

    /// Passes the answers of the forwarder's own questions to the flights that wait for them.
    @inline(never)
    mutating func handleArrivals(at now: Tick) {
        for arrival in translations.takeArrivals() {
            switch arrival.subject {
            case .alias(let name, let type, let client):
                let answer = arrival.answer.aliased(from: name) ?? .failure(name, type: type, .servFail)
                reply(client, answer, age: arrival.age, by: arrival.by, way: arrival.way)
            case .synthesis(let id, let absence):
                guard let flight = flights[id] else { continue }
                desk.noteOther(arrival.way, for: flight)
                synthesize(flight, absence, arrival, at: now)
            }
        }
    }

    private mutating func synthesize(
        _ flight: Flight, _ absence: StepAnswer?, _ arrival: Translations.Arrival, at now: Tick
    ) {
        var a = arrival.answer
        switch arrival.age {
        case .elapsed(let seconds): a.spend(seconds: Int(seconds))
        // An answer made from a stale answer is not cached.
        case .fixed(let ttl):
            a.clampTTLs(minimum: 0, maximum: ttl)
            (a.keep, a.isCacheable) = (0, false)
        }
        let said = absence ?? flight.secondBest
        let made = said.flatMap { said in
            synthesis(flight.key).flatMap { a.isSigned ? nil : a.synthesized(under: $0, after: said.answer) }
        }
        guard let absence else {
            // No step can answer any more.
            guard let made else { return failFinally(flight, at: now) }
            return end(flight, with: made, by: arrival.by)
        }
        var best = made.map { StepAnswer(answer: $0, by: arrival.by, step: absence.step) } ?? absence
        // The answer for A may be a failure, a stale answer, or a substitute: A records may exist.
        if made == nil, a.keep == 0 || isSubstituteForA(flight.key, at: now) { best.answer = best.answer.unkept }
        tell(flight, .answered(best), at: now)
    }

    /// Whether the cached answer for A, from which a flight's answer for AAAA is made, is a substitute.
    func isSubstituteForA(_ key: Flight.Key, at now: Tick) -> Bool {
        cache.find(key.name.name, type: .a, for: key.audience, at: now.seconds)?.isStandIn ?? false
    }

    /// A service binding whose hints are the addresses that clients get for the name, as far as they are known; an
    /// unreadable binding is left out. Made addresses are no hints: they are right only under their prefix, and the
    /// binding's basis does not hold the prefix.
    func bound(_ answer: Answer, to key: Flight.Key, at now: Tick) -> Answer {
        // The account has the name, whatever other groups answer.
        guard answer.head.responseCode != .nxDomain else {
            return policy.noData(key.name.name, key.type)
        }
        var (addresses, ttl): ([IPAddress], UInt32) = ([], .max)
        for known in knownOfBoth(key.name.name, for: .plain, at: now) where known.isFresh && !known.isStandIn {
            let those = known.answer.addresses.filter { !policy.isTranslated($0) }
            if !those.isEmpty { (addresses, ttl) = (addresses + those, min(ttl, known.left)) }
        }
        return answer.bound(to: addresses, for: ttl) ?? policy.noData(key.name.name, key.type)
    }

    /// The answers to AAAA that follow from an account's addresses of a name without an AAAA record: for clients that
    /// cannot make addresses by themselves, and for clients that can.
    typealias MadeOfA = (made: Answer, absence: Answer)

    /// - Parameter a: The answer for A; nil if A was not asked for.
    mutating func made(
        of a: Answer?, _ ipv6: FamilyAddresses, _ lookup: Lookup, at group: GroupID, _ now: Tick
    ) -> MadeOfA? {
        guard let prefix = policy.synthesis, !lookup.findsServer, let a, !a.lacksTheType else { return nil }
        let name = lookup.key.name
        switch ipv6 {
        case .noRecord: break
        case .addresses(let all, _) where policy.refusesPrivate(name) && all.allSatisfy(policy.isPrivate):
            countPrivate(at: now)
        default: return nil
        }
        let absence = Answer.noData(
            name, type: .aaaa, negativeTTL: max(desk.rules.negativeTTL(of: group), a.keep))
        return a.synthesized(under: prefix, after: absence).map { (made: $0, absence: absence) }
    }

    /// Caches the answers made from an account's addresses, for all clients that the account answers: the lookup is
    /// billed, so none of them causes another.
    mutating func cacheMade(_ both: MadeOfA, _ lookup: Lookup, by group: GroupID, at now: Tick, isStandIn: Bool) {
        guard lookup.isCurrent, policy.mayCache(.aaaa, of: lookup.key.name, by: group) else { return }
        for audience in [Audience.plain, .validating, .those(dnssecOK: true, checkingDisabled: true)] {
            let key = Flight.Key(name: lookup.key, type: .aaaa, audience: audience)
            guard policy.leavesToValidators(key) == nil else { continue }
            var answer = policy.synthesis(for: audience) == nil ? both.absence : both.made
            if isStandIn { answer.limitToStandIn() }
            cacheAnswer(answer, by: group, to: lookup.key, .aaaa, for: audience, at: now, isStandIn: isStandIn)
        }
    }
}
