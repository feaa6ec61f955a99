import Addresses
import Cryptography
import DNSCache
import DNSWire
import Forwarding
import HTTPDNS
import Transport

/// The HTTPDNS servers as the forwarder sees them: a request goes out on a kept-alive connection, an outcome comes back.
///
/// Which server is asked, and what a failure leads to, is the forwarder's decision. This is about connections: one
/// carries one request at a time, the newest idle one is taken first, and one that stays silent is doubted.
final class ServiceUpstream {
    let loop: EventLoop
    let account: ServiceAccount
    let tls: TLSClientContext?
    /// Told how each request ended, unless it was cancelled.
    var settle: (ServiceRequest, ServiceOutcome) -> Void = { _, _ in }
    /// What any connection's bytes are read into before they are its own.
    let scratch = Scratch(16_384)

    private let servers: [Endpoint]
    private let hosts: [String]
    private var exchanges: [ServiceRequest: Exchange] = [:]
    private var pools: [Pool]

    /// Idle connections kept open to one server: what the busiest moment leaves behind is closed.
    private static let maximumIdle = 16
    /// How long an idle connection is kept, in nanoseconds: under the minute after which servers and address
    /// translators begin to forget them.
    private static let idleTime: UInt64 = 50_000_000_000

    /// A request under way, with what is needed to send it again.
    private struct Exchange {
        let server: Int
        let names: [Name]
        let family: ServiceFamily
        let bytes: [UInt8]
        var sent: Tick
        var connections: [ServiceConnection] = []
        /// When its connection is doubted; nil once it was.
        var doubtAt: Tick?
    }

    private struct Pool {
        var idle: [ServiceConnection] = []
        /// Smoothed time from a request to its answer, in milliseconds (RFC 6298 §2).
        var roundTrip: Double?

        /// How long a connection may be silent with a request waiting, in milliseconds: four times what is usual, as
        /// the service itself has to look up; 1 s while nothing is known.
        var patience: Int { roundTrip.map { max(250, Int($0 * 4)) } ?? 1000 }
    }

    /// - Parameter serverName: the certificate's name and the Host to send; nil = the address dialled.
    init(
        loop: EventLoop, servers: [Endpoint], account: ServiceAccount, tls: TLSClientContext?, serverName: String?
    ) {
        self.loop = loop
        self.servers = servers
        self.account = account
        self.tls = tls
        let usualPort: UInt16 = tls == nil ? 80 : 443
        hosts = servers.map { server in
            if let serverName { return server.port == usualPort ? serverName : "\(serverName):\(server.port)" }
            return server.port == usualPort ? "\(server.address)" : "\(server)"
        }
        pools = servers.map { _ in Pool() }
    }

    func send(_ request: ServiceRequest, to server: Int, _ names: [Name], _ families: Families, at now: Tick) {
        let family = ServiceFamily(families)
        do throws(RequestError) {
            let bytes = try account.request(names, family: family, host: hosts[server])
            exchanges[request] = Exchange(
                server: server, names: names, family: family, bytes: bytes, sent: now,
                doubtAt: now.advanced(milliseconds: pools[server].patience))
        } catch {
            return settle(request, .failed(Failure(.badAnswer, error.description)))
        }
        if let connection = pools[server].idle.popLast() {
            put(request, on: connection)
        } else {
            putOnFreshConnection(request)
        }
    }

    func cancel(_ request: ServiceRequest) {
        guard let exchange = exchanges.removeValue(forKey: request) else { return }
        for connection in exchange.connections { connection.close() }
    }

    private func put(_ request: ServiceRequest, on connection: ServiceConnection) {
        guard let bytes = exchanges[request]?.bytes else { return }
        exchanges[request]?.connections.append(connection)
        connection.send(bytes, for: request)
    }

    private func putOnFreshConnection(_ request: ServiceRequest) {
        guard let server = exchanges[request]?.server else { return }
        do throws(ServiceConnection.Failed) {
            let connection = try ServiceConnection(to: servers[server], server: server, upstream: self)
            put(request, on: connection)
        } catch {
            lose(request, nil, error.failure)
        }
    }

    // MARK: What connections tell

    func connection(_ connection: ServiceConnection, received response: HTTPResponse, for request: ServiceRequest) {
        if response.keepAlive, pools[connection.server].idle.count < Self.maximumIdle {
            connection.idleSince = Clock.now()
            pools[connection.server].idle.append(connection)
        } else {
            connection.close()
        }
        guard let exchange = exchanges.removeValue(forKey: request) else { return }
        for other in exchange.connections where other !== connection { other.close() }
        let sample = Double(Tick(nanoseconds: Clock.now()).milliseconds(since: exchange.sent))
        let known = pools[exchange.server].roundTrip
        pools[exchange.server].roundTrip = known.map { $0 + (sample - $0) / 8 } ?? sample
        settle(request, outcome(response, exchange))
    }

    private func outcome(_ response: HTTPResponse, _ exchange: Exchange) -> ServiceOutcome {
        do throws(ServiceFailure) {
            let results = try account.parse(response, names: exchange.names, family: exchange.family)
            return .answered(results.map(NameAddresses.init))
        } catch {
            switch error {
            case .status(401): return .failed(Failure(.unauthorized, error.description))
            case .status(429): return .failed(Failure(.tooOften, error.description))
            default: return .failed(Failure(.badAnswer, error.description))
            }
        }
    }

    /// A connection is gone.
    /// - Parameter request: what it carried; nil when it was idle.
    func connection(_ connection: ServiceConnection, failed failure: Failure, during request: ServiceRequest?) {
        pools[connection.server].idle.removeAll { $0 === connection }
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

    var nextDeadline: Tick? {
        let doubt = exchanges.values.compactMap(\.doubtAt).min()
        let idle = pools.compactMap { $0.idle.first?.idleSince }.min().map { Tick(nanoseconds: $0 + Self.idleTime) }
        return [doubt, idle].compactMap { $0 }.min()
    }

    func expire(at now: Tick) {
        for (request, exchange) in exchanges where exchange.doubtAt.map({ $0 <= now }) ?? false {
            exchanges[request]?.doubtAt = nil
            // Sent again on a fresh connection; the first answer wins.
            putOnFreshConnection(request)
        }
        for server in pools.indices {
            while let oldest = pools[server].idle.first, oldest.idleSince + Self.idleTime <= now.nanoseconds {
                pools[server].idle.removeFirst()
                oldest.close()
            }
        }
    }

    func close() {
        for exchange in exchanges.values { for connection in exchange.connections { connection.close() } }
        exchanges = [:]
        for pool in pools { for connection in pool.idle { connection.close() } }
        pools = servers.map { _ in Pool() }
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
