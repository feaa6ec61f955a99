import Base
import TestSupport

@testable import DemoService

/// Who is where: the same machines for all plans.
enum Topology {
    static let account = DemoAccount(
        id: 4711, aesKey: Array("0123456789abcdef".utf8), desKey: Array("01234567".utf8), token: Array("123456789".utf8)
    )

    /// - Parameter secure: Whether the account is asked over https.
    static func hosts(secure: Bool) -> [Host] {
        (1...3).map { Host("account-\($0)", group: "httpdns", .v4(203, 0, 113, UInt8($0)), .account(isSecure: secure)) }
            + (4...5).map {
                Host("account-\($0)", group: "second", .v4(203, 0, 114, UInt8($0)), .account(isSecure: secure))
            }
            + [
                Host("resolver-1", group: "fallback", .v4(192, 168, 0, 1), .plain),
                Host("resolver-2", group: "fallback", IPAddress("fd00:9::2")!, .plain),
            ]
            + [
                Host("office-1", group: "office", .v4(10, 0, 1, 1), .tls),
                Host("office-2", group: "office", IPAddress("fd00:1::2")!, .tls),
                Host("office-3", group: "office", [.v4(10, 0, 1, 3), .v4(10, 0, 1, 4)], .tls, called: serverNames[0]),
            ]
            + [
                Host("shop-1", group: "shop", .v4(10, 0, 2, 1), .https),
                Host("shop-2", group: "shop", IPAddress("fd00:2::2")!, .https),
                Host(
                    "shop-3", group: "shop", [.v4(10, 0, 2, 3), IPAddress("fd00:2::4")!], .https, called: serverNames[1]
                ),
            ]
            + [
                Host("lab-1", group: "lab", .v4(10, 0, 3, 1), .plain),
                Host("lab-2", group: "lab", .v4(10, 0, 3, 2), .tcp),
                Host("store", group: "store", .v4(10, 0, 9, 1), .store(isSecure: secure)),
            ]
    }

    /// The zone of each group of the operator's own.
    static let zones = ["office": "corp.net", "shop": "shop.org", "lab": "lab.io"]
    static let publicZone = "public-names.com"
    /// The zone of names that only this network can know.
    static let privateZone = "lan"
    /// The zone of names that a group answers by itself.
    static let blockedZone = "ads.net"
    /// The zone of names that are aliases of another name.
    static let aliasZone = "alias.net"
    static let aliasTargets = [
        "h0.\(publicZone)", "v1.corp.net", "f1.corp.net", "h1.lan", "h2.shop.org", "h1.lab.io", "h0.far.net",
        "h0.\(secondZone)",
    ]
    /// More of them, in a list; exceptions, with an `@` here, are in a second one, and hold over both.
    static let blockFile = "/d/blocked"
    static let releaseFile = "/d/released"
    static let blockFiles = [
        ["h0.ads.org"], ["h0.\(publicZone)", "h1.corp.net"],
        ["h0.\(publicZone)", "h1.lan", "v1.shop.org", "@h0.ads.net"],
        ["h1.corp.net", "f1.corp.net", "h0.ads.org", "@corp.net"],
    ]
    /// The name by which resolvers show the prefix of the network's translator (RFC 7050).
    static let prefixName = "ipv4only.arpa"
    /// The zone that the second account may have for itself.
    static let secondZone = "pay.net"
    /// The names of servers that are given by their name.
    static let serverNames = ["dns.office-servers.net", "dns.shop-servers.net"]
    /// More names of the group `office`, in a file.
    static let namesFile = "/d/names"
    static let namesFiles = [["far.net"], ["far.net", "near.net"], ["near.net"], ["nobody.net"]]
    static let resolvConf = "/d/resolv.conf"
    static let resolvers = [["resolver-1"], ["resolver-2", "resolver-1"], ["resolver-2"]]
    static let hostsFile = "/d/hosts"
    static let hostsFiles = [
        [], ["f0.\(publicZone)"], ["f0.\(publicZone)", "f1.corp.net", "f2.far.net"],
        ["f1.corp.net", "f1.shop.org", "f1.lan"],
    ]
    /// Files that settings are read with.
    static var settingsFiles: [String: [UInt8]] {
        ["/d/authority": certificates.trusted, "/d/key": Array("a key of the fleet, as long as it has to be".utf8)]
    }
    /// The groups that are accounts.
    static let accounts: Set<String> = ["httpdns", "second"]
    /// The names in the certificates of accounts.
    static let accountNames = [
        "resolvers.httpdns.aliyuncs.com", "httpdns.volcengineapi.com", "httpdns.baidubce.com",
    ]
}

