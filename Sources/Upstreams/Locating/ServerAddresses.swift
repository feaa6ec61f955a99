import Base
import DNSWire
import Forwarding

/// The addresses of servers whose host is a name: decides when a name is looked up, and which addresses are dialled;
/// without sockets and clock. The forwarder decides which group is asked, for how long, and how often.
///
/// A name is looked up when a connection needs it and no address is known, the TTL of the known addresses has passed,
/// or none of them could be connected to or answers. Known addresses are used meanwhile. A name that no connection needs
/// costs nothing.
///
/// A forged answer can only prevent a server from being reached: the server's certificate proves its identity. So the
/// addresses that worked come before the addresses of any answer, and no answer removes them.
struct ServerAddresses: ~Copyable {
    /// An order to the owner, to be carried out in sequence.
    enum Action: Equatable {
        /// Ask for the addresses of both families: two answers follow, see ``answered(_:_:_:_:at:)``.
        case ask(Name)
        /// Give the callers that wait for the name the result of ``endpoints(of:port:)``.
        case tell(Name)
        /// ``remembered`` has changed.
        case remember
        case report(Event)
    }

    /// A change of state that is worth a line in the log.
    enum Event: Equatable {
        /// No address is known, with the reason.
        case lost(Name, String)
        case found(Name)
        /// An answer has an address of this daemon.
        case leadsBack(Name, Endpoint)
    }

    /// The most names; a configuration may not have more.
    static let maximumNames = 64
    /// The most addresses of one name that are retained because they worked, and of each family of the last answer: 8
    /// together.
    static let maximumWorked = 2
    static let maximumOfAFamily = 3
    /// Milliseconds for which the second family is awaited after the first (RFC 8305 §3: resolution delay).
    static let resolutionDelay = 50
    /// The seconds for which an answer is used, whatever its TTL.
    static let lifetimes: ClosedRange<UInt32> = 60...86_400
    /// Seconds until the next lookup after a lookup that failed while the known addresses work.
    static let pauseAfterFailure = 60
    /// Seconds until the next lookup after a lookup that failed for a shortage of this machine, which is no fault of
    /// the name.
    static let pauseAfterShortage = 1

    var actions: [Action] = []
    private var entries: [Name: Entry] = [:]
    /// By name, when callers get the addresses of one family.
    private var reportAt: [Name: Tick] = [:]
    private let listening: [Endpoint]
    var own: [Endpoint] = []

    /// The state of one name.
    private struct Entry {
        /// The ports of the servers with this name.
        var ports: Set<UInt16> = []
        /// Addresses that have answered, the latest first.
        var worked: [IPAddress] = []
        /// The addresses of the last answer.
        var found: [IPAddress] = []
        /// A lookup begins at the first need after this moment.
        var nextLookup = Tick(nanoseconds: 0)
        /// When the last lookup ended.
        var lastLookup: Tick?
        /// Failed or fruitless lookups since an address last worked; routine refreshes do not count.
        var fruitless = 0
        /// Whether no known address could be connected to or answers, until an address works or an answer comes.
        var noneReachable = false
        /// The reason of the last failed lookup, and whether this machine was short of a resource.
        var failure = ""
        var isShort = false
        var isReportedLost = false
        var leadsBack = false
        var lookup: Lookup?

        var addresses: [IPAddress] { worked + found.filter { !worked.contains($0) } }

        /// Seconds between lookups while no address works: none, 1, 2, 4 … 60.
        var pause: Int { fruitless == 0 ? 0 : min(60, 1 << (min(fruitless, 7) - 1)) }
    }

    /// The answers to one lookup.
    private struct Lookup {
        /// The families without an answer yet.
        var awaited: Set<RecordType> = [.a, .aaaa]
        /// The shortest TTL in seconds; nil if no address was found.
        var ttl: UInt32?
        /// The reasons without an address, and whether this machine was short of a resource.
        var reasons: [String] = []
        var isShort = false
        /// Whether a family has no proper answer.
        var isPartial = false
        var leadsBack = false
        /// Whether callers wait for the lookup.
        var isAwaited = false
    }

    /// - Parameter listening: The endpoints of the daemon itself.
    init(listening: [Endpoint] = [], remembered: [(name: Name, addresses: [IPAddress])] = []) {
        self.listening = listening
        for (name, addresses) in remembered.prefix(Self.maximumNames) {
            entries[name] = Entry(worked: Array(addresses.prefix(Self.maximumWorked)))
        }
    }

    // MARK: For connections

