import Base
import Testing

@Suite struct PrivateAddressTests {
    @Test(
        "the first and last of each range, also as a socket or a translator takes them",
        arguments: [
            ("0.0.0.0", "0.255.255.255"), ("10.0.0.0", "10.255.255.255"), ("100.64.0.0", "100.127.255.255"),
            ("127.0.0.0", "127.255.255.255"), ("169.254.0.0", "169.254.255.255"), ("172.16.0.0", "172.31.255.255"),
            ("192.168.0.0", "192.168.255.255"),
        ])
    func ofIPv4(_ first: String, _ last: String) throws {
        for text in [first, last] {
            for text in [text, "::ffff:" + text, "64:ff9b::" + text] {
                #expect(try #require(IPAddress(text)).isPrivate, "\(text)")
            }
        }
        let (below, above) = (UInt32(try #require(IPAddress(first)).low), UInt32(try #require(IPAddress(last)).low))
        for bits in [below &- 1, above &+ 1] where bits != .max {
            let address = IPAddress(v4: bits)
            for text in ["", "::ffff:", "64:ff9b::"].map({ $0 + address.description }) {
                #expect(!(try #require(IPAddress(text)).isPrivate), "\(text)")
            }
        }
    }

    @Test func ofIPv6() throws {
        for text in ["::", "::1", "fc00::", "fdff:ffff::ffff", "fe80::", "febf:ffff::1"] {
            #expect(try #require(IPAddress(text)).isPrivate, "\(text)")
        }
        for text in [
            "::2", "fbff::1", "fe00::1", "fec0::", "2001:db8::1", "64:ff9c::a00:1", "64:ff9b:0:1::a00:1", "::1:0:0:1",
        ] {
            #expect(!(try #require(IPAddress(text)).isPrivate), "\(text)")
        }
    }
}