/// The content of the machine's files that the daemon follows.
struct MachineFiles {
    /// More names of the group `office`.
    var zones = Topology.namesFiles[0]
    /// The names of the hosts that `resolv.conf` lists.
    var resolvers = Topology.resolvers[0]
    /// The names in the hosts file, all of the address of this number.
    var hosted: [String] = []
    var hostedNumber: UInt32 = 0
    /// The names in the list of the group that answers by itself.
    var blocked = Topology.blockFiles[0]

    static func address(ofHosted number: UInt32) -> [UInt8] { [30, 0, UInt8(number >> 8), UInt8(number & 255)] }

    func write(_ hosts: [Host]) {
        kernel.files[Topology.namesFile] = Array(zones.map { "*.\($0)\n" }.joined().utf8)
        let servers = resolvers.map { name in "nameserver \(hosts.first { $0.name == name }!.address)\n" }
        kernel.files[Topology.resolvConf] = Array("# by hand\n\(servers.joined())".utf8)
        let address = Self.address(ofHosted: hostedNumber).map(String.init).joined(separator: ".")
        let (released, listed) = (blocked.filter { $0.hasPrefix("@") }, blocked.filter { !$0.hasPrefix("@") })
        kernel.files[Topology.blockFile] = Array("! a list\n\(listed.map { "||\($0)^\n" }.joined())".utf8)
        kernel.files[Topology.releaseFile] = Array(
            "! another\n\(released.map { "@@||\($0.dropFirst())^\n" }.joined())".utf8)
        kernel.files[Topology.hostsFile] = Array(
            "# a file without octets is read again later\n\(hosted.map { "\(address) \($0)\n" }.joined())".utf8)
    }
}

/// The draws of a configuration, each by the seed of its key, so that one key can be drawn again while the others stay.
struct Draws {
    private let seed: UInt64
    private var again: [String: UInt64] = [:]
    /// The keys that were drawn.
    private(set) var keys: [String] = []

    init(seed: UInt64) { self.seed = seed }

    mutating func chance(_ key: String) -> Chance {
        keys.append(key)
        return Chance(seed: key.utf8.reduce(again[key] ?? seed) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 })
    }

    mutating func one<T>(of all: [T], _ key: String) -> T {
        var chance = self.chance(key)
        return all[chance.below(all.count)]
    }

    /// Whether one of `count` equal chances comes about.
    mutating func oneIn(_ count: Int, _ key: String) -> Bool { one(of: Array(0..<count), key) == 0 }

    /// The same draws before any is made, but for one key.
    func drawing(_ key: String, by seed: UInt64) -> Draws {
        var others = Draws(seed: self.seed)
        others.again = again
        others.again[key] = seed
        return others
    }
}

/// A random configuration, and its meaning in few words.
struct Plan {
    struct Group {
        let name: String
        let hosts: [Host]
        let thenTry: [String]
        let on: [String]
        /// Whether it takes the names of the file, too.
        let hasFile: Bool
        let concurrency: Int
        /// Milliseconds for one attempt.
        let timeout: Int
    }

    /// In seconds.
    static let longestNegativeTTL: UInt32 = 30
    /// The servers of the account; nil: only the resolvers are asked.
    private(set) var account: [Host]?
    /// The servers of another account.
    private var second: [Host]?
    /// Whether it is asked when the first has failed, is slow or has no record.
    private var isSecondBehind = true
    /// Whom its own names go to after it: nobody, where it is a wall. Nil: it has no names of its own.
    private var behindSecond: [String]?
    /// Whether only accounts are asked.
    private(set) var isHTTPOnly = false
    private(set) var hasBudget = false
    /// Whether no server is asked for IPv6 addresses of names that go to the account.
    private var isIPv4Only = false
    /// The same while no route leads to IPv6 addresses.
    private var followsRoutes = false
    /// The prefix of a translator that the settings have.
    private(set) var fixedPrefix: NAT64Prefix?
    /// Whether the daemon asks the network's resolvers for the prefix.
    private(set) var seeksPrefix = false
    /// Whether the daemon knows the prefix of the network's translator, or learns of it.
    var isTranslated: Bool { seeksPrefix || fixedPrefix != nil }
    /// Whether a group of encrypted servers is asked after the account: by clients that validate, and for service bindings, at once.
    private(set) var isShopBehind = false
    private enum PrivateServers { case ofFallback, ofNetwork, none }
    private var privateServers = PrivateServers.ofFallback
    /// What the group answers that asks nobody; nil: there is none.
    private var blocking: Blocking?
    private struct Blocking {
        let answer: String
        let hasFile: Bool
    }
    private(set) var staleSeconds = 0
    /// In seconds. For answers without records it stays 0.
    private(set) var minTTL: UInt32 = 0
    private(set) var groups: [Group] = []
    /// Whether what is looked up is shared.
    private(set) var hasStore = false
    /// What stands in the files now.
    var files: MachineFiles
    /// Whether the hosts file is used.
    private var hasHosts = false
    /// The resolvers by name; nil: those of `resolv.conf`.
    private var resolvers: [String]?
    private var fallbackTimeout = 0
    private var lines: [String] = []
    private var draws: Draws
    /// Whose answers the names of one zone have; nil: no group takes them.
    private var aliasTarget: String?
    /// The types that groups leave out, by the group's name, and the groups that take some addresses for those of a search page.
    private var without: [String: Set<UInt16>] = [:]
    private var withBogus: Set<String> = []
    /// What the settings have on for every name, and for those of accounts.
    private var features: Set<Feature> = []
    private var featuresOfAccounts: Set<Feature> = []

