import Base
import Cryptography
import Foundation
import Testing

/// Keys that the verified chain must hold, and those who stand in between without one.
struct TLSPinTests {
    let certificates = TestCertificates.shared

    private func client(
        pins: [[UInt8]], anchors: [UInt8]? = TestCertificates.shared["root.pem"], only: Bool = true
    ) throws -> TLSClientContext {
        try TLSClientContext(TLSPolicy(serverName: "dns.example", anchors: anchors, anchorsOnly: only, pins: pins))
    }

    private func mismatch(_ chain: [String]) throws -> TLSError {
        try .pinMismatch(has: chain.map { try pinText(certificates.pin($0)) })
    }

    @Test(arguments: [tls12, tls13], ["good", "intermediate", "root"])
    func aPinOfAnyCertificateOfTheChainWillDo(newest: Int32, pinned: String) throws {
        let link = try TLSLink(client(pins: [certificates.pin(pinned)]), server(newest: newest))
        link.client.send("question")
        link.carry()
        #expect(link.client.state == .open)
        #expect(link.server.text() == "question")
    }

    @Test(arguments: [tls12, tls13])
    func oneOfSeveralPinsIsEnough(newest: Int32) throws {
        let (now, backup) = (try certificates.pin("good"), try certificates.pin("underold"))
        for pins in [[now, backup], [backup, now], [backup, now, now]] {
            let link = try carried(client(pins: pins), server(newest: newest))
            #expect(link.client.state == .open)
        }
    }

    @Test(arguments: [tls12, tls13])
    func withoutAPinnedKeyNothingIsSent(newest: Int32) throws {
        let link = try TLSLink(
            client(pins: [certificates.pin("otherroot"), certificates.pin("expired")]), server(newest: newest))
        link.client.send("question")
        link.server.receive(link.client.ciphertext())
        link.client.receive(link.server.ciphertext())
        #expect(try link.client.failure == mismatch(["good", "intermediate", "root"]))
        // One record with an alert: five bytes of header, a level and a code, in TLS 1.3 perhaps encrypted (a type and
        // a tag more), there after a change_cipher_spec of six.
        let last = link.client.ciphertext()
        #expect(last.count == 7 || newest == tls13 && last.count <= 6 + 7 + 17)
        link.server.receive(last)
        #expect(link.server.failure == .alert(40))
        #expect(link.server.text() == "")
        link.client.send("and more")
        #expect(link.client.ciphertext().isEmpty)
    }

