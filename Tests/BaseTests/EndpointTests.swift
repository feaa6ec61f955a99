import Base
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

    @Test(
        "a link-local address may have its zone where that means something",
        arguments: [
            ("[fe80::1%eth0]:53", "[fe80::1%eth0]:53"), ("fe80::1%eth0", "[fe80::1%eth0]:9"),
            ("[febf::1%2]", "[febf::1%2]:9"), ("fe80::1%a.very-long_if9", "[fe80::1%a.very-long_if9]:9"),
            ("fe80::1", "[fe80::1]:9"), ("1.2.3.4:5", "1.2.3.4:5"), ("::1", "[::1]:9"),
        ])
    func zones(_ text: String, _ full: String) throws {
        let endpoint = try #require(Endpoint(text, defaultPort: 9, allowsZone: true))
        #expect(endpoint.description == full)
        #expect(Endpoint(full, allowsZone: true) == endpoint)
        #expect((Endpoint(text, defaultPort: 9) == endpoint) == (endpoint.zone == nil))
    }

    @Test("a zone tells two endpoints apart")
    func zonesDiffer() {
        let endpoints = ["%eth0", "%eth1", "%1", ""].map {
            Endpoint(address: "fe80::1\($0)", port: 53, allowsZone: true)
        }
        #expect(Set(endpoints).count == 4 && !endpoints.contains(nil))
    }

    @Test(
        "no zones",
        arguments: [
            "fe80::1%", "[fe80::1%]:53", "fe80::1%sixteen-octets-x", "fe80::1%a b", "fe80::1%a/b", "fe80::1%a:b",
            "fe80::1%a%b", "fe80::1%]", "fe80::1%\u{e4}", "fe80::1%a\0", "2001:db8::1%eth0", "::1%lo", "fec0::1%eth0",
            "1.2.3.4%eth0", "1.2.3.4%eth0:53", "%eth0", "[fe80::1]%eth0:53",
        ])
    func noZones(_ text: String) {
        #expect(Endpoint(text, defaultPort: 53, allowsZone: true) == nil)
    }

    @Test("an IPv6 address without brackets is never cut into address and port")
    func ambiguous() {
        #expect(Endpoint("::1:53") == nil)
        #expect(Endpoint("::1:53", defaultPort: 1)?.description == "[::1:53]:1")
    }
}
