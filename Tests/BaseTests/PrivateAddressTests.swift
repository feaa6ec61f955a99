import Base
import Testing

@Suite struct PrivateAddressTests {
    @Test(
        "the first and last of each range, also as a socket or a translator takes them",
        arguments: [
            ("0.0.0.0", "0.255.255.255"), ("10.0.0.0", "10.255.255.255"), ("100.64.0.0", "100.127.255.255"),
            ("127.0.0.0", "127.255.255.255"), ("169.254.0.0", "169.254.255.255"), ("172.16.0.0", "172.31.255.255"),
            ("192.168.0.0", "192.168.255.255"), ("198.18.0.0", "198.19.255.255"), ("224.0.0.0", "255.255.255.255"),
        ])
    func ofIPv4(_ first: String, _ last: String) throws {
        for text in [first, last] {
            let tunnelled = "2002:" + hexadecimal(try #require(IPAddress(text))) + "::1"
            for text in [text, "::ffff:" + text, "64:ff9b::" + text, "::" + text, tunnelled] {
                #expect(try #require(IPAddress(text)).isPrivate, "\(text)")
            }
        }
        let (below, above) = (UInt32(try #require(IPAddress(first)).low), UInt32(try #require(IPAddress(last)).low))
        for bits in [below &- 1, above &+ 1] where bits != .max && bits != 0 {
            let address = IPAddress(v4: bits)
            let tunnelled = "2002:" + hexadecimal(address) + "::1"
            for text in ["", "::ffff:", "64:ff9b::", "::"].map({ $0 + address.description }) + [tunnelled] {
                #expect(!(try #require(IPAddress(text)).isPrivate), "\(text)")
            }
        }
    }

    private func hexadecimal(_ address: IPAddress) -> String {
        let bits = UInt32(truncatingIfNeeded: address.low)
        return String(bits >> 16, radix: 16) + ":" + String(bits & 0xFFFF, radix: 16)
    }

    @Test func ofIPv6() throws {
        for text in [
            "::", "::1", "::2", "fc00::", "fdff:ffff::ffff", "fe80::", "febf:ffff::1", "fec0::", "feff:ffff::1",
            "ff00::",
            "ff02::1", "64:ff9b:1::", "64:ff9b:1:ffff::808:808",
        ] {
            #expect(try #require(IPAddress(text)).isPrivate, "\(text)")
        }
        for text in [
            "::808:808", "fbff::1", "fe00::1", "fe7f:ffff::1", "2001:db8::1", "64:ff9c::a00:1", "64:ff9b:0:1::a00:1",
            "64:ff9b:2::1", "::1:0:0:1",
        ] {
            #expect(!(try #require(IPAddress(text)).isPrivate), "\(text)")
        }
    }
}
