/// How many flights and waiting clients each source has, of the numbers that all share. Only sources that have some are
/// recorded, and the one that asked last.
struct Shares {
    private var places: [Source: Int] = [:]
    private var shares: [Share] = []
    private var free: [Int] = []
    /// The source that was looked up last: questions come in batches, and most of a batch come from one source. It stays
    /// recorded while it has nothing, since a source that asks one question after the other has nothing between two.
    private var latest: (source: Source, place: Int)?
    /// Waiting clients of all sources.
    private(set) var clients = 0

    private struct Share {
        let source: Source
        var flights = 0
        var clients = 0
    }

    /// How many sources have some.
    var count: Int { places.count - (latest.map { isIdle($0.place) ? 1 : 0 } ?? 0) }

    func flights(of source: Source) -> Int { places[source].map { shares[$0].flights } ?? 0 }
    func clients(of source: Source) -> Int { places[source].map { shares[$0].clients } ?? 0 }

    func flights(at place: Int) -> Int { shares[place].flights }
    func source(at place: Int) -> Source { shares[place].source }

    /// How many of the waiting clients are of a source.
    func count(of source: Source, in waiters: SmallList<Waiter>) -> Int {
        guard let place = places[source] else { return 0 }
        return waiters.reduce(0) { $0 + ($1.place == place ? 1 : 0) }
    }

    /// The place of the source with the most flights, and their number. Walks over all: for when there is no room.
    var heaviest: (place: Int, flights: Int)? {
        shares.indices.max { shares[$0].flights < shares[$1].flights }.map { ($0, shares[$0].flights) }
    }

    /// A flight begins, and the client that asks may wait for it.
    /// - Returns: the place of the source, valid for as long as it has a flight or a client.
    mutating func begin(_ source: Source, waits: Bool) -> Int {
        let place = place(of: source)
        shares[place].flights += 1
        if waits { wait(at: place) }
        return place
    }

    /// One more client waits. Returns the place of its source.
    mutating func wait(_ source: Source) -> Int {
        let place = place(of: source)
        wait(at: place)
        return place
    }

    private mutating func wait(at place: Int) {
        shares[place].clients += 1
        clients += 1
    }

    /// A flight has ended.
    mutating func end(_ place: Int) {
        shares[place].flights -= 1
        dropIfIdle(place)
    }

    /// A client was answered.
    mutating func answered(_ place: Int) {
        shares[place].clients -= 1
        clients -= 1
        dropIfIdle(place)
    }

    private mutating func place(of source: Source) -> Int {
        if let latest {
            if latest.source == source { return latest.place }
            self.latest = nil
            dropIfIdle(latest.place)
        }
        let place = places[source] ?? add(source)
        latest = (source, place)
        return place
    }

    private func isIdle(_ place: Int) -> Bool { shares[place].flights == 0 && shares[place].clients == 0 }

    private mutating func add(_ source: Source) -> Int {
        let place: Int
        if let unused = free.popLast() {
            place = unused
            shares[place] = Share(source: source)
        } else {
            place = shares.count
            shares.append(Share(source: source))
        }
        places[source] = place
        return place
    }

    private mutating func dropIfIdle(_ place: Int) {
        guard isIdle(place), latest?.place != place else { return }
        places[shares[place].source] = nil
        free.append(place)
    }
}

/// A client that asks a question.
struct Asker {
    let number: ClientNumber
    let source: Source
    /// RD: without it no group is asked for an answer.
    let recursionDesired: Bool
    /// Whether it is sure that the source has asked, and nobody in its name.
    let isProven: Bool
}

/// A client that waits for a flight's answer.
struct Waiter {
    let number: ClientNumber
    /// Its source's place in ``Shares``.
    let place: Int
}
