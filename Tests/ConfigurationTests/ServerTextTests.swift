import Base
import TestSupport
import Testing

@testable import Configuration

/// What a text names; nil if it is refused.
func server(_ text: String) -> Server? {
    guard case .server(let server) = try? ServerText.read(text) else { return nil }
    return server
}

/// Why a text names no server.
func refusal(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) -> String {
    do throws(Problem) {
        Issue.record("read as \(try ServerText.read(text))", sourceLocation: sourceLocation)
        return ""
    } catch {
        return error.message
    }
}

@Suite struct ServerTextTests {
    private static let v4 = IPAddress.v4(192, 0, 2, 1)
    private static let v6 = IPAddress("2001:db8::1")!
    private static let eth0 = Zone("eth0")

    @Test(
        "each form of a server is read",
        arguments: [
            ("192.0.2.1", Server(Endpoint(v4, port: 53))),
            ("192.0.2.1:5353", Server(Endpoint(v4, port: 5353))),
            ("2001:db8::1", Server(Endpoint(v6, port: 53))),
            ("[2001:db8::1]:5353", Server(Endpoint(v6, port: 5353))),
            ("fe80::1%eth0", Server(Endpoint(IPAddress("fe80::1")!, port: 53, zone: eth0))),
            ("[fe80::1%eth0]:54", Server(Endpoint(IPAddress("fe80::1")!, port: 54, zone: eth0))),
            ("tcp://192.0.2.1", Server(.tcp, .address(v4, nil), port: 53)),
            ("tcp://[2001:db8::1]:54", Server(.tcp, .address(v6, nil), port: 54)),
            ("tcp://[fe80::1%eth0]", Server(.tcp, .address(IPAddress("fe80::1")!, eth0), port: 53)),
            ("tls://192.0.2.1", Server(.tls, .address(v4, nil), port: 853)),
            (
                "TLS://[2001:db8::1]:443#DNS.Example.com.",
                Server(.tls, .address(v6, nil), port: 443, certificateName: "dns.example.com")
            ),
            ("tls://dns.example", Server(.tls, .name("dns.example"), port: 853)),
            (
                "tls://Dot.Example.:8853#192.0.2.1+2001:db8::1",
                Server(.tls, .name("dot.example"), port: 8853, addresses: [v4, v6])
            ),
            ("tls://xn--bcher-kva.example", Server(.tls, .name("xn--bcher-kva.example"), port: 853)),
            (
                "https://dns.example/dns-query",
                Server(.https(path: "/dns-query", usesGET: false), .name("dns.example"), port: 443)
            ),
            (
                "https://dns.example:8443/a/B%20c;d=1{?dns}#192.0.2.1",
                Server(
                    .https(path: "/a/B%20c;d=1", usesGET: true), .name("dns.example"), port: 8443, addresses: [v4])
            ),
            ("https://192.0.2.1/", Server(.https(path: "/", usesGET: false), .address(v4, nil), port: 443)),
            // The address behind "#" is dialled, and the other one is in the certificate.
            (
                "https://[2001:db8::1]/dns-query#192.0.2.1",
                Server(.https(path: "/dns-query", usesGET: false), .address(v6, nil), port: 443, addresses: [v4])
            ),
            ("tls://192.0.2.1:8853#2001:db8::1", Server(.tls, .address(v4, nil), port: 8853, addresses: [v6])),
            ("tls://192.0.2.1#192.0.2.1", Server(.tls, .address(v4, nil), port: 853)),
            (
                "https://dns.example/q?token=a&b=/?#192.0.2.1",
                Server(
                    .https(path: "/q?token=a&b=/?", usesGET: false), .name("dns.example"), port: 443, addresses: [v4])
            ),
            (
                "https://dns.example/q?token=a{&dns}",
                Server(.https(path: "/q?token=a", usesGET: true), .name("dns.example"), port: 443)
            ),
            (
                "https://[2001:db8::1]/q#dns.example",
                Server(
                    .https(path: "/q", usesGET: false), .address(v6, nil), port: 443, certificateName: "dns.example")
            ),
        ])
    func forms(_ text: String, _ expected: Server) {
        #expect(server(text) == expected)
    }

