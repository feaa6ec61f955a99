import Base
import DNSWire
import ShellTestSupport
import TestSupport
import Testing
import Transport

@testable import Upstreams

@Suite struct ServerAddressTextTests {
    private func parse(_ text: String) -> [String] {
        ServerAddressText.parse(Array(text.utf8)).map { "\($0.name) \($0.addresses)" }
    }

    @Test func whatIsWrittenIsRead() throws {
        let servers = [
            (
                name: try #require(Name("dns.example")),
                addresses: [IPAddress.v4(192, 0, 2, 1), IPAddress("2001:db8::1")!]
            ),
            (name: try #require(Name("a_b-c.example")), addresses: [IPAddress.v4(192, 0, 2, 2)]),
        ]
        let text = ServerAddressText.write(servers)
        #expect(
            String(decoding: text, as: UTF8.self).hasSuffix(
                "\ndns.example 192.0.2.1 2001:db8::1\na_b-c.example 192.0.2.2\n"))
        #expect(parse(String(decoding: text, as: UTF8.self)) == servers.map { "\($0.name) \($0.addresses)" })
    }

    @Test func aLineThatIsWrongIsPassedOver() {
        let wrong = [
            "dns.example", "dns.example ", " dns.example 192.0.2.1", "dns.example  192.0.2.1", "dns.example 192.0.2.1 ",
            "dns.example\t192.0.2.1", "dns.example 192.0.2.1\r", "dns.example 192.0.2.256", "dns.example 192.0.2.1:853",
            "dns.example 0.0.0.0", "dns.example 224.0.0.1", "dns.example ::ffff:192.0.2.1", "dns.example fe80::1",
            "dns.example 192.0.2.1 192.0.2.1", "dns.example 192.0.2.1 192.0.2.2 192.0.2.3", "192.0.2.1", ". 192.0.2.1",
            "a..b 192.0.2.1", "a\\.b 192.0.2.1", "\(String(repeating: "a", count: 64)) 192.0.2.1", "# 192.0.2.1",
            "\u{0}",
            "dns.example 192.0.2.1\u{0}", "dñs.example 192.0.2.1",
        ]
        for line in wrong {
            #expect(parse("\(line)\nok.example 192.0.2.1\n\(line)") == ["ok.example [192.0.2.1]"], "\(line)")
        }
        #expect(parse("DNS.example. 192.0.2.1\ndns.EXAMPLE 192.0.2.2\n") == ["dns.example [192.0.2.1]"])
    }

    @Test func theLimitsHold() {
        let names = (0..<1000).map { "dns\($0).example 192.0.2.1\n" }.joined()
        #expect(parse(names).count == ServerAddresses.maximumNames)
        let long = String(repeating: "#", count: ServerAddressText.maximumOctets)
        #expect(parse(long + "\ndns.example 192.0.2.1\n").isEmpty)
        // The longest text that is written can be read.
        let label = String(repeating: "a", count: 63)
        let most = (0..<ServerAddresses.maximumNames).map { index in
            let first = "\(index + 100)" + String(repeating: "b", count: 58)
            return (
                name: Name("\(first).\(label).\(label).\(label)")!,
                addresses: (0..<ServerAddresses.maximumWorked).map {
                    IPAddress(v6: 0x2001_0DB8_1111_1111, 0x1111_1111_1111_1110 + UInt64($0))
                }
            )
        }
        let text = ServerAddressText.write(most)
        #expect(ServerAddressText.parse(text).count == most.count)
    }

    @Test func whateverItHoldsWhatIsReadCanBeWrittenAndReadAgain() {
        var chance = Chance.announced("server addresses")
        let sample = Array("dns.example 192.0.2.1 2001:db8::1\na.example 192.0.2.2\n\n# c\nb.example ::1\n".utf8)
        for _ in 0..<2000 {
            let text = mutate(sample, with: Array(" .:\n#\\0a".utf8), &chance)
            let servers = ServerAddressText.parse(text)
            let again = ServerAddressText.parse(ServerAddressText.write(servers))
            #expect(again.map(\.name) == servers.map(\.name) && again.map(\.addresses) == servers.map(\.addresses))
        }
    }
}
