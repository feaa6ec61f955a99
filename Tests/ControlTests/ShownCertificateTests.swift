import Base
import DNSCache
import Testing

@testable import Control

/// What is said of the certificate that clients are shown.
struct ShownCertificateTests {
    private static let now = Version.made + 1_000_000
    private static let day: Int64 = 86_400

    private func certificate(
        begins: UInt64 = 0, ends: UInt64 = now + 7_776_000, _ name: String? = nil, _ addresses: [IPAddress] = []
    ) -> ShownCertificate {
        ShownCertificate(file: "server.pem", begins: begins, ends: ends, lackedName: name, lackedAddresses: addresses)
    }

    @Test(
        arguments: [
            (0, 90 * day, []), (0, 14 * day, []),
            (0, 14 * day - 1, ["ends in 13 d 23 h; have it renewed"]), (0, 1, ["ends in 1 s; have it renewed"]),
            (0, 0, ["ended 0 s ago: clients over TLS and HTTPS refuse it; have it renewed"]),
            (0, -3 * day, ["ended 3 d 0 h ago: clients over TLS and HTTPS refuse it; have it renewed"]),
            (
                day, 90 * day,
                ["is not valid yet, but in 1 d 0 h: until then clients over TLS and HTTPS refuse it"]
            ),
        ] as [(Int64, Int64, [String])])
    func dates(begins: Int64, left: Int64, said: [String]) {
        let certificate = certificate(
            begins: UInt64(Int64(Self.now) + begins), ends: UInt64(Int64(Self.now) + left))
        #expect(certificate.remarks(at: Self.now) == said.map { "the certificate of listen (server.pem) \($0)" })
        #expect(certificate.secondsLeft(at: Self.now) == left)
    }

    @Test func namesAndAddresses() {
        let certificate = certificate("dns.example", [.v4(192, 0, 2, 1), .v4(192, 0, 2, 2)])
        #expect(
            certificate.remarks(at: Self.now) == [
                "the certificate of listen (server.pem) is not for dns.example (listen.name): clients that ask by this name refuse it",
                "the certificate of listen (server.pem) is not for 192.0.2.1, 192.0.2.2: clients that discover it there (listen.name) go on in the clear",
            ])
    }

    @Test("a clock that stands before the build says nothing of dates")
    func unsetClock() { #expect(certificate(begins: 5, ends: 10).remarks(at: 1).isEmpty) }

    @Test func isShownWhereverTheStateIs() {
        var observation = Observation(DNSCache(bytes: 1 << 20, seed: (1, 2)).statistics)
        observation.now = Self.now
        #expect(!Overview(observation).metrics.contains("httpdnsd_listen_certificate_expiry_seconds{"))
        observation.certificate = certificate(ends: Self.now + 86_400)
        let overview = Overview(observation)
        let words = "the certificate of listen (server.pem) ends in 1 d 0 h; have it renewed"
        #expect(overview.text.contains("\n\(words)\n"))
        #expect(StatusPage(overview).html.text.contains(words))
        #expect(overview.json.text.contains("\"certificate\":{\"beginsAt\":0,\"endsAt\":\(Self.now + 86_400)}"))
        #expect(overview.metrics.contains("\nhttpdnsd_listen_certificate_expiry_seconds 86400\n"))
        let sound = "The certificate for clients over TLS and HTTPS ends in 90 d 0 h."
        #expect(!overview.text.contains("The certificate for clients"), "a remark says it")
        observation.certificate = certificate()
        #expect(Overview(observation).text.contains("\n\(sound)\n"))
        #expect(StatusPage(Overview(observation)).html.text.contains("<p>\(sound)</p>"))
    }
}
