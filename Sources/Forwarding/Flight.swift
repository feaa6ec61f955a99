import Base
import DNSCache
import DNSWire

/// One question under way and the clients that wait for its answer. Equal questions share a flight, so a forger has
/// only one id and one port to guess, however often a question is asked.
final class Flight {
    struct Key: Hashable {
        let name: NameKey
        let type: RecordType
        let audience: Audience

        /// There are few audiences, so the comparison tells them apart.
        func hash(into hasher: inout Hasher) {
            hasher.combine(name)
            hasher.combine(type.rawValue)
        }
    }

    let key: Key
    /// Its number in `Forwarder.flights`.
    let id: TableID
    /// `Forwarder.generation` when it began; see ``outdate()``.
    private(set) var generation: Int
    /// The groups that may be asked, in this order.
    let route: [Step]
    /// How many of its steps have begun or were skipped because their groups have no servers.
    var begun = 0
    /// The steps that may still have an answer.
    var underWay = StepSet()
    /// The queries to the servers of the last message step that has begun; nil before one has. A reference: a property
    /// that is never changed in place is read without a run-time check for exclusive access.
    var messagesBegun: Messages?
    /// The clients that wait.
    var clients: SmallList<Waiter>
    /// The place in ``Shares`` of the source for which this flight counts.
    var place: Int
    /// Flights are numbered in order: the newest has the highest number.
    let number: UInt64
    /// Whether a client has asked this question. For questions of the daemon itself, to fill the cache, the local
    /// resolver is not asked in the place of HTTPDNS.
    var isWanted: Bool
    /// Whether the clients were already given a stale answer or a failure; the flight goes on to fill the cache.
    var isOverdue = false
    /// Milliseconds for which its clients may still wait for the store of the fleet.
    var waitLeft = SharedCache.mostWait
    /// Whether an account that is not among its steps has not proven that it has no record.
    private let isOwedBefore: Bool
    /// The steps whose groups owe an answer: an account's from its beginning until it has proven that it has no record, any
    /// other's once its servers have failed.
    var owing = StepSet()
    /// Those of them whose groups have failed.
    var failed = StepSet()
    /// Whether a message group has answered; an earlier step may still be under way, and servers that are slower.
    var wasAnswered = false
    /// A SERVFAIL or the like, or an answer that led to the next group: given if no better one comes; and who gave it.
    var secondBest: (answer: Answer, group: GroupID)?
    /// Where the answer for the clients comes from, or else ``secondBest``; `nobody` before there is either.
    var answerer = Answerer.nobody
    var lastFailure: Failure?
    /// The server that failed last, if one did.
    var lastFailed: (group: GroupID, server: Server?)?
    /// The most readable way in which the question was sent so far.
    var exposure = Exposure.none
    /// When the next step begins even if the last has not ended; nil once it has begun.
    var hedgeAt: Tick?
    /// When the clients get a stale answer; nil if there is none.
    var staleAt: Tick?
    /// When the clients get the best answer there is, or a failure.
    var answerBy: Tick

    /// - Parameters:
    ///   - client: The client that asks; nil: the daemon itself.
    ///   - isOwed: Whether a group that was passed over before the route's first step owes an answer.
    init(
        _ key: Key, _ route: [Step], for client: Waiter?, id: TableID, place: Int, number: UInt64, generation: Int,
        isOwed: Bool, answerBy: Tick
    ) {
        self.key = key
        self.place = place
        self.number = number
        isOwedBefore = isOwed
        self.route = route
        self.id = id
        self.generation = generation
        self.answerBy = answerBy
        clients = SmallList(client)
        isWanted = client != nil
    }

    /// An empty value before a message step has begun; changes to that are lost, which does no harm.
    var messages: Messages { messagesBegun ?? Messages(step: 0) }

    var nextMoment: Tick? {
        guard !isOverdue else { return hedgeAt }
        return min(min(hedgeAt ?? answerBy, staleAt ?? answerBy), answerBy)
    }

    /// What comes of it goes to those who wait and is not cached, as if it had begun before all rules.
    func outdate() { generation = -1 }

    func sent(by way: Exposure) { exposure = max(exposure, way) }

    /// Whether another group's answer only stands in for one that is owed.
    var isOwed: Bool { isOwedBefore || !owing.isEmpty }

    var isDone: Bool { underWay.isEmpty }

    /// Whether a step before this one may still have an answer, which would be preferred.
    func isOutranked(_ step: Int) -> Bool { underWay.containsAny(before: step) }

