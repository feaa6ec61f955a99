import Base
import DNSCache
import DNSWire
import Forwarding
import Foundation
import ShellTestSupport
import Testing
import Transport

@testable import Configuration
@testable import Daemon

/// Of which answers each key of the settings, and what the machine is found to be, change the basis.
@Suite struct BasisTests {
    private static let plain = Audience.those(dnssecOK: false, checkingDisabled: false)

    /// Answers of each kind, by the settings of ``usual``.
    private static let answers: [(title: String, name: Name, type: RecordType, audience: Audience)] = [
        ("account", Name("www.example.com")!, .a, .exceptValidators),
        ("IPv6", Name("www.example.com")!, .aaaa, .exceptValidators),
        ("validator", Name("www.example.com")!, .a, .validators),
        ("service", Name("www.example.com")!, .https, plain),
        ("mail", Name("www.example.com")!, .mx, plain),
        ("private", Name("printer.lan")!, .a, plain),
        ("reverse", Name("9.0.168.192.in-addr.arpa")!, .ptr, plain),
        ("office", Name("wiki.corp.example")!, .a, plain),
        ("shop", Name("www.shop.example")!, .a, .exceptValidators),
        ("shop's mail", Name("www.shop.example")!, .mx, plain),
    ]
    private static let ofAccount: Set = ["account", "IPv6", "validator", "service"]
    /// Those of it that the fallback has not given.
    private static let unsigned = ofAccount.subtracting(["validator"])
    private static let ofResolver: Set = ["validator", "mail", "shop's mail"]
    private static let ofShop: Set = ["shop", "shop's mail"]
    private static let ofNetwork: Set = ["validator", "service", "mail", "private", "reverse", "shop's mail"]
    private static let all = Set(answers.map(\.title))

    /// The sections with their keys.
    private typealias Text = [String: [String: String]]

    private static let usual: Text = [
        "httpdns": ["token": "\"101\""],
        "upstreams.office": ["servers": "[\"192.0.2.53\"]", "domains": "[\"corp.example\"]"],
        "upstreams.shop": [
            "provider": "\"alibaba\"", "dnsId": "7", "dnsKey": "\"0123456789abcdef\"", "domains": "[\"shop.example\"]",
            "thenTry": "[\"fallback\"]",
        ],
        "upstreams.ads": ["answer": "\"nxdomain\"", "domains": "[\"ads.example\"]"],
    ]
    /// What is found on the machine.
    private struct Found {
        var hosts = ""
        var resolvers = [Server(Endpoint("127.0.0.53:53")!)]
        var network: UInt64 = 7
        var prefix: NAT64Prefix?
        var reach = IPv4Reach()
    }

    private static func settings(_ text: Text) throws -> Settings {
        let lines = text.sorted { $0.key < $1.key }.map { section, keys in
            "[\(section)]\n" + keys.sorted { $0.key < $1.key }.map { "\($0) = \($1)\n" }.joined()
        }
        return try Settings.load(lines.joined())
    }

    private static func forwarder(
        _ settings: Settings, _ found: Found = Found(), _ cache: DNSCache = DNSCache(bytes: 1 << 20, seed: (1, 2))
    ) throws -> Forwarder {
        let numbers = GroupNumbers(settings)
        let groups = UpstreamGroups(settings, numbers, resolvers: found.resolvers)
        let policy = Policy(
            settings, numbers, groups, try NameLists(settings, numbers),
            hosts: HostsTable(parsing: Array(found.hosts.utf8).span), network: found.network, reach: found.reach)
        var forwarder = Forwarder(policy: policy, timing: Timing(settings), groups: groups.groups, cache: cache)
        forwarder.change(.synthesis(found.prefix), at: Tick(nanoseconds: 0))
        return forwarder
    }

    /// The answers that are not right after a change.
    private static func wrong(_ before: Policy, _ after: Policy) -> Set<String> {
        Set(
            answers.filter { _, name, type, audience in
                let basis = after.basis(name, type, audience)
                return basis == 0 || basis != before.basis(name, type, audience)
            }.map(\.title))
    }

