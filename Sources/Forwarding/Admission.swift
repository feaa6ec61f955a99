import Base

/// Decides which clients may wait and whose flight ends when there are too many, and remembers recent failures.
///
/// Flights and waiting clients are counted by source, as parts of limits that all sources share: see ``Shares``.
struct Admission {
    private(set) var flights = SourceCounts<Int>()
    /// The waiting clients.
    private(set) var clients = SourceCounts<Int>()
    /// For each question that failed lately, why it is not looked up now.
    var failures = Remembered<Flight.Key, FailureReason>(atMost: Shares.flights)
    /// The limits that have been reported; cleared when there is ample room again.
    private var refusing: Set<Refusal> = []

    // MARK: Waiting clients

    /// Whether the first client of a question may wait for an answer.
    func mayWait(_ client: AskingClient) -> Bool { client.asker.isProven || clients[client.source] < Shares.unproven }

    /// Whether one more client may wait; the clients of the same answer are limited, and all clients together.
    func mayWait(_ client: AskingClient, with waiting: SmallList<Waiter>) -> Bool {
        let source = client.source
        // A source or a network has at most `own` clients in this list, so the list is counted only when `own` reaches
        // the limit.
        func isWithin(_ own: Int, _ isOwn: (Source) -> Bool, _ holds: (_ own: Int) -> Bool) -> Bool {
            holds(min(own, waiting.count)) || holds(waiting.reduce(0) { $0 + (isOwn($1.source) ? 1 : 0) })
        }
        let isOfSource = { $0 == source }
        if !client.asker.isProven {
            guard clients[source] < Shares.unproven,
                isWithin(clients[source], isOfSource, { $0 < Shares.unprovenWaiting })
            else { return false }
        }
        let mayHaveMore = { Shares.mayHaveMore(own: $0, all: waiting.count, most: Shares.waiting) }
        guard clients.mayHaveMore(source, most: Shares.clients), isWithin(clients[source], isOfSource, mayHaveMore)
        else { return false }
        guard let network = source.network else { return true }
        return isWithin(clients[network: network], { $0.network == network }, mayHaveMore)
    }

    /// Counts a client that waits.
    mutating func wait(_ client: AskingClient) -> Waiter {
        clients.add(1, to: client.source)
        return Waiter(number: client.number, source: client.source, isProven: client.asker.isProven)
    }

    /// Uncounts a client that was answered.
    mutating func answered(_ client: Waiter) { clients.add(-1, to: client.source) }

    // MARK: Flights

    /// The room for a further flight.
    enum Room: Equatable {
        case free
        /// The newest flight of the source with the most flights ends, so a source that floods loses its own flights.
        /// Between equal sources the existing flight stays, since it is further on.
        case ofNewest(Source)
        case none
    }

    /// The room for a flight of a source.
    func room(for source: Source) -> Room {
        let (most, isFull) = (Shares.flights, flights.all >= Shares.flights)
        // A network that has its part must end one of its own flights.
        let network = source.network.flatMap { network in
            let own = flights[network: network]
            let mayHaveMore =
                isFull ? own < Shares.ofNetwork(most) : Shares.mayHaveMore(own: own, all: flights.all, most: most)
            return mayHaveMore ? nil : network
        }
        guard isFull || network != nil else { return .free }
        guard let heaviest = flights.heaviest(of: network), flights[source] + 1 < flights[heaviest] else {
            return .none
        }
        return .ofNewest(heaviest)
    }

    /// Counts a flight of a source.
    mutating func begin(_ source: Source) { flights.add(1, to: source) }

    /// Uncounts a flight that has ended.
    mutating func end(_ source: Source) {
        flights.add(-1, to: source)
        if !refusing.isEmpty, flights.all < Shares.flights / 2 { refusing = [] }
    }

    /// If the present source has more flights, counts a flight for another source that asks the same question:
    /// otherwise a client that asks the same as a flood would lose its flight together with the flood.
    /// - Returns: Whether the flight now counts for `source`.
    mutating func takesOver(from before: Source, _ source: Source) -> Bool {
        guard flights[source] + 1 < flights[before] else { return false }
        end(before)
        begin(source)
        return true
    }

    /// Whether an exceeded limit is to be logged.
    mutating func isNews(_ refusal: Refusal) -> Bool { refusing.insert(refusal).inserted }

    // MARK: Failures

    /// Remembers that a question was not answered. While all servers are down, clients that repeat their questions must
    /// not multiply the queries to upstreams (RFC 9520 §3.2), and stale answers are given at once (RFC 8767 §5).
    mutating func failed(_ key: Flight.Key, _ reason: FailureReason, at now: Tick) {
        failures.insert(key, reason, until: now.advanced(milliseconds: Self.failureTime))
    }

    /// Milliseconds for which a failure is remembered: the least that RFC 9520 §3.2 allows, so that clients hardly
    /// notice the delay after an outage.
    private static let failureTime = 1000
}

/// A client that asks a question.
struct AskingClient {
    let number: ClientNumber
    let asker: Asker
    /// The bit RD; without RD, no group is asked.
    var recursionDesired = true
    /// Whether a fresh cached answer is enough; false for a question that refreshes another answer.
    var takesCached = true
    /// The phase of the ended flight for which the client has waited; the next flight keeps the client's deadlines.
    var waitedBefore: FlightPhase?

    var source: Source { asker.source }
}
