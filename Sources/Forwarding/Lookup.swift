import Base
import DNSWire

/// A flight's step at a group that carries messages: its queries to one server after another.
final class MessageStep {
    let flight: Flight
    /// The step's index in the flight's route.
    let step: Int
    let group: GroupID
    /// The servers that were asked, by ``ServerState/number``.
    var tried = SmallList<Int>()
    var underWay = SmallList<TableID>()
    /// Whether the step is in the group's queue for a server with room.
    var isWaiting = false
    /// Whether the flight's clients were answered while the step waited, so that no further server is asked.
    var wasLeft = false
    /// Whether a server has answered.
    var hasAnswer = false
    /// Whether a server failed, or returned SERVFAIL or the like, so that not all servers have refused the question.
    var hasFailed = false
    /// Whether a server returned REFUSED.
    var hasRefused = false

    init(_ flight: Flight, _ step: Int) {
        (self.flight, self.step, group) = (flight, step, flight.route[step].group)
    }
}

/// A name under way to an HTTPDNS account, and the flights that wait for its result.
final class Lookup {
    let key: NameKey
    let started: Tick
    /// Whether the lookup began under the present rules: see ``Flight/isCurrent``.
    private(set) var isCurrent: Bool
    /// See ``Flight/bases``.
    private(set) var bases: AnswerBases
    private(set) var flights: SmallList<Flight>
    /// The servers at which the lookup has failed, by ``ServerState/number``.
    var tried: [Int] = []
    /// The lookup's last failure.
    var trouble: Trouble?
    /// Whether the answer to several names lacked this name, which is then asked for alone.
    var wasLeftOut = false
    /// Whether the name was sent in a request.
    var wasSent = false
    /// The query that contains the name now.
    var query: TableID?

    init(_ key: NameKey, for flight: Flight, at now: Tick) {
        self.key = key
        (isCurrent, bases) = (flight.isCurrent, flight.bases)
        started = now
        flights = SmallList(flight)
    }

    /// A copy of the lookup that a flight has joined.
    func joined(by flight: Flight) -> Lookup {
        let copy = Lookup(key, for: flight, at: started)
        copy.flights = flights
        copy.add(flight)
        (copy.tried, copy.trouble, copy.wasLeftOut, copy.wasSent) = (tried, trouble, wasLeftOut, wasSent)
        return copy
    }

    /// The source for which the name counts: the source of the first flight.
    var source: Source { flights.first?.source ?? .daemon }

    /// Whether only the daemon itself needs the result.
    var findsServer: Bool { !flights.isEmpty && flights.allSatisfy(\.key.findsServer) }

    func outdate() { isCurrent = false }

    /// Whether another group is asked for all the lookup's flights if this group gives no answer.
    func leadsOn(from group: GroupID, _ rules: FlightRules) -> Bool {
        flights.allSatisfy { $0.leadsOn(from: $0.step(of: group), rules) }
    }

    func add(_ flight: Flight) {
        // A lookup that began to find a server serves a client, too, from now on.
        if flight.isCurrent { (isCurrent, bases) = (true, flight.bases) }
        flights.append(flight)
    }

    func drop(_ flight: Flight) { flights.removeAll { $0 === flight } }

    /// Drops ended flights: a flight may end while its lookup is outdated, so that the lookup is not found by its name.
    func dropEnded() { flights.removeAll(where: \.isOver) }
}

/// Why a question was not answered, for clients that understand RFC 8914.
struct FailureReason {
    var code: ExtendedError
    /// The server that failed and its failure; the text may be empty.
    var text = ""
}

extension Dictionary where Value: AnyObject {
    /// Removes `value`, unless the key has another value meanwhile.
    mutating func remove(_ value: Value, forKey key: Key) {
        if let index = index(forKey: key), values[index] === value { remove(at: index) }
    }
}

/// A query under way to a server.
struct Query {
    let group: GroupID
    let server: Server
    /// ``ServerState/number`` of the server.
    let number: Int
    let sent: Tick
    var subject: Subject
    /// The source for which the query counts at the server; nil if the server takes any number of queries.
    let holder: Source?
    /// When the attempt fails.
    let endsAt: Tick
    /// When the silent server is asked again; nil if it was, or is not to be.
    var askAgainAt: Tick?
    /// When the next server is asked too, since this server takes longer than usual; nil if it was, or is not to be.
    var askNextAt: Tick?
    /// When the silent server was asked again.
    var repeated: Tick?
    /// Whether the next server was asked too, since this server took longer than usual.
    var isOvertaken = false
    /// Whether the query is the trial of a server that was set aside.
    let isTrial: Bool
    /// Whether the query was sent: see ``GroupDesk/wrote(_:)``.
    var isWritten = false
    /// Whether the kernel has refused the query's first datagram, or a connection for the query, so that silence is no
    /// failure of the server.
    var isLost = false

    enum Subject {
        /// The addresses of several names, of these families.
        case names([Lookup], Families)
        /// The question of a flight.
        case message(MessageStep)
        /// A query that only shows the state of the server; its answer is not used. Its question was the question of a
        /// flight, which may have ended.
        case measurement(MessageStep)
    }

    /// When the next deadline is due, whatever the server does.
    var nextMoment: Tick { min(endsAt, askAgainAt ?? endsAt, askNextAt ?? endsAt) }
}