    private func wrong(_ change: (inout Text) -> Void, from base: Text = Self.usual) throws -> Set<String> {
        var after = base
        change(&after)
        return try Self.wrong(Self.forwarder(Self.settings(base)).policy, Self.forwarder(Self.settings(after)).policy)
    }

    // MARK: Every key

    /// The keys that change the basis of some answers: section, key, value, and which answers.
    private static let deciding: [(section: String, key: String, value: String, answers: Set<String>)] = [
        ("domains", "intercept", "[\"example.com\"]", []),
        ("domains", "intercept", "[\"example.net\"]", unsigned),
        ("domains", "bypass", "[\"www.example.com\"]", unsigned),
        ("domains", "privateAddresses", "\"refuse\"", ofAccount.union(["mail"])),
        ("fallback", "routeIp", "\"198.51.100.1\"", ofResolver.union(["service"])),
        ("fallback", "trustAD", "true", ofResolver.union(["service"])),
        ("fallback", "servers", "[\"192.0.2.1\"]", ofNetwork.subtracting(["private", "reverse"])),
        ("fallback", "thenTry", "[\"office\"]", []),
        ("private", "routeIp", "\"198.51.100.1\"", ["private", "reverse"]),
        ("private", "trustAD", "true", ["private", "reverse"]),
        ("private", "servers", "[]", ["private", "reverse"]),
        ("private", "thenTry", "[\"office\"]", ["private", "reverse"]),
        ("upstreams.office", "domains", "[\"example.com\"]", ofAccount.union(["mail", "office"])),
        ("upstreams.office", "except", "[\"wiki.corp.example\"]", ["office"]),
        ("upstreams.office", "thenTry", "[\"fallback\"]", ["office"]),
        ("upstreams.office", "routeIp", "\"198.51.100.1\"", ["office"]),
        ("upstreams.office", "trustAD", "true", ["office"]),
        ("upstreams.office", "servers", "[\"tls://192.0.2.54\"]", ["office"]),
        ("upstreams.ads", "domains", "[\"www.shop.example\", \"printer.lan\"]", ofShop.union(["private"])),
        ("httpdns", "routeIp", "\"198.51.100.1\"", unsigned),
        ("httpdns", "thenTry", "[\"office\", \"fallback\"]", unsigned.union(["mail"])),
        ("httpdns", "thenTryOn", "[\"failure\"]", unsigned),
        ("httpdns", "httpOnly", "true", ofAccount.union(["mail", "private", "reverse"])),
        ("httpdns", "addressType", "\"ipv4\"", ["IPv6", "service"]),
        ("httpdns", "signed", "\"addresses\"", ofAccount),
        ("httpdns", "serviceBinding", "\"none\"", []),
        ("httpdns", "without", "[\"AAAA\"]", ["IPv6", "service"]),
        ("httpdns", "without", "[\"HTTPS\"]", ["service"]),
        ("httpdns", "without", "[\"A\"]", ["account", "validator", "service"]),
        ("httpdns", "without", "[\"MX\"]", ["mail"]),
        ("httpdns", "without", "[\"TXT\"]", []),
        ("fallback", "bogusAddresses", "[\"192.0.2.1\"]", ofResolver.union(["service"])),
        ("private", "bogusAddresses", "[\"192.0.2.1\"]", ["private", "reverse"]),
        ("upstreams.office", "bogusAddresses", "[\"192.0.2.1\"]", ["office"]),
        ("fallback", "without", "[\"AAAA\"]", ["service"]),
        ("fallback", "without", "[\"A\"]", ["validator", "service"]),
        ("fallback", "without", "[\"HTTPS\"]", ["service"]),
        ("fallback", "without", "[\"MX\"]", ["mail", "shop's mail"]),
        ("private", "without", "[\"A\"]", ["private"]),
        ("private", "without", "[\"PTR\"]", ["reverse"]),
        ("upstreams.office", "without", "[\"A\"]", ["office"]),
        ("upstreams.office", "without", "[\"AAAA\"]", []),
        ("upstreams.shop", "without", "[\"A\"]", ["shop"]),
        ("upstreams.shop", "without", "[\"MX\"]", ["shop's mail"]),
    ]

