import Base
import DNSCache
import Testing

@testable import Control
@testable import Forwarding

@Suite struct OverviewTests {
    private static let now = Tick(nanoseconds: 1_000_000_000_000)

    private func server(_ text: String, failedBefore seconds: Int? = nil, roundTrip: Double? = 21) -> ServerState {
        var health = ServerHealth()
        health.roundTrip = roundTrip
        health.answers = roundTrip == nil ? 0 : 1
        if let seconds {
            health.consecutiveFailures = 1
            health.failures = 1
            health.lastFailure = Failure(.untrusted, "certificate is for <b>\"x\"</b> & 'y'")
            health.lastFailureAt = Tick(nanoseconds: Self.now.nanoseconds - UInt64(seconds) * 1_000_000_000)
        }
        return ServerState(Server(Endpoint(text)!), health: health)
    }

    private func overview(_ services: [ServerState], _ resolvers: [ServerState]) -> Overview {
        var overview = Overview(DNSCache(bytes: 1 << 20, seed: (1, 2)).statistics)
        overview.at = Self.now
        overview.encryption = services.isEmpty ? nil : "https"
        (overview.services, overview.resolvers) = (services, resolvers)
        return overview
    }

    @Test("who answers and who does not make the state, and what is said of it")
    func states() {
        let (good, other) = (server("119.29.29.99:443"), server("119.28.28.99:443"))
        let (bad, local) = (server("119.29.29.99:443", failedBefore: 1), server("192.0.2.53:53"))
        let deaf = server("192.0.2.53:53", failedBefore: 1)
        for (services, resolvers, state) in [
            ([good], [local], Overview.State.healthy), ([good], [], .healthy), ([], [local], .healthy),
            ([good, bad], [local], .healthy), ([good], [deaf], .degraded), ([bad, other], [local], .degraded),
            ([bad], [local], .degraded), ([good], [deaf, local], .healthy), ([bad], [], .down), ([bad], [deaf], .down),
            ([], [], .down),
        ] {
            #expect(overview(services, resolvers).state == state)
        }
        #expect(
            overview([good], [local]).headline == "serving; HTTPDNS 119.29.29.99 21 ms; cache 0 answers")
        #expect(
            overview([bad], [local]).headline
                == "serving; HTTPDNS 119.29.29.99 fails; local resolver 192.0.2.53 21 ms; cache 0 answers")
        #expect(overview([], []).headline == "serving from the cache alone; nobody to ask; cache 0 answers")
        var second = overview([bad, other], [])
        second.currentService = 1
        #expect(second.verdict == "The first HTTPDNS server is given up. The next answers.")
        var only = overview([bad], [local])
        only.isHTTPOnly = true
        #expect(only.state == .down && !only.isReady)
    }

    @Test("ready is who has somebody to ask that did not fail within the last half minute")
    func readiness() {
        #expect(overview([server("192.0.2.1:443", roundTrip: nil)], []).isReady)
        #expect(!overview([server("192.0.2.1:443", failedBefore: 29)], []).isReady)
        #expect(overview([server("192.0.2.1:443", failedBefore: 30)], []).isReady)
        #expect(overview([server("192.0.2.1:443", failedBefore: 1)], [server("192.0.2.53:53")]).isReady)
        #expect(!overview([], []).isReady)
        var stopping = overview([server("192.0.2.1:443")], [])
        stopping.isStopping = true
        #expect(!stopping.isReady && stopping.headline.hasPrefix("stopping; "))
    }

    @Test("what a server says of itself is text on the page, not markup")
    func escaping() {
        let page = StatusPage(overview([server("192.0.2.1:443", failedBefore: 5)], []))
        #expect(!page.html.contains("<b>\"x\""))
        #expect(page.html.contains("&lt;b&gt;&quot;x&quot;&lt;/b&gt; &amp; &#39;y&#39;"))
        #expect(StatusPage(page.overview).fields != page.fields)
    }

    @Test(
        "numbers as people read them",
        arguments: [
            (Overview.milliseconds(0.25), "0.25 ms"), (Overview.milliseconds(2.04), "2 ms"),
            (Overview.milliseconds(21.4), "21 ms"), (Overview.milliseconds(1500), "1.5 s"),
            (Overview.milliseconds(nanoseconds: 15_625), "16 µs"),
            (Overview.milliseconds(nanoseconds: nil), "over 8 s"),
            (Overview.octets(9999), "9999 B"), (Overview.octets(32 << 20), "32 MiB"),
            (Overview.octets(20_000), "20 KiB"),
            (Overview.span(59), "59 s"), (Overview.span(3 * 3600 + 61), "3 h 1 min"),
            (Overview.span(90_000), "1 d 1 h"),
            (Overview.percent(0.999), "99 %"), (Overview.decimal(1.005, 1), "1"), (Overview.decimal(1.05, 2), "1.05"),
        ])
    func numbers(_ text: String, _ expected: String) {
        #expect(text == expected)
    }

    @Test("JSON has no bare control characters and its parts in order")
    func json() {
        let value = JSON.object([
            ("a\"\\", .array([.null, .bool(true), .integer(1), .number(0.5), .string("\n\u{1}é")])), ("b", .object([])),
        ])
        #expect(value.text == #"{"a\"\\":[null,true,1,0.5,"\n\u0001é"],"b":{}}"#)
    }
}
