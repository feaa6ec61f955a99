import Base
import Cryptography
import Forwarding
import HTTP
import Streams

/// The access to a server over connections: their security, the dialect on them, and their limits. The three are
/// independent of one another.
struct ServerKind: ~Copyable {
    let security: Security
    let dialect: any Dialect
    let limits: StreamLimits

    init(_ security: Security, _ dialect: any Dialect, _ limits: StreamLimits) {
        (self.security, self.dialect, self.limits) = (security, dialect, limits)
    }

    /// The failure of a connection that could not be made.
    func describe(_ failure: LinkEnd) -> Failure {
        guard failure == .tls(.noApplicationProtocol), case .tls(_, let target) = security, target.requiresProtocol
        else { return Failure(failure) }
        return Failure(.insecure, "the server does not offer HTTP/2 (ALPN h2), which DNS over HTTPS is asked by")
    }
}

// The table of kinds.

extension ServerKind {
    /// A server that is asked with DNS messages.
    /// - Parameter tls: The verification of encrypted servers; nil if the group has none.
    init(_ server: Server, _ answers: DNSAnswers, _ tls: TLSClientContext?) throws(Failure) {
        func secured(_ protocols: String, isRequired: Bool = false) throws(Failure) -> Security {
            guard let tls else { throw Failure(.untrusted, "nothing says whom to trust") }
            return .tls(tls, TLSTarget(server, protocols: [protocols], requiresProtocol: isRequired))
        }
        switch server.kind {
        case .plain: self.init(.plain, DNSOverStreams(server, answers), .oneQueryEach)
        case .tcp: self.init(.plain, DNSOverStreams(server, answers), .frames)
        // Some servers support ALPN but not this protocol name, so it is not required.
        case .tls:
            self.init(try secured(ApplicationProtocol.dnsOverTLS), DNSOverStreams(server, answers), .frames)
        case .https(let path, let usesGET):
            self.init(
                try secured(ApplicationProtocol.http2, isRequired: true),
                DNSOverHTTPS(server, path, usesGET: usesGET, answers), .http2)
        case .account: throw Failure(.badAnswer, "it is not asked with messages")
        }
    }

    /// A server of an HTTPDNS account.
    init(_ server: Server, _ access: ServiceAccess) {
        self.init(access.security, ServiceDialect(server, access), .oneRequestAtATime)
    }
}

extension StreamLimits {
    /// Limits for many queries on each connection. Idle connections stay open a little less than the 30 s after which
    /// unbound and BIND close. Other servers close earlier (RFC 7766 §6.2.3 asks for a few seconds, some servers of DNS
    /// over HTTPS take four): an idle connection is read, so its end is seen at once.
    static func shared(atOnce: Int) -> StreamLimits {
        StreamLimits(atOnce: atOnce, idleTime: 25_000_000_000, retriesOnFresh: true)
    }
    static let frames = shared(atOnce: DNSFrames.maximumUnderWay)
    static let http2 = shared(atOnce: HTTP2Session.assumedLimit)

    /// Limits for answers that do not fit a datagram: such answers are rare, and some servers answer only one question
    /// on a connection.
    static let oneQueryEach = StreamLimits(connections: 256, mostConnections: 512, queriesPerConnection: 1, idleTime: 0)

    /// Limits for HTTP/1.1. Idle connections stay open for less than the minute after which servers and NATs begin to
    /// drop them.
    static let oneRequestAtATime = StreamLimits(connections: 384, mostConnections: 384, idleTime: 50_000_000_000)
}

extension TLSTarget {
    /// The proof that an encrypted server must give: a certificate with the server's name, or else with its address.
    init(_ server: Server, protocols: [String], requiresProtocol: Bool = false) {
        self.init(hashes: server.hashes, protocols: protocols, requiresProtocol: requiresProtocol)
        switch server.host {
        case .name(let name): self.name = name
        case .address(let own, _): name = server.certificateName ?? (server.addresses.isEmpty ? nil : "\(own)")
        }
    }
}