    /// - Parameter hosts: All there are.
    init(_ drawn: Draws, hosts: [Host], _ script: Script, _ files: MachineFiles) {
        (draws, self.files) = (drawn, files)
        func some(_ group: String) -> [Host] {
            var chance = draws.chance("\(group).servers")
            let all = hosts.filter { $0.group == group }.shuffled(using: &chance)
            return Array(all.prefix(1 + chance.below(all.count)))
        }
        staleSeconds = draws.one(of: [0, 60, 3600, 86_400], "cache.staleSeconds")
        let prefetchAt = draws.one(of: [0, 75], "cache.prefetchAt")
        minTTL = draws.one(of: [0, 0, 120], "cache.minTTL")
        let negativeTTL = draws.one(of: [0, 5, Self.longestNegativeTTL], "cache.negativeTTL")
        lines = ["[listen]", "addresses = [\"127.0.0.1:53\"]", "allow = [\"0.0.0.0/0\"]", "workers = 1"]
        lines += ["[control]", "socket = \"\(Operator.socket)\""]
        lines += [
            "[cache]", "megabytes = 1", "staleSeconds = \(staleSeconds)", "prefetchAt = \(prefetchAt)",
            "negativeTTL = \(negativeTTL)", "minTTL = \(minTTL)",
            "negativeMinTTL = 0",
        ]
        if script.hasFile { lines.append("file = \"/d/cache\"") }
        let prefix = draws.one(of: ["", "auto"] + Network.prefixes.map { "\($0)" }, "nat64.prefix")
        (fixedPrefix, seeksPrefix) = (Network.prefixes.first { "\($0)" == prefix }, prefix == "auto")
        lines += ["[nat64]", "prefix = \"\(prefix)\""]
        let own = Self.ownGroups.filter { !draws.oneIn(4, $0) }
        if script.hasStore, !draws.oneIn(8, "sharedCache") {
            hasStore = true
            let store = hosts.first { $0.group == "store" }!
            lines += ["[sharedCache]", "server = \"\(store.text)\"", "keyFile = \"/d/key\""]
            if store.isEncrypted { lines.append("caFile = \"/d/authority\"") }
        }
        if !draws.oneIn(5, "httpdns") {
            account = some("httpdns")
            isHTTPOnly = draws.oneIn(5, "httpdns.httpOnly")
            let family = draws.one(
                of: ["ipv4", "ipv4", "dual", "dual", "dual", "auto", "auto", "auto"], "httpdns.addressType")
            (isIPv4Only, followsRoutes) = (family == "ipv4", family == "auto")
            hasBudget = draws.oneIn(4, "httpdns.queriesPerSecond")
            let fallback = isHTTPOnly ? [] : ["fallback"]
            if draws.oneIn(2, "second") {
                second = some("second")
                behindSecond = draws.one(
                    of: [nil, nil, [], ["httpdns"], ["httpdns"] + fallback], "second.thenTry")
                isSecondBehind = behindSecond == nil || draws.oneIn(2, "httpdns.second")
            }
            isShopBehind = !isHTTPOnly && own.contains("shop") && draws.oneIn(2, "httpdns.shop")
            let others =
                (second == nil || !isSecondBehind ? [] : ["second"]) + (isShopBehind ? ["shop"] : []) + fallback
            lines += ["[httpdns]"] + Self.credentials(script, script.provider)
            lines += [
                "dnsIp = [\(Self.list(account!.map(\.text)))]", timeout("httpdns"),
                "addressType = \"\(isIPv4Only ? "ipv4" : followsRoutes ? "auto" : "dual")\"",
                "batch = \(min(draws.one(of: [1, 3, 8], "httpdns.batch"), script.provider.facts.namesPerRequest))",
                "retryTimesBeforeSwitchServer = \(draws.one(of: [1, 3], "httpdns.retries"))",
                "minutesBeforeSwitchToMain = \(draws.one(of: [1, 10], "httpdns.toMain"))",
                "thenTry = [\(Self.list(others))]",
                "queriesPerSecond = \(hasBudget ? 2 : 0)", leftOut("httpdns"),
                "enableReport = \(draws.oneIn(4, "httpdns.enableReport") && script.provider == .tencent)",
            ]
            if script.isSecure { lines += ["[tls]", "caFile = \"/d/authority\""] }
        }
        if let second {
            let providers = script.isSecure ? Provider.allCases : [script.provider]
            lines += ["[upstreams.second]"]
            lines += Self.credentials(script, draws.one(of: providers, "second.provider"))
            if let behindSecond {
                lines += ["domains = [\"\(Topology.secondZone)\"]", "thenTry = [\(Self.list(behindSecond))]"]
            }
            lines += [
                "dnsIp = [\(Self.list(second.map(\.text)))]", timeout("second"),
                "addressType = \"dual\"",
            ]
            if script.isSecure { lines.append("caFile = \"/d/authority\"") }
        }
        let local = some("fallback")
        resolvers = draws.oneIn(2, "fallback.named") ? local.map(\.name) : nil
        hasHosts = draws.oneIn(2, "fallback.hosts")
        lines += [
            "[fallback]", "servers = [\(resolvers == nil ? "" : Self.list(local.map(\.text)))]",
            "resolvConf = [\"\(Topology.resolvConf)\"]", "hosts = \"\(hasHosts ? Topology.hostsFile : "")\"",
            "hedgeAfter = \(draws.one(of: [0, 200, 1000, 5000], "fallback.hedgeAfter"))", timeout("fallback"),
            leftOut("fallback"), bogus("fallback"),
        ]
        privateServers = draws.one(of: [.ofFallback, .ofFallback, .ofNetwork, .none], "private.servers")
        switch privateServers {
        // With an empty `thenTry` of the account nobody is asked, unless the settings say so.
        case .ofFallback: if isHTTPOnly, second == nil || !isSecondBehind { privateServers = .none }
        case .ofNetwork: lines += ["[private]", "servers = [\"resolvConf\"]"]
        case .none: lines += ["[private]", "servers = []"]
        }
        if !draws.oneIn(3, "blocked") {
            let blocking = Blocking(
                answer: draws.one(of: ["nxdomain", "nodata", Self.blockedAddress], "blocked.answer"),
                hasFile: !draws.oneIn(3, "blocked.domainsFile"))
            lines += [
                "[upstreams.blocked]", "answer = \"\(blocking.answer)\"", "domains = [\"\(Topology.blockedZone)\"]",
            ]
            if blocking.hasFile {
                lines.append("domainsFile = [\"\(Topology.blockFile)\", \"\(Topology.releaseFile)\"]")
            }
            self.blocking = blocking
        }
        if draws.oneIn(2, "alias") {
            let target = draws.one(of: Topology.aliasTargets, "alias.alias")
            aliasTarget = target
            lines += ["[upstreams.alias]", "alias = \"\(target)\"", "domains = [\"\(Topology.aliasZone)\"]"]
        }
        for name in own { add(name, some(name)) }
        func note(_ feature: Feature, _ isOn: Bool) { if isOn { features.insert(feature) } }
        note(.cacheFile, script.hasFile)
        note(.sharedCache, hasStore)
        note(.staleAnswers, staleSeconds > 0)
        note(.prefetch, prefetchAt > 0)
        note(seeksPrefix ? .soughtPrefix : .fixedPrefix, isTranslated)
        let ofAccounts: [(Feature, Bool)] = [
            (.account, true), (.encryptedAccount, script.isSecure), (.otherProvider, script.provider != .tencent),
            (.secondAccount, second != nil && isSecondBehind), (.httpOnly, isHTTPOnly), (.budget, hasBudget),
            (.oneFamily, isIPv4Only),
            (.familiesByRoute, followsRoutes), (.encryptedGroupBehind, isShopBehind),
        ]
        featuresOfAccounts = Set(ofAccounts.filter(\.1).map(\.0))
    }

