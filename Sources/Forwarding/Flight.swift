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

    /// How far one of the two sources of an answer is.
    enum Source {
        case idle, waiting, ended
    }

    let key: Key
    /// Its number in `Forwarder.flights`.
    let id: TableID
    /// `Forwarder.generation` when it began.
    let generation: Int
    /// Who waits.
    var clients = Few<Waiter>()
    /// The place in ``Shares`` of the source that this is counted for.
    var place: Int
    /// Counts the flights: the newest has the highest.
    let number: UInt64
    /// A client has asked this. What only the daemon asks, to have it ready, is not worth the local resolver's word.
    var isWanted = false
    /// The clients were given what there was; the flight goes on to fill the cache.
    var isOverdue = false
    var service = Source.idle
    var resolver = Source.idle
    var resolverQuery: TableID?
    /// The same query once more, to the same server, as the first was silent for long.
    var repeatedQuery: TableID?
    /// Places of the local resolvers that were asked.
    var triedResolvers: Set<Int> = []
    /// HTTPDNS owes an answer and has not proven that it has none: a local resolver's only stands in for it.
    var isOwed: Bool
    /// A resolver had an answer; HTTPDNS may still go on.
    var wasAnswered = false
    /// A resolver's SERVFAIL or the like, given if no other server does better.
    var refusal: Answer?
    var lastFailure: Failure?
    /// When the local resolver is asked too; nil once it was.
    var hedgeAt: Tick?
    /// When the clients get a stale answer; nil without one.
    var staleAt: Tick?
    /// When the clients get whatever there is.
    var answerBy: Tick

    init(
        _ key: Key, id: TableID, place: Int, number: UInt64, generation: Int, isOwed: Bool, answerBy: Tick
    ) {
        self.key = key
        self.place = place
        self.number = number
        self.isOwed = isOwed
        self.id = id
        self.generation = generation
        self.answerBy = answerBy
    }

    var nextMoment: Tick? {
        guard !isOverdue else { return hedgeAt }
        return min(min(hedgeAt ?? answerBy, staleAt ?? answerBy), answerBy)
    }

    var isDone: Bool { service != .waiting && resolver != .waiting }

    /// What a local resolver is asked.
    var question: ResolverQuestion {
        switch key.audience {
        case .everyone:
            ResolverQuestion(name: key.name.name, type: key.type, dnssecOK: false, checkingDisabled: false)
        case .those(let dnssecOK, let checkingDisabled):
            ResolverQuestion(
                name: key.name.name, type: key.type, dnssecOK: dnssecOK, checkingDisabled: checkingDisabled)
        }
    }
}

/// A name under way to HTTPDNS, and the flights it settles.
final class Lookup {
    let key: NameKey
    let started: Tick
    /// `Forwarder.generation` when it began.
    let generation: Int
    var flights: Few<Flight>
    /// Places of the servers that failed on it, in the list they are places of (`ServiceServers.list`).
    var triedServers: Set<Int> = []
    var list: Int
    /// An answer to several names left it out: it goes out alone.
    var wasLeftOut = false
    /// It was in a request.
    var wasSent = false
    /// The request it is in now.
    var request: TableID?

    init(_ key: NameKey, for flight: Flight, list: Int, at now: Tick) {
        self.key = key
        self.list = list
        generation = flight.generation
        started = now
        flights = Few(flight)
    }
}

/// A request under way to an HTTPDNS server.
struct RequestState {
    let server: Int
    /// The list that `server` is a place in: `ServiceServers.list` when it was asked.
    let list: Int
    let names: [Name]
    /// Those of the names, in the same order.
    let lookups: [Lookup]
    let families: Families
    let sent: Tick
}

/// A query under way to a local resolver.
struct ResolverState {
    let server: Int
    /// The list that `server` is a place in: `ResolverServers.list` when it was asked.
    let list: Int
    let overTCP: Bool
    var sent: Tick
    /// When the attempt ends that it belongs to.
    let until: Tick
    let flight: TableID
}

/// That a question was lately not answered by anybody.
///
/// A client that repeats itself must not multiply what goes out while everything is down (RFC 9520 §3.2), and what is
/// stale is given at once meanwhile (RFC 8767 §5). A first failure may be bad luck and the next question is looked up; so
/// there are two lookups of a question a second at most, and nobody notices the second when all is well again.
struct RecentFailure {
    var timesInARow: Int
    var extendedError: ExtendedError

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
