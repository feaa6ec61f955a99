import Base
import Configuration
import Forwarding
import Testing

@testable import Daemon

/// Whose answers a daemon finds in the store: those that it would have been given itself.
@Suite struct SharedIdentityTests {
    private static let tencent = "encryptType = \"aes\"\ndnsId = 7\ndnsKey = \"0123456789abcdef\"\n"
    private static let alibaba = "provider = \"alibaba\"\ndnsId = 7\ndnsKey = \"0123456789abcdef\"\n"

    private func identities(
        _ text: String, _ servers: [Server] = []
    ) throws -> (of: [GroupID: [UInt8]], numbers: GroupNumbers) {
        let settings = try Settings.load(text)
        let numbers = GroupNumbers(settings)
        return (settings.sharedIdentities(numbers) { _ in servers }, numbers)
    }

    private func account(_ keys: String) throws -> [UInt8] {
        try #require(try identities("[httpdns]\n" + keys).of[.httpdns])
    }

    @Test func anotherAccountRouteOrWayIsAnotherIdentity() throws {
        let accounts = try [
            Self.tencent,
            Self.tencent.replacing("= 7", with: "= 8"),
            Self.tencent.replacing("aes", with: "des").replacing("89abcdef", with: ""),
            "token = \"101\"\n",
            "token = \"102\"\n",
            Self.alibaba,
            Self.alibaba.replacing("= 7", with: "= 8"),
            Self.alibaba.replacing("alibaba", with: "alibaba-v1"),
            Self.alibaba.replacing("alibaba", with: "volcengine") + "dnsIp = [\"192.0.2.1\"]\n",
            Self.alibaba.replacing("alibaba", with: "baidu"),
            Self.tencent + "routeIp = \"192.0.2.1\"\n",
            Self.tencent + "routeIp = \"192.0.2.2\"\n",
            Self.tencent + "[cache]\nminTTL = 30\n", Self.tencent + "[cache]\nnegativeMinTTL = 30\n",
            Self.tencent + "[cache]\nnegativeTTL = 60\n",
        ].map(account)
        #expect(Set(accounts).count == accounts.count)
    }

    @Test func theSecretTheServersAndTheNameOfAnAccountDoNotMatter() throws {
        let same = try account(Self.tencent)
        #expect(try account(Self.tencent.replacing("01234567", with: "76543210")) == same)
        #expect(try account(Self.tencent + "timeout = 900\n") == same)
        let group = "[upstreams.second]\nprovider = \"tencent\"\ndomains = [\"example.com\"]\nshare = true\n"
        let both = try identities("[httpdns]\n" + Self.alibaba + group + Self.tencent)
        #expect(both.of[both.numbers["second"]] == same)
        #expect(try both.of[.httpdns] == account(Self.alibaba))
    }

    @Test func anotherResolverIsAnotherIdentity() throws {
        let servers = [Server(Endpoint("192.0.2.1:53")!, .plain), Server(Endpoint("192.0.2.2:53")!, .plain)]
        let group = "[upstreams.NAME]\nservers = [\"192.0.2.9\"]\ndomains = [\"example.com\"]\n"
        let own = { (name: String, keys: String) throws -> [UInt8] in
            let found = try identities(group.replacing("NAME", with: name) + keys, servers)
            return try #require(found.of[found.numbers[name]])
        }
        let all = try [
            #require(identities("").of[.fallback]),
            #require(identities("", servers).of[.fallback]),
            #require(identities("", servers.reversed()).of[.fallback]),
            #require(identities("[fallback]\nrouteIp = \"192.0.2.1\"\n", servers).of[.fallback]),
            #require(identities("[fallback]\ntrustAD = true\n", servers).of[.fallback]),
            own("office", ""), own("partner", ""), own("office", "trustAD = true\n"),
        ]
        #expect(Set(all).count == all.count)
    }
}
