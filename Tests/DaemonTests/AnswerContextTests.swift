import Base
import Configuration
import DNSCache
import DNSWire
import Forwarding
import Foundation
import ShellTestSupport
import Testing
import Transport

@testable import Daemon

/// Which answers of a file are right under settings that have changed meanwhile.
@Suite struct AnswerContextTests {
    private static let plain = Audience.those(dnssecOK: false, checkingDisabled: false)

    /// Answers of each kind, by the settings of ``usual``: an account's, and what the resolver said of names of an account's,
    /// of private names, and of names of a group.
    private static let answers: [(title: String, name: Name, type: RecordType, audience: Audience)] = [
        ("account", Name("www.example.com")!, .a, .exceptValidators),
        ("validator", Name("www.example.com")!, .a, .validators),
        ("mail", Name("www.example.com")!, .mx, plain),
        ("private", Name("printer.lan")!, .a, plain),
        ("office", Name("wiki.corp.example")!, .a, plain),
    ]

    private static let usual: Settings = {
        var settings = Settings()
        settings.httpdns = Settings.Group(credential: .https(token: Secret(Array("t".utf8))))
        settings.fallback.hosts = ""
        settings.domains.bypass = [Name("lan")!]
        settings.upstreams = [group("office", "corp.example")]
        return settings
    }()

    private static func group(_ name: String, _ domain: String) -> Settings.Group {
        var group = Settings.Group(name: name)
        group.servers = [.server(Server(Endpoint(.v4(192, 0, 2, 53), port: 53)))]
        group.domains = [.subtree(Name(domain)!)]
        return group
    }

    private static func context(_ settings: Settings, hosts: HostsTable = HostsTable()) throws -> AnswerContext {
        var numbers = GroupNumbers()
        numbers.add(settings)
        return AnswerContext(settings, numbers, try NameLists(settings, numbers), hosts: hosts)
    }

    private static func right(_ new: AnswerContext, after old: AnswerContext) -> [String] {
        answers.filter { new.isRight($0.name, $0.type, $0.audience, old.number($0.name, $0.type, $0.audience)) }
            .map(\.title)
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// Those that are not right any more.
        let others: Set<String>
        let change: @Sendable (inout Settings) -> Void

        init(_ what: String, _ others: Set<String>, _ change: @escaping @Sendable (inout Settings) -> Void) {
            (testDescription, self.others, self.change) = (what, others, change)
        }
    }

    @Test(arguments: [
        Case("nothing", []) { _ in },
        Case("another server, other times", []) {
            $0.fallback.servers = [.server(Server(Endpoint(.v4(192, 0, 2, 1), port: 53)))]
            $0.cache.maxTTL = 60
        },
        Case("a group before the others", []) { $0.upstreams.insert(group("shop", "shop.example"), at: 0) },
        Case("a group that takes names", ["account", "validator", "mail"]) {
            $0.upstreams.append(group("shop", "example.com"))
        },
        Case("a group that is gone", ["office"]) { $0.upstreams = [] },
        Case("whose AD bit counts in a group", ["office"]) { $0.upstreams[0].trustAD = true },
        Case("the network that a group is asked for", ["office"]) {
            $0.upstreams[0].routeIp = IPAddress("198.51.100.0")
        },
        Case("a group in the place of an account", ["office"]) {
            $0.upstreams[0] = Settings.Group(
                name: "office", credential: .https(token: Secret(Array("t".utf8))))
            $0.upstreams[0].domains = [.subtree(Name("corp.example")!)]
        },
        Case("the network that the account is asked for", ["account", "validator"]) {
            $0.httpdns?.routeIp = IPAddress("198.51.100.7")
        },
        Case("whom the account's answers are for", ["account", "validator"]) { $0.httpdns?.signed = .addresses },
        Case("whose AD bit counts", ["validator", "mail", "private"]) { $0.fallback.trustAD = true },
        Case("who is asked next", ["account", "validator", "mail"]) { $0.httpdns?.thenTry = ["office", "fallback"] },
        Case("when", ["account", "validator"]) { $0.httpdns?.thenTryOn = [.failure] },
        Case("the account alone", ["account", "validator", "mail", "private"]) { $0.httpdns?.thenTry = [] },
        Case("no account", ["account", "validator"]) { $0.httpdns = nil },
        Case("a name of the local resolver's", ["account", "validator"]) {
            $0.domains.bypass.append(Name("www.example.com")!)
        },
        Case("a family less", ["account", "validator"]) { $0.httpdns?.addressType = .ipv6 },
        Case("no private addresses", ["account", "validator", "mail"]) { $0.domains.privateAddresses = .refuse },
    ])
    func whatOtherSettingsLeave(_ given: Case) throws {
        let old = try Self.context(Self.usual)
        var settings = Self.usual
        given.change(&settings)
        let right = Self.right(try Self.context(settings), after: old)
        #expect(right == Self.answers.map(\.title).filter { !given.others.contains($0) })
    }

    @Test func namesOfTheHostsFileAreNotTakenOver() throws {
        let hosts = HostsTable(parsing: Array("192.0.2.1 printer.lan\n".utf8).span)
        let old = try Self.context(Self.usual)
        var new = try Self.context(Self.usual, hosts: hosts)
        #expect(Self.right(new, after: old) == ["account", "validator", "mail", "office"])
        new.forgetHosts()
        #expect(Self.right(new, after: old).contains("private"))
    }

    /// A file that was written under some settings, and read under others.
    @Test func aGroupThatIsAddedOverARestartCostsItsOwnNamesAlone() throws {
        let path = NSTemporaryDirectory() + "cache-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let lines = LogLines()
        func run(_ settings: Settings, _ work: (DNSCache) -> Void) throws {
            let cache = DNSCache(bytes: 1 << 20, seed: (1, 2))
            let file = try CacheFile(path: path, cache: cache, context: Self.context(settings), report: lines.report)
            let (isRead, isStopped) = (Gate(), Gate())
            file.start { isRead.open() }
            #expect(isRead.wait())
            work(cache)
            file.stop { isStopped.open() }
            #expect(isStopped.wait())
        }
        let now = Tick(nanoseconds: Clock.now()).seconds
        try run(Self.usual) { cache in
            for (_, name, type, audience) in Self.answers {
                cache.store(.noData(name, type: type, negativeTTL: 600), to: name, type: type, for: audience, at: now)
            }
        }
        var settings = Self.usual
        settings.upstreams.append(Self.group("shop", "lan"))
        try run(settings) { cache in
            let held = Self.answers.filter { _, name, type, audience in
                cache.find(name, type: type, for: audience, at: now) != nil
            }
            #expect(held.map(\.title) == ["account", "validator", "mail", "office"])
        }
        #expect(lines.all.contains("notice 4 answers taken over from cache.file, 1 of other settings left out"))
    }
}
