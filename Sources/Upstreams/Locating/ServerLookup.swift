package import Base
package import DNSWire
package import Forwarding
package import Log
package import Transport

/// Finds servers whose host is a name, by questions to the forwarder. Confined to the forwarder's loop, whose deadline
/// it shares.
package final class ServerLookup: @unchecked Sendable {
    // Unchecked: closures that read elsewhere return it to the loop, and only the loop uses it.
    /// Puts a question to the forwarder under a negative number, under which the answer comes back to
    /// ``answered(_:_:by:)``.
    package var ask: (Name, RecordType, ClientNumber) -> Void = { _, _, _ in }
    private var addresses: ServerAddresses
    private let file: ServerAddressFile?
    private let report: Report?
    /// The callers that wait for a name.
    private var waiting: [Name: [(port: UInt16, then: (ServerEndpoints) -> Void)]] = [:]
    private var questions: [ClientNumber: (name: Name, type: RecordType)] = [:]
    private var lastNumber = 0
    /// The question for the network's NAT64 prefix, and the receiver of the answer.
    private var prefixQuestion: (number: ClientNumber, then: (Answer) -> Void)?
    private let loop: EventLoop
    /// Increases when the machine's own addresses must be read: an earlier list is ignored.
    private var networkChanges = 0

    /// The most callers that wait for one name.
    private static let maximumWaiting = 256

    /// - Parameters:
    ///   - listening: The endpoints of the daemon itself.
    ///   - file: Stores the addresses that worked over a restart; nil if they are not stored.
    ///   - report: Where errors are reported; nil if the caller reports them.
    package init(loop: EventLoop, listening: [Endpoint] = [], file: ServerAddressFile? = nil, report: Report? = nil) {
        (self.loop, self.file, self.report) = (loop, file, report)
        addresses = ServerAddresses(listening: listening, remembered: file?.read() ?? [])
        addresses.own = Self.ownAddresses
    }

    // MARK: For connections

    /// The functions of this object for connections.
    package var finder: ServerFinder {
        ServerFinder(
            find: { [unowned self] in endpoints(of: $0, at: $1, then: $2) },
            worked: { [unowned self] in worked($0, at: $1) },
            allFailed: { [unowned self] in allFailed($0, at: $1) })
    }

    /// A finder without effects: it returns the known addresses, and looks no name up.
    package var onlooker: ServerFinder {
        ServerFinder(
            find: { [unowned self] server, _, then in
                then(server.name.map { addresses.endpoints(of: $0, port: server.port) } ?? .known(server.endpoints))
            }, worked: { _, _ in }, allFailed: { _, _ in })
    }

    /// Whether an address of a server is known, or a lookup of its name has failed.
    package func hasLookedUp(_ server: Server) -> Bool { server.name.map { addresses.hasLookedUp($0) } ?? true }

    /// Finds a server's endpoints: at once, or within 4 s if they must be looked up.
    package func endpoints(of server: Server, at now: Tick, then: @escaping (ServerEndpoints) -> Void) {
        guard let name = server.name else { return then(.known(server.endpoints)) }
        if waiting[name]?.count ?? 0 >= Self.maximumWaiting {
            return then(.unknown(Failure(.unreachable, "too many wait for the address of \(name)")))
        }
        let endpoints = addresses.want(name, port: server.port, at: now)
        if endpoints == nil { waiting[name, default: []].append((server.port, then)) }
        perform()
        if let endpoints { then(endpoints) }
    }

    /// Records that an answer has come from this endpoint, whose certificate was accepted: it is dialled first from now
    /// on.
    package func worked(_ server: Server, at endpoint: Endpoint) {
        guard let name = server.name else { return }
        addresses.worked(name, endpoint.address)
        perform()
    }

    /// Records that none of the endpoints given for this server could be reached, or answers: its name is looked up
    /// again as soon as that is allowed.
    package func allFailed(_ server: Server, at now: Tick) {
        guard let name = server.name else { return }
        addresses.allFailed(name, at: now)
        perform()
    }

    /// Asks the resolvers of `resolvConf` for the addresses that show the network's NAT64 prefix (RFC 7050).
    /// - Parameter then: Called with the answer, unless this function is called again before the answer comes.
    package func askForPrefix(_ then: @escaping (Answer) -> Void) {
        lastNumber -= 1
        prefixQuestion = (lastNumber, then)
        ask(.ipv4Only, .aaaa, lastNumber)
    }

    // MARK: Answers

    /// Takes the forwarder's answer to a question.
    /// - Parameters:
    ///   - who: The source of the answer, in words.
    ///   - isShort: Whether this machine was short of a resource, so that there is no answer.
    package func answered(_ number: ClientNumber, _ answer: Answer, by who: String, isShort: Bool = false) {
        if let asked = prefixQuestion, asked.number == number {
            prefixQuestion = nil
            return asked.then(answer)
        }
        guard let (name, type) = questions.removeValue(forKey: number) else { return }
        let why = answer.extendedErrorText
        addresses.answered(name, type, answer, why.isEmpty ? "\(who): no record" : why, isShort: isShort, at: now)
        perform()
    }

    package var nextDeadline: Tick? { addresses.nextDeadline }

    package func expire(at now: Tick) {
        addresses.expire(at: now)
        perform()
    }

    // MARK: Changes

    /// Sets the present servers; the addresses of other servers are forgotten, which their waiting callers learn later.
    package func keep(_ servers: [Server]) {
        var ports: [Name: Set<UInt16>] = [:]
        for server in servers { if let name = server.name { ports[name, default: []].insert(server.port) } }
        addresses.keep(ports)
        performLater()
    }

    /// The group that is asked for names has changed, or its servers have.
    package func forgetFailures(at now: Tick) {
        addresses.forgetFailures(at: now)
        questions = [:]
        performLater()
    }

    /// This machine's addresses or routes have changed.
    package func networkChanged(at now: Tick) {
        forgetFailures(at: now)
        networkChanges += 1
        let change = networkChanges
        loop.elsewhere {
            Self.ownAddresses
        } then: { [weak self] own in
            if let self, change == networkChanges { addresses.own = own }
        }
    }

    /// Drops the waiting callers.
    package func close() {
        waiting = [:]
        networkChanges += 1
    }

    private var now: Tick { Tick(nanoseconds: Clock.now()) }

    private static var ownAddresses: [Endpoint] { (try? Interfaces.addresses()) ?? [] }

    /// Carries out the orders in another turn: the forwarder may not know of the change yet.
    private func performLater() {
        if !addresses.actions.isEmpty { loop.submit { [weak self] in self?.perform() } }
    }

    /// Carries out the orders. The callback of a caller may add orders, and carry them out by a nested call.
    private func perform() {
        while !addresses.actions.isEmpty {
            switch addresses.actions.removeFirst() {
            case .ask(let name):
                for type in [RecordType.aaaa, .a] {
                    lastNumber -= 1
                    questions[lastNumber] = (name, type)
                    ask(name, type, lastNumber)
                }
            case .tell(let name):
                for waiting in waiting.removeValue(forKey: name) ?? [] {
                    waiting.then(addresses.endpoints(of: name, port: waiting.port))
                }
            case .remember: file?.save(addresses.remembered)
            case .report(let event): report?.event(event)
            }
        }
    }
}

extension Server {
    /// The name to look up; nil if the server's addresses are given.
    package var name: Name? {
        guard endpoints.isEmpty, case .name(let text) = host else { return nil }
        return Name(text)
    }
}

extension Report {
    func event(_ event: ServerAddresses.Event) {
        switch event {
        case .lost(let name, let reason):
            say(
                .warning, .serverNameFails, about: "name \(name)",
                "no address of \(name) is found, and its servers are not asked: \(reason)",
                ["server": "\(name)", "reason": reason])
        case .found(let name):
            say(
                .notice, .serverNameFound, about: "name \(name)", "addresses of \(name) are found again",
                ["server": "\(name)"])
        case .leadsBack(let name, let endpoint):
            say(
                .warning, .serverNameFails, about: "name \(name)",
                "\(name) leads to \(endpoint), which is this daemon itself: left out, since it would ask itself without end",
                ["server": "\(name)", "reason": "\(endpoint)"])
        }
    }
}
