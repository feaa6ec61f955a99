import Base
import TestSupport
import Testing

@testable import Configuration

/// The stamps are those that dnsstamps 1.4.1 (PyPI) makes.
@Suite struct StampTests {
    private static let v4 = IPAddress.v4(192, 0, 2, 1)
    private static let v6 = IPAddress("2001:db8::1")!
    private static let hash: [UInt8] = [
        0x3e, 0x1a, 0x1a, 0x0f, 0x6c, 0x53, 0xf3, 0xe9, 0x7a, 0x49, 0x2d, 0x57, 0x08, 0x4b, 0x5b, 0x98,
        0x07, 0x05, 0x9e, 0xe0, 0x57, 0xab, 0x15, 0x05, 0x87, 0x6f, 0xd8, 0x3f, 0xda, 0x3d, 0xb8, 0x38,
    ]
    private static let other: [UInt8] = Array(repeating: 0, count: 31) + [1]

    @Test(
        "a stamp of a kind that is spoken is read",
        arguments: [
            ("AAEAAAAAAAAACjE5Mi4wLjIuNTM", Server(Endpoint(.v4(192, 0, 2, 53), port: 53))),
            ("AAAAAAAAAAAAE1syMDAxOmRiODo6NTNdOjUzNTM", Server(Endpoint(IPAddress("2001:db8::53")!, port: 5353))),
            (
                "AAAAAAAAAAAADltmZTgwOjoxJWV0aDBd",
                Server(Endpoint(IPAddress("fe80::1")!, port: 53, zone: Zone("eth0")))
            ),
            (
                "AgEAAAAAAAAACTE5Mi4wLjIuMSA-GhoPbFPz6XpJLVcIS1uYBwWe4FerFQWHb9g_2j24OA9kb2guZXhhbXBsZS5jb20KL2Rucy1x"
                    + "dWVyeQ",
                Server(
                    .https(path: "/dns-query", usesGET: false), .name("doh.example.com"), port: 443, addresses: [v4],
                    hashes: [hash])
            ),
            // An address with a port, two hashes, a name in upper case, and two resolvers that may be asked for it.
            (
                "AgIAAAAAAAAAElsyMDAxOmRiODo6MV06ODQ0M6A-GhoPbFPz6XpJLVcIS1uYBwWe4FerFQWHb9g_2j24OCAAAAAAAAAAAAAAAAAAAAA"
                    + "AAAAAAAAAAAAAAAAAAAAAAQ9ET0guZXhhbXBsZS5jb20GL3ElMjB4iTE5Mi4wLjIuOQ1bMjAwMTpkYjg6Ojld",
                Server(
                    .https(path: "/q%20x", usesGET: false), .name("doh.example.com"), port: 8443, addresses: [v6],
                    hashes: [hash, other])
            ),
            (
                "AgAAAAAAAAAABTo4NDQzAA9kb2guZXhhbXBsZS5jb20BLw",
                Server(.https(path: "/", usesGET: false), .name("doh.example.com"), port: 8443)
            ),
            (
                "AgAAAAAAAAAAAAATZG9oLmV4YW1wbGUuY29tOjQ0NAovZG5zLXF1ZXJ5",
                Server(.https(path: "/dns-query", usesGET: false), .name("doh.example.com"), port: 444)
            ),
            (
                "AgAAAAAAAAAACTE5Mi4wLjIuMQAJMTkyLjAuMi4xCi9kbnMtcXVlcnk",
                Server(.https(path: "/dns-query", usesGET: false), .address(v4, nil), port: 443)
            ),
            // An address to dial, and another one in the certificate.
            (
                "AwAAAAAAAAAACTE5Mi4wLjIuMQAJMTkyLjAuMi4y",
                Server(.tls, .address(.v4(192, 0, 2, 2), nil), port: 853, addresses: [v4])
            ),
            (
                "AgAAAAAAAAAACjEuMTIuMzQuNTYACjEuMTIuMTIuMTIKL2Rucy1xdWVyeQ",
                Server(
                    .https(path: "/dns-query", usesGET: false), .address(.v4(1, 12, 12, 12), nil), port: 443,
                    addresses: [.v4(1, 12, 34, 56)])
            ),
            (
                "AwAAAAAAAAAACTE5Mi4wLjIuMQAPZG90LmV4YW1wbGUuY29t",
                Server(.tls, .name("dot.example.com"), port: 853, addresses: [v4])
            ),
            (
                "AwAAAAAAAAAAACA-GhoPbFPz6XpJLVcIS1uYBwWe4FerFQWHb9g_2j24OBRkb3QuZXhhbXBsZS5jb206ODg1Mw",
                Server(.tls, .name("dot.example.com"), port: 8853, hashes: [hash])
            ),
        ])
    func kinds(_ text: String, _ expected: Server) {
        #expect(server("sdns://" + text) == expected)
    }

