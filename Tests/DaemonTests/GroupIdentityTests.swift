import Base
import Forwarding
import Testing

@testable import Configuration
@testable import Daemon

/// Which keys of a group make another group of it for a reload. Which answers they make wrong is in `BasisTests`.
@Suite struct GroupIdentityTests {
    private static let office = [
        "servers": "[\"tls://192.0.2.1\"]", "domains": "[\"corp.example\"]", "caFile": "\"one.pem\"",
        "clientCertificate": "\"one.p12\"", "thenTry": "[\"fallback\"]",
    ]
    private static let shop = [
        "provider": "\"alibaba\"", "dnsId": "7", "dnsKey": "\"0123456789abcdef\"", "domains": "[\"shop.example\"]",
        "dnsIp": "[\"192.0.2.1\"]", "enableReport": "true",
    ]
    private static let ads = ["answer": "\"nxdomain\"", "domains": "[\"ads.example\"]"]
    private static let tencent = [
        "provider": "\"tencent\"", "token": "\"101\"", "domains": "[\"shop.example\"]",
    ]

    /// What a key is changed to, in a group that says nothing of it or something else.
    private struct Change {
        let key: String
        let to: String
        var group = GroupIdentityTests.office
        /// Why it makes no other group; nil: it does.
        var whyNot: String?
    }

    private static let changes: [Change] = {
        func shop(_ key: String, _ to: String, without other: String? = nil, whyNot: String? = nil) -> Change {
            Change(key: key, to: to, group: Self.shop.filter { $0.key != other }, whyNot: whyNot)
        }
        return [
            Change(key: "domains", to: "[\"other.example\"]", whyNot: Self.routing),
            Change(key: "except", to: "[\"www.corp.example\"]", whyNot: Self.routing),
            Change(key: "answer", to: "\"nodata\"", group: Self.ads, whyNot: Self.routing),
            Change(
                key: "alias", to: "\"www.example.net\"",
                group: ["alias": "\"www.example.com\"", "domains": "[\"safe.example\"]"], whyNot: Self.routing),
            Change(key: "thenTry", to: "[]", whyNot: Self.routing),
            Change(key: "thenTryOn", to: "[\"nxdomain\"]", whyNot: Self.routing),
            Change(key: "routeIp", to: "\"198.51.100.1\""), Change(key: "trustAD", to: "true"),
            Change(key: "caFile", to: "\"two.pem\""), Change(key: "caOnly", to: "false"),
            Change(key: "pins", to: "[\"sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"]"),
            Change(key: "validateDomain", to: "false"), Change(key: "clientCertificate", to: "\"two.p12\""),
            Change(key: "clientCertificatePasswordFile", to: "\"password\""),
            Change(key: "whenClockUnset", to: "\"refuse\""), Change(key: "from", to: "\"192.0.2.9\""),
            Change(key: "device", to: "\"eth1\""), Change(key: "mark", to: "7"),
            Change(
                key: "servers", to: "[\"tls://192.0.2.2\"]", whyNot: "servers are told on their own: some are found"),
            Change(key: "domainsFile", to: "\"names\"", whyNot: "the contents of all lists are compared"),
            Change(key: "without", to: "[\"AAAA\"]", whyNot: Self.routing),
            Change(key: "bogusAddresses", to: "[\"192.0.2.1\"]"),
            Change(key: "timeout", to: "900", whyNot: "answers are the same, sooner or later"),
            Change(key: "concurrency", to: "9", whyNot: "answers are the same, sooner or later"),
            Change(key: "share", to: "true", whyNot: "says where answers go, not what they are"),

            shop("provider", "\"volcengine\""), shop("encryptType", "\"aes\""), shop("dnsId", "8"),
            shop("dnsKey", "\"fedcba9876543210\""), shop("dnsKeyFile", "\"secret\"", without: "dnsKey"),
            shop("dnsIp", "[\"192.0.2.2\"]"), shop("confIp", "[\"192.0.2.3\"]"),
            shop("addressType", "\"ipv4\"", whyNot: Self.routing),
            shop("signed", "\"addresses\"", whyNot: Self.routing),
            shop("serviceBinding", "\"none\"", whyNot: Self.routing),
            shop("authExpirySeconds", "60"),
            shop("enableReport", "false"), shop("reportUrl", "\"http://192.0.2.4/\""),
            shop("serverName", "\"a.example\""),
            shop("timeout", "900", whyNot: "only Tencent is told of it"),
            Change(key: "timeout", to: "3000", group: Self.tencent),
            Change(key: "token", to: "\"102\"", group: Self.tencent),
            Change(key: "tokenFile", to: "\"secret\"", group: Self.tencent.filter { $0.key != "token" }),
            Change(key: "routeIpEncrypted", to: "true", group: Self.tencent),
            Change(
                key: "aesKey", to: "\"0123456789ABCDEF0123456789abcdef\"",
                group: Self.shop.merging(["encryptType": "\"aes\""]) { $1 }),
            Change(
                key: "aesKeyFile", to: "\"digits\"", group: Self.shop.merging(["encryptType": "\"aes\""]) { $1 }),
            shop("httpOnly", "true", whyNot: "is an empty thenTry, and that a group has already"),
            shop("batch", "2", whyNot: "answers are the same, in other requests"),
            shop("queriesPerSecond", "5", whyNot: "past it the next group is asked, as before"),
            shop("retryTimesBeforeSwitchServer", "5", whyNot: "says when servers are asked, not what they say"),
            shop("minutesBeforeSwitchToMain", "5", whyNot: "says when servers are asked, not what they say"),
            shop("proxy", "\"ignore\"", whyNot: "what it leads to is another identity"),
            shop("appId", "\"a\"", whyNot: "stands in the next report"),
            shop("trace", "true"),
            shop("debug", "true", whyNot: "is only logged"),
        ]
    }()

