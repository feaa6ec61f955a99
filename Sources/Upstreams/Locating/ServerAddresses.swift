import Base
import DNSWire
import Forwarding

/// The addresses of servers whose host is a name: decides when to look a name up, which sources to ask, and which
/// addresses to dial; without sockets and clock.
///
/// A name is looked up when a connection needs it and nothing is known of it, the TTL of the known addresses is over,
/// or none of them could be connected to. Known addresses are used meanwhile. A name that no connection needs costs
/// nothing.
///
/// A forged answer can only keep a server from being reached: the server's certificate proves its identity. So the
/// addresses that worked come before those of any answer, and stay whatever an answer says.
struct ServerAddresses {
    /// An instruction to the owner, to be carried out in order.
    enum Action: Equatable {
        /// Ask a server of the account (``GroupID/httpdns``) or a resolver (``GroupID/fallback``).
        case ask(QueryID, Server, Ask)
        case askAgain(QueryID)
        case cancel(QueryID)
        /// Give the callers that wait for the name the result of ``endpoints(of:port:)``.
        case tell(Name)
        /// ``remembered`` has changed.
        case remember
        case report(Event)
    }

    /// A change of state that is worth a line in the log.
    enum Event: Equatable {
        /// No address is known, for this reason.
        case lost(Name, String)
        case found(Name)
        /// An answer holds an address of this daemon's own.
        case leadsBack(Name, Endpoint)
    }

    /// A source that can be asked for an address.
    enum Source: Hashable {
        case account(Server)
        case resolver(Server)
    }

    /// The most names; further ones of a configuration are refused.
    static let maximumNames = 64
    /// The most addresses of one name that are kept because they worked, and of each family of the last answer: 8
    /// together.
    static let maximumWorked = 2
    static let maximumOfAFamily = 3
    /// The most sources asked for one name; the HTTPDNS servers come before the resolvers.
    static let maximumSources = 16
    /// Milliseconds for one attempt at a source, and after which the next source is asked beside a silent one (of the
    /// last source: the same once more).
    static let attemptTime = 2000
    static let silence = 1000
    /// The most milliseconds that a caller waits. The lookup goes on for later callers.
    static let longestWait = 4000
    /// Milliseconds for which the second family is awaited after the first (RFC 8305 §3: resolution delay).
    static let resolutionDelay = 50
    /// For how many seconds an answer is used, whatever its TTL says.
    static let lifetimes: ClosedRange<UInt32> = 60...86_400
    /// Seconds until the next lookup after one that failed while the known addresses work.
    static let pauseAfterFailure = 60

    static let isOwn = "its address is this daemon's own"

    var actions: [Action] = []
    var entries: [Name: Entry] = [:]
    var sources: [Source] = []
    var asked: [QueryID: Name] = [:]
    var lastNumber: UInt32 = 0
    private let listening: [Endpoint]
    var own: [Endpoint] = []

    /// What is known of one name.
    struct Entry {
        /// The ports of the servers with this name.
        var ports: Set<UInt16> = []
        /// Addresses that could be connected to, the last one first.
        var worked: [IPAddress] = []
        /// The addresses of the last answer.
        var found: [IPAddress] = []
        /// A lookup begins when the name is needed after this moment.
        var lookAt = Tick(nanoseconds: 0)
        /// When the last lookup ended.
        var looked: Tick?
        /// Failed or vain lookups since an address last worked; routine refreshes do not count.
        var inVain = 0
        /// Whether no known address could be connected to; until one works, or an answer comes.
        var allFailed = false
        /// Why the last lookup failed.
        var failure: String?
        var isLost = false
        var leadsBack = false
        var lookup: Lookup?

        var addresses: [IPAddress] { worked + found.filter { !worked.contains($0) } }

        /// Seconds between lookups while nothing works: none, 1, 2, 4 … 60.
        var pause: Int { inVain == 0 ? 0 : min(60, 1 << (min(inVain, 7) - 1)) }
    }

    /// - Parameter listening: The endpoints of the daemon itself.
    init(listening: [Endpoint] = [], remembered: [(name: Name, addresses: [IPAddress])] = []) {
        self.listening = listening
        for (name, addresses) in remembered.prefix(Self.maximumNames) {
            entries[name] = Entry(worked: Array(addresses.prefix(Self.maximumWorked)))
        }
    }

    // MARK: For connections

