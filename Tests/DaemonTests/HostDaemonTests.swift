import Base
import Configuration
import Testing

@testable import Daemon

/// Where `httpdnsd host` finds the daemon, by the programs that answer.
@Suite struct HostDaemonTests {
    @Test(
        "the address at which the daemon answers comes first, then those of the settings",
        arguments: [
            (["127.0.0.1:53", "[::1]:53"], ["127.0.0.1": .daemon, "::1": .daemon], ["127.0.0.1", "::1"], nil),
            // Sockets that systemd has handed over.
            (["192.168.1.2:53"], ["127.0.0.1": .daemon, "::1": .nothing("no answer")], ["127.0.0.1"], nil),
            (["127.0.0.2:53"], ["127.0.0.2": .nothing("no answer"), "::1": .daemon], ["::1", "127.0.0.2"], nil),
            (["[::1]:53"], ["127.0.0.1": .otherProgram, "::1": .daemon], ["::1"], nil),
            (["192.168.1.2:53"], ["127.0.0.1": .otherProgram, "::1": .nothing("no answer")], [], nil),
            (["127.0.0.1:5300"], ["127.0.0.1": .otherProgram], [], nil),
            (
                ["0.0.0.0:53"], ["127.0.0.1": .otherProgram, "::1": .nothing("no answer")], ["127.0.0.1"],
                "another program answers at 127.0.0.1:53; ss -lntup says which"
            ),
            (
                ["[::]:53"], ["127.0.0.1": .nothing("no answer"), "::1": .otherProgram], ["::1"],
                "another program answers at [::1]:53; ss -lntup says which"
            ),
            (
                ["127.0.0.1:53"], ["127.0.0.1": .nothing("no answer"), "::1": .otherProgram], ["127.0.0.1"],
                "the daemon must answer first: no answer; systemctl enable --now httpdnsd starts it"
            ),
            (
                ["[::1]:53"], ["127.0.0.1": .nothing("no answer"), "::1": .refuses], ["::1"],
                "[::1]:53 refuses the programs of this machine: add ::1 to listen.allow, or find another program "
                    + "there with ss -lntup"
            ),
        ] as [([String], [String: HostDaemon.Answerer], [String], String?)])
    func found(
        _ listed: [String], _ answerers: [String: HostDaemon.Answerer], _ addresses: [String], _ failure: String?
    ) {
        var settings = Settings()
        settings.listen.addresses = listed.compactMap { Endpoint($0) }
        let daemon = HostDaemon(settings) { asked in
            #expect(asked.contains(.v4(127, 0, 0, 1)) && asked.contains(IPAddress(v6: 0, 1)))
            return Dictionary(uniqueKeysWithValues: asked.map { ($0, answerers["\($0)"] ?? .nothing("")) })
        }
        #expect(daemon.addresses.map { "\($0)" } == addresses)
        #expect(daemon.address == daemon.addresses.first)
        #expect(daemon.failure == failure)
    }
}
