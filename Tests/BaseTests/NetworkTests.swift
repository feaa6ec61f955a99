import Base
import TestSupport
import Testing

@Suite struct NetworkTests {
    @Test(
        "ranges and their texts",
        arguments: [
            ("127.0.0.0/8", "127.0.0.0/8"), ("0.0.0.0/0", "0.0.0.0/0"), ("1.2.3.4", "1.2.3.4/32"),
            ("1.2.3.4/32", "1.2.3.4/32"),
            ("128.0.0.0/1", "128.0.0.0/1"), ("::/0", "::/0"), ("::1", "::1/128"), ("::1/128", "::1/128"),
            ("2001:db8::/32", "2001:db8::/32"), ("2001:db8:0:0:8000::/65", "2001:db8:0:0:8000::/65"),
            ("8000::/1", "8000::/1"),
            ("::ffff:0:0/96", "::ffff:0.0.0.0/96"), ("fe80::/64", "fe80::/64"),
        ])
    func accepted(_ text: String, _ canonical: String) throws {
        let network = try #require(Network(text))
        #expect(network.description == canonical)
        #expect(Network(canonical) == network)
    }

    @Test(
        "ranges of mapped addresses, and of IPv4",
        arguments: [
            ("::ffff:0:0/96", "0.0.0.0/0"), ("::ffff:192.0.2.0/120", "192.0.2.0/24"), ("::ffff:1.2.3.4", "1.2.3.4/32"),
            ("::/0", "::/0"), ("::/80", "::/80"), ("2001:db8::/32", "2001:db8::/32"), ("10.0.0.0/8", "10.0.0.0/8"),
        ])
    func unmapped(_ text: String, _ expected: String) throws {
        #expect(try #require(Network(text)).unmapped.description == expected)
    }

    @Test(
        "no ranges",
        arguments: [
            "", "/", "/8", "1.2.3.4/", "1.2.3.4/33", "1.2.3.4/-1", "1.2.3.4/032", "1.2.3.4/+8", "1.2.3.4/8/8",
            "1.2.3.4/ 32",
            "1.2.3.4/32 ", "1.2.3/24", "::/129", "::1/1000000000000000000000", "::/x", "[::]/0", "::1:53/",
            "1.2.3.4/٣٢",
            "10.0.0.0/255.0.0.0",
            // Host bits set.
            "10.0.0.1/8", "127.0.0.1/31", "0.0.0.1/0", "::1/127", "::1/0", "2001:db8::1/32", "2001:db8:1::/32",
            "0:0:0:1::/63", "0:0:0:0:8000::/64",
        ])
    func refused(_ text: String) {
        #expect(Network(text) == nil)
    }

    @Test(
        "the range around an address",
        arguments: [
            ("10.1.2.3/8", "10.0.0.0/8"), ("192.168.1.7/24", "192.168.1.0/24"), ("10.0.0.0/8", "10.0.0.0/8"),
            ("255.255.255.255/31", "255.255.255.254/31"), ("1.2.3.4/32", "1.2.3.4/32"), ("1.2.3.4/0", "0.0.0.0/0"),
            ("2001:db8::1/32", "2001:db8::/32"), ("0:0:0:1::/63", "::/63"),
            ("2001:db8::ffff/113", "2001:db8::8000/113"),
            ("::1/0", "::/0"), ("1.2.3.4", nil), ("1.2.3.4/33", nil), ("1.2.3.4/", nil), ("example.com/8", nil),
            ("", nil),
        ])
    func around(_ text: String, _ range: String?) {
        #expect(Network(around: text)?.description == range)
    }

    @Test(
        "what a range contains",
        arguments: [
            ("127.0.0.0/8", "127.0.0.0", true), ("127.0.0.0/8", "127.255.255.255", true),
            ("127.0.0.0/8", "128.0.0.0", false),
            ("127.0.0.0/8", "126.255.255.255", false), ("127.0.0.0/8", "::ffff:127.0.0.1", true),
            ("127.0.0.0/8", "::ffff:128.0.0.1", false), ("127.0.0.0/8", "::127.0.0.1", false),
            ("127.0.0.0/8", "::1", false),
            ("0.0.0.0/0", "8.8.8.8", true), ("0.0.0.0/0", "::ffff:8.8.8.8", true), ("0.0.0.0/0", "::8.8.8.8", false),
            ("0.0.0.0/0", "::", false), ("::/0", "8.8.8.8", false), ("::/0", "ffff::", true),
            ("::/0", "::ffff:1.2.3.4", true),
            ("::1/128", "::1", true), ("::1/128", "::", false), ("::1/128", "0.0.0.1", false),
            ("2001:db8::/32", "2001:db8:ffff::1", true), ("2001:db8::/32", "2001:db9::", false),
            ("fe80::/64", "fe80::ffff:ffff:ffff:ffff", true), ("fe80::/64", "fe80:0:0:1::", false),
            ("::ffff:0:0/96", "::ffff:1.2.3.4", true), ("::ffff:0:0/96", "1.2.3.4", false),
            ("2001:db8:0:0:8000::/65", "2001:db8:0:0:8000::5", true), ("2001:db8:0:0:8000::/65", "2001:db8::5", false),
        ])
    func contains(_ network: String, _ address: String, _ expected: Bool) throws {
        #expect(try #require(Network(network)).contains(try #require(IPAddress(address))) == expected)
    }

    @Test("a range holds exactly the addresses that share its leading bits")
    func everyPrefixLength() throws {
        var random = Chance.announced("NetworkTests.everyPrefixLength")
        for octetCount in [4, 16] {
            for length in 0...octetCount * 8 {
                let inside = (0..<octetCount).map { _ in UInt8.random(in: 0...255, using: &random) }
                var first = inside
                for bit in length..<octetCount * 8 { first[bit / 8] &= ~(0x80 >> UInt8(bit % 8)) }
                let network = try #require(Network("\(Judge.text(first))/\(length)"))
                #expect(network.contains(try #require(addressFrom(octets: inside))))
                for bit in 0..<octetCount * 8 {
                    var other = inside
                    other[bit / 8] ^= 0x80 >> UInt8(bit % 8)
                    let address = try #require(addressFrom(octets: other))
                    #expect(network.contains(address) == (bit >= length), "\(network) \(address)")
                }
                if length < octetCount * 8 {
                    var hostBits = first
                    hostBits[octetCount - 1] |= 1
                    #expect(Network("\(Judge.text(hostBits))/\(length)") == nil)
                }
            }
        }
    }
}
