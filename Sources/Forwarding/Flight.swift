import DNSCache
import DNSWire

/// One question under way and everybody who waits for its answer. Equal questions share a flight, so a forger has one
/// id and one port to hit, however often a question is asked.
struct Flight<Client> {
    struct Key: Hashable {
        var name: Name
        var type: RecordType
        var audience: Audience
    }

    /// How far one of the two sources of an answer is.
    enum Source {
        case idle, waiting, ended
    }

    let key: Key
    var clients: [Client] = []
    /// The clients were given what there was; the flight goes on to fill the cache.
    var isOverdue = false
    var service = Source.idle
    var resolver = Source.idle
    var resolverQuery: TableID?
    /// Places of the local resolvers that were asked.
    var triedResolvers: Set<Int> = []
    /// A resolver's SERVFAIL or the like, given if no other server does better.
    var refusal: Answer?
    var lastFailure: Failure?
    /// When the local resolver is asked too; nil once it was.
    var hedgeAt: Tick?
    /// When the clients get a stale answer; nil without one.
    var staleAt: Tick?
    /// When the clients get whatever there is.
    var answerBy: Tick

    var nextMoment: Tick? {
        let moments = isOverdue ? [hedgeAt] : [hedgeAt, staleAt, answerBy]
        return moments.compactMap { $0 }.min()
    }

    var isDone: Bool { service != .waiting && resolver != .waiting }

    /// What a local resolver is asked.
    var question: ResolverQuestion {
        switch key.audience {
        case .everyone:
            ResolverQuestion(name: key.name, type: key.type, dnssecOK: false, checkingDisabled: false)
        case .those(let dnssecOK, let checkingDisabled):
            ResolverQuestion(
                name: key.name, type: key.type, dnssecOK: dnssecOK, checkingDisabled: checkingDisabled)
        }
    }
}

/// A name under way to HTTPDNS, both families at once, and the flights it settles.
struct Lookup {
    let name: Name
    var flights: [TableID]
    /// Places of the servers that failed on it.
    var triedServers: Set<Int> = []
    /// An answer to several names left it out: it goes out alone.
    var wasLeftOut = false
    var request: TableID?
}

/// A request under way to an HTTPDNS server.
struct RequestState {
    let server: Int
    /// The list that `server` is a place in: `ServiceServers.list` when it was asked.
    let list: Int
    let names: [Name]
    let families: Families
    let sent: Tick
}

/// A query under way to a local resolver.
struct ResolverState {
    let server: Int
    /// The list that `server` is a place in: `ResolverServers.list` when it was asked.
    let list: Int
    let overTCP: Bool
    let sent: Tick
    let flight: TableID
}
