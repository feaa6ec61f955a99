/// What one source has of what all share.
final class Share {
    let source: Source
    /// Flights that are counted for it.
    private(set) var flights = 0
    /// The one that was counted for it last; the others follow by `Flight.older`.
    private(set) var newest: Flight?
    /// Clients of its that wait.
    fileprivate(set) var clients = 0

    fileprivate init(_ source: Source) { self.source = source }

    fileprivate func add(_ flight: Flight) {
        flights += 1
        flight.share = self
        flight.older = newest
        newest?.newer = flight
        newest = flight
    }

    fileprivate func remove(_ flight: Flight) {
        flights -= 1
        flight.newer?.older = flight.older
        flight.older?.newer = flight.newer
        if newest === flight { newest = flight.older }
        (flight.share, flight.older, flight.newer) = (nil, nil, nil)
    }
}

/// The shares of all sources that have a flight or a waiting client: no more of them than there are of both.
struct Shares {
    private var shares: [Source: Share] = [:]
    /// Clients that wait, of all sources.
    private(set) var clients = 0

    var count: Int { shares.count }

    /// - Returns: nil for a source that has nothing.
    subscript(source: Source) -> Share? { shares[source] }

    /// The source with the most flights. Walks through all: for when there is no room.
    var heaviest: Share? { shares.values.max { $0.flights < $1.flights } }

    /// Counts a flight for a source, in the place of the one that it was counted for.
    mutating func give(_ flight: Flight, to source: Source) {
        let share = make(source)
        take(flight)
        share.add(flight)
    }

    /// The flight has ended.
    mutating func take(_ flight: Flight) {
        guard let share = flight.share else { return }
        share.remove(flight)
        dropIfIdle(share)
    }

    /// A client waits.
    mutating func wait(_ client: Asker) -> Waiter {
        let share = make(client.source)
        share.clients += 1
        clients += 1
        return Waiter(number: client.number, share: share)
    }

    /// It has its answer.
    mutating func answered(_ waiter: Waiter) {
        waiter.share.clients -= 1
        clients -= 1
        dropIfIdle(waiter.share)
    }

    private mutating func make(_ source: Source) -> Share {
        if let share = shares[source] { return share }
        let share = Share(source)
        shares[source] = share
        return share
    }

    private mutating func dropIfIdle(_ share: Share) {
        if share.flights == 0, share.clients == 0 { shares[share.source] = nil }
    }
}

/// A client that asks.
struct Asker {
    let number: ClientNumber
    let source: Source
    /// RD: without it nobody is asked for an answer.
    let recursionDesired: Bool
}

/// A client that waits for a flight's answer.
struct Waiter {
    let number: ClientNumber
    /// Of its source.
    let share: Share
}
