import Base
import DNSWire
import Names
import Testing

@Suite struct ReverseNetworkTests {
    @Test(arguments: ["192.0.2.1", "0.0.0.0", "255.10.0.7", "2001:db8::567:89ab", "::"])
    func reverseNamesAreAddresses(address: String) throws {
        let name = Name.reverse(of: try #require(IPAddress(address)))
        #expect(ReverseNetwork(name: name, bits: 0, value: 0).network == Network(address))
    }

    @Test(arguments: [
        "2.0.192.in-addr.arpa", "9.1.2.0.192.in-addr.arpa", "01.2.0.192.in-addr.arpa", "256.2.0.192.in-addr.arpa",
        "0256.2.0.192.in-addr.arpa", "x.2.0.192.in-addr.arpa", "in-addr.arpa", "ip6.arpa", "1.ip6.arpa", "example.com",
        ".", "1.2.0.192.in-addr.arpa.example",
        "g.a.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa",
        "0.b.a.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa",
        "ba.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa",
        #"1.2.0.192\007in-addr.arpa"#,
    ])
    func otherNamesHaveNoAddress(name: String) throws {
        let network = ReverseNetwork(name: try #require(Name(name)), bits: 0, value: 0).network
        #expect(network.map { $0.prefixLength < ($0.address.isIPv4 ? 32 : 128) } ?? true)
    }
}
