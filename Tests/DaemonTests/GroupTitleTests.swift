import Base
import Configuration
import Forwarding
import Log
import Testing

@testable import Daemon

/// Every sentence has one word for a group: its name in the configuration.
@Suite struct GroupTitleTests {
    @Test(arguments: [
        "", #"servers = ["resolvConf"]"#, #"servers = ["192.168.1.1"]"#, #"servers = ["9.9.9.9"]"#,
        #"servers = ["https://dns.example/dns-query"]"#,
    ])
    func isItsName(_ keys: String) throws {
        let settings = try Settings.load(
            """
            [fallback]
            \(keys)
            [httpdns]
            token = "0123456789"
            [upstreams.office]
            servers = ["10.1.0.53"]
            domains = ["corp.example"]
            """)
        let groups = UpstreamGroups(settings, GroupNumbers(settings), resolvers: []).groups
        #expect(Set(groups.map(\.title)) == ["HTTPDNS", "fallback", "private", "office", "resolv.conf"])
        #expect(groups.first { $0.id == .fallback }?.title == settings.fallback.group.title)
        #expect(Report.noService(settings) == "no [httpdns] section: fallback answers what no [upstreams] group takes")
    }
}
