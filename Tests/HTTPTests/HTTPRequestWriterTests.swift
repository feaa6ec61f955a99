import Base
import Testing

@testable import HTTP

@Suite struct HTTPRequestWriterTests {
    private func text(_ request: [UInt8]) -> String { String(decoding: request, as: UTF8.self) }

    @Test func requests() {
        let kept = HTTPRequestWriter(host: "h.example:8443", keepsConnection: true)
        #expect(
            text(kept.get(Array("/d?dn=a".utf8)))
                == "GET /d?dn=a HTTP/1.1\r\nHost: h.example:8443\r\nUser-Agent: httpdnsd\r\nAccept: */*\r\n"
                + "Connection: keep-alive\r\n\r\n")
        let once = HTTPRequestWriter(host: "h", keepsConnection: false)
        #expect(
            text(once.post(Array("/".utf8), body: ("application/x-ndjson", Array("{}\n".utf8))))
                == "POST / HTTP/1.1\r\nHost: h\r\nUser-Agent: httpdnsd\r\nAccept: */*\r\nConnection: close\r\n"
                + "Content-Type: application/x-ndjson\r\nContent-Length: 3\r\n\r\n{}\n")
        #expect(text(once.post(Array("/flush".utf8))).hasSuffix("Connection: close\r\n\r\n"))
    }

    /// Whatever the host is, it cannot end its field.
    @Test(arguments: ["", "a b", "a\r\nX: y", "a/b", "ä", "\u{0}"]) func aHostForgesNothing(host: String) {
        let request = text(HTTPRequestWriter(host: host, keepsConnection: true).get(Array("/".utf8)))
        #expect(request.split(separator: "\r\n", omittingEmptySubsequences: false).count == 7)
        #expect(request.firstMatch(of: /\r\nHost: [!-~]*\r\n/) != nil)
    }

    @Test(arguments: [
        ("192.0.2.1:80", nil, false, "192.0.2.1"), ("192.0.2.1:80", "", true, "192.0.2.1:80"),
        ("192.0.2.1:443", "dns.example", true, "dns.example"), ("192.0.2.1:53", "dns.example", true, "dns.example:53"),
        ("[2001:db8::1]:443", nil, true, "[2001:db8::1]"), ("[2001:db8::1]:80", nil, true, "[2001:db8::1]:80"),
        ("192.0.2.1:8443", "2001:db8::1", true, "[2001:db8::1]:8443"), ("[fe80::1%eth0]:80", nil, false, "[fe80::1]"),
    ])
    func hostField(server: String, name: String?, isSecure: Bool, expected: String) throws {
        let server = try #require(Endpoint(server, allowsZone: true))
        #expect(server.hostField(serverName: name, isSecure: isSecure) == expected)
    }
}
