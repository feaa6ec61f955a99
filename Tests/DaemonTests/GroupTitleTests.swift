import Base
import Configuration
import Forwarding
import Log
import Testing

@testable import Daemon

/// What is said of `[fallback]`: it is called the local resolver only if it is one.
@Suite struct GroupTitleTests {
    @Test(arguments: [
        ("", GroupTitle.localResolver), (#"servers = ["resolvConf"]"#, .localResolver),
        (#"servers = ["192.168.1.1"]"#, .localResolver), (#"servers = ["127.0.0.53", "resolvConf"]"#, .localResolver),
        (#"servers = ["tcp://10.0.0.1", "[fe80::1%1]:53"]"#, .localResolver),
        (#"servers = ["9.9.9.9"]"#, .fallback), (#"servers = ["192.168.1.1", "9.9.9.9"]"#, .fallback),
        (#"servers = ["tls://192.168.1.1"]"#, .fallback), (#"servers = ["https://dns.example/dns-query"]"#, .fallback),
        (#"servers = ["resolvConf", "tls://192.0.2.1"]"#, .fallback), (#"servers = ["tcp://9.9.9.9"]"#, .fallback),
    ])
    func isOfItsServers(_ keys: String, _ title: GroupTitle) throws {
        let settings = try Settings.load(
            file: "/e/httpdnsd.toml", contents: "[fallback]\n\(keys)\n", environment: [:],
            readFile: { _ in FileReading([]) }
        ).settings
        #expect(settings.fallback.group.title == title)
        var numbers = GroupNumbers()
        numbers.add(settings)
        let groups = UpstreamGroups(settings, numbers, services: [:], servers: { _ in [] }).groups
        #expect(groups.first { $0.id == .fallback }?.title == title, "whether its servers are known yet or not")
        #expect(Report.noService(settings) == "no [httpdns] section: \(title.noun) answers everything")
    }

    @Test func hasAFormForEachPlaceOfASentence() {
        let forms = [GroupTitle.httpdns, .localResolver, .fallback, .named("office")].map {
            [$0.text, $0.noun, $0.subject, $0.heading]
        }
        #expect(
            forms == [
                ["HTTPDNS", "HTTPDNS", "HTTPDNS", "HTTPDNS"],
                ["local resolver", "the local resolver", "The local resolver", "Local resolver"],
                ["fallback", "the fallback", "The fallback", "Fallback"], ["office", "office", "office", "office"],
            ])
    }
}