    private static let ownGroups = ["office", "shop", "lab"]
    private static let blockedAddress = "192.0.2.9"

    private mutating func add(_ name: String, _ hosts: [Host]) {
        let others: [[String]] =
            [[], [], ["fallback"]] + (account == nil ? [] : [["httpdns"], ["httpdns", "fallback"]])
            + (second == nil ? [] : [["second"]])
        let group = Group(
            name: name, hosts: hosts, thenTry: draws.one(of: others, "\(name).thenTry"),
            on: draws.one(of: [["failure"], ["failure", "nxdomain", "nodata", "refused"]], "\(name).thenTryOn"),
            hasFile: draws.oneIn(2, "\(name).domainsFile") && name == "office",
            concurrency: draws.one(of: [1, 4, 64], "\(name).concurrency"),
            timeout: draws.one(of: Self.timeouts, "\(name).timeout"))
        groups.append(group)
        lines += [
            "[upstreams.\(name)]", "servers = [\(Self.list(group.hosts.map(\.text)))]",
            "domains = [\"\(Topology.zones[name]!)\"]", "timeout = \(group.timeout)",
            "thenTry = [\(Self.list(group.thenTry))]", "thenTryOn = [\(Self.list(group.on))]",
            "concurrency = \(group.concurrency)", "share = \(!draws.oneIn(4, "\(name).share"))", leftOut(name),
            bogus(name),
        ]
        if name != "lab" { lines.append("caFile = \"/d/authority\"") }
        if group.hasFile { lines.append("domainsFile = \"\(Topology.namesFile)\"") }
    }

