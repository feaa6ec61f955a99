import Addresses
import Testing

@Suite struct EndpointTests {
    @Test(
        "endpoints with a port",
        arguments: [
            ("1.2.3.4:53", "1.2.3.4", 53), ("0.0.0.0:0", "0.0.0.0", 0),
            ("255.255.255.255:65535", "255.255.255.255", 65535),
            ("[::1]:53", "::1", 53), ("[2001:db8::2]:5353", "2001:db8::2", 5353),
            ("[::ffff:1.2.3.4]:1", "::ffff:1.2.3.4", 1),
        ])
    func withPort(_ text: String, _ address: String, _ port: UInt16) throws {
        let expected = Endpoint(try #require(IPAddress(address)), port: port)
        #expect(Endpoint(text) == expected)
        #expect(Endpoint(text, defaultPort: 9) == expected)
        #expect(expected.description == text)
    }

    @Test(
        "without a port only if there is a default",
        arguments: [
            ("1.2.3.4", "1.2.3.4:53"), ("::1", "[::1]:53"), ("[::1]", "[::1]:53"),
            ("2001:db8::5:53", "[2001:db8::5:53]:53"),
        ])
    func defaultPort(_ text: String, _ full: String) {
        #expect(Endpoint(text) == nil)
        #expect(Endpoint(text, defaultPort: 53)?.description == full)
    }

    @Test(
        "no endpoints at all",
        arguments: [
            "", ":", ":53", "[", "]", "[]", "[]:53", "[::1", "::1]", "[::1]53", "[::1]:", "[::1]:x", "[::1]::53",
            "[[::1]]:53", "[1.2.3.4]:53", "[1.2.3.4]", "1.2.3.4:", "1.2.3.4:053", "1.2.3.4:00", "1.2.3.4:65536",
            "1.2.3.4:99999", "1.2.3.4:999999999999999999999999", "1.2.3.4:-1", "1.2.3.4:+1", "1.2.3.4: 53",
            "1.2.3.4:53 ",
            " 1.2.3.4:53", "1.2.3.4:53:53", "1.2.3.4::53", "1.2.3:53", "localhost:53", "1.2.3.4:٥٣",
            "[fe80::1%eth0]:53",
            "x[::1]:53", "1.2.3.4#53", "1.2.3.4]:53",
        ])
    func refused(_ text: String) {
        #expect(Endpoint(text) == nil)
        #expect(Endpoint(text, defaultPort: 53) == nil)
    }

    @Test("an IPv6 address without brackets is never cut into address and port")
    func ambiguous() {
        #expect(Endpoint("::1:53") == nil)
        #expect(Endpoint("::1:53", defaultPort: 1)?.description == "[::1:53]:1")
    }
}
