import Base
import DNSCache
import DNSWire

/// Limits on flights, waiting clients and names without a record.
extension Forwarder {
    /// Makes room for a flight by ending the newest flight of the source that has the most: a source that floods loses
    /// its own flights. Between equals the existing flight stays, since it has come further.
    mutating func makeRoom(for source: Source, at now: Tick) -> Bool {
        guard let heaviest = shares.heaviest, shares.flights(of: source) + 1 < heaviest.flights,
            let newest = flights.newest(where: { $0.crowd.share == heaviest.place })
        else { return false }
        sayRefusing(.tooManyFlights)
        let clients = newest.takeClients()
        counters.refusedFlights += UInt64(clients.count)
        let key = newest.key
        if let known = known(newest, at: now) {
            replyStale(clients, known.answer)
        } else {
            reply(
                clients, .failure(key.name.name, type: key.type, .servFail, extendedError: nil), age: .elapsed(0),
                by: .daemon)
        }
        desk.withdraw(newest)
        end(newest)
        return true
    }

    /// The most clients of one source that is not proven, in all and of one question: all that wait for one question are
    /// answered in the same moment, whoever the source is (DNSBomb, CVE-2024-33655).
    static var maximumUnproven: Int { 1000 }
    static var maximumUnprovenWaiting: Int { 64 }

    /// Whether one more client of its source may wait for an answer.
    func mayWait(_ client: Asker) -> Bool {
        client.isProven || shares.clients(of: client.source) < Self.maximumUnproven
    }

    /// Whether one more client may wait, for this flight and in all.
    func mayWait(_ client: Asker, for flight: Flight) -> Bool {
        let own = shares.clients(of: client.source)
        if !client.isProven {
            guard own < Self.maximumUnproven else { return false }
            let most = Self.maximumUnprovenWaiting
            let mayBeFull = own >= most && flight.crowd.clients.count >= most
            guard !mayBeFull || shares.count(of: client.source, in: flight.crowd.clients) < most else { return false }
        }
        guard Source.mayHaveMore(own: own, all: shares.clients, most: Self.maximumClients) else { return false }
        let all = flight.crowd.clients.count
        // A source has at most as many clients in this flight as in all; they are counted only near the limit.
        return Source.mayHaveMore(own: min(own, all), all: all, most: Self.maximumWaiting)
            || Source.mayHaveMore(
                own: shares.count(of: client.source, in: flight.crowd.clients), all: all, most: Self.maximumWaiting)
    }

    /// A source asks the question of another source's flight. If that source has many flights, this one counts for the
    /// new source from now on: otherwise a client that asks the same as a flood would lose its flight together with it.
    mutating func takeOver(_ flight: Flight, _ source: Source) {
        guard shares.flights(of: source) + 1 < shares.flights(at: flight.crowd.share) else { return }
        let former = flight.crowd.share
        flight.count(for: shares.begin(source, waits: false), of: source)
        shares.end(former)
    }

    mutating func refuse(_ key: Flight.Key, _ client: Asker?, _ known: DNSCache.Held?, _ refusal: Refusal) {
        switch refusal {
        case .tooManyFlights: counters.refusedFlights += 1
        case .tooManyWaiting: counters.refusedWaiting += 1
        }
        sayRefusing(refusal)
        giveUp(key, client, known, nil)
    }

    private mutating func sayRefusing(_ refusal: Refusal) {
        if refusing.insert(refusal).inserted { act(.report(.refusing(refusal))) }
    }

    /// Answers without asking: with a stale answer, else a failure.
    /// - Parameter reason: why nobody is asked; nil: one of the daemon's own limits is reached.
    mutating func giveUp(
        _ key: Flight.Key, _ client: Asker?, _ known: DNSCache.Held?, _ reason: FailureReason?
    ) {
        guard let client else { return }
        if let known { return replyStale(client, known.answer) }
        let answer =
            reason.map { failure(key, $0) }
            ?? .failure(key.name.name, type: key.type, .servFail, extendedError: nil)
        reply(client, answer, by: reason == nil ? .daemon : .nobody)
    }

    /// A name is not put to an account because too many names below its domain had no record.
    mutating func notePastBudget(_ group: GroupID, at now: Tick) {
        counters.pastNoRecordBudget += 1
        desk.notePastBudget(group, at: now, &actions)
    }
}

extension Forwarder {
    mutating func schedule(_ flight: Flight) {
        guard let moment = flight.nextMoment else { return }
        deadlines.insert(.flight(flight.id), at: moment)
        compactDeadlines()
    }

    /// Whether what a deadline is about is over. Those of flights are left to `compactDeadlines`: they are seconds away, so
    /// that one of them wakes the loop for many, and it is cheaper to drop them together.
    mutating func hasEnded(_ moment: Moment) -> Bool {
        switch moment {
        case .trial(let id): !ranks.isUnderWay(id)
        case .flight, .kept: false
        }
    }

    /// Drops the deadlines of ended subjects once they are the majority, so that the cost per deadline stays constant.
    private mutating func compactDeadlines() {
        let live = flights.count + kept.count
        guard deadlines.count > 4 * live + 256 else { return }
        let (flights, ranks) = (flights, ranks)
        deadlines.compact { moment in
            switch moment {
            case .flight(let id): flights.contains(id)
            case .trial(let id): ranks.isUnderWay(id)
            case .kept: true
            }
        }
    }
}
