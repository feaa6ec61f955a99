import Base
import DNSWire
import Forwarding
import HTTP
import HTTPDNS
import Streams
import Testing

@testable import Upstreams

/// What a service's refusal means for the names of the request.
@Suite struct ServiceDialectTests {
    private static let names = [Name("a.example")!, Name("b.example")!]

    private func outcome(
        _ code: String, to names: [Name], _ families: Families = .both, status: Int = 400, retryAfter: Int? = nil
    ) throws -> Outcome? {
        let secret = Array("00112233445566778899aabbccddeeff".utf8)
        let credential = Credential.signed(.alibaba, id: 100_000, secret: Secret(secret), aesKey: nil)
        let access = ServiceAccess(
            account: try credential.account(), AccountKeys("httpdns", names: "domains.intercept", credential), .plain,
            serverName: nil)
        let body = Array("{\"code\":\"\(code)\"}".utf8)
        let reading = ServiceDialect(Server(Endpoint("192.0.2.1:443")!, .account), access).read(
            .http(HTTPResponse(status: status, body: body, retryAfter: retryAfter)), to: .addresses(names, families),
            isRewritten: false, at: Tick(nanoseconds: 0))
        guard case .outcome(let outcome, _, let isInSync) = reading else { return nil }
        // A refusal has no name, so it may belong to another request.
        #expect(!isInSync)
        return outcome
    }

    /// Else three names that are not registered would put the server aside for all names.
    @Test(
        arguments: [(.both, .noRecord, .noRecord), (.ipv4, .noRecord, .notAsked), (.ipv6, .notAsked, .noRecord)]
            as [(Families, FamilyAddresses, FamilyAddresses)])
    func aNameThatIsRefusedAloneHasNoRecord(families: Families, ipv4: FamilyAddresses, ipv6: FamilyAddresses) throws {
        let name = Self.names[0]
        guard case .addresses(let results, let reasons) = try outcome("InvalidHost", to: [name], families) else {
            Issue.record("not an answer")
            return
        }
        #expect(results == [NameAddresses(name: name, ipv4: ipv4, ipv6: ipv6)])
        #expect(reasons.code(of: name, .ipv4) == "InvalidHost" && reasons.code(of: name, .ipv6) == "InvalidHost")
    }

    /// The names are then asked one by one. Only what is said of the names leaves the server in use.
    @Test(
        arguments: [
            ("InvalidHost", 400, nil, .refusedTogether), ("TooManyHosts", 400, nil, .refusedTogether),
            ("TooManyHosts", 503, 7, .tooOften), ("Unheard", 400, nil, .badAnswer),
        ] as [(String, Int, Int?, Failure.Kind)])
    func aRefusalOfSeveralNames(code: String, status: Int, retryAfter: Int?, kind: Failure.Kind) throws {
        let ended = try outcome(code, to: Self.names, status: status, retryAfter: retryAfter)
        guard case .failed(let failure) = ended else {
            Issue.record("not a failure")
            return
        }
        #expect(failure.kind == kind)
    }

    /// The service says nothing about the name.
    @Test(
        arguments: [
            ("TooManyHosts", 400, nil, .badAnswer), ("Unheard", 400, nil, .badAnswer),
            ("InvalidHost", 503, 7, .tooOften), ("InternalError", 503, nil, .denied),
            ("InternalError", 503, 7, .tooOften), ("ServiceLevelDeny", 503, 7, .tooOften),
            ("InvalidAccount", 503, 7, .unauthorized),
        ] as [(String, Int, Int?, Failure.Kind)])
    func otherRefusalsOfOneNameAreFailures(code: String, status: Int, retryAfter: Int?, kind: Failure.Kind) throws {
        let ended = try outcome(code, to: [Self.names[0]], status: status, retryAfter: retryAfter)
        guard case .failed(let failure) = ended else {
            Issue.record("not a failure")
            return
        }
        #expect(failure.kind == kind)
    }
}