    @Test("resolvConf stands for what the files name")
    func resolvConf() {
        #expect((try? ServerText.read("resolvConf")) == .resolvConf)
        #expect(ServerText.text(of: .resolvConf) == "resolvConf")
        #expect(refusal("resolvconf") == "\"resolvconf\" is not right; give \"resolvConf\"")
    }

    @Test(
        "what other programs write is refused with the spelling that is right here",
        arguments: [
            ("10.1.0.53@853#dns.corp.example", "\"tls://10.1.0.53:853#dns.corp.example\""),
            ("10.1.0.53@5353", "\"10.1.0.53:5353\""),
            ("10.1.0.53#5353", "\"10.1.0.53:5353\""),
            ("10.1.0.53#dns.corp.example", "\"tls://10.1.0.53#dns.corp.example\""),
            ("10.1.0.53%dns.corp.example", "\"tls://10.1.0.53#dns.corp.example\""),
            ("10.1.0.53:853#dns.corp.example", "\"tls://10.1.0.53:853#dns.corp.example\""),
            ("2001:db8::1@853#Dns.example", "\"tls://[2001:db8::1]:853#dns.example\""),
            ("tls://10.1.0.53@853#dns.corp.example", "\"tls://10.1.0.53:853#dns.corp.example\""),
            ("tls://10.1.0.53%dns.corp.example", "\"tls://10.1.0.53#dns.corp.example\""),
            ("tls://2001:db8::1", "brackets around the address, \"tls://[2001:db8::1]\""),
            ("https://dns.example", "\"https://dns.example/dns-query\""),
            ("https://dns.example:8443#192.0.2.1", "\"https://dns.example:8443/dns-query#192.0.2.1\""),
            ("https://dns.example{?dns}", "\"https://dns.example/dns-query{?dns}\""),
            ("https://dns.example?x=1", "\"https://dns.example/dns-query\""),
            ("https://dns.example/q?a=1{?dns}", "\"https://HOST/PATH\", or \"{&dns}\" alone behind it for GET"),
            ("https://dns.example/q{?dns}a", "\"https://HOST/PATH\", or \"{?dns}\" alone behind it for GET"),
            ("https://dns.example/q{&dns}", "\"https://HOST/PATH\", or \"{?dns}\" alone behind it for GET"),
            ("https://dns.example/<a>", "a path as a URL has it, with %XX for other characters"),
            ("https://dns.example/%2", "a path as a URL has it, with %XX for other characters"),
            (
                "https://dns.example/q#192.0.2.1,192.0.2.2",
                "behind \"#\" the addresses of this name with \"+\" between them, such as \"#192.0.2.1+2001:db8::1\""
            ),
            (
                "tls://dns.example#other.example",
                "behind \"#\" the addresses of this name with \"+\" between them, such as \"#192.0.2.1+2001:db8::1\""
            ),
            (
                "tls://192.0.2.1#",
                "behind \"#\" the name that the certificate of this address must have, or the address to dial in its place"
            ),
            (
                "tls://192.0.2.1#192.0.2.2+dns.example",
                "behind \"#\" the addresses of this name with \"+\" between them, such as \"#192.0.2.1+2001:db8::1\""
            ),
            ("tls://dns.example/path", "\"tls://HOST\" without a path"),
            ("tcp://dns.example", "\"tcp://ADDRESS\": a plain server is given by its address"),
            ("tcp://192.0.2.1#dns.example", "\"tcp://ADDRESS\" alone"),
            ("tcp://192.0.2.1/", "\"tcp://ADDRESS\" alone"),
            (
                "tls://192.0.2.300",
                "a host name of letters, digits and \"-\", or an address, behind \"://\""
            ),
            (
                "tls://192.0.2.1:0",
                "a port of 1 to 65535 behind the host, or none"
            ),
            (
                "tls://",
                "a host name of letters, digits and \"-\", or an address, behind \"://\""
            ),
            ("192.0.2.1:0", "ADDRESS or ADDRESS:PORT, such as \"192.0.2.53\""),
            ("192.0.2.1:70000", "ADDRESS or ADDRESS:PORT, such as \"192.0.2.53\""),
            ("tls://dns.example\\", "a host name of letters, digits and \"-\", or an address, behind \"://\""),
            ("", "ADDRESS or ADDRESS:PORT, such as \"192.0.2.53\""),
        ])
    func spelling(_ text: String, _ right: String) {
        #expect(refusal(text) == "\(quoted(text)) is not right; give \(right)")
    }

