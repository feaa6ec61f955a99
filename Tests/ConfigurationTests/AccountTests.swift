import Base
import Testing

@testable import Configuration

/// HTTPDNS accounts of all providers, in `[httpdns]` and in groups.
@Suite struct AccountTests {
    private static let alibaba = "provider = 'alibaba'\ndnsId = 139450\ndnsKey = '00112233'\n"
    private static let group = "[upstreams.shop]\ndomains = ['shop.example']\n"

    @Test("each provider has its own defaults", arguments: Provider.allCases)
    func defaults(_ provider: Provider) throws {
        let keys =
            provider == .tencent
            ? "provider = 'tencent'\ntoken = '1'"
            : "provider = '\(provider.rawValue)'\ndnsId = 7\ndnsKey = 'ab'\ndnsIp = ['192.0.2.1']"
        let own = try #require(try load("[httpdns]\n" + keys).httpdns)
        #expect(own.batch == provider.facts.namesPerRequest && own.credential.provider == provider)
        #expect(own.dnsIp.map(\.port) == [443])
        let settings = try load(Self.group + keys)
        let account = try #require(settings.accounts.first)
        #expect(account.name == "shop" && account.batch == own.batch && account.thenTry == [])
        #expect(account.thenTryOn == [.failure, .norecord])
        if provider != .tencent, provider != .volcengine {
            let usual = try load("[httpdns]\n" + keys.replacing("\ndnsIp = ['192.0.2.1']", with: "")).httpdns
            #expect(usual?.dnsIp.map(\.address) == provider.facts.addresses)
        }
    }

    @Test("a server with the usual port and without is one server")
    func sameServer() throws {
        let services = "dnsIp = ['192.0.2.1', '192.0.2.1:443', '192.0.2.1:80']\nconfIp = ['192.0.2.2:443', '192.0.2.2']"
        let account = try #require(try load("[httpdns]\ntoken = '1'\n" + services).httpdns)
        #expect(account.dnsIp.map(\.description) == ["192.0.2.1:443", "192.0.2.1:80"])
        #expect(account.confIp.map(\.description) == ["192.0.2.2:443"])
    }

    @Test("aes is asked over HTTP")
    func aes() throws {
        let digits = "000102030405060708090a0b0c0d0e0f"
        let text = "[httpdns]\n" + Self.alibaba + "encryptType = 'aes'\naesKeyFile = 'k'"
        let account = try #require(try load(text, files: ["/etc/httpdnsd/k": digits + "\n"]).httpdns)
        #expect(account.dnsIp == [Endpoint(.v4(203, 107, 1, 1), port: 80)] && !account.credential.isHTTPS)
        guard case .signed(.alibaba, 139_450, _, let key?) = account.credential else {
            Issue.record("\(account.credential)")
            return
        }
        #expect(key.bytes == Array(digits.utf8))
    }