    @Test func theRefusalSaysWhatCouldBePinned() throws {
        let link = try carried(client(pins: [certificates.pin("otherroot")]), server())
        let has = try ["good", "intermediate", "root"].map { try pinText(certificates.pin($0)) }
        #expect(
            link.client.failure?.description
                == "certificate chain has none of the pinned keys; from the server's on it has \(has[0]), \(has[1]), "
                + has[2])
    }

    @Test func aRefusalListsEightKeys() throws {
        let names = ["underdeep"] + (1...9).reversed().map { "deep\($0)" }
        let server = try TLSServerContext(
            certificatePEM: names.flatMap { certificates["\($0).pem"] }, keyPEM: certificates["underdeep.key"])
        let link = try carried(client(pins: [certificates.pin("good")]), server)
        let has = try names.prefix(8).map { try pinText(certificates.pin($0)) }
        #expect(link.client.failure == .pinMismatch(has: has + ["…"]))
        let far = try carried(client(pins: [certificates.pin("root")]), server)
        #expect(far.client.state == .open)
    }

    @Test(arguments: [tls12, tls13])
    func whatIsOnlySentAlongDoesNotCount(newest: Int32) throws {
        // Sent after a chain that is trusted: the certificate with the pinned key, which anybody can get.
        let impostor = try TLSServerContext(
            certificatePEM: certificates["stranger.pem"] + certificates.chain("good") + certificates["root.pem"],
            keyPEM: certificates["stranger.key"], newestVersion: newest)
        let anchors = certificates["root.pem"] + certificates["otherroot.pem"]
        for pinned in ["good", "intermediate", "root"] {
            let link = try carried(client(pins: [certificates.pin(pinned)], anchors: anchors), impostor)
            #expect(try link.client.failure == mismatch(["stranger", "otherroot"]))
        }
        let link = try carried(client(pins: [certificates.pin("stranger")], anchors: anchors), impostor)
        #expect(link.client.state == .open)
    }

    @Test func theChainEndsWhereTrustBegins() throws {
        let anchors = certificates["intermediate.pem"]
        let link = try carried(client(pins: [certificates.pin("root")], anchors: anchors), server())
        #expect(try link.client.failure == mismatch(["good", "intermediate"]))
        let alone = try carried(
            client(pins: [certificates.pin("selfsigned")], anchors: certificates["selfsigned.pem"]),
            server("selfsigned", alone: true))
        #expect(alone.client.state == .open)
    }

    @Test func aPinMakesUpForNothingElse() throws {
        let pins = try ["expired", "stranger", "hostile", "root"].map { try certificates.pin($0) }
        for (name, expected) in [
            ("expired", TLSError.certificateExpired(at: "2021-02-03 04:05:06 UTC", depth: 0)),
            ("stranger", .unknownAuthority(issuer: "CN=the otherroot", depth: 0)),
            ("hostile", .certificateName(wanted: "dns.example", has: ["bad?name"])),
        ] {
            let link = try carried(client(pins: pins), server(name))
            #expect(link.client.failure == expected)
        }
    }

    @Test(arguments: [tls12, tls13])
    func sessionsAreResumedUnderPins(newest: Int32) throws {
        let server = try server(newest: newest)
        let (right, wrong) = (
            try client(pins: [certificates.pin("root")]), try client(pins: [certificates.pin("many")])
        )
        for round in 0..<3 {
            let link = try carried(right, server)
            #expect(link.client.state == .open)
            #expect(link.client.isResumed == (round > 0))
            let refused = try carried(wrong, server)
            #expect(try refused.client.failure == mismatch(["good", "intermediate", "root"]))
            #expect(wrong.remembered == 0)
        }
    }

    @Test func aPinHasTheLengthOfADigest() throws {
        for length in [0, 31, 33] {
            #expect(throws: TLSError.pinLength(length)) {
                try client(pins: [certificates.pin("good"), [UInt8](repeating: 1, count: length)])
            }
        }
        #expect(TLSError.pinLength(31).description == "a pin has 31 bytes, a SHA-256 digest has 32")
    }

    /// A proxy that intercepts TLS with an authority that the host trusts. In a process of its own, because what the
    /// system trusts is read from the environment.
    @Test func anInterceptorThatTheSystemTrusts() async {
        await #expect(processExitsWith: .success) {
            let certificates = TestCertificates.shared
            let folder = try TemporaryFolder()
            // The system knows the service's true authority as well.
            try folder.write(certificates["otherroot.pem"] + certificates["root.pem"], to: "system.pem")
            setenv("SSL_CERT_FILE", folder.path("system.pem"), 1)
            setenv("SSL_CERT_DIR", folder.path("none"), 1)
            let (anchors, pins) = (certificates["root.pem"], [try certificates.pin("intermediate")])
            let pinned = TLSError.pinMismatch(
                has: try ["stranger", "otherroot"].map { try pinText(certificates.pin($0)) })
            let unknown = TLSError.unknownAuthority(issuer: "CN=the otherroot", depth: 0)
            for (policy, refusal) in [
                (TLSPolicy(serverName: "dns.example"), nil),
                (TLSPolicy(serverName: "dns.example", anchors: anchors, anchorsOnly: false), nil),
                (TLSPolicy(serverName: "dns.example", anchors: anchors, anchorsOnly: true), unknown),
                (TLSPolicy(serverName: "dns.example", pins: pins), pinned),
                (TLSPolicy(serverName: "dns.example", anchors: anchors, anchorsOnly: false, pins: pins), pinned),
                (TLSPolicy(serverName: "dns.example", anchors: anchors, anchorsOnly: true, pins: pins), unknown),
            ] {
                let context = try TLSClientContext(policy)
                let intercepted = try carried(context, server("stranger"))
                #expect(intercepted.client.failure == refusal)
                #expect((intercepted.client.state == .open) == (refusal == nil))
                let straight = try carried(context, server())
                #expect(straight.client.state == .open)
            }
        }
    }
}