    @Test(
        "a scheme that is not spoken is refused with one that is",
        arguments: [
            ("udp://192.0.2.1", "\"udp://\" is not right; give ADDRESS or ADDRESS:PORT alone"),
            ("h3://dns.example/q", "\"h3://\": HTTP/3 is not spoken here; give \"https://HOST/PATH\""),
            ("quic://dns.example", "\"quic://\": DNS over QUIC is not spoken here; give \"tls://HOST\""),
            ("doq://dns.example", "\"doq://\": DNS over QUIC is not spoken here; give \"tls://HOST\""),
            ("http://dns.example/q", "\"http://\" would show and believe everything; give \"https://HOST/PATH\""),
            ("dot://dns.example", "\"dot://\" is not right; give \"tls://HOST\""),
            ("dns+tls://192.0.2.1#dns.example", "\"dns+tls://\" is not right; give \"tls://HOST\""),
            ("tcp-tls://dns.example", "\"tcp-tls://\" is not right; give \"tls://HOST\""),
            ("doh://dns.example", "\"doh://\" is not right; give \"https://HOST/PATH\""),
            (
                "ftp://dns.example",
                "\"ftp://\" is not right; give ADDRESS, \"tcp://ADDRESS\", \"tls://HOST\", \"https://HOST/PATH\" or "
                    + "\"sdns://STAMP\""
            ),
        ])
    func schemes(_ text: String, _ expected: String) {
        #expect(refusal(text) == expected)
    }