    private static let routing = "says who is asked, which is in the policy"

    /// The keys that neither change what a group is nor what the forwarder knows of it, and where their effect is tested.
    private static let elsewhere = [
        "domainsFile": "test_group_names.py", "httpOnly": "thenTry says the same", "proxy": "test_account_keys.py",
        "appId": "test_account_keys.py", "debug": "test_account_keys.py", "domains": "BasisTests",
        "except": "BasisTests",
        "thenTry": "BasisTests", "thenTryOn": "BasisTests",
    ]

    private func settings(_ keys: [String: String]) throws -> Settings {
        let lines = keys.filter { !$0.value.isEmpty }.map { "\($0.key) = \($0.value)\n" }.sorted().joined()
        return try Settings.load("[upstreams.office]\n\(lines)") { path in
            let isKey = path.hasSuffix("digits")
            return .bytes(Array((isKey ? "fedcba9876543210fedcba9876543210" : path.replacing("/", with: "-")).utf8))
        }
    }

    private func identity(_ keys: [String: String]) throws -> GroupIdentity {
        try #require(GroupIdentity.all(settings(keys))["office"])
    }

    /// What the forwarder knows of the group.
    private func group(_ keys: [String: String]) throws -> UpstreamGroup {
        let settings = try settings(keys)
        let groups = UpstreamGroups(settings, GroupNumbers(settings), resolvers: [])
        return try #require(groups.groups.first { $0.name == "office" })
    }

    @Test func eachKeyMakesAnotherGroupOrIsNamedAsOneThatDoesNot() throws {
        for change in Self.changes {
            // An account needs a secret to be one: what the key says is compared with another that does.
            var before = change.group
            let others = ["dnsKeyFile": ("dnsKey", "\"other\""), "tokenFile": ("token", "\"other\"")]
            if let (key, other) = others[change.key] { before[key] = other }
            if change.key.hasPrefix("aesKey") { before["aesKey"] = "\"0123456789abcdef0123456789abcdef\"" }
            if change.key == "encryptType" { before["aesKey"] = "\"0123456789abcdef0123456789abcdef\"" }
            var after = before
            if change.key.hasSuffix("File"), change.key != "domainsFile" { after["\(change.key.dropLast(4))"] = nil }
            after[change.key] = change.to
            let isAnother = try identity(before) != identity(after)
            #expect(isAnother == (change.whyNot == nil), "\(change.key)")
            if !isAnother, Self.elsewhere[change.key] == nil {
                #expect(try group(before) != group(after), "\(change.key) has no effect")
            }
        }
    }

    /// The reporter keeps its way out, so another way needs another reporter.
    @Test(arguments: [("from", "\"192.0.2.9\""), ("device", "\"eth1\""), ("mark", "7")])
    func anotherWayOutIsAnotherWayOfReports(key: String, value: String) throws {
        var keys = Self.shop.merging(["reportUrl": "\"http://192.0.2.4/\""]) { $1 }
        let before = try identity(keys)
        keys[key] = value
        let after = try identity(keys)
        #expect(before.reports != nil && after.reports != nil && before.reports != after.reports)
    }

    @Test func noKeyIsForgottenHere() {
        let keys = Set(Key.keys(of: .named).map(\.name))
        #expect(keys.symmetricDifference(Self.changes.map(\.key)) == [])
    }

    @Test func anAccountLeftOutForAProxyIsAnotherGroup() throws {
        var settings = try Settings.load("[httpdns]\ntoken = \"101\"\n")
        let before = GroupIdentity.all(settings)
        settings.bypass("httpdns")
        #expect(GroupIdentity.all(settings)["httpdns"] != before["httpdns"])
        #expect(GroupIdentity.all(settings)["fallback"] == before["fallback"])
    }
}
