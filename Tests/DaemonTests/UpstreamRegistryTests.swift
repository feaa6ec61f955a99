import Base
import Configuration
import Counters
import DNSWire
import ShellTestSupport
import Testing

@testable import Daemon
@testable import Forwarding
@testable import Transport
@testable import Upstreams

/// What is counted of groups that come and go by a reload, and which of them begin afresh.
struct UpstreamRegistryTests {
    @Test func aGroupThatIsAskedInAnotherWayBeginsAfresh() throws {
        func settings(_ key: String) throws -> Settings {
            try Settings.load("[upstreams.office]\nservers = [\"192.0.2.1\"]\ndomains = [\"corp.example\"]\n\(key)\n")
        }
        let before = GroupIdentity.all(try settings(""))
        #expect(try UpstreamRegistry.Prepared(settings("timeout = 900"), after: before).renewed == [])
        #expect(try UpstreamRegistry.Prepared(settings("mark = 7"), after: before).renewed == ["office"])
    }

    /// Else all that it has ever answered would be of its last minute.
    @Test func aServerThatLeavesAGroupLeavesNoFigures() throws {
        let loop = try EventLoop(label: "test")
        let registry = UpstreamRegistry(loop: loop, ServerLookup(loop: loop), Tally(.udp))
        let settings = try Settings.load("[fallback]\nservers = [\"192.0.2.1\"]\n")
        registry.apply(settings, try UpstreamRegistry.Prepared(settings), GroupNumbers(settings))
        let (first, second) = (Server(Endpoint("192.0.2.1:53")!), Server(Endpoint("192.0.2.2:53")!))
        let tallies = (registry[.fallback] as? GroupUpstream)?.tallies
        tallies?.server(first).answered(.noError, nanoseconds: 1_000_000)
        registry.keep([second, first], of: .fallback)
        #expect(registry.figures[.fallback]?[first]?.durations[0]?.total == 1)
        registry.keep([second], of: .fallback)
        #expect(registry.figures[.fallback]?.isEmpty == true)
        registry.close()
    }

    @Test func noCountFallsWhenAGroupGoes() throws {
        let (loop, tally) = (try EventLoop(label: "test"), Tally(.udp))
        let registry = UpstreamRegistry(loop: loop, ServerLookup(loop: loop), tally)
        var numbers = GroupNumbers()
        func apply(_ names: [String]) throws {
            var settings = Settings()
            settings.upstreams = names.map { name in
                var group = Settings.Group(name: name)
                group.servers = [.server(Server(Endpoint("192.0.2.1:53")!))]
                return group
            }
            numbers.add(settings)
            registry.apply(settings, try UpstreamRegistry.Prepared(settings), numbers)
            registry.endTurn()
        }
        func count(_ name: String, _ errors: Int) {
            let answers = (registry[numbers[name]] as? GroupUpstream)?.answers
            for _ in 0..<errors { answers?.tally.count(.mismatchICMP) }
        }
        try apply(["office", "vpn"])
        count("office", 3)
        count("vpn", 2)
        #expect(tally[.mismatchICMP] == 5)
        try apply(["vpn"])
        #expect(registry[numbers["office"]] == nil && tally[.mismatchICMP] == 5)
        try apply(["vpn", "office"])
        count("office", 1)
        #expect(tally[.mismatchICMP] == 6)
        registry.close()
    }
}