    private mutating func leftOut(_ group: String) -> String {
        let types: Set<UInt16> = draws.one(of: [[], [], [], [28], [16, 65], [1]], "\(group).without")
        without[group] = types
        return "without = [\(Self.list(types.sorted().map(Script.name(ofType:))))]"
    }

    private mutating func bogus(_ group: String) -> String {
        let isOn = draws.oneIn(3, "\(group).bogusAddresses")
        if isOn { withBogus.insert(group) }
        return "bogusAddresses = [\(isOn ? "\"\(Judge.bogus)\"" : "")]"
    }

    /// The name whose addresses and service bindings a name has; nil: it is no alias.
    func target(of name: String) -> String? { name.hasSuffix("." + Topology.aliasZone) ? aliasTarget : nil }

    /// Whether the first group that a name goes to leaves a type out.
    func leavesOut(_ name: String, _ type: UInt16) -> Bool {
        route(name).first.flatMap { without[$0] }?.contains(type) ?? false
    }

    /// Whether any group that a name may go to leaves a type out.
    func mayLeaveOut(_ name: String, _ type: UInt16) -> Bool {
        route(name).contains { without[$0]?.contains(type) ?? false }
    }

    /// Whether a group that a name may go to takes some addresses for those of a search page.
    func hasBogus(_ name: String) -> Bool { !withBogus.isDisjoint(with: route(name)) }

    /// Whether each group by which a host may be asked for a name leaves a type out.
    func leavesOut(_ name: String, _ type: UInt16, at host: Host) -> Bool {
        isPrivate(name) ? false : without[host.group]?.contains(type) ?? false
    }

    func isBogus(_ host: Host, _ name: String) -> Bool { !isPrivate(name) && withBogus.contains(host.group) }

    /// The same but for one key, in the words of ``Draws``.
    func drawing(oneOf section: String, _ chance: inout Chance, hosts: [Host], _ script: Script) -> (
        plan: Plan, key: String
    ) {
        let isAny = chance.below(4) == 0
        let ofSection = draws.keys.filter {
            $0.prefix { $0 != "." } == section
                && (isAny || !Self.withoutEffect.contains($0.split(separator: ".").last!))
        }
        let key = ofSection.isEmpty ? section : ofSection[chance.below(ofSection.count)]
        return (Plan(draws.drawing(key, by: chance.next()), hosts: hosts, script, files), key)
    }

    /// The same but for one key, which has another value if it can; a group that is named comes or goes.
    func drawing(another key: String, _ chance: inout Chance, hosts: [Host], _ script: Script) -> Plan {
        for _ in 0..<30 {
            let other = Plan(draws.drawing(key, by: chance.next()), hosts: hosts, script, files)
            if other.text != text { return other }
        }
        return self
    }

    /// Other settings that meet the need of a zone's names, if any of the first that are drawn do.
    static func drawn(
        for need: Need, of zone: String, _ chance: inout Chance, hosts: [Host], _ script: Script, _ files: MachineFiles
    ) -> Plan {
        for _ in 0..<300 {
            let plan = Plan(Draws(seed: chance.next()), hosts: hosts, script, files)
            if plan.meets(need, of: zone) { return plan }
        }
        return Plan(Draws(seed: chance.next()), hosts: hosts, script, files)
    }

    /// What must be in the settings so that something can happen to the names of a zone.
    enum Need: String {
        case patience = "a group that waits long, as the fallback does"
        case account = "no group, but the account"
        case accountBehind = "a group, and behind it the account"
        case madeAddresses = "a group alone, and the prefix of a translator"
        case longerRecords = "a group alone, and minTTL"
        case alone = "a group alone"
        case nextGroup = "a group, and another behind it"
        case nextAccount = "a group, and either account behind it"
        case accountsAlone = "accounts and no other group"
        case staleAnswers = "a group alone, and stale answers"
        case networksResolvers = "any group, and private names at the network's resolvers"
        case severalServers = "a group alone of several servers, with room for many questions"
    }

    private func meets(_ need: Need, of zone: String) -> Bool {
        let group = group(of: "h.\(zone)")
        let isAlone = group?.thenTry.isEmpty ?? false
        let leavesOut = [1, 28].contains { mayLeaveOut("h.\(zone)", $0) }
        return switch need {
        case .patience: min(group?.timeout ?? 0, fallbackTimeout) == Self.timeouts.last
        case .account: group == nil && account != nil
        case .accountBehind:
            group?.thenTry.first == "httpdns" && !hasBudget && !leavesOut && !hasBogus("h.\(zone)")
        case .madeAddresses: isAlone && isTranslated && group?.timeout == Self.timeouts.last && !leavesOut
        case .longerRecords: isAlone && minTTL > 0 && !leavesOut
        case .alone: isAlone && !leavesOut
        case .accountsAlone: asksAccountsAlone("h.\(zone)") && !hasBudget && !leavesOut
        case .staleAnswers: isAlone && staleSeconds > 0 && minTTL == 0 && !leavesOut
        case .networksResolvers: privateServers == .ofNetwork || privateServers == .ofFallback && resolvers == nil
        case .nextGroup: !isAlone && group?.concurrency == 64 && !hasBudget && !leavesOut
        case .nextAccount:
            ["httpdns", "second"].contains(group?.thenTry.last) && second != nil && !hasBudget && !leavesOut
        case .severalServers: isAlone && (group?.hosts.count ?? 0) > 1 && group?.concurrency == 64 && !leavesOut
        }
    }

    /// Milliseconds for one attempt.
    private mutating func timeout(_ group: String) -> String {
        let timeout = draws.one(of: Self.timeouts, "\(group).timeout")
        if group == "fallback" { fallbackTimeout = timeout }
        return "timeout = \(timeout)"
    }

    private static let timeouts = [500, 2000]

    private static func credentials(_ script: Script, _ provider: Provider) -> [String] {
        ["encryptType = \"\(script.isSecure ? "https" : "aes")\"", "provider = \"\(provider.rawValue)\""]
            + key(script, provider)
    }

    private static func key(_ script: Script, _ provider: Provider) -> [String] {
        guard provider == .tencent else {
            return [
                "dnsId = \(Topology.account.id)",
                "dnsKey = \"\(String(decoding: Topology.account.secret, as: UTF8.self))\"",
            ]
        }
        return script.isSecure ? ["token = \"123456789\""] : ["dnsId = 4711", "dnsKey = \"0123456789abcdef\""]
    }

    /// The same settings with other files.
    func reading(_ files: MachineFiles) -> Plan {
        var plan = self
        plan.files = files
        return plan
    }

    private static func list(_ items: [String]) -> String { items.map { "\"\($0)\"" }.joined(separator: ", ") }

    var text: String { lines.joined(separator: "\n") + "\n" }

    /// Whether the daemon says by itself that there is no record.
    /// - Parameters: Whether a route leads to addresses of each family.
    func denies(_ name: String, _ type: UInt16, hasIPv4: Bool, hasIPv6: Bool) -> Bool {
        let isLeftOut =
            type == 28
            ? isIPv4Only || followsRoutes && !hasIPv6
            : type == 1 && followsRoutes && !hasIPv4 && (!isTranslated || seeksPrefix)
        return isLeftOut && groups(for: name).contains("httpdns") || hasNone(name) || mayLeaveOut(name, type)
    }

    /// Whether the daemon says that a private name does not exist, as there is no server for it.
    func hasNone(_ name: String) -> Bool { isPrivate(name) && privateResolvers.isEmpty }

    /// Whether nobody but the network's own resolvers can know a name.
    func isPrivate(_ name: String) -> Bool { route(name) == ["private"] }

    private var privateResolvers: [String] {
        switch privateServers {
        case .ofFallback: resolvers ?? files.resolvers
        case .ofNetwork: files.resolvers
        case .none: []
        }
    }

    /// What the settings, and the files, have to do with the answer to a question.
    func features(for name: String, _ type: UInt16) -> Set<Feature> {
        if let target = target(of: name) { return features(for: target, type).union([.alias]) }
        if hosted(name, type) != nil { return features.union([.hostsFile]) }
        if blocked(name, type) != nil { return features.union([.blocked]) }
        let resolvers: Feature = self.resolvers == nil ? .networksResolvers : .namedResolvers
        if let group = group(of: name) {
            var all = features.union([group.name == "office" ? .overTLS : group.name == "shop" ? .overHTTPS : .overTCP])
            if group.hasFile, files.zones.contains(where: { name.hasSuffix("." + $0) }) { all.insert(.namesFile) }
            if !group.thenTry.isEmpty { all.formUnion([.thenTry, resolvers]) }
            return all
        }
        if isPrivate(name) { return features.union([.privateName, resolvers]) }
        guard account != nil else { return features.union([.fallback, resolvers]) }
        let isOfSecond = behindSecond != nil && name.hasSuffix("." + Topology.secondZone)
        return features.union(featuresOfAccounts).union(isOfSecond ? [.accountsWall] : []).union(
            isHTTPOnly ? [] : [resolvers])
    }

    /// Whether there is never a server for private names.
    var hasNoPrivateNames: Bool { privateServers == .none }

    /// What the group says that asks nobody; nil: it does not take the name.
    func blocked(_ name: String, _ type: UInt16) -> (code: UInt8, data: [[UInt8]])? {
        guard let blocking, isBlocked(name, blocking) else { return nil }
        switch blocking.answer {
        case "nxdomain": return (3, [])
        case Self.blockedAddress where type == 1: return (0, [[192, 0, 2, 9]])
        default: return (0, [])
        }
    }

    private func isBlocked(_ name: String, _ blocking: Blocking) -> Bool {
        // No list takes a name that the daemon needs itself.
        let isNeeded = name == aliasTarget || hasServer(called: name)
        let list = [Topology.blockedZone] + (blocking.hasFile && !isNeeded ? files.blocked : [])
        func has(_ zone: String) -> Bool { name == zone || name.hasSuffix("." + zone) }
        return list.contains(where: has) && !list.contains { $0.hasPrefix("@") && has(String($0.dropFirst())) }
    }

    func asksAccountsAlone(_ name: String) -> Bool { groups(for: name).isSubset(of: Topology.accounts) }

    /// Whether accounts alone are asked, in a mode in which an attacker may have written that there is no record.
    func asksUnprovenAlone(_ name: String) -> Bool {
        asksAccountsAlone(name) && groups(for: name).flatMap(hosts).allSatisfy { !$0.isEncrypted }
    }

    /// The servers of a group; none of the fallback.
    func hosts(of group: String) -> [Host] {
        switch group {
        case "httpdns": account ?? []
        case "second": second ?? []
        default: groups.first { $0.name == group }?.hosts ?? []
        }
    }

    /// Whether accounts alone are asked, and have addresses.
    func accountAnswers(_ name: String, _ truth: Truth) -> Bool {
        asksAccountsAlone(name) && !hasBudget && truth.count > 0 && truth.isAddress
            && name.first != "g"
    }

    /// What the hosts file has for a name: an address, or nothing of the type; nil: it does not have the name.
    func hosted(_ name: String, _ type: UInt16) -> [UInt8]? {
        guard hasHosts, [1, 28, 65].contains(type), files.hosted.contains(name) else { return nil }
        return type == 1 ? MachineFiles.address(ofHosted: files.hostedNumber) : []
    }

    /// Whether a host may be told of a name that is no server's.
    func maySay(_ name: String, to host: Host) -> Bool {
        if isPrivate(name) { return host.group == "fallback" && privateResolvers.contains(host.name) }
        return has(host, in: host.group) && groups(for: name).contains(host.group)
    }

    func hasServer(called name: String) -> Bool {
        groups.contains { $0.hosts.contains { $0.serverName == name } }
    }

    /// Whether what local resolvers have said of a name by another plan is of the same network: those that the settings name are of
    /// any, and for the store it does not matter what names them.
    func isOfSameNetwork(as other: Plan, for name: String) -> Bool {
        if isPrivate(name) {
            let areNamed = [self, other].allSatisfy { $0.privateServers == .ofFallback && $0.resolvers != nil }
            return areNamed || Set(privateResolvers) == Set(other.privateResolvers)
        }
        if resolvers != nil, other.resolvers != nil { return true }
        return Set(resolvers ?? files.resolvers) == Set(other.resolvers ?? other.files.resolvers)
            && (resolvers == other.resolvers || hasStore || other.hasStore)
    }

    /// Whether servers' own names are looked up at a host.
    func looksServersUp(at host: Host) -> Bool {
        Topology.accounts.contains { has(host, in: $0) } || files.resolvers.contains(host.name)
    }

    private func has(_ host: Host, in group: String) -> Bool {
        group == "fallback"
            ? (resolvers ?? files.resolvers).contains(host.name) : hosts(of: group).contains { $0 === host }
    }

    private func takes(_ name: String, _ group: Group) -> Bool {
        ([Topology.zones[group.name]!] + (group.hasFile ? files.zones : [])).contains { name.hasSuffix("." + $0) }
    }

    /// Whether a host is to be asked for a name only if its group fails, and that group cannot have.
    func isAfterAnother(_ host: Host, for name: String, _ type: UInt16) -> Bool {
        guard let group = group(of: name), host.group != group.name,
            // What is taken for a search page leads on.
            !withBogus.contains(group.name)
        else { return false }
        // An account is asked for both families at once, for either's sake.
        let types: [UInt16] = Topology.accounts.contains(host.group) ? [1, 28] : [type]
        if types.contains(where: { Truth(name, $0).isSilent }) { return false }
        return !group.on.contains("nxdomain") || types.allSatisfy { Truth(name, $0).count > 0 }
    }

    /// The group of the operator's own that takes a name.
    func group(of name: String) -> Group? { groups.first { takes(name, $0) } }

    /// Who may be told of a name, and answer for it.
    func groups(for name: String) -> Set<String> { Set(route(name).map { $0 == "private" ? "fallback" : $0 }) }

    func route(_ name: String) -> [String] {
        if let group = group(of: name) { return [group.name] + group.thenTry }
        // The root's own name is asked for to see whether anybody answers.
        if !name.isEmpty,
            !name.contains(".") || name.hasSuffix("." + Topology.privateZone) || name == Topology.prefixName
        {
            return ["private"]
        }
        guard account != nil else { return ["fallback"] }
        if let behindSecond, name.hasSuffix("." + Topology.secondZone) { return ["second"] + behindSecond }
        return ["httpdns"] + (second != nil && isSecondBehind ? ["second"] : []) + (isShopBehind ? ["shop"] : [])
            + (isHTTPOnly ? [] : ["fallback"])
    }

    /// Whether a name has the same answers by another plan that differs in one key.
    func answers(_ name: String, as other: Plan, in key: String) -> Bool {
        let parts = key.split(separator: ".")
        let section = String(parts[0])
        let isWithin = route(name).contains(section) || [1, 255].contains { blocked(name, $0) != nil }
        let hasSameAnswers = parts.count > 1 && Self.withoutEffect.contains(parts[1])
        let isOfOthers = (Self.ownGroups + ["second", "blocked", "alias"]).contains(section) && !isWithin
        // Without its last group, the account's `thenTry` is empty, and nobody is asked for private names.
        let isPrivateLost = isPrivate(name) && hasNoPrivateNames != other.hasNoPrivateNames
        return !isPrivateLost && route(name) == other.route(name) && target(of: name) == nil
            && other.target(of: name) == nil
            && (hasSameAnswers || isOfOthers && other.blocked(name, 255) == nil)
    }

    /// Keys that do not decide what an answer contains.
    private static let withoutEffect: Set<Substring> = [
        "batch", "concurrency", "enableReport", "hedgeAfter", "prefetchAt", "retries", "timeout", "toMain",
    ]

    /// Whether what a group says of a name can only stand in for what one before it, which has failed, would say.
    func standsIn(_ group: String, for name: String) -> Bool {
        if let first = self.group(of: name) { return first.name != group && first.on == ["failure"] }
        return account != nil && !hasBudget && (group == "fallback" || group == "shop") && !isPrivate(name)
    }
}
