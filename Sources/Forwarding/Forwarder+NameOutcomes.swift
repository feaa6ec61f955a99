import Base
import DNSCache
import DNSWire

/// The results of requests for names, and what is cached of them.
extension Forwarder {
    /// A request for several names was answered.
    mutating func settle(
        _ lookups: [Lookup], _ id: TableID, _ results: [NameAddresses], _ families: Families, _ query: Query,
        at now: Tick
    ) {
        let group = query.group
        for result in results {
            guard let lookup = lookups.first(where: { $0.key.name == result.name }), lookup.query == id else {
                continue
            }
            settle(lookup, result, asked: families, by: query.server, at: group, now)
        }
        for lookup in lookups where lookup.query == id {
            guard lookups.count > 1 else {
                return fail(query, Failure(.badAnswer, "the answer does not speak of the name asked"), at: now)
            }
            lookup.wasLeftOut = true
            lookup.query = nil
            groups[group.rawValue].outbox.append(lookup)
        }
    }

    /// Handles the result of both families of a name, whichever the flights asked for.
    private mutating func settle(
        _ lookup: Lookup, _ result: NameAddresses, asked families: Families, by server: Server, at group: GroupID,
        _ now: Tick
    ) {
        lookup.query = nil
        remove(lookup, at: group)
        let isShared = store.isOn && families == policy.families(of: group)
        guard result.hasAddresses else {
            groups[group.rawValue].noRecordBudget.charge(lookup.key.name, at: now)
            if lookup.isCurrent {
                noRecord(lookup.key, for: negativeTTL(of: group), at: group, now)
                if isShared { shareNoRecord(lookup.key.name, by: group, at: now) }
            }
            for flight in lookup.flights where !askOther(than: families, flight, at: group, now) {
                tellWithoutRecord(flight, at: group, by: .server(group, server), at: now)
            }
            return
        }
        let isStandIn = lookup.flights.contains { $0.accountStandsIn($0.step(of: group), rules) }
        let a = keep(lookup, .a, result.ipv4, beside: result.ipv6, at: group, isStandIn: isStandIn, now)
        let aaaa = keep(lookup, .aaaa, result.ipv6, beside: result.ipv4, at: group, isStandIn: isStandIn, now)
        if isShared, lookup.isCurrent, !isStandIn {
            for (type, answer) in [(RecordType.a, a), (.aaaa, aaaa)] {
                guard let answer else { continue }
                share(
                    .answer(answer), by: group, to: lookup.key.name, type, for: .everyone, lifetime: answer.keep,
                    at: now)
            }
        }
        for flight in lookup.flights where !askOther(than: families, flight, at: group, now) {
            let type = flight.key.type
            let answer =
                (type == .a ? a : aaaa)
                ?? withoutAddresses(lookup, type, beside: type == .a ? result.ipv6 : result.ipv4, at: group)
            if isStandIn { standsIn(flight, at: now) }
            end(flight, with: answer, by: .server(group, server))
        }
    }

    /// `addressType` has changed since the request was sent, and a flight is for a family that was not in it.
    private mutating func askOther(
        than families: Families, _ flight: Flight, at group: GroupID, _ now: Tick
    ) -> Bool {
        let wanted = policy.families(of: group)
        guard families != wanted, flight.isCurrent, let family = Families(of: flight.key.type),
            !families.contains(family), wanted.contains(family)
        else { return false }
        lookUp(flight, at: group, now)
        return true
    }

    /// The answer for a family without addresses when the other family has some. It does not lead to the next group,
    /// which could then insert any address it likes. It is cached as long as those addresses: to ask again earlier
    /// would only be billed.
    private func withoutAddresses(
        _ lookup: Lookup, _ type: RecordType, beside other: FamilyAddresses, at group: GroupID
    ) -> Answer {
        var answer = Answer.noData(lookup.key.name, type: type, negativeTTL: negativeTTL(of: group))
        if case .addresses(_, let ttl) = other { answer.keep = max(answer.keep, timing.clamped(ttl)) }
        return answer
    }

