import Base
import Configuration
import DNSWire
import Forwarding
import Foundation
import Names
import ShellTestSupport
import Testing

@testable import Daemon

/// Settings by which a server could be found by way of itself alone: refused in words, at the start and at a reload.
@Suite struct ServerCirclesTests {
    private static func server(_ name: String) -> UpstreamServer {
        .server(Server(.tls, .name(name), port: 853))
    }

    /// Settings whose groups take `NAME.example`.
    private static func settings(_ groups: KeyValuePairs<String, [String]>, fallback: [String] = []) -> Settings {
        var settings = Settings.withoutFiles
        settings.fallback.servers = fallback.map(server)
        settings.upstreams = groups.map { name, servers in
            var group = Settings.Group(name: name)
            group.servers = servers.map(server)
            group.domains = [.subtree(Name("\(name).example")!)]
            return group
        }
        return settings
    }

    private static func refusal(_ settings: Settings) -> StartFailure? {
        do throws(StartFailure) {
            _ = try Daemon.check(settings)
            return nil
        } catch {
            return error
        }
    }

    private static let advice = "; give the server's addresses behind #, or take its name out with except"

    @Test(arguments: ["127.0.0.1:5300", "127.0.0.1:853", "[::1]:443"])
    func theDaemonIsNoServerOfItsOwnOverAnyTransport(_ server: String) {
        var settings = Self.settings([:])
        settings.listen.addresses = [Endpoint("127.0.0.1:5300")!]
        settings.listen.tls = [Endpoint("0.0.0.0:853")!]
        settings.listen.https = [Endpoint("[::]:443")!]
        settings.fallback.servers = [.server(Server(Endpoint(server)!)), .server(Server(Endpoint("192.0.2.1:853")!))]
        let found = LocalReading(settings, [.resolvers]).servers(of: settings.fallback.group)
        #expect(found.usable == [Server(Endpoint("192.0.2.1:853")!)])
        #expect(found.leftOut == [LeftOutServer(Endpoint(server)!, in: "fallback.servers", .loop)])
    }