    /// - Returns: The endpoints; nil if the result follows as ``Action/tell(_:)``.
    mutating func want(_ name: Name, port: UInt16, at now: Tick) -> ServerEndpoints? {
        guard entries[name] != nil || entries.count < Self.maximumNames else {
            return unknown(name, "more than \(Self.maximumNames) names of servers are not looked up")
        }
        let isOtherPort = entries[name, default: Entry()].ports.insert(port).inserted
        // An address that was left out may be another server's at this port.
        if isOtherPort, entries[name]?.leadsBack ?? false { entries[name]?.nextLookup = now }
        lookUpIfDue(name, at: now)
        let endpoints = endpoints(of: name, port: port)
        guard let entry = entries[name], entry.lookup != nil else { return endpoints }
        if case .known = endpoints, !entry.noneReachable { return endpoints }
        entries[name]?.lookup?.isAwaited = true
        return nil
    }

    /// The endpoints known now.
    func endpoints(of name: Name, port: UInt16) -> ServerEndpoints {
        guard let entry = entries[name] else { return unknown(name, "it is no longer configured") }
        let endpoints = endpoints(entry, port)
        if !endpoints.isEmpty { return .known(endpoints) }
        if entry.lookup != nil { return unknown(name, "no answer yet") }
        return unknown(name, entry.failure.isEmpty ? Self.isOwn : entry.failure, entry.isShort ? .here : .unreachable)
    }

    /// Whether an address of a name is known, or a lookup has failed.
    func hasLookedUp(_ name: Name) -> Bool {
        guard let entry = entries[name] else { return false }
        return entry.lastLookup != nil || !entry.addresses.isEmpty
    }

    private func unknown(_ name: Name, _ reason: String, _ kind: Failure.Kind = .unreachable) -> ServerEndpoints {
        .unknown(Failure(kind, "no address of \(name): \(reason)"))
    }

    /// Records that an answer has come from this address, where the server's certificate was accepted.
    mutating func worked(_ name: Name, _ address: IPAddress) {
        guard var entry = entries[name] else { return }
        (entry.fruitless, entry.noneReachable) = (0, false)
        if entry.worked.first != address {
            let before = Set(entry.worked)
            entry.worked = Array(([address] + entry.worked.filter { $0 != address }).prefix(Self.maximumWorked))
            if Set(entry.worked) != before { actions.append(.remember) }
        }
        entries[name] = entry
    }

    /// Records that none of the given addresses could be connected to, or answers.
    mutating func allFailed(_ name: Name, at now: Tick) {
        guard var entry = entries[name] else { return }
        entry.noneReachable = true
        if entry.lookup == nil {
            let allowed = entry.lastLookup?.advanced(milliseconds: entry.pause * 1000) ?? now
            entry.nextLookup = min(entry.nextLookup, allowed)
        }
        entries[name] = entry
        lookUpIfDue(name, at: now)
    }

    // MARK: Lookups

    private mutating func lookUpIfDue(_ name: Name, at now: Tick) {
        guard var entry = entries[name], entry.lookup == nil, entry.nextLookup <= now else { return }
        if entry.noneReachable || !isUsable(entry) { entry.fruitless += 1 }
        entry.lookup = Lookup()
        entries[name] = entry
        actions.append(.ask(name))
    }

    /// Takes one family's answer to a lookup.
    /// - Parameters:
    ///   - reason: Why the answer has no address, if it has none.
    ///   - isShort: Whether the reason is a shortage of this machine.
    mutating func answered(
        _ name: Name, _ type: RecordType, _ answer: Answer, _ reason: String, isShort: Bool = false, at now: Tick
    ) {
        guard var entry = entries[name], var lookup = entry.lookup, lookup.awaited.remove(type) != nil else { return }
        let (addresses, own) = usable(answer.addresses, entry)
        if addresses.isEmpty {
            let reason = own == nil ? reason : Self.isOwn
            if !lookup.reasons.contains(reason) { lookup.reasons.append(reason) }
            lookup.isPartial = lookup.isPartial || answer.head.responseCode == .servFail
            lookup.isShort = lookup.isShort || isShort
        } else {
            // IPv6 comes first (RFC 6724 §2.1).
            let others = lookup.ttl == nil ? [] : entry.found
            entry.found = (others + addresses).sorted { !$0.isIPv4 && $1.isIPv4 }
            lookup.ttl = min(lookup.ttl ?? .max, answer.keep)
            if !lookup.awaited.isEmpty { reportAt[name] = now.advanced(milliseconds: Self.resolutionDelay) }
        }
        if let own {
            lookup.leadsBack = true
            if !entry.leadsBack { actions.append(.report(.leadsBack(name, own))) }
            entry.leadsBack = true
        }
        entry.lookup = lookup
        entries[name] = entry
        if lookup.awaited.isEmpty { conclude(name, entry, lookup, at: now) }
    }

