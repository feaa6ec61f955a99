import Base
package import Counters
package import Cryptography
import DNSWire
import Forwarding
import HTTP
package import HTTPDNS
import Streams
package import Transport

/// The upstream of an HTTPDNS account: names are sent in HTTP/1.1 requests, their addresses come back.
package final class ServiceUpstream: StreamUpstream {
    package private(set) var access: Access

    /// How the servers are asked: the account, and how they are verified.
    package struct Access {
        package let account: ServiceAccount
        package let tls: TLSClientContext?
        /// The certificate's name and the Host to send; nil = the address dialled.
        let serverName: String?

        package init(account: ServiceAccount, tls: TLSClientContext?, serverName: String?) {
            (self.account, self.tls, self.serverName) = (account, tls, serverName)
        }
    }

    package init(loop: EventLoop, access: Access, tallies: UpstreamTallies = UpstreamTallies()) {
        self.access = access
        super.init(loop: loop, tallies: tallies) { ServiceDialect($0, access) }
    }

    /// The servers are asked with another access from now on; requests under way go on.
    package func renew(_ access: Access) {
        self.access = access
        renew { ServiceDialect($0, access) }
    }
}

/// One server of an account.
private final class ServiceDialect: Dialect {
    private let access: ServiceUpstream.Access
    private let host: String

    init(_ server: Server, _ access: ServiceUpstream.Access) {
        self.access = access
        host = server.endpoints[0].hostField(serverName: access.serverName, isSecure: access.tls != nil)
    }

    /// One request at a time on each connection. Idle ones are kept for less than the minute after which servers and
    /// NATs begin to drop them.
    let limits = StreamLimits(
        connections: 384, mostConnections: 384, sharesConnections: false, idleTime: 50_000_000_000)

    var isSecure: Bool { access.tls != nil }

    func conversation() -> any Conversation { HTTP1() }

    func session(to endpoint: Endpoint, at wall: UInt64) throws(TLSError) -> TLSSession? {
        try access.tls?.session(to: endpoint.address, at: wall)
    }

    func request(_ ask: Ask, isPlainer: Bool, at now: Tick, wall: UInt64) throws(Unaskable) -> [UInt8] {
        guard case .addresses(let names, let families) = ask else {
            throw Unaskable(failure: Failure(.badAnswer, "HTTPDNS knows addresses alone"))
        }
        do throws(RequestError) {
            return try access.account.request(names, family: ServiceFamily(families), host: host, at: wall)
        } catch {
            throw Unaskable(failure: Failure(.badAnswer, error.description))
        }
    }

    /// A response that does not fit the request, such as an error that names none of its names, may be another's, and
    /// its own may still come.
    func read(_ answer: ConversationAnswer, to ask: Ask, isPlainer: Bool, at now: Tick) -> Reading {
        guard case .http(let response) = answer, case .addresses(let names, let families) = ask else {
            return .outcome(.failed(Failure(.badAnswer, "no HTTP")), code: .servFail, isInStep: false)
        }
        do throws(ServiceFailure) {
            let results = try access.account.parse(response, names: names, family: ServiceFamily(families))
            return .outcome(.addresses(results.map(NameAddresses.init)), code: .noError, isInStep: true)
        } catch {
            return .outcome(.failed(Failure(error, response)), code: .servFail, isInStep: false)
        }
    }
}

extension Failure {
    fileprivate init(_ error: ServiceFailure, _ response: HTTPResponse) {
        switch error {
        case .status(401): self.init(.unauthorized, error.description, statusCode: 401)
        case .status(429):
            self.init(.tooOften, error.description, statusCode: 429, retryAfter: response.retryAfter)
        default: self.init(.badAnswer, error.description, statusCode: response.status)
        }
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
