import Base

/// Who may wait for an answer, whose flight ends when there are too many, and what has failed a moment ago.
///
/// Flights and waiting clients are counted by their source, of the numbers that all share: see ``Shares``.
struct Admission {
    private(set) var flights = SourceCounts<Int>()
    /// The clients that wait.
    private(set) var clients = SourceCounts<Int>()
    private(set) var failures = Remembered<Flight.Key, FailureReason>(atMost: Shares.flights)
    /// The limits that were reported since there was last plenty of room.
    private var refusing: Set<Refusal> = []

    // MARK: Who may wait

    /// Whether the first client of a question may wait for an answer.
    func mayWait(_ client: AskingClient) -> Bool { client.asker.isProven || clients[client.source] < Shares.unproven }

    /// Whether one more client may wait together with those that wait for the same answer, and in all.
    func mayWait(_ client: AskingClient, with waiting: SmallList<Waiter>) -> Bool {
        let source = client.source
        // Of those that wait, a source or a network has at most as many as in all; they are counted only near the limit.
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

    /// One more client waits.
    mutating func wait(_ client: AskingClient) -> Waiter {
        clients.add(1, to: client.source)
        return Waiter(number: client.number, source: client.source, isProven: client.asker.isProven)
    }

    /// A client was answered.
    mutating func answered(_ client: Waiter) { clients.add(-1, to: client.source) }

    // MARK: Flights

    /// The place of a further flight.
    enum Place: Equatable {
        case free
        /// That of the newest flight of a source, which ends: that with the most flights, so that a source that floods loses its
        /// own. Between equals the existing flight stays, since it has come further.
        case ofNewest(Source)
        case none
    }

    /// Where a flight of a source begins.
    func place(for source: Source) -> Place {
        let (most, isFull) = (Shares.flights, flights.all >= Shares.flights)
        // A network that has its part makes room itself.
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

    /// A flight of a source begins.
    mutating func begin(_ source: Source) { flights.add(1, to: source) }

    /// A flight has ended.
    mutating func end(_ source: Source) {
        flights.add(-1, to: source)
        if !refusing.isEmpty, flights.all < Shares.flights / 2 { refusing = [] }
    }

    /// A source asks the question of another source's flight. If that source has many flights, this one counts for the
    /// new source from now on: otherwise a client that asks the same as a flood would lose its flight together with it.
    /// - Returns: whether it does.
    mutating func takesOver(from before: Source, _ source: Source) -> Bool {
        guard flights[source] + 1 < flights[before] else { return false }
        end(before)
        begin(source)
        return true
    }

    /// Whether it is to be said that a limit is exceeded.
    mutating func isNews(_ refusal: Refusal) -> Bool { refusing.insert(refusal).inserted }

    // MARK: What has failed

    /// Why a question is not looked up now; nil: it is.
    func failure(of key: Flight.Key, at now: Tick) -> FailureReason? { failures.value(key, at: now) }

    /// Remembers that a question was not answered. While everything is down, clients that repeat their questions must not multiply
    /// the queries to upstreams (RFC 9520 §3.2), and stale answers are given at once (RFC 8767 §5).
    mutating func failed(_ key: Flight.Key, _ reason: FailureReason, at now: Tick) {
        failures.insert(key, reason, until: now.advanced(milliseconds: Self.failureTime))
    }

    /// Milliseconds for which a failure is remembered: the least that RFC 9520 §3.2 allows, so that the delay after an outage is not
    /// noticed.
    private static let failureTime = 1000

    mutating func forgetFailures() { failures.removeAll() }

    /// Walks over all: for an operator's command.
    mutating func forgetFailures(of isMeant: (NameKey) -> Bool) { failures.remove { isMeant($0.name) } }
}

/// A client that asks a question.
struct AskingClient {
    let number: ClientNumber
    let asker: Asker
    /// RD: without it no group is asked for an answer.
    var recursionDesired = true
    /// Whether a fresh answer in the cache will do; not for a question by which another answer is refreshed.
    var takesCached = true

    var source: Source { asker.source }
}
