package import Base
package import Counters
package import Cryptography
import DNSWire
package import Forwarding
import HTTP
package import HTTPDNS
import Streams
package import Transport

/// The HTTPDNS servers as the forwarder sees them: a request goes out on a kept-alive connection, an outcome comes back.
///
/// Which server is asked, and what a failure leads to, is the forwarder's decision. This is about connections: one
/// carries one request at a time, the newest idle one is taken first, one that says anything but the answers it was asked
/// for is closed, and what the server closed unanswered goes out once more at once.
package final class ServiceUpstream: Upstream {
    let loop: EventLoop
    package private(set) var access: Access
    package var settle: Settle = { _, _, _ in }
    /// How far a fresh connection has come; for whoever goes through it step by step.
    package var progressed: (ServiceConnection.Progress) -> Void = { _ in }
    /// What any connection's bytes are read into before they are its own.
    let scratch = Scratch(16_384)
    package let tallies: UpstreamTallies

    private var exchanges: [QueryID: Exchange] = [:]
    private var pools: [Server: Pool] = [:]

    /// Connections that one request may be under way on: a network that comes and goes must not multiply them.
    private static let maximumConnections = 3
    /// How long an idle connection is kept, in nanoseconds: under the minute after which servers and address
    /// translators begin to forget them.
    private static let idleTime: UInt64 = 50_000_000_000
    /// So many are kept so long. More are kept as well while they are of use: with each request on a connection of its
    /// own, a busy second uses all of them again and again, and opening one costs more than many requests. What the
    /// busiest moment leaves behind is closed soon, after `surplusTime`.
    private static let usualIdle = 16
    private static let surplusTime: UInt64 = 2_000_000_000

    /// How the servers are asked: by which account, and how they are verified.
    package struct Access {
        package let account: ServiceAccount
        package let tls: TLSClientContext?
        /// The certificate's name and the Host to send; nil = the address dialled.
        let serverName: String?

        package init(account: ServiceAccount, tls: TLSClientContext?, serverName: String?) {
            (self.account, self.tls, self.serverName) = (account, tls, serverName)
        }
    }

    /// A request under way, with what is needed to send it again.
    private struct Exchange {
        let pool: Pool
        let names: [Name]
        let family: ServiceFamily
        let bytes: [UInt8]
        var sent: Tick
        var connections: Few<ServiceConnection>
        /// The first that it was put on when it was asked again.
        var repeated: ServiceConnection?
    }

    /// One server and the open connections to it that carry nothing.
    final class Pool {
        let server: Server
        let endpoint: Endpoint
        let access: Access
        let host: String
        let tally: UpstreamTallies.ServerTally
        var idle: [ServiceConnection] = []

        init(_ server: Server, _ access: Access, _ tallies: UpstreamTallies) {
            self.server = server
            endpoint = server.endpoints[0]
            self.access = access
            tally = tallies.server(server)
            host = endpoint.hostField(serverName: access.serverName, isSecure: access.tls != nil)
        }

        /// When the oldest idle connection is closed, on the clock's scale in nanoseconds; nil without one.
        var closeAt: UInt64? {
            let kept = idle.count > ServiceUpstream.usualIdle ? surplusTime : idleTime
            return idle.first.map { $0.idleSince + kept }
        }

        func closeIdle() {
            for connection in idle { connection.close() }
            idle = []
        }
    }

    package init(loop: EventLoop, access: Access, tallies: UpstreamTallies = UpstreamTallies()) {
        self.loop = loop
        self.access = access
        self.tallies = tallies
    }

    /// The servers are asked in another way from now on; requests under way end as they may.
    package func renew(_ access: Access) {
        self.access = access
        keep([])
    }

    package func keep(_ servers: [Server]) {
        for (server, pool) in pools where !servers.contains(server) {
            pool.closeIdle()
            pools[server] = nil
        }
    }

    /// Made when a server is first asked: of those that are only listed nothing is counted.
    private func pool(_ server: Server) -> Pool {
        if let pool = pools[server] { return pool }
        let pool = Pool(server, access, tallies)
        pools[server] = pool
        return pool
    }

    package func ask(_ id: QueryID, _ server: Server, _ ask: Ask, at now: Tick) {
        guard case .addresses(let names, let families) = ask else {
            return settle(id, .failed(Failure(.badAnswer, "HTTPDNS knows addresses alone")), false)
        }
        let pool = pool(server)
        let family = ServiceFamily(families)
        let unixSeconds = WallClock.unixSeconds()
        let bytes: [UInt8]
        do throws(RequestError) {
            bytes = try pool.access.account.request(
                names, family: family, host: pool.host, at: unixSeconds)
        } catch {
            return settle(id, .failed(Failure(.badAnswer, error.description)), false)
        }
        let connection = pool.takeIdle(at: unixSeconds)
        pool.tally.connected(isSecure: pool.access.tls != nil, isReused: connection != nil)
        exchanges[id] = Exchange(
            pool: pool, names: names, family: family, bytes: bytes, sent: now, connections: Few(connection))
        if let connection {
            connection.send(bytes, for: id)
        } else {
            putOnFreshConnection(id)
        }
    }

    /// Its connection may be dead: sent again on a fresh one, and the first answer wins.
    package func askAgain(_ id: QueryID) {
        guard let exchange = exchanges[id], exchange.connections.count < Self.maximumConnections else { return }
        putOnFreshConnection(id, isRepeat: true)
    }

    package func cancel(_ id: QueryID) {
        guard let exchange = exchanges.removeValue(forKey: id) else { return }
        for connection in exchange.connections { connection.close() }
    }

    private func putOnFreshConnection(_ id: QueryID, isRepeat: Bool = false) {
        guard let exchange = exchanges[id] else { return }
        do throws(ServiceConnection.Failed) {
            let connection = try ServiceConnection(to: exchange.pool.endpoint, pool: exchange.pool, upstream: self)
            exchanges[id]?.connections.append(connection)
            if isRepeat, exchange.repeated == nil { exchanges[id]?.repeated = connection }
            connection.send(exchange.bytes, for: id)
        } catch {
            lose(id, nil, error.failure)
        }
    }

    // MARK: What connections tell

    func connection(_ connection: ServiceConnection, received response: HTTPResponse, for id: QueryID) {
        let pool = connection.pool
        let now = Tick(nanoseconds: Clock.now())
        guard let exchange = exchanges.removeValue(forKey: id) else { return connection.close() }
        for other in exchange.connections where other !== connection { other.close() }
        let outcome = outcome(response, exchange)
        // What is no answer to this request, an error that names nothing among it, may be another's, and its own is yet to
        // come. A response that was asked for is taken whatever stands behind it: it was whole before that.
        let isInStep = outcome.responseCode == .noError
        if response.keepAlive, isInStep, connection.isIdle, pools[pool.server] === pool {
            connection.idleSince = now.nanoseconds
            pool.idle.append(connection)
        } else {
            connection.close()
        }
        pool.tally.answered(outcome.responseCode, nanoseconds: now.nanoseconds &- exchange.sent.nanoseconds)
        settle(id, outcome, exchange.repeated === connection)
    }

    private func outcome(_ response: HTTPResponse, _ exchange: Exchange) -> Outcome {
        do throws(ServiceFailure) {
            let results = try exchange.pool.access.account.parse(
                response, names: exchange.names, family: exchange.family)
            return .addresses(results.map(NameAddresses.init))
        } catch {
            switch error {
            case .status(401): return .failed(Failure(.unauthorized, error.description, statusCode: 401))
            case .status(429):
                return .failed(
                    Failure(.tooOften, error.description, statusCode: 429, retryAfter: response.retryAfter))
            default: return .failed(Failure(.badAnswer, error.description, statusCode: response.status))
            }
        }
    }

    /// A connection is gone.
    /// - Parameter id: what it carried; nil when it was idle.
    func connection(_ connection: ServiceConnection, failed failure: Failure, during id: QueryID?) {
        connection.pool.idle.removeAll { $0 === connection }
        guard let id else { return }
        lose(id, connection, failure)
    }

    private func lose(_ id: QueryID, _ connection: ServiceConnection?, _ failure: Failure) {
        exchanges[id]?.connections.removeAll { $0 === connection }
        guard let exchange = exchanges[id], exchange.connections.isEmpty else { return }
        if let connection, connection.mayHaveBeenClosedBefore {
            // The server had closed a connection that we still took for open: no attempt has been made yet.
            putOnFreshConnection(id)
        } else {
            exchanges.removeValue(forKey: id)
            settle(id, .failed(failure), false)
        }
    }

    // MARK: Time

    package var nextDeadline: Tick? {
        pools.values.reduce(nil) { $0.orEarlier($1.closeAt.map(Tick.init(nanoseconds:))) }
    }

    package func expire(at now: Tick) {
        for pool in pools.values {
            while let closeAt = pool.closeAt, closeAt <= now.nanoseconds { pool.idle.removeFirst().close() }
        }
    }

    package func networkChanged() { for pool in pools.values { pool.closeIdle() } }

    package func close() {
        for exchange in exchanges.values { for connection in exchange.connections { connection.close() } }
        exchanges = [:]
        for pool in pools.values { pool.closeIdle() }
    }
}

extension Outcome {
    /// The nearest there is in DNS, for what is counted.
    fileprivate var responseCode: ResponseCode {
        if case .addresses = self { .noError } else { .servFail }
    }
}

extension ServiceFamily {
    fileprivate init(_ families: Families) {
        switch families {
        case .ipv4: self = .ipv4
        case .ipv6: self = .ipv6
        default: self = .both
        }
    }
}

extension NameAddresses {
    fileprivate init(_ result: NameResult) {
        self.init(
            name: result.name, ipv4: FamilyAddresses(result.ipv4), ipv6: FamilyAddresses(result.ipv6))
    }
}

extension FamilyAddresses {
    fileprivate init(_ result: FamilyResult) {
        switch result {
        case .addresses(let addresses, let ttl): self = .addresses(addresses, ttl: ttl)
        case .noRecord: self = .noRecord
        case .notAsked: self = .notAsked
        }
    }
}

extension Tick? {
    /// The earlier of two moments, of which either may be missing.
    package func orEarlier(_ other: Tick?) -> Tick? {
        guard let self, let other else { return self ?? other }
        return min(self, other)
    }
}
