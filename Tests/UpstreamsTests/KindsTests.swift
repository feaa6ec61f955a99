import Base
import Cryptography
import Forwarding
import HTTPDNS
import Testing

@testable import Upstreams

/// The ways in which the kinds of servers are asked.
@Suite struct KindsTests {
    private let answers = DNSAnswers(negativeTTL: 30)

    private func server(_ kind: Server.Kind) -> Server { Server(kind, .name("dns.example"), port: 443) }

    @Test(arguments: [Server.Kind.plain, .tcp]) func inTheClear(kind: Server.Kind) throws {
        let (context, server) = (try TLSClientContext(TLSPolicy()), server(kind))
        for tls in [nil, context] { #expect(try !ServerKind(server, answers, tls).security.isSecure) }
    }

    @Test(
        arguments: [(.tls, "dot", false), (.https(path: "/", usesGET: false), "h2", true)]
            as [(Server.Kind, String, Bool)])
    func encrypted(kind: Server.Kind, name: String, isRequired: Bool) throws {
        let row = try ServerKind(server(kind), answers, TLSClientContext(TLSPolicy()))
        guard case .tls(_, let target) = row.security else {
            Issue.record("in the clear")
            return
        }
        #expect(target == TLSTarget(name: "dns.example", protocols: [name], requiresProtocol: isRequired))
        // Only a server that does not require the protocol is asked without it, and only once.
        #expect(row.security.offersOptionalProtocols == !isRequired)
        let bare = row.security.withoutOptionalProtocols
        #expect(!bare.offersOptionalProtocols && bare.isSecure)
    }

    /// A missing setting never means "in the clear".
    @Test(arguments: [Server.Kind.tls, .https(path: "/", usesGET: true)])
    func anEncryptedServerIsNotAskedWithoutRules(kind: Server.Kind) {
        #expect(throws: Failure.self) { _ = try ServerKind(server(kind), answers, nil) }
    }

    @Test func anAccountIsNotAskedWithMessages() throws {
        let context = try TLSClientContext(TLSPolicy())
        #expect(throws: Failure.self) { _ = try ServerKind(server(.account), answers, context) }
        let account = try TencentAccount(.https(token: Secret(Array("67890".utf8))))
        let access = ServiceAccess(
            account: account, AccountKeys("httpdns", names: "domains.intercept", .https(token: Secret([]))),
            .tls(context, TLSTarget()), serverName: nil)
        let row = ServerKind(Server(Endpoint("192.0.2.1:443")!, .account), access)
        #expect(row.security.isSecure)
    }
}