    @Test func aKeyThatDecidesChangesTheBasisOfItsNamesAlone() throws {
        for (section, key, value, answers) in Self.deciding {
            let found = try wrong { $0[section, default: [:]][key] = value }
            #expect(found == answers, "\(section).\(key) = \(value)")
        }
    }

    @Test func nothingIsCachedOfAnAlias() throws {
        let before = try Self.forwarder(Self.settings(Self.usual)).policy
        for (domain, answers) in [("corp.example", ["office"]), ("example.com", Self.ofAccount.union(["mail"]))] {
            var text = Self.usual
            text["upstreams.office"] = nil
            text["upstreams.ads"] = ["alias": "\"www.target.example\"", "domains": "[\"\(domain)\"]"]
            #expect(
                try Self.wrong(before, Self.forwarder(Self.settings(text)).policy) == Set(answers).union(["office"]))
        }
    }

    @Test func theContentsOfListsDecideAndTheirPathsDoNot() throws {
        let path = NSTemporaryDirectory() + "names-\(UUID().uuidString)"
        defer { for end in ["", "2"] { try? FileManager.default.removeItem(atPath: path + end) } }
        func policy(_ section: String, _ key: String, _ end: String, _ names: String) throws -> Policy {
            try names.write(toFile: path + end, atomically: true, encoding: .utf8)
            var text = Self.usual
            text[section, default: [:]][key] = "\"\(path + end)\""
            return try Self.forwarder(Self.settings(text)).policy
        }
        for (section, key, others) in [
            ("domains", "bypassFile", Self.unsigned),
            ("upstreams.office", "domainsFile", Self.ofAccount.union(["mail"])),
            ("upstreams.ads", "domainsFile", Self.ofAccount.union(["mail"])),
        ] {
            let before = try policy(section, key, "", "other.example\n")
            #expect(try Self.wrong(before, policy(section, key, "2", "other.example\n")).isEmpty, "\(key)")
            #expect(try Self.wrong(before, policy(section, key, "", "more.example\nother.example\n")).isEmpty, "\(key)")
            #expect(try Self.wrong(before, policy(section, key, "", "www.example.com\n")) == others, "\(key)")
        }
        let before = try policy("domains", "interceptFile", "", "example.com\n")
        let after = try policy("domains", "interceptFile", "", "example.net\n")
        #expect(Self.wrong(before, after) == Self.unsigned)
    }

    /// Keys of groups, and why they change no basis.
    private static let waysOfAsking: [String: String] = {
        var why: [String: String] = [:]
        func add(_ reason: String, _ keys: String...) { for key in keys { why[key] = reason } }
        add(
            "the same group says the same, asked in another way", "encryptType", "dnsId", "dnsKey", "dnsKeyFile",
            "aesKey",
            "aesKeyFile", "token", "tokenFile", "dnsIp", "confIp", "serverName", "caFile", "caOnly", "pins",
            "validateDomain",
            "clientCertificate", "clientCertificatePasswordFile", "whenClockUnset", "from", "device", "mark", "proxy",
            "authExpirySeconds", "trace", "batch", "timeout")
        add(
            "says when servers are asked, not what they say", "concurrency", "queriesPerSecond",
            "retryTimesBeforeSwitchServer", "minutesBeforeSwitchToMain")
        add("says what else is done with answers", "share", "enableReport", "reportUrl", "appId", "debug")
        add("decides by the contents of the file", "domainsFile")
        add("a group has one provider, and is another group with another", "provider")
        add("is in the trust of an account", "routeIpEncrypted")
        add("the answer is made at each question, and never cached", "answer", "alias")
        return why
    }()
    /// The same of sections, and of keys of others.
    private static let ofSections = [
        "listen": "says who may ask the daemon, and how; for its own name the daemon answers itself",
        "domains.interceptFile": "decides by the contents of the file",
        "domains.bypassFile": "decides by the contents of the file",
        "domains.privateAllowed": "says which names may keep private addresses, with privateAddresses",
        "fallback.resolvConf": "decides by the servers that are found",
        "fallback.hedgeAfter": "says when groups are asked",
        "fallback.hosts": "decides by the contents of the file",
        "nat64": "decides by the prefix that is in use",
        "cache": "says what is done with answers, and how long they live",
        "sharedCache": "says what is done with answers, and how long they live",
        "control": "is for operators",
        "log": "is for operators",
    ]

    @Test func noKeyIsForgottenHere() {
        let deciding = Set(Self.deciding.map(\.key))
        for key in Key.keys(of: [.all, .named, .tls]) {
            #expect((Self.waysOfAsking[key.name] != nil) != deciding.contains(key.name), "\(key.name)")
        }
        let ofSections = Set(Self.deciding.map { "\($0.section).\($0.key)" })
        for key in Key.all where key.holders.isEmpty {
            let why = Self.ofSections[key.section.rawValue] ?? Self.ofSections[key.path]
            #expect((why != nil) != ofSections.contains(key.path), "\(key.path)")
        }
    }

    /// Some of those that decide nothing, with a value.
    @Test func aKeyThatDecidesNothingChangesNoBasis() throws {
        let keys = [
            ("fallback", "timeout", "900"), ("fallback", "hedgeAfter", "100"), ("fallback", "mark", "7"),
            ("httpdns", "token", "\"102\""), ("httpdns", "batch", "2"), ("httpdns", "queriesPerSecond", "5"),
            ("httpdns", "dnsIp", "[\"192.0.2.7\"]"), ("upstreams.office", "servers", "[\"192.0.2.54\"]"),
            ("upstreams.office", "servers", "[\"192.0.2.54\", \"tls://192.0.2.54\"]"), ("upstreams.shop", "dnsId", "8"),
            ("upstreams.shop", "encryptType", "\"https\""), ("cache", "maxTTL", "60"), ("cache", "negativeTTL", "5"),
            ("upstreams.shop", "queriesPerSecond", "5"),
        ]
        for (section, key, value) in keys {
            let found = try wrong { $0[section, default: [:]][key] = value }
            #expect(found.isEmpty, "\(section).\(key) = \(value): \(found)")
        }
    }

    @Test func groupsThatComeGoOrBecomeOthers() throws {
        let shop = ["servers": "[\"192.0.2.9\"]", "domains": "[\"other.example\"]"]
        #expect(try wrong { $0["upstreams.before"] = shop } == [])
        #expect(try wrong { $0["upstreams.office"] = nil } == ["office"])
        #expect(try wrong { $0["upstreams.shop"] = nil } == ["shop"])
        #expect(try wrong { $0["httpdns"] = nil } == Self.unsigned)
        // An account in the place of a resolver.
        let account = Self.usual["upstreams.shop"]!.merging(["domains": "[\"corp.example\"]"]) { $1 }
        #expect(try wrong { ($0["upstreams.office"], $0["upstreams.shop"]) = (account, nil) } == ["office", "shop"])
        // Where validators were given an account's addresses, since no resolver had signatures.
        let clear = Self.usual.merging(["fallback": ["servers": "[\"192.0.2.1\"]"]]) { $1 }
        let encrypted = clear.merging(["fallback": ["servers": "[\"tls://192.0.2.1\"]"]]) { $1 }
        let (before, after) = try (Self.settings(clear), Self.settings(encrypted))
        func basis(_ settings: Settings, _ audience: Audience) throws -> Basis {
            try Self.forwarder(settings).policy.basis(example, .a, audience)
        }
        #expect(try basis(before, .everyone) != basis(after, .everyone))
        #expect(try basis(before, .exceptValidators) == basis(after, .exceptValidators))
    }

    // MARK: The machine

    @Test func whatIsFoundOnTheMachine() throws {
        let settings = try Self.settings(Self.usual)
        func wrong(_ change: (inout Found) -> Void) throws -> Set<String> {
            var found = Found()
            change(&found)
            return try Self.wrong(Self.forwarder(settings).policy, Self.forwarder(settings, found).policy)
        }
        #expect(try wrong { _ in } == [])
        #expect(try wrong { $0.network = 8 } == Self.ofNetwork)
        // Without resolvers private names do not exist.
        #expect(try wrong { ($0.resolvers, $0.network) = ([], 0) } == Self.ofNetwork)
        #expect(try wrong { $0.hosts = "192.0.2.1 printer.lan\n" } == ["private"])
        #expect(try wrong { $0.hosts = "192.0.2.1 www.example.com\n" } == Self.ofAccount.union(["mail"]))
        #expect(try wrong { $0.hosts = "192.168.0.9 other.example\n" } == ["reverse"])
        #expect(try wrong { $0.prefix = NAT64Prefix(Network("64:ff9b::/96")!) } == ["IPv6"])
        // Routes of the moment.
        #expect(try wrong { ($0.reach.hasIPv4, $0.reach.hasIPv6) = (true, false) } == [])
    }

    @Test func numbersOfGroupsAndTheirOrderInTheFileDoNotMatter() throws {
        var settings = try Self.settings(Self.usual)
        settings.upstreams.reverse()
        #expect(try Self.wrong(Self.forwarder(Self.settings(Self.usual)).policy, Self.forwarder(settings).policy) == [])
    }

    // MARK: Over a restart

    /// A file that was written under some settings, and read under others.
    private static func restart(
        _ first: Text, _ then: Text, found: Found = Found(), later: Found = Found(), lines: LogLines = LogLines()
    ) throws -> Set<String> {
        let path = NSTemporaryDirectory() + "cache-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        func run(_ text: Text, _ found: Found, _ work: (DNSCache) -> Void) throws {
            let cache = DNSCache(bytes: 1 << 20, seed: (1, 2))
            let forwarder = try Self.forwarder(Self.settings(text), found, cache)
            let file = try CacheFile(path: path, cache: cache, report: lines.report)
            expectEnd { file.start($0) }
            work(cache)
            expectEnd { file.stop($0) }
            _ = forwarder
        }
        let now = Tick(nanoseconds: Clock.now()).seconds
        try run(first, found) { cache in
            for (_, name, type, audience) in Self.answers {
                cache.store(.noData(name, type: type, negativeTTL: 600), to: name, type: type, for: audience, at: now)
            }
        }
        var held: Set<String> = []
        try run(then, later) { cache in
            for (title, name, type, audience) in Self.answers
            where cache.find(name, type: type, for: audience, at: now) != nil { held.insert(title) }
        }
        return held
    }

    /// Without a battery it begins years ago; it may have local time.
    @Test func theHardwareClockOfAMachineThatWasOff() {
        let texts: [String?] = [
            nil, "", "1501837203\n", "1779992800\n", "1780000000\n", "1780007200\n", "1780090000\n",
        ]
        let right = texts.map { text in
            CacheFile.isRight(hardwareClock: text.map { Array($0.utf8) }, at: 1_780_000_000)
        }
        #expect(right == [false, false, false, true, true, true, false])
    }

    @Test func aGroupThatIsAddedCostsItsOwnNamesAlone() throws {
        let lines = LogLines()
        let shop = ["servers": "[\"192.0.2.9\"]", "domains": "[\"lan\"]"]
        let held = try Self.restart(Self.usual, Self.usual.merging(["upstreams.lan": shop]) { $1 }, lines: lines)
        #expect(held == Self.all.subtracting(["private"]))
        #expect(lines.all.contains("notice 9 answers taken over from cache.file, 1 of other settings left out"))
    }

    @Test func privateNamesOfTheSameNetworkAreTakenOver() throws {
        #expect(try Self.restart(Self.usual, Self.usual) == Self.all)
        var later = Found()
        later.network = 8
        #expect(try Self.restart(Self.usual, Self.usual, later: later) == Self.all.subtracting(Self.ofNetwork))
    }

    @Test func theHostsFileIsBeforeTheFileWithAPrefixToo() throws {
        var (first, later) = (Found(), Found())
        first.prefix = NAT64Prefix(Network("64:ff9b::/96")!)
        (later.prefix, later.hosts) = (first.prefix, "192.0.2.1 www.example.com\n")
        let held = try Self.restart(Self.usual, Self.usual, found: first, later: later)
        #expect(held == Self.all.subtracting(Self.ofAccount.union(["mail"])))
    }
}
