import Base

/// Who may wait for an answer, whose flight ends when there are too many, and what has failed a moment ago.
///
/// Flights and waiting clients are counted by their source, of the numbers that all share. Only sources that have some are
/// recorded, and the one that asked last. A source has an index among them, its share, for as long as it has a flight or a
/// client.
struct Admission {
    private var indexes: [Source: Int] = [:]
    private var shares: [Share] = []
    private var free: [Int] = []
    /// The source that was looked up last: questions come in batches, and most of a batch come from one source. It stays
    /// recorded while it has nothing, since a source that asks one question after the other has nothing between two.
    private var latest: (source: Source, share: Int)?
    /// Flights and waiting clients of all sources.
    private(set) var flights = 0
    private(set) var clients = 0
    private(set) var failures = Remembered<Flight.Key, FailureReason>(atMost: maximumFlights)
    /// The limits that were reported since there was last plenty of room.
    private var refusing: Set<Refusal> = []

    private struct Share {
        let source: Source
        var flights = 0
        var clients = 0

        var isIdle: Bool { flights == 0 && clients == 0 }
    }

    /// The most flights at once, some 1.3 KB each. Beyond it the newest flight of the source that has the most is
    /// refused with SERVFAIL: see ``shareToLose(to:)``.
    static let maximumFlights = 1536
    /// The most clients waiting for one question. A further one is refused when its source has its share of them: see
    /// ``Source/mayHaveMore(own:all:most:)``.
    static let maximumWaiting = 1024
    /// The most clients waiting for all questions together, some 300 octets each, shared out in the same way. The first
    /// client of a question is always accepted.
    static let maximumClients = 8192
    /// The most clients of one source that is not proven, in all and of one question: all that wait for one question are
    /// answered in the same moment, whoever the source is (DNSBomb, CVE-2024-33655).
    static let maximumUnproven = 1000
    static let maximumUnprovenWaiting = 64

    /// How many sources have some.
    var sources: Int { indexes.count - (latest.map { shares[$0.share].isIdle ? 1 : 0 } ?? 0) }

    func flights(of source: Source) -> Int { indexes[source].map { shares[$0].flights } ?? 0 }
    func clients(of source: Source) -> Int { indexes[source].map { shares[$0].clients } ?? 0 }
    func source(of share: Int) -> Source { shares[share].source }

    // MARK: Who may wait

    /// Whether the first client of a question may wait for an answer.
    func mayWait(_ client: Asker) -> Bool { client.isProven || clients(of: client.source) < Self.maximumUnproven }

    /// Whether one more client may wait together with those that wait for the same answer, and in all.
    func mayWait(_ client: Asker, with waiting: SmallList<Waiter>) -> Bool {
        let (own, all) = (clients(of: client.source), waiting.count)
        if !client.isProven {
            guard own < Self.maximumUnproven else { return false }
            let most = Self.maximumUnprovenWaiting
            guard min(own, all) < most || count(of: client.source, in: waiting) < most else { return false }
        }
        guard Source.mayHaveMore(own: own, all: clients, most: Self.maximumClients) else { return false }
        // A source has at most as many clients in this flight as in all; they are counted only near the limit.
        return Source.mayHaveMore(own: min(own, all), all: all, most: Self.maximumWaiting)
            || Source.mayHaveMore(
                own: count(of: client.source, in: waiting), all: all, most: Self.maximumWaiting)
    }

    /// How many of the waiting clients are of a source.
    private func count(of source: Source, in waiting: SmallList<Waiter>) -> Int {
        guard let share = indexes[source] else { return 0 }
        return waiting.reduce(0) { $0 + ($1.share == share ? 1 : 0) }
    }

    /// One more client waits.
    mutating func wait(_ client: Asker) -> Waiter {
        let share = share(of: client.source)
        shares[share].clients += 1
        clients += 1
        return Waiter(number: client.number, share: share, isProven: client.isProven)
    }

    /// A client was answered.
    mutating func answered(_ client: Waiter) {
        shares[client.share].clients -= 1
        clients -= 1
        dropIfIdle(client.share)
    }

    // MARK: Flights

    /// Whether a further flight can begin only in the place of another.
    var isFull: Bool { flights >= Self.maximumFlights }

    /// The share whose newest flight ends to make room for one of this source: that with the most flights, so that a source
    /// that floods loses its own. Between equals the existing flight stays, since it has come further. Walks over all.
    /// - Returns: nil: there is no room.
    func shareToLose(to source: Source) -> Int? {
        guard let heaviest = shares.indices.max(by: { shares[$0].flights < shares[$1].flights }),
            flights(of: source) + 1 < shares[heaviest].flights
        else { return nil }
        return heaviest
    }

    /// A flight of a source begins.
    /// - Returns: its share.
    mutating func begin(_ source: Source) -> Int {
        let share = share(of: source)
        shares[share].flights += 1
        flights += 1
        return share
    }

    /// A flight has ended.
    mutating func end(_ share: Int) {
        shares[share].flights -= 1
        flights -= 1
        dropIfIdle(share)
        if !refusing.isEmpty, flights < Self.maximumFlights / 2 { refusing = [] }
    }

    /// A source asks the question of another source's flight. If that source has many flights, this one counts for the
    /// new source from now on: otherwise a client that asks the same as a flood would lose its flight together with it.
    /// - Returns: the share for which the flight counts then; nil: it stays the same.
    mutating func takeOver(from share: Int, _ source: Source) -> Int? {
        guard flights(of: source) + 1 < shares[share].flights else { return nil }
        end(share)
        return begin(source)
    }

    private mutating func share(of source: Source) -> Int {
        if let latest {
            if latest.source == source { return latest.share }
            self.latest = nil
            dropIfIdle(latest.share)
        }
        let share = indexes[source] ?? add(source)
        latest = (source, share)
        return share
    }

    private mutating func add(_ source: Source) -> Int {
        let share = free.popLast() ?? shares.count
        if share == shares.count { shares.append(Share(source: source)) } else { shares[share] = Share(source: source) }
        indexes[source] = share
        return share
    }

    private mutating func dropIfIdle(_ share: Int) {
        guard shares[share].isIdle, latest?.share != share else { return }
        indexes[shares[share].source] = nil
        free.append(share)
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
struct Asker {
    let number: ClientNumber
    let source: Source
    /// Nil: it is no matter.
    var address: IPAddress?
    /// RD: without it no group is asked for an answer.
    var recursionDesired = true
    /// Whether a fresh answer in the cache will do; not for a question by which another answer is refreshed.
    var takesCached = true
    /// Whether it is sure that the source has asked, and nobody in its name.
    let isProven: Bool
}