    @Test("a name is refused where a plain server's address belongs")
    func names() {
        #expect(
            refusal("Dns.example") == "\"dns.example\" is a name; give the address of a plain server, or "
                + "\"tls://dns.example\" or \"https://dns.example/dns-query\"")
    }

    @Test(
        "user information is refused and not repeated",
        arguments: [
            "https://user:Passw0rd@dns.example/dns-query", "tls://Passw0rd@192.0.2.1", "https://a:Passw0rd@[::1]/",
            "user:Passw0rd@192.0.2.1", "tls://Passw0rd@", "tcp://Passw0rd@x@y",
            // It combines with what stands before it.
            "https://Passw0rd@\u{350}/", "Passw0rd@\u{350}192.0.2.1",
        ])
    func userInformation(_ text: String) {
        #expect(!refusal(text).contains("Passw0rd"), "\(refusal(text))")
    }

    @Test(
        "names in their own letters are refused with the form that is right",
        arguments: ["tls://bücher.example", "\0", "\t192.0.2.1"])
    func otherCharacters(_ text: String) {
        #expect(
            refusal(text)
                == "a server with other characters than printable ASCII is not right; give a name in its xn-- form, and in a "
                + "path %XX")
    }

    @Test(
        "several servers in one text are refused as that",
        arguments: [
            "192.0.2.1, 192.0.2.2", "192.0.2.1,192.0.2.2", "192.0.2.1 192.0.2.2", " 192.0.2.1", "a b",
            "tls://192.0.2.1 tls://192.0.2.2", "user:Passw0rd@192.0.2.1, 192.0.2.2",
        ])
    func severalServers(_ text: String) {
        #expect(
            refusal(text)
                == "a server with a blank or a comma is not right; give each server a text of its own: [\"192.0.2.1\", \"192.0.2.2\"]"
        )
    }

    @Test("a comma in a path is no second server")
    func commaInPath() { #expect(server("https://dns.example/a,b") != nil) }

    @Test(
        "what other programs write is recognised",
        arguments: [
            ("192.0.2.1%eth0", "\"192.0.2.1\" and, beside servers, device = \"eth0\""),
            ("192.0.2.1:5353%eth0", "\"192.0.2.1:5353\" and, beside servers, device = \"eth0\""),
            (
                "192.0.2.1%br-lan#dns.example",
                "\"tls://192.0.2.1#dns.example\" and, beside servers, device = \"br-lan\""
            ),
            ("tls://192.0.2.1%eth0", "\"tls://192.0.2.1\" and, beside servers, device = \"eth0\""),
            (
                "tls://192.0.2.1%eth0#dns.example",
                "\"tls://192.0.2.1#dns.example\" and, beside servers, device = \"eth0\""
            ),
            ("192.0.2.1@853%dns.example", "\"tls://192.0.2.1:853#dns.example\""),
            ("tcp-tls:dns.example", "\"tls://dns.example\""), ("tcp-tls:192.0.2.1:853", "\"tls://192.0.2.1:853\""),
            ("tls:dns.example", "\"tls://dns.example\""), ("https:dns.example", "\"https://dns.example/dns-query\""),
            ("https:192.0.2.1", "\"https://192.0.2.1/dns-query\""), ("tcp+udp:192.0.2.1", "\"192.0.2.1\""),
            ("udp:192.0.2.1:5353", "\"192.0.2.1:5353\""), ("TCP:192.0.2.1", "\"tcp://192.0.2.1\""),
            (
                "[/corp.example/]192.0.2.1",
                "the server alone in servers of a group [upstreams.NAME], and the names as its domains"
            ),
            (
                "[/a.example/b.example/]tls://192.0.2.1",
                "the server alone in servers of a group [upstreams.NAME], and the names as its domains"
            ),
            (
                "/corp.example/192.0.2.1#5353",
                "the server alone in servers of a group [upstreams.NAME], and the names as its domains"
            ),
        ])
    func otherPrograms(_ text: String, _ right: String) {
        #expect(refusal(text) == "\(quoted(text)) is not right; give \(right)")
    }

    @Test("every list and text has an end")
    func limits() {
        func withAddresses(_ count: Int) -> String {
            "tls://dns.example#" + (1...count).map { "192.0.2.\($0)" }.joined(separator: "+")
        }
        #expect(server(withAddresses(16))?.addresses.count == 16)
        #expect(refusal(withAddresses(17)) == "17 addresses of a server; give at most 16")
        #expect(refusal("tls://dns.example#::1+0::1") == "::1 is listed twice; give it once")
        let path = "/" + String(repeating: "a", count: 254)
        #expect(server("https://dns.example\(path)") != nil)
        #expect(refusal("https://dns.example\(path)a").hasSuffix("give a path of at most 255 octets"))
        #expect(
            refusal("tls://" + String(repeating: "a", count: 4091))
                == "a server of 4097 octets is not right; give at most 4096")
    }

    @Test("a server's text reads as that server")
    func roundTrip() throws {
        var chance = Chance.announced("ServerTextTests.roundTrip")
        let addresses = [Self.v4, Self.v6, .v4(223, 5, 5, 5), IPAddress("2400:3200::1")!]
        for _ in 0..<2000 {
            let kinds: [Server.Kind] = [
                .plain, .tcp, .tls, .https(path: "/dns-query", usesGET: false), .https(path: "/%7Ba", usesGET: true),
            ]
            let kind = kinds[chance.below(kinds.count)]
            let port = UInt16(chance.below(3) == 0 ? [53, 853, 443][chance.below(3)] : 1 + chance.below(65_535))
            let address = addresses[chance.below(4)]
            var made = Server(kind, .address(address, nil), port: port)
            if made.isEncrypted {
                let hashes = (0..<chance.below(3)).map { _ in (0..<32).map { _ in UInt8(chance.below(256)) } }
                // A stamp has POST and one address.
                let isStamp = !hashes.isEmpty && kind != .https(path: "/%7Ba", usesGET: true)
                let dialled = Array(addresses.prefix(chance.below(isStamp ? 2 : 5)))
                made =
                    chance.below(2) == 0
                    ? Server(
                        kind, .name("dns.example"), port: port, addresses: dialled, hashes: isStamp ? hashes : [])
                    : Server(
                        kind, .address(address, nil), port: port,
                        certificateName: isStamp || chance.below(2) == 0 ? nil : "a.example",
                        hashes: isStamp ? hashes : [])
            }
            let text = ServerText.text(of: .server(made))
            #expect(server(text) == made, "\(text)")
        }
    }
}
