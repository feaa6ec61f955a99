package import Base
package import Counters
import DNSWire
import Forwarding
package import Log
import Logging
package import Transport

/// Looks up the addresses of servers whose host is a name. Confined to the forwarder's loop, whose deadline it shares.
///
/// It asks the resolvers directly, and the account through an upstream of its own, since an upstream reports its
/// outcomes to one owner; a name costs the account the same either way.
package final class ServerLookup: @unchecked Sendable {
    // Unchecked: handed back to the loop by what reads elsewhere, and used there alone.
    private var addresses: ServerAddresses
    private var account: (any Upstream)?
    private let resolvers: LocalUpstream
    private let file: ServerAddressFile?
    private let report: Report?
    private var waiting: [Name: [Waiting]] = [:]
    private var isPerforming = false
    private let loop: EventLoop
    /// Increases when the machine's own addresses are to be read: an earlier list is ignored.
    private var networkChanges = 0

    private struct Waiting {
        let port: UInt16
        let then: (ServerEndpoints) -> Void
    }

    /// The most callers that wait for one name.
    private static let maximumWaiting = 256
    /// The most servers of the account asked for one name: if they are silent, there must be time for a resolver.
    private static let maximumAccountServers = 2

    /// - Parameters:
    ///   - listening: The endpoints of the daemon itself.
    ///   - file: Keeps the addresses that worked over a restart; nil: they are not kept.
    ///   - report: Nil: the caller reports what went wrong.
    package init(
        loop: EventLoop, listening: [Endpoint] = [], file: ServerAddressFile? = nil, report: Report? = nil,
        tallies: UpstreamTallies = UpstreamTallies()
    ) {
        self.loop = loop
        addresses = ServerAddresses(listening: listening, remembered: file?.read() ?? [])
        resolvers = LocalUpstream(loop: loop, negativeTTL: 0, tallies: tallies)
        (self.file, self.report) = (file, report)
        resolvers.settle = { [unowned self] id, outcome, _ in settle(id, outcome) }
        addresses.networkChanged(own: Self.ownAddresses, at: now)
    }

    // MARK: For connections

    /// The functions of this object that connections use.
    package var finder: ServerFinder {
        ServerFinder(
            find: { [unowned self] in endpoints(of: $0, at: $1, then: $2) },
            worked: { [unowned self] in worked($0, at: $1) },
            allFailed: { [unowned self] in allFailed($0, at: $1) })
    }

    /// A finder that changes nothing: it gives the addresses that are known, and looks no name up.
    package var onlooker: ServerFinder {
        ServerFinder(
            find: { [unowned self] server, _, then in
                guard server.endpoints.isEmpty, let name = server.name else { return then(.known(server.endpoints)) }
                then(addresses.endpoints(of: name, port: server.port))
            }, worked: { _, _ in }, allFailed: { _, _ in })
    }

    /// Gives a server's endpoints: at once, or within 4 s when they have to be looked up.
    package func endpoints(of server: Server, at now: Tick, then: @escaping (ServerEndpoints) -> Void) {
        guard server.endpoints.isEmpty, let name = server.name else { return then(.known(server.endpoints)) }
        if waiting[name]?.count ?? 0 >= Self.maximumWaiting {
            return then(.unknown(Failure(.unreachable, "too many wait for the address of \(name)")))
        }
        let endpoints = addresses.want(name, port: server.port, at: now)
        if endpoints == nil { waiting[name, default: []].append(Waiting(port: server.port, then: then)) }
        perform(at: now)
        if let endpoints { then(endpoints) }
    }

    /// A connection was established and its certificate accepted: this endpoint is dialled first from now on.
    package func worked(_ server: Server, at endpoint: Endpoint) {
        guard let name = server.name else { return }
        addresses.worked(name, endpoint.address)
        perform(at: now)
    }

    /// None of the endpoints given for this server could be reached: its name is looked up again as soon as that is
    /// allowed.
    package func allFailed(_ server: Server, at now: Tick) {
        guard let name = server.name else { return }
        addresses.allFailed(name, at: now)
        perform(at: now)
    }

    // MARK: Changes

    /// Sets the sources: the first of the account's servers, then the resolvers, in order; none of them may lead back
    /// to this daemon.
    /// - Parameter account: The upstream is used by this object alone, and closed with it.
    package func ask(account: (upstream: any Upstream, servers: [Server])?, resolvers: [Server], at now: Tick) {
        if self.account !== account?.upstream {
            self.account?.close()
            self.account = account?.upstream
            self.account?.settle = { [unowned self] id, outcome, _ in settle(id, outcome) }
        }
        let servers = account?.servers ?? []
        self.account?.keep(servers)
        self.resolvers.keep(resolvers)
        let sources = servers.prefix(Self.maximumAccountServers).map { ServerAddresses.Source.account($0) }
        addresses.use(sources + resolvers.map { .resolver($0) }, at: now)
        perform(at: now)
    }

    /// Sets the servers there are; what is known of others is forgotten.
    package func keep(_ servers: [Server]) {
        addresses.keep(Set(servers.filter(\.endpoints.isEmpty).compactMap(\.name)))
        perform(at: now)
    }

    /// This machine's addresses or routes have changed.
    package func networkChanged(at now: Tick) {
        account?.networkChanged()
        resolvers.networkChanged()
        addresses.networkChanged(own: addresses.own, at: now)
        perform(at: now)
        networkChanges += 1
        let change = networkChanges
        loop.elsewhere {
            Self.ownAddresses
        } then: { [weak self] own in
            if let self, change == networkChanges { addresses.own = own }
        }
    }

    /// Closes everything; waiting callers get no answer.
    package func close() {
        waiting = [:]
        networkChanges += 1
        account?.close()
        resolvers.close()
    }

    // MARK: Time

    package var nextDeadline: Tick? {
        // Asked for in each turn of the loop, and lookups are rare: the whole value would be copied, for 300 instructions.
        let own = addresses.asked.isEmpty ? nil : addresses.nextDeadline
        return own.orEarlier(account?.nextDeadline).orEarlier(resolvers.nextDeadline)
    }

    package func expire(at now: Tick) {
        account?.expire(at: now)
        resolvers.expire(at: now)
        addresses.expire(at: now)
        perform(at: now)
    }

    private var now: Tick { Tick(nanoseconds: Clock.now()) }

    private static var ownAddresses: [Endpoint] { (try? Interfaces.addresses()) ?? [] }

    // MARK: What the decisions lead to

    private func settle(_ id: QueryID, _ outcome: Outcome) {
        addresses.settle(id, outcome, at: now)
        perform(at: now)
    }

    private func perform(at now: Tick) {
        // An action that ends at once adds further actions, which the loop below carries out.
        guard !isPerforming else { return }
        isPerforming = true
        defer { isPerforming = false }
        while !addresses.actions.isEmpty {
            switch addresses.actions.removeFirst() {
            case .ask(let id, let server, let ask): upstream(of: id)?.ask(id, server, ask, at: now)
            case .askAgain(let id): upstream(of: id)?.askAgain(id)
            case .cancel(let id): upstream(of: id)?.cancel(id)
            case .tell(let name):
                for waiting in waiting.removeValue(forKey: name) ?? [] {
                    waiting.then(addresses.endpoints(of: name, port: waiting.port))
                }
            case .remember: file?.save(addresses.remembered)
            case .report(let event): report?.event(event)
            }
        }
    }

    private func upstream(of id: QueryID) -> (any Upstream)? { id.group == .httpdns ? account : resolvers }
}

extension Server {
    fileprivate var name: Name? {
        if case .name(let text) = host { Name(text) } else { nil }
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
                "\(name) leads to \(endpoint), which is this daemon itself: left out, it would ask itself for ever",
                ["server": "\(name)", "reason": "\(endpoint)"])
        }
    }
}
