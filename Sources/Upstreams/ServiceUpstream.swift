package import Base
package import Counters
package import Cryptography
package import DNSWire
package import Forwarding
import HTTP
package import HTTPDNS
import Streams
package import Transport

/// The HTTPDNS servers as the forwarder sees them: a request goes out on a kept-alive connection, an outcome comes back.
///
/// Which server is asked, and what a failure leads to, is the forwarder's decision. This is about connections: one
/// carries one request at a time, the newest idle one is taken first, one that stays silent is doubted, and one that says
/// anything but the answers it was asked for is closed.
package final class ServiceUpstream {
    let loop: EventLoop
    package private(set) var access: Access
    /// Told how each request ended, unless it was cancelled.
    package var settle: (ServiceRequest, ServiceOutcome) -> Void = { _, _ in }
    /// How far a fresh connection has come; for whoever goes through it step by step.
    package var progressed: (ServiceConnection.Progress) -> Void = { _ in }
    /// What any connection's bytes are read into before they are its own.
    let scratch = Scratch(16_384)
    package let tallies: UpstreamTallies

    /// In the order of the forwarder's places.
    package var servers: [Endpoint] { pools.map(\.endpoint) }

    private var exchanges: [ServiceRequest: Exchange] = [:]
    private var pools: [Pool]
    /// No exchange is to be doubted before then; it may be early, and is set right when it has come.
    private var earliestDoubt: Tick?

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
        /// When its connection is doubted; nil once it was.
        var doubtAt: Tick?
    }

    /// One server and the open connections to it that carry nothing.
    final class Pool {
        let endpoint: Endpoint
        let access: Access
        let host: String
        /// Not found before it is first asked: of those that are only listed nothing is counted.
        private(set) lazy var tally = tallies.server(endpoint)
        private let tallies: UpstreamTallies
        var idle: [ServiceConnection] = []
        /// Smoothed time from a request to its answer, in milliseconds (RFC 6298 §2).
        var roundTrip: Double?

        /// How long a connection may be silent with a request waiting, in milliseconds: four times what is usual, as
        /// the service itself has to look up; 1 s while nothing is known.
        var patience: Int { roundTrip.map { max(250, Int($0 * 4)) } ?? 1000 }

        init(_ endpoint: Endpoint, _ access: Access, _ tallies: UpstreamTallies) {
            self.endpoint = endpoint
            self.access = access
            self.tallies = tallies
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

    package init(loop: EventLoop, servers: [Endpoint], access: Access, tallies: UpstreamTallies = UpstreamTallies()) {
        self.loop = loop
        self.access = access
        self.tallies = tallies
        pools = servers.map { Pool($0, access, tallies) }
    }

    /// The servers are others now, or asked in another way; requests under way to the former ones end as they may.
    /// - Parameter access: nil: as before.
    package func replaceServers(_ servers: [Endpoint], access: Access? = nil) {
        if let access { self.access = access }
        for pool in pools { pool.closeIdle() }
        pools = servers.map { Pool($0, self.access, tallies) }
    }

    package func send(_ request: ServiceRequest, to server: Int, _ names: [Name], _ families: Families, at now: Tick) {
        let pool = pools[server]
        let family = ServiceFamily(families)
        let unixSeconds = WallClock.unixSeconds()
        let bytes: [UInt8]
        do throws(RequestError) {
            bytes = try pool.access.account.request(
                names, family: family, host: pool.host, at: unixSeconds)
        } catch {
            return settle(request, .failed(Failure(.badAnswer, error.description)))
        }
        let doubtAt = now.advanced(milliseconds: pool.patience)
        earliestDoubt = min(earliestDoubt ?? doubtAt, doubtAt)
        let connection = pool.takeIdle(at: unixSeconds)
        pool.tally.connected(isSecure: pool.access.tls != nil, isReused: connection != nil)
        exchanges[request] = Exchange(
            pool: pool, names: names, family: family, bytes: bytes, sent: now, connections: Few(connection),
            doubtAt: doubtAt)
        if let connection {
            connection.send(bytes, for: request)
        } else {
            putOnFreshConnection(request)
        }
    }

    package func cancel(_ request: ServiceRequest) {
        guard let exchange = exchanges.removeValue(forKey: request) else { return }
        for connection in exchange.connections { connection.close() }
    }

    private func putOnFreshConnection(_ request: ServiceRequest) {
        guard let exchange = exchanges[request] else { return }
        do throws(ServiceConnection.Failed) {
            let connection = try ServiceConnection(to: exchange.pool.endpoint, pool: exchange.pool, upstream: self)
            exchanges[request]?.connections.append(connection)
            connection.send(exchange.bytes, for: request)
        } catch {
            lose(request, nil, error.failure)
        }
    }

    // MARK: What connections tell

    func connection(_ connection: ServiceConnection, received response: HTTPResponse, for request: ServiceRequest) {
        let pool = connection.pool
        let now = Tick(nanoseconds: Clock.now())
        guard let exchange = exchanges.removeValue(forKey: request) else { return connection.close() }
        for other in exchange.connections where other !== connection { other.close() }
        let sample = Double(now.milliseconds(since: exchange.sent))
        pool.roundTrip = pool.roundTrip.map { $0 + (sample - $0) / 8 } ?? sample
        let outcome = outcome(response, exchange)
        // What is no answer to this request, an error that names nothing among it, may be another's, and its own is yet to
        // come. A response that was asked for is taken whatever stands behind it: it was whole before that.
        let isInStep = outcome.responseCode == .noError
        if response.keepAlive, isInStep, connection.isIdle, pools.contains(where: { $0 === pool }) {
            connection.idleSince = now.nanoseconds
            pool.idle.append(connection)
        } else {
            connection.close()
        }
        pool.tally.answered(outcome.responseCode, nanoseconds: now.nanoseconds &- exchange.sent.nanoseconds)
        settle(request, outcome)
    }

    private func outcome(_ response: HTTPResponse, _ exchange: Exchange) -> ServiceOutcome {
        do throws(ServiceFailure) {
            let results = try exchange.pool.access.account.parse(
                response, names: exchange.names, family: exchange.family)
            return .answered(results.map(NameAddresses.init))
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
    /// - Parameter request: what it carried; nil when it was idle.
    func connection(_ connection: ServiceConnection, failed failure: Failure, during request: ServiceRequest?) {
        connection.pool.idle.removeAll { $0 === connection }
        guard let request else { return }
        lose(request, connection, failure)
    }

    private func lose(_ request: ServiceRequest, _ connection: ServiceConnection?, _ failure: Failure) {
        exchanges[request]?.connections.removeAll { $0 === connection }
        guard let exchange = exchanges[request], exchange.connections.isEmpty else { return }
        if let connection, connection.mayHaveBeenClosedBefore {
            // The server had closed a connection that we still took for open: no attempt has been made yet.
            putOnFreshConnection(request)
        } else {
            exchanges.removeValue(forKey: request)
            settle(request, .failed(failure))
        }
    }

    // MARK: Time

    package var nextDeadline: Tick? {
        var next = earliestDoubt
        for pool in pools { next = next.orEarlier(pool.closeAt.map(Tick.init(nanoseconds:))) }
        return next
    }

    package func expire(at now: Tick) {
        if let earliestDoubt, earliestDoubt <= now {
            for (request, exchange) in exchanges where exchange.doubtAt.map({ $0 <= now }) ?? false { doubt(request) }
            self.earliestDoubt = exchanges.values.compactMap(\.doubtAt).min()
        }
        for pool in pools {
            while let closeAt = pool.closeAt, closeAt <= now.nanoseconds { pool.idle.removeFirst().close() }
        }
    }

    /// Its connection shows no byte: sent again on a fresh one, and the first answer wins.
    private func doubt(_ request: ServiceRequest) {
        exchanges[request]?.doubtAt = nil
        putOnFreshConnection(request)
    }

    /// This machine's addresses or routes have changed: no connection from before is trusted to reach anybody.
    package func networkChanged() {
        for pool in pools { pool.closeIdle() }
        for (request, exchange) in exchanges where exchange.connections.count < Self.maximumConnections {
            doubt(request)
        }
    }

    package func close() {
        for exchange in exchanges.values { for connection in exchange.connections { connection.close() } }
        exchanges = [:]
        for pool in pools { pool.closeIdle() }
    }
}

extension ServiceOutcome {
    /// The nearest there is in DNS, for what is counted.
    fileprivate var responseCode: ResponseCode {
        if case .answered = self { .noError } else { .servFail }
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