    @Test(
        "what is wrong is named with its line",
        arguments: [
            (
                alibaba + "encryptType = 'des'",
                "5: KEYencryptType: \"des\" is not right with \"alibaba\"; give \"https\" or \"aes\""
            ),
            (
                "provider = 'baidu'\nencryptType = 'aes'",
                "3: KEYencryptType: \"aes\" is not right with \"baidu\"; give \"https\""
            ),
            (alibaba + "encryptType = 'aes'", "1: KEYaesKey: missing; \"aes\" needs it: give aesKey or aesKeyFile"),
            (
                alibaba + "encryptType = 'aes'\naesKey = 'ab'",
                "6: KEYaesKey: the key has 2 bytes; it is 32 hexadecimal digits in the console"
            ),
            (alibaba + "batch = 6", "5: KEYbatch: 6 is not right; \"alibaba\" takes 5 at most"),
            (alibaba + "routeIpEncrypted = true", "5: KEYrouteIpEncrypted: \"alibaba\" cannot do that; give false"),
            (
                "provider = 'alibaba-v1'\ndnsId = 1\ndnsKey = 'a'\ntrace = true",
                "5: KEYtrace: \"alibaba-v1\" cannot do that; give false"
            ),
            ("provider = 'tencent'\ntoken = '1'\ntrace = true", "4: KEYtrace: \"tencent\" cannot do that; give false"),
            (alibaba + "dnsKeyFile = 'x'", "5: KEYdnsKeyFile: dnsKey is given as well; give one of the two"),
            ("provider = 'baidu'", "1: KEYdnsId: \"baidu\" needs an authorization ID; give 1 to 4294967295"),
            ("provider = 'baidu'\ndnsId = 1", "1: KEYdnsKey: missing; \"baidu\" needs it: give dnsKey or dnsKeyFile"),
            (
                "provider = 'volcengine'\ndnsId = 1\ndnsKey = 'a'",
                "1: KEYdnsIp: missing; \"volcengine\" has no address of its own to be asked at"
            ),
            (
                "provider = 'huawei'",
                "2: KEYprovider: \"huawei\" is not right; give one of \"tencent\", \"alibaba\", \"alibaba-v1\", \"volcengine\", \"baidu\""
            ),
        ])
    func errors(_ keys: String, _ expected: String) {
        #expect(message("[httpdns]\n" + keys) == "test.toml:" + expected.replacing("KEY", with: "httpdns."))
        let inGroup = message("[upstreams.a]\n" + keys + "\ndomains = ['x']")
        #expect(inGroup == "test.toml:" + expected.replacing("KEY", with: "upstreams.a."))
    }

    @Test(
        "an account has no servers, and only an account has its keys",
        arguments: [
            ("provider = 'tencent'\ntoken = '1'\ntrustAD = true", "trustAD"), ("servers = ['::1']\nbatch = 1", "batch"),
            ("servers = ['::1']\nserverName = 'a.example'", "serverName"),
        ])
    func kinds(_ keys: String, _ key: String) {
        #expect(message("[upstreams.a]\n\(keys)\ndomains = ['x']").contains("upstreams.a.\(key): "))
    }

    @Test(
        "a group asks nobody else by itself; httpOnly = false has it ask the local resolver",
        arguments: [
            ("", []), ("httpOnly = true", []), ("httpOnly = false", ["fallback"]),
            ("httpOnly = false\nthenTry = []", []), ("httpOnly = false\nthenTry = ['httpdns']", ["httpdns"]),
            ("httpOnly = true\nthenTry = []", []),
        ])
    func httpOnly(_ keys: String, _ thenTry: [String]) throws {
        let settings = try load("[httpdns]\ntoken = '1'\n" + Self.group + Self.alibaba + keys)
        let group = try #require(settings.upstreams.first)
        #expect(group.thenTry == thenTry)
        let again = try load(settings.effectiveText)
        #expect(again.upstreams.first?.thenTry == thenTry && again.httpdns?.thenTry == ["fallback"])
    }

    @Test("the effective settings are settings, with secrets masked")
    func effective() throws {
        let text = Self.group + Self.alibaba + "encryptType = 'aes'\naesKey = '\(String(repeating: "7", count: 32))'\n"
        let settings = try load(text)
        let shown = settings.effectiveText
        #expect(!shown.contains("0011") && !shown.contains("7777") && !shown.contains("servers ="))
        #expect(try load(shown).accounts.map(\.dnsIp) == settings.accounts.map(\.dnsIp))
    }

    @Test("a secret of the environment replaces that of the file")
    func environment() throws {
        let variables = ["HTTPDNSD_UPSTREAMS_SHOP_DNSKEY": "ff", "HTTPDNSD_UPSTREAMS_SHOP_DNSID": "9"]
        let text = Self.group + Self.alibaba.replacing("dnsKey = '00112233'", with: "dnsKeyFile = 'k'")
        let account = try #require(try load(text, environment: variables).accounts.first)
        guard case .signed(_, 9, let secret, nil) = account.credential else {
            Issue.record("\(account.credential)")
            return
        }
        #expect(secret.bytes == Array("ff".utf8))
    }
}
