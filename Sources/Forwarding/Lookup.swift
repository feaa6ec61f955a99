import Base
import DNSWire

/// A flight's step at a group that carries messages: its queries to one server after the other.
final class MessageStep {
    let flight: Flight
    /// The step's index in the flight's route.
    let step: Int
    let group: GroupID
    /// The servers that were asked, by ``ServerState/number``.
    var tried = SmallList<Int>()
    var underWay = SmallList<TableID>()
    /// Whether it is in the group's queue, waiting for a server with room.
    var isWaiting = false
    /// Whether its clients were answered while it waited, so that no further server is asked.
    var wasLeft = false
    /// Whether a server has answered.
    var hasAnswer = false
    /// Whether a server failed, or said SERVFAIL or the like, so that not all have refused the question.
    var hasFailed = false
    /// Whether a server said REFUSED.
    var hasRefused = false

    init(_ flight: Flight, _ step: Int) {
        (self.flight, self.step, group) = (flight, step, flight.route[step].group)
    }
}

/// A name under way to an HTTPDNS account, and the flights that its result settles.
final class Lookup {
    let key: NameKey
    let started: Tick
    /// Whether it began under the rules that hold now: see ``Flight/isCurrent``.
    private(set) var isCurrent: Bool
    /// See ``Flight/bases``.
    private(set) var bases: AnswerBases
    private(set) var flights: SmallList<Flight>
    /// The servers at which the lookup has failed, by ``ServerState/number``.
    var tried: [Int] = []
    /// Its last failure.
    var trouble: Trouble?
    /// Whether the answer to several names left this one out: it is then asked for alone.
    var wasLeftOut = false
    /// Whether it was sent in a request.
    var wasSent = false
    /// The query that it is in now.
    var query: TableID?

    init(_ key: NameKey, for flight: Flight, at now: Tick) {
        self.key = key
        (isCurrent, bases) = (flight.isCurrent, flight.bases)
        started = now
        flights = SmallList(flight)
    }

    /// The same lookup as it would be if a flight joined it.
    func joined(by flight: Flight) -> Lookup {
        let copy = Lookup(key, for: flight, at: started)
        copy.flights = flights
        copy.add(flight)
        (copy.tried, copy.trouble, copy.wasLeftOut, copy.wasSent) = (tried, trouble, wasLeftOut, wasSent)
        return copy
    }

    /// For whom the name counts: of several that ask for it, the first.
    var source: Source {
        var all = flights.makeIterator()
        return all.next()?.crowd.source ?? .daemon
    }

    /// Whether nobody but the daemon itself wants the result.
    var findsServer: Bool { !flights.isEmpty && flights.allSatisfy(\.key.findsServer) }

    func outdate() { isCurrent = false }

    /// Whether another group is asked for all its flights if this one gives no answer.
    func leadsOn(from group: GroupID, _ rules: FlightRules) -> Bool {
        flights.allSatisfy { $0.leadsOn(from: $0.step(of: group), rules) }
    }

    func add(_ flight: Flight) {
        // One that was begun to find a server, and is a client's as well from now on.
        if flight.isCurrent { (isCurrent, bases) = (true, flight.bases) }
        var all = flights
        all.append(flight)
        flights = all
    }

    func drop(_ flight: Flight) { drop { $0 === flight } }

    /// Flights may end while their lookup is outdated, and so not found by its name.
    func dropEnded() { if flights.contains(where: \.isOver) { drop(where: \.isOver) } }

    private func drop(where isMeant: (Flight) -> Bool) {
        var rest = flights
        rest.removeAll(where: isMeant)
        flights = rest
    }
}

/// Why a question was not answered, for clients that understand RFC 8914.
struct FailureReason {
    var code: ExtendedError
    /// Which server failed and how; may be empty.
    var text = ""
}

extension Dictionary where Value: AnyObject {
    /// Removes `value`, unless the key has another value meanwhile.
    mutating func remove(_ value: Value, forKey key: Key) {
        if let place = index(forKey: key), values[place] === value { remove(at: place) }
    }
}
