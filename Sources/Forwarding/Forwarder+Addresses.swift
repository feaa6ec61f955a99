import Base
import DNSCache
import DNSWire

/// What becomes of HTTPDNS's word on a name.
extension Forwarder {
    /// HTTPDNS has spoken of a name: what it said of either family is kept, whoever asked for which.
    mutating func settle(_ lookup: Lookup, _ result: NameAddresses, asked families: Families, at now: Tick) {
        lookup.request = nil
        remove(lookup)
        guard result.hasAddresses else {
            noRecordBudget.charge(lookup.key.name, at: now)
            if lookup.generation == generation {
                namesWithoutRecord.insert(
                    lookup.key, (), until: now.advanced(milliseconds: Int(negativeTTL) * 1000))
            }
            for flight in lookup.flights where !askOther(than: families, flight, at: now) {
                settleWithoutRecord(flight, at: now)
            }
            return
        }
        let a = keep(lookup, .a, result.ipv4, beside: result.ipv6, at: now)
        let aaaa = keep(lookup, .aaaa, result.ipv6, beside: result.ipv4, at: now)
        for flight in lookup.flights where !askOther(than: families, flight, at: now) {
            finish(flight, flight.key.type == .a ? a : aaaa)
        }
    }

    /// `addressType` has changed since the request went out, and a flight is for a family that was not in it.
    private mutating func askOther(than families: Families, _ flight: Flight, at now: Tick) -> Bool {
        guard families != policy.families, flight.generation == generation, let family = Families(of: flight.key.type),
            !families.contains(family),
            policy.families.contains(family)
        else { return false }
        askService(flight, at: now)
        return true
    }

    /// A family without addresses beside one that has some is an answer, not a gap for the local resolver to fill: it
    /// could put in whatever it likes. It is kept as long as those: to ask again earlier would be billed for nothing.
    private mutating func keep(
        _ lookup: Lookup, _ type: RecordType, _ family: FamilyAddresses, beside other: FamilyAddresses, at now: Tick
    ) -> Answer {
        let name = lookup.key.name
        guard case .addresses(let addresses, let ttl) = family else {
            var answer = Answer.noData(name, type: type, negativeTTL: negativeTTL)
            if case .addresses(_, let ttl) = other {
                answer.keep = max(answer.keep, timing.clamped(ttl))
            }
            if family == .noRecord { keep(answer, to: name, type, for: .everyone, lookup.generation, at: now) }
            return answer
        }
        let permitted = permitted(addresses, of: name, at: now)
        var answer = Answer.addresses(name, type: type, permitted, ttl: timing.clamped(ttl))
        if permitted.isEmpty {
            // It is an answer: who else might be asked could give the same addresses.
            answer = policy.noPermittedAddress(name, type)
            answer.keep = max(answer.keep, timing.clamped(ttl))
        }
        keep(answer, to: name, type, for: .everyone, lookup.generation, at: now)
        return answer
    }

    /// Seconds for which HTTPDNS's "no record" is remembered.
    private var negativeTTL: UInt32 {
        policy.serviceProves ? timing.negativeTTL : min(timing.negativeTTL, Timing.unprovenNegativeTTL)
    }

    /// Caches an answer, unless it was asked for under rules that hold no more.
    func keep(
        _ answer: Answer, to name: Name, _ type: RecordType, for audience: Audience, _ generation: Int, at now: Tick,
        isStandIn: Bool = false
    ) {
        guard generation == self.generation else { return }
        cache.store(answer, to: name, type: type, for: audience, at: now.seconds, isStandIn: isStandIn)
    }

    private mutating func settleWithoutRecord(_ flight: Flight, at now: Tick) {
        flight.service = .ended
        flight.hedgeAt = nil
        flight.isOwed = !policy.serviceProves
        if policy.httpOnly {
            guard policy.serviceProves else {
                flight.lastFailure = .unproven
                return settleIfDone(flight, at: now)
            }
            let (name, type) = (flight.key.name.name, flight.key.type)
            let answer = policy.noRecord(name, type)
            keep(answer, to: name, type, for: .everyone, flight.generation, at: now)
            finish(flight, answer)
        } else if flight.isOwed, !flight.isWanted {
            // What HTTPDNS said before is not given up for what the local resolver may say.
            remove(flight)
        } else if flight.resolver == .idle {
            counters.fellBack(because: .noRecord)
            askResolver(flight, at: now)
        } else {
            settleIfDone(flight, at: now)
        }
    }
}

extension Families {
    /// The family that questions of a type are for.
    init?(of type: RecordType) {
        switch type {
        case .a: self = .ipv4
        case .aaaa: self = .ipv6
        default: return nil
        }
    }
}