    /// Whether the last step that has begun may still have an answer.
    var isLastUnderWay: Bool { begun > 0 && underWay.contains(begun - 1) }

    /// The index of a group in the route, in which it occurs once.
    func step(of group: GroupID) -> Int {
        var step = 0
        while route[step].group != group { step += 1 }
        return step
    }

    /// The question for groups that carry messages.
    var question: MessageQuestion {
        switch key.audience {
        case .those(let dnssecOK, let checkingDisabled):
            MessageQuestion(
                name: key.name.name, type: key.type, dnssecOK: dnssecOK, checkingDisabled: checkingDisabled)
        case .everyone, .exceptValidators, .validators:
            MessageQuestion(name: key.name.name, type: key.type, dnssecOK: false, checkingDisabled: false)
        }
    }
}

/// The queries of a flight to the servers of one message step.
final class Messages {
    let step: Int
    var tried = SmallList<Server>()
    var underWay = SmallList<TableID>()
    /// Whether the flight is in the group's queue, waiting for a server with room.
    var isWaiting = false
    /// Whether a server failed, or said SERVFAIL or the like, so that not all have refused the question.
    var hasFailed = false
    /// Whether a server said REFUSED.
    var hasRefused = false

    init(step: Int) { self.step = step }
}

/// A set of steps of a route, by their index.
struct StepSet {
    private var bits: UInt64 = 0

    /// The most steps that a route may have.
    static var capacity: Int { UInt64.bitWidth }

    var isEmpty: Bool { bits == 0 }

    func contains(_ step: Int) -> Bool { bits & 1 &<< step != 0 }
    func containsAny(before step: Int) -> Bool { bits & (1 &<< step - 1) != 0 }
    func containsAny(after step: Int) -> Bool { bits &>> step > 1 }

    mutating func insert(_ step: Int) { bits |= 1 &<< step }
    mutating func remove(_ step: Int) { bits &= ~(1 &<< step) }
}

/// A name under way to an HTTPDNS account, and the flights that its result settles.
final class Lookup {
    let key: NameKey
    let started: Tick
    /// `Forwarder.generation` when it began; see ``outdate()``.
    private(set) var generation: Int
    private(set) var flights: SmallList<Flight>
    /// The servers at which the lookup has failed.
    var tried: [Server] = []
    /// Whether the answer to several names left this one out: it is then asked for alone.
    var wasLeftOut = false
    /// Whether it was sent in a request.
    var wasSent = false
    /// The query that it is in now.
    var query: TableID?

    init(_ key: NameKey, for flight: Flight, at now: Tick) {
        self.key = key
        generation = flight.generation
        started = now
        flights = SmallList(flight)
    }

    /// See ``Flight/outdate()``.
    func outdate() { generation = -1 }

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
    /// The source for which it counts at the server; nil where the server takes any number.
    let holder: Source?
    /// When the server, after a long silence, was asked once more.
    var repeated: Tick?
    /// Whether the server took longer than usual, so that the next one was asked as well.
    var isOvertaken = false

    enum Subject {
        /// The addresses of several names, of these families.
        case names([Lookup], Families)
        /// The question of a flight, for its step in ``Messages``.
        case message(Flight)
        /// A query whose answer is not wanted: it only shows the state of the server. Its question was that of a flight,
        /// which may have ended.
        case measurement(Flight)
    }
}

/// Why a question was not answered, for clients that understand RFC 8914.
struct FailureReason {
    var code: ExtendedError
    /// Which server failed and how; may be empty.
    var text = ""
}

/// Records that a question was not answered lately.
///
/// While everything is down, clients that repeat their questions must not multiply the queries to upstreams (RFC 9520
/// §3.2), and stale answers are given at once (RFC 8767 §5). A single failure may be bad luck, so the next question is
/// looked up once more: there are at most two lookups of a question a second, and the delay after an outage is not
/// noticed.
struct RecentFailure {
    var timesInARow: Int
    var reason: FailureReason

    /// Milliseconds for which it holds: the least that RFC 9520 §3.2 allows.
    static let time = 1000
    /// After this many failures in a row the question is not looked up while the record holds.
    static let mostTimes = 2
}

extension Dictionary where Value: AnyObject {
    /// Removes `value`, unless the key has another value meanwhile.
    mutating func remove(_ value: Value, forKey key: Key) {
        if let place = index(forKey: key), values[place] === value { remove(at: place) }
    }
}
