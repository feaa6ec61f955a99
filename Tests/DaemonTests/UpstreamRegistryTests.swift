import Base
import Configuration
import ShellTestSupport
import Testing

@testable import Daemon
@testable import Forwarding
@testable import Transport
@testable import Upstreams

/// What is counted of groups that come and go by a reload.
struct UpstreamRegistryTests {
    @Test func noCountFallsWhenAGroupGoes() throws {
        let loop = try EventLoop(label: "test")
        let registry = UpstreamRegistry(loop: loop, ServerLookup(loop: loop))
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
        func count(_ name: String, _ errors: UInt64) {
            (registry[numbers[name]] as? GroupUpstream)?.answers.mismatches.errors = errors
        }
        try apply(["office", "vpn"])
        count("office", 3)
        count("vpn", 2)
        #expect(registry.mismatches.errors == 5)
        try apply(["vpn"])
        #expect(registry[numbers["office"]] == nil && registry.mismatches.errors == 5)
        try apply(["vpn", "office"])
        count("office", 1)
        #expect(registry.mismatches.errors == 6)
        registry.close()
    }
}