    /// - Returns: nil: the result follows as ``Action/tell(_:)`` within ``longestWait``.
    mutating func want(_ name: Name, port: UInt16, at now: Tick) -> ServerEndpoints? {
        guard entries[name] != nil || entries.count < Self.maximumNames else {
            return unknown(name, "more than \(Self.maximumNames) names of servers are not looked up")
        }
        entries[name, default: Entry()].ports.insert(port)
        beginIfDue(name, at: now)
        let endpoints = endpoints(of: name, port: port)
        guard let entry = entries[name], let lookup = entry.lookup else { return endpoints }
        if case .known = endpoints, !entry.allFailed { return endpoints }
        let until = now.advanced(milliseconds: Self.longestWait)
        entries[name]?.lookup?.waitUntil = lookup.waitUntil.orEarlier(until)
        return nil
    }

    /// The endpoints known now.
    func endpoints(of name: Name, port: UInt16) -> ServerEndpoints {
        guard let entry = entries[name] else { return unknown(name, "it is no longer configured") }
        let endpoints = endpoints(entry, port)
        if !endpoints.isEmpty { return .known(endpoints) }
        guard let lookup = entry.lookup else { return unknown(name, entry.failure ?? Self.isOwn) }
        return unknown(name, lookup.reasons.isEmpty ? "no answer yet" : lookup.reasons.joined(separator: "; "))
    }

    private func unknown(_ name: Name, _ reason: String) -> ServerEndpoints {
        .unknown(Failure(.unreachable, "no address of \(name): \(reason)"))
    }

    /// A connection to this address was established, and the server's certificate accepted.
    mutating func worked(_ name: Name, _ address: IPAddress) {
        guard var entry = entries[name] else { return }
        (entry.inVain, entry.allFailed) = (0, false)
        if entry.worked.first != address {
            let before = Set(entry.worked)
            entry.worked = Array(([address] + entry.worked.filter { $0 != address }).prefix(Self.maximumWorked))
            if Set(entry.worked) != before { actions.append(.remember) }
        }
        entries[name] = entry
    }

    /// None of the addresses that were given out could be connected to.
    mutating func allFailed(_ name: Name, at now: Tick) {
        guard var entry = entries[name], entry.lookup == nil else {
            entries[name]?.allFailed = true
            return
        }
        entry.allFailed = true
        let next = entry.looked.map { $0.advanced(milliseconds: entry.pause * 1000) } ?? now
        entry.lookAt = min(entry.lookAt, next)
        entries[name] = entry
        beginIfDue(name, at: now)
    }

    // MARK: Changes

    /// The addresses that worked, by name.
    var remembered: [(name: Name, addresses: [IPAddress])] {
        entries.filter { !$0.value.worked.isEmpty }.map { ($0.key, $0.value.worked) }
            .sorted { $0.name.description < $1.name.description }
    }

    /// Sets the sources for further lookups, in this order.
    mutating func use(_ sources: [Source], at now: Tick) {
        let sources = Array(sources.prefix(Self.maximumSources))
        guard sources != self.sources else { return }
        self.sources = sources
        forgetFailures(at: now)
    }

    /// This machine's addresses or routes have changed.
    /// - Parameter own: This machine's addresses, with port 0.
    mutating func networkChanged(own: [Endpoint], at now: Tick) {
        self.own = own
        forgetFailures(at: now)
        for (name, entry) in entries {
            guard let lookup = entry.lookup, !lookup.isRepeated else { continue }
            entries[name]?.lookup?.isRepeated = true
            actions += lookup.attempts.flatMap(\.pending).map { .askAgain($0) }
        }
    }

    /// After a change of the network or the sources, earlier failures mean nothing.
    private mutating func forgetFailures(at now: Tick) {
        for name in entries.keys {
            entries[name]?.inVain = 0
            entries[name]?.allFailed = false
            entries[name]?.lookAt = now
        }
    }

    /// Sets the names of the servers; what is known of other names is forgotten.
    mutating func keep(_ names: Set<Name>) {
        for (name, entry) in entries where !names.contains(name) {
            cancel(entry.lookup?.attempts ?? [])
            entries[name] = nil
            actions.append(.tell(name))
            if !entry.worked.isEmpty { actions.append(.remember) }
        }
    }

    // MARK: Own addresses

    func endpoints(_ entry: Entry, _ port: UInt16) -> [Endpoint] {
        withoutLoops(entry.addresses.map { Endpoint($0, port: port) }).usable
    }

    func withoutLoops(_ endpoints: [Endpoint]) -> (usable: [Endpoint], loops: [Endpoint]) {
        ResolverList.withoutLoops(endpoints, listening: listening, own: own)
    }
}