    private mutating func conclude(_ name: Name, _ before: Entry, _ lookup: Lookup, at now: Tick) {
        var entry = before
        (entry.lookup, entry.lastLookup, reportAt[name]) = (nil, now, nil)
        if !lookup.leadsBack { entry.leadsBack = false }
        var seconds = entry.fruitless > 0 ? entry.pause : Self.pauseAfterFailure
        if let found = lookup.ttl {
            // The TTL of one family does not apply to the family that is missing.
            let ttl = lookup.isPartial ? 0 : found
            seconds = Int(min(max(ttl, Self.lifetimes.lowerBound), Self.lifetimes.upperBound))
            (entry.failure, entry.noneReachable) = ("", false)
        } else {
            entry.failure = lookup.reasons.joined(separator: "; ")
        }
        entry.isShort = lookup.ttl == nil && lookup.isShort
        if entry.isShort { (entry.fruitless, seconds) = (max(0, entry.fruitless - 1), Self.pauseAfterShortage) }
        entry.nextLookup = now.advanced(milliseconds: seconds * 1000)
        let isLost = !isUsable(entry)
        if isLost != entry.isReportedLost, !isLost || !entry.isShort {
            entry.isReportedLost = isLost
            actions.append(.report(isLost ? .lost(name, entry.failure) : .found(name)))
        }
        entries[name] = entry
        if lookup.isAwaited { actions.append(.tell(name)) }
    }

    /// When callers get an answer although one family is late.
    var nextDeadline: Tick? { reportAt.values.min() }

    mutating func expire(at now: Tick) {
        for (name, moment) in reportAt where moment <= now {
            reportAt[name] = nil
            if entries[name]?.lookup?.isAwaited ?? false { actions.append(.tell(name)) }
            entries[name]?.lookup?.isAwaited = false
        }
    }

    // MARK: Changes

    /// The addresses that worked, by name.
    var remembered: [(name: Name, addresses: [IPAddress])] {
        entries.filter { !$0.value.worked.isEmpty }.map { ($0.key, $0.value.worked) }
            .sorted { $0.name.description < $1.name.description }
    }

    /// Forgets failures, and begins lookups under way again, whose former answers must not be given any more: this
    /// machine's addresses or routes have changed, or the groups that are asked for names.
    mutating func forgetFailures(at now: Tick) {
        for name in entries.keys {
            entries[name]?.fruitless = 0
            entries[name]?.noneReachable = false
            entries[name]?.nextLookup = now
            guard let former = entries[name]?.lookup else { continue }
            if former.ttl != nil { entries[name]?.found = [] }
            entries[name]?.lookup = nil
            reportAt[name] = nil
            lookUpIfDue(name, at: now)
            entries[name]?.lookup?.isAwaited = former.isAwaited
        }
    }

    /// Sets the names of the servers, with their ports; other names are forgotten.
    mutating func keep(_ servers: [Name: Set<UInt16>]) {
        for (name, entry) in entries {
            if let ports = servers[name] {
                entries[name]?.ports = ports
                continue
            }
            (entries[name], reportAt[name]) = (nil, nil)
            actions.append(.tell(name))
            if !entry.worked.isEmpty { actions.append(.remember) }
        }
    }

    // MARK: Usable addresses

    private static let isOwn = "its address is this daemon's own"

    private func isUsable(_ entry: Entry) -> Bool { entry.ports.contains { !endpoints(entry, $0).isEmpty } }

    private func endpoints(_ entry: Entry, _ port: UInt16) -> [Endpoint] {
        withoutLoops(entry.addresses.map { Endpoint($0, port: port) }).usable
    }

    /// The usable addresses of an answer: limited in number, and without addresses that lead back to this daemon at each
    /// of the ports.
    private func usable(_ addresses: [IPAddress], _ entry: Entry) -> (addresses: [IPAddress], own: Endpoint?) {
        var usable: [IPAddress] = []
        var own: Endpoint?
        for address in addresses where !usable.contains(address) && usable.count < Self.maximumOfAFamily {
            let (others, loops) = withoutLoops(entry.ports.map { Endpoint(address, port: $0) })
            own = own ?? loops.first
            if !others.isEmpty, address.isOfOneMachine, !address.isIPv6LinkLocal { usable.append(address) }
        }
        return (usable, own)
    }

    private func withoutLoops(_ endpoints: [Endpoint]) -> (usable: [Endpoint], loops: [Endpoint]) {
        ResolverList.withoutLoops(endpoints, listening: listening, own: own)
    }
}
