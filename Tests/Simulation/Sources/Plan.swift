import Base
import DemoService
import TestSupport

/// Who is where: the same machines for all plans.
enum Topology {
    static let account = DemoAccount(
        id: 4711, aesKey: Array("0123456789abcdef".utf8), desKey: Array("01234567".utf8), token: Array("123456789".utf8)
    )

    /// - Parameter secure: Whether the account is asked over https.
    static func hosts(secure: Bool) -> [Host] {
        (1...3).map { Host("account-\($0)", group: "httpdns", .v4(203, 0, 113, UInt8($0)), .account(isSecure: secure)) }
            + (1...2).map { Host("resolver-\($0)", group: "fallback", .v4(192, 168, 0, UInt8($0)), .plain) }
            + (1...2).map { Host("office-\($0)", group: "office", .v4(10, 0, 1, UInt8($0)), .tls) }
            + (1...2).map { Host("shop-\($0)", group: "shop", .v4(10, 0, 2, UInt8($0)), .https) }
            + [
                Host("lab-1", group: "lab", .v4(10, 0, 3, 1), .plain),
                Host("lab-2", group: "lab", .v4(10, 0, 3, 2), .tcp),
            ]
    }

    /// The zone of each group of the operator's own.
    static let zones = ["office": "corp.net", "shop": "shop.org", "lab": "lab.io"]
    static let publicZone = "public-names.com"
}

/// A configuration, as random as can be, and what it means in few words.
struct Plan {
    struct Group {
        let name: String
        let hosts: [Host]
        let thenTry: [String]
        let on: [String]
    }

    /// Nil: nobody but the resolvers.
    private(set) var account: [Host]?
    private(set) var isHTTPOnly = false
    /// Of names that go to the account nobody is asked for IPv6 addresses.
    private var isIPv4Only = false
    private(set) var staleSeconds = 0
    private(set) var groups: [Group] = []
    private var lines: [String] = []

    /// - Parameter hosts: All there are.
    init(_ chance: inout Chance, hosts: [Host], secure: Bool, hasFile: Bool) {
        func some(_ group: String) -> [Host] {
            let all = hosts.filter { $0.group == group }.shuffled(using: &chance)
            return Array(all.prefix(1 + chance.below(all.count)))
        }
        staleSeconds = [0, 60, 3600, 86_400][chance.below(4)]
        lines = ["[listen]", "addresses = [\"127.0.0.1:53\"]", "allow = [\"0.0.0.0/0\"]", "workers = 1"]
        lines += ["[control]", "socket = \"\""]
        lines += [
            "[cache]", "megabytes = 1", "staleSeconds = \(staleSeconds)", "prefetchAt = \([0, 75][chance.below(2)])",
            "negativeTTL = \([0, 5, 30][chance.below(3)])",
        ]
        if hasFile { lines.append("file = \"/d/cache\"") }
        if chance.below(5) > 0 {
            account = some("httpdns")
            isHTTPOnly = chance.below(5) == 0
            isIPv4Only = chance.below(4) == 0
            lines += ["[httpdns]", "encryptType = \"\(secure ? "https" : "aes")\""]
            lines.append(secure ? "token = \"123456789\"" : "dnsId = 4711\ndnsKey = \"0123456789abcdef\"")
            lines += [
                "dnsIp = [\(Self.list(account!.map(\.text)))]", "timeout = \([500, 2000][chance.below(2)])",
                "addressType = \"\(isIPv4Only ? "ipv4" : ["dual", "auto"][chance.below(2)])\"",
                "batch = \([1, 3, 8][chance.below(3)])", "retryTimesBeforeSwitchServer = \([1, 3][chance.below(2)])",
                "minutesBeforeSwitchToMain = \([1, 10][chance.below(2)])", "httpOnly = \(isHTTPOnly)",
                "queriesPerSecond = \([0, 0, 0, 2][chance.below(4)])", "enableReport = \(chance.below(4) == 0)",
            ]
            if secure { lines += ["[tls]", "caFile = \"/d/authority\""] }
        }
        lines += [
            "[fallback]", "servers = [\(Self.list(some("fallback").map(\.text)))]", "hosts = \"\"",
            "hedgeAfter = \([0, 200, 1000, 5000][chance.below(4)])", "timeout = \([500, 2000][chance.below(2)])",
        ]
        for name in ["office", "shop", "lab"] where chance.below(4) > 0 {
            let others: [[String]] = [[], [], ["fallback"], account == nil ? [] : ["httpdns", "fallback"]]
            let group = Group(
                name: name, hosts: some(name), thenTry: others[chance.below(4)],
                on: [["failure"], ["failure", "nxdomain", "nodata", "refused"]][chance.below(2)])
            groups.append(group)
            lines += [
                "[upstreams.\(name)]", "servers = [\(Self.list(group.hosts.map(\.text)))]",
                "domains = [\"\(Topology.zones[name]!)\"]", "timeout = \([500, 2000][chance.below(2)])",
                "thenTry = [\(Self.list(group.thenTry))]", "thenTryOn = [\(Self.list(group.on))]",
                "concurrency = \([1, 4, 64][chance.below(3)])",
            ]
            if name != "lab" { lines.append("caFile = \"/d/authority\"") }
        }
    }

    private static func list(_ items: [String]) -> String { items.map { "\"\($0)\"" }.joined(separator: ", ") }

    var text: String { lines.joined(separator: "\n") + "\n" }

    /// Whether the daemon says by itself that there is no record.
    func denies(_ name: String, _ type: UInt16) -> Bool {
        isIPv4Only && type == 28 && groups(for: name).contains("httpdns")
    }

    /// Who may be told of a name, and answer for it.
    func groups(for name: String) -> Set<String> {
        if let group = groups.first(where: { name.hasSuffix("." + Topology.zones[$0.name]!) }) {
            return Set([group.name] + group.thenTry)
        }
        guard account != nil else { return ["fallback"] }
        return isHTTPOnly ? ["httpdns"] : ["httpdns", "fallback"]
    }
}
