import Base
import DNSCache
import DNSWire

/// What is done when there is no room for a question.
extension Forwarder {
    /// Makes room for a flight of a source by ending the newest of the source that has the most: those who send names
    /// without end crowd out themselves. Between equals the one under way has come further, and stays.
    mutating func makeRoom(for source: Source, at now: Tick) -> Bool {
        guard let heaviest = shares.heaviest, shares.flights(of: source) + 1 < heaviest.flights,
            let newest = flights.max(by: { $0.number < $1.number }, where: { $0.place == heaviest.place })
        else { return false }
        sayRefusing(.tooManyFlights)
        counters.refusedFlights += UInt64(newest.clients.count)
        let key = newest.key
        if let known = cache.find(key.name.name, type: key.type, for: key.audience, at: now.seconds) {
            replyStale(takeClients(of: newest), known.answer)
        } else {
            give(newest, .failure(key.name.name, type: key.type, .servFail, extendedError: nil))
        }
        withdraw(newest)
        remove(newest)
        return true
    }

    /// Whether one more client may wait, for this flight and at all.
    func mayWait(_ client: Asker, for flight: Flight) -> Bool {
        let own = shares.clients(of: client.source)
        guard Source.mayHaveMore(own: own, all: shares.clients, most: Self.maximumClients) else { return false }
        let all = flight.clients.count
        // It has no more here than at all; who they are who wait for this is counted near the bound only.
        return Source.mayHaveMore(own: min(own, all), all: all, most: Self.maximumWaiting)
            || Source.mayHaveMore(
                own: shares.count(of: client.source, in: flight.clients), all: all, most: Self.maximumWaiting)
    }

    /// A source asks what another's flight asks already. If that one has many, the flight is counted for this one from
    /// now on: otherwise whoever asks what a flood asks would make room with it.
    mutating func takeOver(_ flight: Flight, _ source: Source) {
        guard shares.flights(of: source) + 1 < shares.flights(at: flight.place) else { return }
        let former = flight.place
        flight.place = shares.begin(source, waits: false)
        shares.end(former)
    }

    mutating func refuse(_ key: Flight.Key, _ client: Asker?, _ known: DNSCache.Found?, _ refusal: Refusal) {
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

    /// An HTTPDNS account was found to have no record, and nobody else may be asked.
    /// - Parameter isProven: by all that were found to have none.
    mutating func replyNoRecord(_ key: Flight.Key, _ client: Asker?, isProven: Bool, at now: Tick) {
        let (name, type) = (key.name.name, key.type)
        if isProven { return reply(client, policy.noRecord(name, type)) }
        giveUp(
            key, client, cache.find(name, type: type, for: key.audience, at: now.seconds),
            FailureReason(code: Failure.unproven.extendedError))
    }

    /// Nobody is asked: what is stale, else a failure.
    mutating func giveUp(
        _ key: Flight.Key, _ client: Asker?, _ known: DNSCache.Found?, _ reason: FailureReason?
    ) {
        guard let client else { return }
        if let known { return replyStale(client, known.answer) }
        var answer = Answer.failure(key.name.name, type: key.type, .servFail, extendedError: nil)
        if let reason { answer.add(reason.code, text: reason.text) }
        reply(client, answer)
    }

    /// Whether a group is not to be asked for a name because too many below its domain had no record. A name of which
    /// either family's addresses are still in the cache, one that is being asked for and one that is refreshed by the
    /// daemon itself is asked as ever: that one has no record of the other family is the group's to say.
    mutating func isPastNoRecordBudget(
        _ group: GroupID, _ key: Flight.Key, _ client: Asker?, _ known: DNSCache.Found?, at now: Tick
    ) -> Bool {
        let place = group.rawValue
        guard groups[place].group.carriesAddresses, client != nil,
            !groups[place].noRecordBudget.hasRoom(for: key.name.name, at: now),
            known?.answer.head.answerCount ?? 0 == 0, groups[place].lookups[key.name] == nil
        else { return false }
        let other = cache.find(
            key.name.name, type: key.type == .a ? .aaaa : .a, for: key.audience, at: now.seconds)
        guard other?.answer.head.answerCount ?? 0 == 0 else { return false }
        counters.pastNoRecordBudget += 1
        if groups[place].noRecordNews.isNews(at: now) { act(.report(.noRecordBudgetSpent(group))) }
        return true
    }
}
