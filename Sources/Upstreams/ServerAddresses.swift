import Base
import DNSWire
import Forwarding

/// The addresses of servers whose host is a name: whom to ask for them and when, and which to dial; without sockets and
/// clock.
///
/// A name is looked up when somebody wants it: nothing is known of it, the TTL of what is known is over, or none of the
/// known addresses could be connected to. What is known is used meanwhile. A name that nobody wants costs nothing.
///
/// A forged answer can keep a server from being reached, and no more: the server's certificate says who it is. So the
/// addresses that worked stand before those of any answer, and stay whatever an answer says.
struct ServerAddresses {
    /// What is to be done, in order; the owner takes it out.
    enum Action: Equatable {
        /// A server of the account (``GroupID/httpdns``) or a resolver (``GroupID/fallback``).
        case ask(QueryID, Server, Ask)
        case askAgain(QueryID)
        case cancel(QueryID)
        /// Whoever waits for the name is told what ``endpoints(of:port:)`` says.
        case tell(Name)
        /// ``remembered`` is another.
        case remember
        case report(Event)
    }

    /// A change of state worth one line in the log.
    enum Event: Equatable {
        /// No address is known, for this reason.
        case lost(Name, String)
        case found(Name)
        /// An answer holds an address of this daemon's own.
        case leadsBack(Name, Endpoint)
    }

    /// Who may be asked for an address.
    enum Source: Hashable {
        case account(Server)
        case resolver(Server)
    }

    /// Names that are kept; a configuration that has more of them is refused the rest.
    static let maximumNames = 64
    /// Addresses of one name that are kept because they worked, and of each family in the last answer: 8 together.
    static let maximumWorked = 2
    static let maximumOfAFamily = 3
    /// Servers that are asked for one name; the HTTPDNS servers stand before the resolvers.
    static let maximumSources = 16
    /// Milliseconds for one attempt at a source, and after which a silent one is no longer waited for alone: the next
    /// one is asked as well, and the last one once more.
    static let attemptTime = 2000
    static let silence = 1000
    /// Milliseconds that anybody waits at most. The lookup goes on, and serves the next who wants the name.
    static let longestWait = 4000
    /// Milliseconds that are waited for the second family behind the first (RFC 8305 §3: resolution delay).
    static let resolutionDelay = 50
    /// Seconds that an answer is used for, whatever its TTL says.
    static let lifetimes: ClosedRange<UInt32> = 60...86_400
    /// Seconds after a lookup that failed while what is known works.
    static let pauseAfterFailure = 60

    static let isOwn = "its address is this daemon's own"

    var actions: [Action] = []
    var entries: [Name: Entry] = [:]
    var sources: [Source] = []
    var asked: [QueryID: Name] = [:]
    var lastNumber: UInt32 = 0
    private let listening: [Endpoint]
    private var own: [Endpoint] = []

    /// What is known of one name.
    struct Entry {
        /// Of the servers that have the name.
        var ports: Set<UInt16> = []
        /// Could be connected to; the last first.
        var worked: [IPAddress] = []
        /// As the last answer had them.
        var found: [IPAddress] = []
        /// A lookup begins when the name is wanted from then on.
        var lookAt = Tick(nanoseconds: 0)
        /// When the last lookup ended.
        var looked: Tick?
        /// Lookups since an address has worked that were more than refreshes.
        var inVain = 0
        /// The owner could connect to no known address; until one works, or an answer comes.
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

    /// - Parameter listening: What the daemon itself answers on.
    init(listening: [Endpoint] = [], remembered: [(name: Name, addresses: [IPAddress])] = []) {
        self.listening = listening
        for (name, addresses) in remembered.prefix(Self.maximumNames) {
            entries[name] = Entry(worked: Array(addresses.prefix(Self.maximumWorked)))
        }
    }

    // MARK: Those who dial

    /// - Returns: nil: it is told by ``Action/tell(_:)``, within ``longestWait``.
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

    /// As things stand.
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

    /// A connection to this address was made, and the server has proven who it is.
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

    /// Every address that was handed out could not be connected to.
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

    /// What has worked, by name.
    var remembered: [(name: Name, addresses: [IPAddress])] {
        entries.filter { !$0.value.worked.isEmpty }.map { ($0.key, $0.value.worked) }
            .sorted { $0.name.description < $1.name.description }
    }

    /// These are asked from the next lookup on, in this order.
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

    /// Elsewhere, or of others, everything may be different.
    private mutating func forgetFailures(at now: Tick) {
        for name in entries.keys {
            entries[name]?.inVain = 0
            entries[name]?.allFailed = false
            entries[name]?.lookAt = now
        }
    }

    /// The servers have these names now: what is known of others is forgotten.
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
