import Base
import DNSCache
import DNSWire

/// One question under way and everybody who waits for its answer. Equal questions share a flight, so a forger has one
/// id and one port to hit, however often a question is asked.
final class Flight {
    struct Key: Hashable {
        let name: NameKey
        let type: RecordType
        let audience: Audience

        /// Audiences are few: telling them apart is left to the comparison.
        func hash(into hasher: inout Hasher) {
            hasher.combine(name)
            hasher.combine(type.rawValue)
        }
    }

    let key: Key
    /// Its number in `Forwarder.flights`.
    let id: TableID
    /// `Forwarder.generation` when it began.
    let generation: Int
    /// The groups that may be asked, in this order.
    let route: [Step]
    /// How many of its steps have begun, or were passed over as there was nobody to ask.
    var begun = 0
    /// Those of them whose groups may still have an answer.
    var underWay = StepSet()
    /// What was put to the servers of the last step that carries whole messages; nil before there was one. A reference:
    /// a property that is nowhere changed in place is read without the check at run time that nobody else changes it.
    var messagesBegun: Messages?
    /// Who waits.
    var clients: SmallList<Waiter>
    /// The place in ``Shares`` of the source that this is counted for.
    var place: Int
    /// Counts the flights: the newest has the highest.
    let number: UInt64
    /// A client has asked this. What only the daemon asks, to have it ready, is not worth the local resolver's word.
    var isWanted: Bool
    /// The clients were given what there was; the flight goes on to fill the cache.
    var isOverdue = false
    /// An HTTPDNS account owes an answer and has not proven that it has none: another group's only stands in for it.
    var isOwed: Bool
    /// A message group had an answer; an earlier step may still go on.
    var wasAnswered = false
    /// A resolver's SERVFAIL or the like, or an answer behind which another group was asked: given if nobody does
    /// better.
    var secondBest: Answer?
    var lastFailure: Failure?
    /// Who failed last, if it was a server.
    var lastFailed: (group: GroupID, server: Server)?
    /// When the next step begins although the last has not ended; nil once it has.
    var hedgeAt: Tick?
    /// When the clients get a stale answer; nil without one.
    var staleAt: Tick?
    /// When the clients get whatever there is.
    var answerBy: Tick

    /// - Parameter client: Who asks; nil: the daemon itself.
    init(
        _ key: Key, _ route: [Step], for client: Waiter?, id: TableID, place: Int, number: UInt64, generation: Int,
        isOwed: Bool, answerBy: Tick
    ) {
        self.key = key
        self.place = place
        self.number = number
        self.isOwed = isOwed
        self.route = route
        self.id = id
        self.generation = generation
        self.answerBy = answerBy
        clients = SmallList(client)
        isWanted = client != nil
    }

    /// What is changed in it before a step with messages has begun is of no consequence.
    var messages: Messages { messagesBegun ?? Messages(step: 0) }

    var nextMoment: Tick? {
        guard !isOverdue else { return hedgeAt }
        return min(min(hedgeAt ?? answerBy, staleAt ?? answerBy), answerBy)
    }

    var isDone: Bool { underWay.isEmpty }

    /// Whether a step before this one may still have an answer, which would count for more.
    func isOutranked(_ step: Int) -> Bool { underWay.containsAny(before: step) }

    /// Whether the last step that has begun may still have an answer.
    var isLastUnderWay: Bool { begun > 0 && underWay.contains(begun - 1) }

    /// The place of a group in the route, where it stands once.
    func step(of group: GroupID) -> Int {
        var step = 0
        while route[step].group != group { step += 1 }
        return step
    }

    /// What is asked where whole messages are carried.
    var question: MessageQuestion {
        switch key.audience {
        case .everyone:
            MessageQuestion(name: key.name.name, type: key.type, dnssecOK: false, checkingDisabled: false)
        case .those(let dnssecOK, let checkingDisabled):
            MessageQuestion(
                name: key.name.name, type: key.type, dnssecOK: dnssecOK, checkingDisabled: checkingDisabled)
        }
    }
}

/// What a flight has put to the servers of a step that carries whole messages.
final class Messages {
    let step: Int
    var tried = SmallList<Server>()
    var underWay = SmallList<TableID>()
    /// It stands in the group's queue for a server with room.
    var isWaiting = false
    /// A server failed, or said SERVFAIL or the like: not all have refused the question.
    var hasFailed = false
    /// A server said REFUSED.
    var hasRefused = false

    init(step: Int) { self.step = step }
}

/// Places of steps in a route.
struct StepSet {
    private var bits: UInt64 = 0

    /// As many steps as a route may have.
    static var capacity: Int { UInt64.bitWidth }

    var isEmpty: Bool { bits == 0 }

    func contains(_ step: Int) -> Bool { bits & 1 &<< step != 0 }
    func containsAny(before step: Int) -> Bool { bits & (1 &<< step - 1) != 0 }
    func containsAny(after step: Int) -> Bool { bits &>> step > 1 }

    mutating func insert(_ step: Int) { bits |= 1 &<< step }
    mutating func remove(_ step: Int) { bits &= ~(1 &<< step) }
}

/// A name under way to an HTTPDNS account, and the flights it settles.
final class Lookup {
    let key: NameKey
    let started: Tick
    /// `Forwarder.generation` when it began.
    let generation: Int
    private(set) var flights: SmallList<Flight>
    /// The servers that failed on it.
    var tried: [Server] = []
    /// An answer to several names left it out: it goes out alone.
    var wasLeftOut = false
    /// It was in a request.
    var wasSent = false
    /// The request it is in now.
    var query: TableID?

    init(_ key: NameKey, for flight: Flight, at now: Tick) {
        self.key = key
        generation = flight.generation
        started = now
        flights = SmallList(flight)
    }

    func add(_ flight: Flight) {
        var all = flights
        all.append(flight)
        flights = all
    }

    func drop(_ flight: Flight) {
        var rest = flights
        rest.removeAll { $0 === flight }
        flights = rest
    }
}

/// A query under way to a server.
struct Query {
    let group: GroupID
    let server: Server
    let sent: Tick
    var subject: Subject
    /// When the server, which was silent for long, was asked once more.
    var repeated: Tick?
    /// It took longer than the server usually takes, and the next one was asked as well.
    var isOvertaken = false

    enum Subject {
        /// The addresses of several names, of these families.
        case names([Lookup], Families)
        /// The question of a flight, for its step in ``Messages``.
        case message(Flight)
        /// What a flight no longer waits for, or never did: it shows how the server is.
        case measurement
    }
}

/// Why a question was not answered, as a client that understands RFC 8914 is told.
struct FailureReason {
    var code: ExtendedError
    /// Who failed and how; may be empty.
    var text = ""
}

/// That a question was lately not answered by anybody.
///
/// A client that repeats itself must not multiply what goes out while everything is down (RFC 9520 §3.2), and what is
/// stale is given at once meanwhile (RFC 8767 §5). A first failure may be bad luck and the next question is looked up;
/// so there are two lookups of a question a second at most, and nobody notices the second when all is well again.
struct RecentFailure {
    var timesInARow: Int
    var reason: FailureReason

    /// Milliseconds it counts for: the least that RFC 9520 §3.2 allows.
    static let time = 1000
    /// So often in a row, and the question is not looked up while it counts.
    static let mostTimes = 2
}

extension Dictionary where Value: AnyObject {
    /// Takes `value` out, unless another has come to its place meanwhile.
    mutating func remove(_ value: Value, forKey key: Key) {
        if let place = index(forKey: key), values[place] === value { remove(at: place) }
    }
}
