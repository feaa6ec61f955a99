import Base
import Testing

@Suite struct NAT64PrefixTests {
    /// The table of RFC 6052 §2.4, and the well-known prefix.
    static let vectors = [
        ("2001:db8::/32", "2001:db8:c000:221::"), ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
        ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"), ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
        ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"),
        ("2001:db8:122:344::/96", "2001:db8:122:344::c000:221"),
        ("64:ff9b::/96", "64:ff9b::c000:221"),
    ]

    static func prefix(_ text: String) throws -> NAT64Prefix {
        let network = try #require(Network(text))
        return try #require(NAT64Prefix(network))
    }

    @Test("RFC 6052 §2.4: where the IPv4 address stands, for each length of a prefix", arguments: vectors)
    func embedded(_ prefix: String, _ text: String) throws {
        let prefix = try Self.prefix(prefix)
        let address = try #require(IPAddress(text))
        #expect(prefix.address(of: .v4(192, 0, 2, 33)) == address)
        #expect(prefix.ipv4(in: address) == .v4(192, 0, 2, 33))
    }

    @Test(
        "RFC 6052 §2.2: what is no prefix",
        arguments: [
            "2001:db8::/33", "2001:db8::/95", "2001:db8::/128", "::/0", "192.0.2.0/24", "2001:db8:0:0:100::/96",
            "::/96", "::ffff:0:0/96", "fe80::/64", "ff00::/32",
        ])
    func refused(_ text: String) throws {
        let network = try #require(Network(text))
        #expect(NAT64Prefix(network) == nil)
    }

    @Test(
        "RFC 6052 §3.1: addresses that a translator is not told of",
        arguments: [
            ("64:ff9b::/96", "10.0.0.1", false), ("64:ff9b::/96", "192.168.1.1", false),
            ("64:ff9b::/96", "8.8.8.8", true),
            ("64:ff9b::/96", "192.0.0.170", false), ("64:ff9b::/96", "192.0.0.171", false),
            ("2001:db8::/96", "192.0.0.170", false), ("2001:db8::/32", "192.0.0.171", false),
            ("64:ff9b::/96", "192.0.0.169", true), ("64:ff9b::/96", "192.0.0.172", true),
            ("2001:db8::/96", "10.0.0.1", true),
            ("2001:db8::/96", "127.0.0.1", false),
            ("2001:db8::/96", "169.254.1.1", false), ("2001:db8::/96", "0.0.0.0", false),
            ("2001:db8::/96", "224.0.0.1", false),
            ("2001:db8::/96", "255.255.255.255", false), ("2001:db8::/96", "2001:db8::1", false),
        ])
    func translated(_ prefix: String, _ address: String, _ isTranslated: Bool) throws {
        let prefix = try Self.prefix(prefix)
        let address = try #require(IPAddress(address))
        #expect((prefix.address(of: address) != nil) == isTranslated)
    }

    @Test(
        "RFC 7050 §3: the prefix of a network, from the addresses of ipv4only.arpa",
        arguments: [
            (["64:ff9b::192.0.0.170"], ["64:ff9b::/96"]), (["64:ff9b::c000:aa", "64:ff9b::c000:ab"], ["64:ff9b::/96"]),
            (["2001:db8:c000:aa::"], ["2001:db8::/32"]), (["2001:db8:1c0:0:aa::"], ["2001:db8:100::/40"]),
            (["2001:db8:122:c000:0:aa00::"], ["2001:db8:122::/48"]),
            (["2001:db8:122:3c0:0:aa::"], ["2001:db8:122:300::/56"]),
            (["2001:db8:122:344:c0:0:ab00::"], ["2001:db8:122:344::/64"]),
            (["2001:db8:1::c000:ab", "64:ff9b::c000:aa"], ["2001:db8:1::/96", "64:ff9b::/96"]),
            ([], []), (["2001:db8::1"], []), (["192.0.0.170"], []), (["::ffff:192.0.0.170"], []),
            (["::192.0.0.170"], []),
            (["fe80::192.0.0.170"], []), (["64:ff9b::192.0.0.172"], []),
            // Twice in an address: behind 32 bits and 96, 40 and 96, 32 and 64.
            (["2001:db8:c000:aa::192.0.0.170"], []),
            (["2001:db8:1c0:0:ab::c000:aa", "64:ff9b::192.0.0.170"], ["64:ff9b::/96"]),
            (["2001:db8:c000:ab:c0:0:aa00::"], []), (["2001:db8:c000:ac::192.0.0.170"], ["2001:db8:c000:ac::/96"]),
        ])
    func found(_ addresses: [String], _ prefixes: [String]) throws {
        let found = NAT64Prefix.found(in: addresses.compactMap { IPAddress($0) })
        #expect(found.map(\.description) == prefixes)
    }
}
