import Base
import Configuration
import Testing

@Suite struct ReportURLTests {
    private func url(_ text: String) throws -> Settings.Account.ReportURL? {
        try load("[httpdns]\ntoken = '1'\nreportUrl = \"\(text)\"").httpdns?.reportUrl
    }

    @Test(
        "the parts of a URL",
        arguments: [
            (
                "http://reports.example.com/a/b?c=d&e=%2F", false, "reports.example.com", 80, "/a/b?c=d&e=%2F",
                "reports.example.com"
            ),
            ("https://Reports.Example.com.", true, "reports.example.com", 443, "/", "reports.example.com"),
            ("https://collector:8443/", true, "collector", 8443, "/", "collector:8443"),
            ("http://collector?x", false, "collector", 80, "/?x", "collector"),
            ("http://192.0.2.1/r", false, "192.0.2.1", 80, "/r", "192.0.2.1"),
            ("https://192.0.2.1:65535/r", true, "192.0.2.1", 65535, "/r", "192.0.2.1:65535"),
            ("http://[2001:DB8::1]/r", false, "2001:db8::1", 80, "/r", "[2001:db8::1]"),
            ("https://[2001:db8::1]:8443/r:@/", true, "2001:db8::1", 8443, "/r:@/", "[2001:db8::1]:8443"),
            ("https://1.example", true, "1.example", 443, "/", "1.example"),
        ] as [(String, Bool, String, UInt16, String, String)])
    func parts(
        _ text: String, _ isSecure: Bool, _ host: String, _ port: UInt16, _ path: String, _ authority: String
    ) throws {
        let url = try #require(try self.url(text))
        #expect(url.isSecure == isSecure)
        #expect(url.host == host)
        #expect(url.port == port)
        #expect(url.path == path)
        #expect(url.address == IPAddress(host))
        #expect(url.authority == authority)
        #expect(try self.url(url.description) == url)
    }

    @Test("none is none")
    func none() throws {
        #expect(try url("") == nil)
    }

    @Test(
        "what is no such URL is refused",
        arguments: [
            "http://", "http:///r", "https://?x", "ftp://a.example/", "HTTP://a.example/", "http:/a.example/",
            "a.example",
            "//a.example/", " http://a.example/", "http://user@a.example/", "http://user:password@a.example/",
            "http://user@192.0.2.1/", "http://a.example/#f", "http://a.example#f", "http://a.example/a b",
            "http://a.example/\\r\\nX: y", "http://a.example/é", "http://é.example/",
            "http://a.example/\\\"", "http://a.example/%", "http://a.example/%2", "http://a.example/%2g%20",
            "http://a..example/", "http://.", "http://./", "http://a,b.example/", "http://\\\\097.example/",
            "http://a.example:/", "http://a.example:0/", "http://a.example:65536/", "http://a.example:+1/",
            "http://a.example:80:80/", "http://192.0.2.1:0/", "http://192.0.2.1:x/", "http://192.0.2/",
            "http://192.0.2.256/", "http://192.0.2.01/", "http://2001:db8::1/", "http://[192.0.2.1]/", "http://[::1/",
            "http://[::1]x/", "http://[::1%25eth0]/", "http://[]/", "http://[::1]/[",
        ])
    func refused(_ text: String) {
        let message = message("[httpdns]\ntoken = '1'\nreportUrl = \"\(text)\"")
        #expect(message.hasPrefix("test.toml:3: httpdns.reportUrl: "), "\(message)")
    }

    @Test("a password that should not be there is not repeated")
    func password() {
        // The last has a character that combines with the "@".
        for text in [
            "https://user:Pa55word@a.example/", "user:Pa55word@a.example", "http://user:Pa55word@\u{350}a.example/",
        ] {
            let message = message("[httpdns]\ntoken = '1'\nreportUrl = '\(text)'")
            #expect(!message.contains("Pa55word") && !message.contains("user:"), "\(message)")
            #expect(message.contains("httpdns.reportUrl: what it says is not right; give a URL such as"))
        }
    }
}