    @Test(
        "a stamp of another kind is refused by its name",
        arguments: [
            (
                "AQAAAAAAAAAACTEyNy4wLjAuMSDLatxcKflVEAtlvxKU_laEV5qzSZzJeY8A0Bu1wamixxsyLmRuc2NyeXB0LWNlcnQuZXhhbXBs"
                    + "ZS5jb20", "DNSCrypt"
            ),
            ("BAAAAAAAAAAACTE5Mi4wLjIuMQAPZG9xLmV4YW1wbGUuY29t", "DNS over QUIC"),
            ("BQAAAAAAAAAAEG9kb2guZXhhbXBsZS5jb20KL2Rucy1xdWVyeQ", "an Oblivious DoH target"),
            ("gQkxMjcuMC4wLjE", "a DNSCrypt relay"),
            (
                "hQAAAAAAAAAACTEyNy4wLjAuMSA-GhoPbFPz6XpJLVcIS1uYBwWe4FerFQWHb9g_2j24OBFyZWxheS5leGFtcGxlLmNvbQYvcmVs"
                    + "YXk", "an Oblivious DoH relay"
            ),
            ("BwAAAAAAAAAA", "an unknown kind (7)"),
        ])
    func otherKinds(_ text: String, _ name: String) {
        #expect(
            refusal("sdns://" + text)
                == "a stamp of \(name), which is not spoken here; give one of plain DNS, DNS over TLS or DNS over HTTPS"
        )
    }

    @Test(
        "a stamp that is wrong in itself is refused",
        arguments: [
            ("AwAAAAAAAAAADTE5Mi4wLjIuMTo4NTMAE2RvdC5leGFtcGxlLmNvbTo4NTQ", "a stamp with two ports"),
            ("AgAAAAAAAAAACTE5Mi4wLjIuMQAPZG9oLmV4YW1wbGUuY29tCWRucy1xdWVyeQ", "a stamp whose path is \"dns-query\""),
            ("AwAAAAAAAAAACTE5Mi4wLjIuMQI-Gg9kb3QuZXhhbXBsZS5jb20", "a stamp with a hash that has not 32 octets"),
            ("AwAAAAAAAAAACTE5Mi4wLjIuMQAKZPYuZXhhbXBsZQ", "a stamp whose host is "),
            ("AwAAAAAAAAAACTE5Mi4wLjIuMQAA", "a stamp whose host is \"\""),
            ("AwAAAAAAAAAAC2Rucy5leGFtcGxlAA9kb3QuZXhhbXBsZS5jb20", "a stamp that is dialled at \"dns.example\""),
            ("AAAAAAAAAAAAC2Rucy5leGFtcGxl", "a stamp whose server is \"dns.example\""),
            ("", "a stamp that ends too early"),
            ("AAEAAAAAAAAACjE5Mi4wLjIuNTN+", "a stamp is not right that is no base64url"),
            ("AAEAAAAAAAAACjE5Mi4wLjIuNTM=", "a stamp is not right that is no base64url"),
            ("AAEAAAAAAAAACjE5Mi4wLjIuNTN", "a stamp is not right that is no base64url"),
            ("AAEAAAAAAAAACjE5Mi4wLjIuNTMA", "a stamp with more behind its end"),
        ])
    func wrong(_ text: String, _ beginning: String) {
        #expect(refusal("sdns://" + text).hasPrefix(beginning), "\(refusal("sdns://" + text))")
    }

    @Test("no stamp that is cut is read, and no change of one makes the reader fail")
    func mutations() throws {
        var chance = Chance.announced("StampTests.mutations")
        let whole = try #require(
            Base64.url.decode("AwAAAAAAAAAACTE5Mi4wLjIuMQAPZG90LmV4YW1wbGUuY29tCTE5Mi4wLjIuOQ".utf8))
        #expect(server("sdns://" + Base64.url.encode(whole)) != nil)
        for length in whole.indices {
            // Behind the host's name stands what may be missing.
            #expect(length == 36 || server("sdns://" + Base64.url.encode(Array(whole[..<length]))) == nil, "\(length)")
        }
        for _ in 0..<5000 {
            var octets = whole
            for _ in 0...chance.below(3) { octets[chance.below(octets.count)] = UInt8(chance.below(256)) }
            guard let read = server("sdns://" + Base64.url.encode(octets)) else { continue }
            #expect(server(ServerText.text(of: .server(read))) == read, "\(octets)")
        }
    }
}
