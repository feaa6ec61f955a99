import DNSWire
import Testing

@testable import Control

@Suite("By what the metrics address may be asked for")
struct ServedHostsTests {
    private let named = ServedHosts(Name("dns.example.com"))

    @Test(
        "an address, localhost and the operator's name are served",
        arguments: [
            "127.0.0.1", "127.0.0.1:9153", "192.0.2.1:80", "[::1]", "[::1]:9153", "[2001:DB8::1]", "localhost",
            "localhost:9153", "LOCALHOST", "localhost.", "localhost.:9153", "dns.example.com", "DNS.example.COM.:9153",
        ])
    func served(_ host: String) {
        #expect(named.contains(Array(host.utf8)))
        #expect(ServedHosts(nil).contains(Array(host.utf8)) == !host.lowercased().contains("example"))
    }

    @Test(
        "any other name is not",
        arguments: [
            "", ":9153", "attacker.example", "attacker.example:9153", "dns.example.com.attacker.example",
            "www.dns.example.com", "example.com", "localhost.attacker.example", "127.0.0.1.attacker.example",
            "127.0.0.1.", "2130706433", "0x7f.1", "[::1", "[::1]x", "[::1]:x", "localhost:x", "localhost:9153:1",
            "localhost:99999", "a@localhost", "localhost/", "localhost, attacker.example", "l\u{f6}calhost",
        ])
    func refused(_ host: String) { #expect(!named.contains(Array(host.utf8))) }

    @Test("octets that are no text are nobody's name")
    func noText() { #expect(!named.contains([0xFF, 0x00, 0x80])) }

    @Test("who names no host is no browser")
    func none() { #expect(named.contains(nil)) }
}