    /// Caches the result for one family of a name.
    /// - Returns: the answer; nil when that family was not asked for.
    private mutating func keep(
        _ lookup: Lookup, _ type: RecordType, _ family: FamilyAddresses, beside other: FamilyAddresses,
        at group: GroupID, isStandIn: Bool, _ now: Tick
    ) -> Answer? {
        let name = lookup.key.name
        guard case .addresses(let addresses, let ttl) = family else {
            guard family == .noRecord else { return nil }
            var answer = withoutAddresses(lookup, type, beside: other, at: group)
            if isStandIn { answer.limitToStandIn() }
            if lookup.isCurrent {
                keep(answer, by: group, to: name, type, for: .everyone, at: now, isStandIn: isStandIn)
            }
            return answer
        }
        let permitted = permitted(addresses, of: name, at: now)
        var answer = Answer.addresses(name, type: type, permitted, ttl: timing.clamped(ttl))
        if permitted.isEmpty {
            // This is an answer and not a failure: another group could give the same private addresses.
            answer = policy.noPermittedAddress(name, type)
            answer.keep = max(answer.keep, timing.clamped(ttl))
        }
        if isStandIn { answer.limitToStandIn() }
        rank(&answer, of: lookup.key, type, at: now)
        if lookup.isCurrent {
            keep(answer, by: group, to: name, type, for: .everyone, at: now, isStandIn: isStandIn)
        }
        return answer
    }

    /// Remembers for so many seconds that a group has no record of a name.
    mutating func noRecord(_ key: NameKey, for seconds: UInt32, at group: GroupID, _ now: Tick) {
        groups[group.rawValue].namesWithoutRecord.insert(
            key, (), until: now.advanced(milliseconds: Int(seconds) * 1000))
    }

    /// What is not proven is not shared: whoever has forged it would be believed by the whole fleet.
    private mutating func shareNoRecord(_ name: Name, by group: GroupID, at now: Tick) {
        guard groups[group.rawValue].group.isProven else { return }
        for type in [RecordType.a, .aaaa] {
            share(
                .noRecord, by: group, to: name, type, for: .everyone, lifetime: negativeTTL(of: group),
                at: now)
        }
    }

    /// How many seconds a group's "no record" is cached.
    func negativeTTL(of group: GroupID) -> UInt32 {
        groups[group.rawValue].group.isProven ? timing.negativeTTL : min(timing.negativeTTL, Timing.unprovenNegativeTTL)
    }

    /// A request for several names failed: each name goes to another server.
    mutating func fail(
        _ lookups: [Lookup], _ families: Families, _ query: Query, _ failure: Failure, at now: Tick
    ) {
        report(
            AbnormalLookup(
                group: query.group, names: lookups.map(\.key.name), families: families, server: query.server,
                failure: failure,
                spend: now.milliseconds(since: query.sent), fellBack: false))
        let trouble = Trouble(failure: failure, group: query.group, server: query.server)
        for lookup in lookups where lookup.query != nil {
            lookup.trouble = trouble
            for flight in lookup.flights { tell(flight, .failed(trouble), at: now) }
            if failure.kind == .badAnswer, lookups.count > 1 {
                // One unusual name must not cost the other names of its request their answers.
                lookup.wasLeftOut = true
            } else {
                lookup.tried = lookup.tried + [query.server]
            }
            lookup.query = nil
            groups[query.group.rawValue].outbox.append(lookup)
        }
    }

    mutating func report(_ lookup: AbnormalLookup) {
        if timing.reportsLookups { act(.reportLookup(lookup)) }
    }
}

extension Answer {
    /// What only stands in for another answer lives a minute at most.
    mutating func limitToStandIn() { clampTTLs(minimum: 0, maximum: Timing.standInTTL) }
}
