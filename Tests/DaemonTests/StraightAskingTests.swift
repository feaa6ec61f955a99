import Base
import Configuration
import Testing

@testable import Daemon
@testable import Transport

/// What asks servers for a command.
@Suite struct StraightAskingTests {
    private static func settings() throws -> Settings {
        var settings = try Settings.load("[upstreams.ads]\nanswer = \"nxdomain\"\ndomains = [\"ads.example\"]\n")
        (settings.fallback.hosts, settings.fallback.resolvConf) = ([], [])
        return settings
    }

    /// Else the loop would go on with what a command that asks nobody has released.
    @Test func theLoopStartsWithTheFirstQuestion() throws {
        let straight = try StraightAsking(Self.settings())
        Program.sleep(milliseconds: 50)
        #expect(straight.forwarderLoop.loop.turns == 0)
        straight.start()
        straight.close()
        #expect(straight.forwarderLoop.loop.turns > 0)
    }

    @Test func aGroupWithoutServersIsRefused() throws {
        let settings = try Self.settings()
        #expect(throws: StartFailure.self) { _ = try DirectQuery(settings, group: "ads", ipv4: true, ipv6: true) }
        #expect(throws: StartFailure.self) { _ = try Probe(settings, group: "ads", say: { _ in }) }
    }
}