    @Test func aGroupThatTakesItsOwnServer() {
        #expect(
            Self.refusal(Self.settings(["a": ["dns.net", "dns.a.example"]]))
                == .setting(
                    key: "upstreams.a.servers", item: 2,
                    "tls://dns.a.example cannot be found: dns.a.example is a name that this group takes itself\(Self.advice)"
                ))
    }

    @Test func groupsThatTakeEachOthersServers() {
        for groups in [
            Self.settings(["a": ["dns.b.example"], "b": ["dns.a.example"]]),
            Self.settings(["a": ["dns.b.example"], "b": ["dns.c.example"], "c": ["dns.a.example"]]),
        ] {
            #expect(
                Self.refusal(groups)
                    == .setting(
                        key: "upstreams.a.servers", item: 1,
                        "tls://dns.b.example cannot be found: dns.b.example is asked of [upstreams.b], whose servers cannot be "
                            + "found without this group\(Self.advice)"))
        }
    }

    @Test func aGroupThatAnswersTheNameOfAServer() {
        var settings = Self.settings(["a": ["dns.ads.example"], "ads": []])
        settings.upstreams[1].answer = .nxdomain
        #expect(
            Self.refusal(settings)
                == .setting(
                    key: "upstreams.a.servers", item: 1,
                    "tls://dns.ads.example cannot be found: dns.ads.example is answered \"nxdomain\" by [upstreams.ads]\(Self.advice)"
                ))
        settings.upstreams[1].answer = .addresses([.v4(192, 0, 2, 7)])
        #expect(Self.refusal(settings) == nil)
    }

    /// The author of a list cannot make the settings wrong.
    @Test func aListTakesNoServersNameAndNoAliassTarget() throws {
        let file = NSTemporaryDirectory() + "list-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: file) }
        try "dns.ads.net\nwww.safe.net\nother.net\n".write(toFile: file, atomically: true, encoding: .utf8)
        var settings = Self.settings(["a": ["dns.ads.net"], "ads": [], "safe": []])
        settings.upstreams[1].answer = .nxdomain
        settings.upstreams[2].alias = Name("www.safe.net")!
        for index in [1, 2] { settings.upstreams[index].domainsFile = [file] }
        #expect(Self.refusal(settings) == nil)
        let numbers = GroupNumbers(settings)
        let rules = try NameLists(settings, numbers).rules
        #expect(rules.group(of: Name("other.net")!) == numbers["ads"])
        for name in ["dns.ads.net", "www.safe.net"] { #expect(rules.group(of: Name(name)!) == nil) }
        // What the settings themselves say stays an error.
        settings.upstreams[1].domains = [.subtree(Name("ads.net")!)]
        #expect(Self.refusal(settings) != nil)
    }

    @Test func byWayOfFallbackThereIsNoneAsItIsAskedForNoServer() {
        #expect(Self.refusal(Self.settings(["a": ["dns.net"]], fallback: ["dns.a.example", "dot.net"])) == nil)
    }

    @Test func exceptAndThenTryLeaveNoCircle() {
        var excepted = Self.settings(["a": ["dns.a.example"]])
        excepted.upstreams[0].except = [.subtree(Name("dns.a.example")!)]
        #expect(Self.refusal(excepted) == nil)
        var others = Self.settings(["a": ["dns.a.example"]])
        others.upstreams[0].thenTry = [Settings.Group.fallbackName]
        #expect(Self.refusal(others) == nil)
    }

    @Test func aReloadThatWouldMakeOneChangesNothing() throws {
        let forwarder = try ForwarderLoop(report: LogLines().report)
        let before = Self.settings(["a": ["dns.net"]])
        var numbers = GroupNumbers()
        forwarder.begin(try forwarder.prepare(before, after: nil, &numbers, Provenance()))
        #expect(throws: StartFailure.self) {
            _ = try forwarder.prepare(Self.settings(["a": ["dns.a.example"]]), after: before, &numbers, Provenance())
        }
        #expect(forwarder.look { $1.settings == before })
        forwarder.close()
    }

    @Test(arguments: [
        (["a": "www.example.com", "b": "a.example"], nil), (["a": "x.a.example"], "a"), (["a": "a.example"], "a"),
        (["a": "b.example", "b": "x.a.example"], "a"), (["a": "b.example", "b": "c.example", "c": "b.example"], "b"),
        (["a": "localhost", "b": "printer"], nil),
    ])
    func anAliasThatLeadsBackToItsGroup(_ aliases: [String: String], _ wrong: String?) {
        var settings = Self.settings([:])
        settings.upstreams = aliases.sorted { $0.key < $1.key }.map { name, target in
            var group = Settings.Group(name: name)
            group.alias = Name(target)!
            group.domains = [.subtree(Name("\(name).example")!)]
            return group
        }
        guard case .setting(let key, _, let message, _)? = Self.refusal(settings) else {
            #expect(wrong == nil, "\(aliases)")
            return
        }
        #expect(key == "upstreams.\(wrong ?? "none").alias" && message.contains("except"), "\(key): \(message)")
        guard aliases == ["a": "x.a.example"] else { return }
        settings.upstreams[0].except = [.subtree(Name("x.a.example")!)]
        #expect(Self.refusal(settings) == nil)
    }

    @Test func aFileOfPatternsThatWouldMakeOneIsNotTaken() throws {
        let file = NSTemporaryDirectory() + "circle-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: file) }
        try "other.example\n".write(toFile: file, atomically: true, encoding: .utf8)
        var settings = Self.settings(["a": ["dns.net"]])
        settings.upstreams[0].domainsFile = [file]
        #expect(Self.refusal(settings) == nil)
        try "net\n".write(toFile: file, atomically: true, encoding: .utf8)
        #expect(Self.refusal(settings) != nil)
    }
}
