import Base
import Log
import Testing

@testable import Configuration
@testable import Daemon

/// Remarks of `check` and of the start on settings that are right and doubtful.
struct RemarksTests {
    @Test(
        "programs of this host may not ask",
        arguments: [
            (["0.0.0.0:53"], ["192.168.0.0/16"], "127.0.0.1"),
            (["127.0.0.1:53", "[::1]:53"], ["192.168.0.0/16"], "127.0.0.1 and no ::1"),
            (["[::]:53"], ["192.168.0.0/16"], "127.0.0.1 and no ::1"), (["127.0.0.53:53"], ["fd00::/8"], "127.0.0.1"),
            // Programs of this host that ask there come from that address.
            (["192.168.1.2:53"], ["192.168.0.0/16"], nil), (["0.0.0.0:53"], ["127.0.0.0/8"], nil),
            (["0.0.0.0:53"], ["0.0.0.0/0"], nil), (["127.0.0.1:53"], ["127.0.0.1/32"], nil),
        ] as [([String], [String], String?)])
    func closedToThisHost(addresses: [String], allow: [String], missing: String?) {
        var settings = Settings()
        settings.listen.addresses = addresses.map { Endpoint($0)! }
        settings.listen.allow = allow.map { Network($0)! }
        let words = Report.closedToThisHost(settings.listen.allow, at: settings.listen.everyAddress)
        #expect(
            words?.contains("has no \(missing ?? ""): programs of this host are refused") == missing.map { _ in true })
    }

    @Test func standardSettingsAreOpenToThisHost() {
        let listen = Settings().listen
        #expect(Report.closedToThisHost(listen.allow, at: listen.everyAddress) == nil)
    }

    @Test func everyNameIsBilledWhileNoneIsNamed() throws {
        func words(_ domains: String = "") throws -> String? {
            Report.billsAll(try Settings.load("[httpdns]\ntoken = \"101\"\n\(domains)"))
        }
        #expect(try words()?.hasPrefix("domains.intercept is empty") == true)
        #expect(try words("[domains]\nintercept = [\"shop.example\"]\n") == nil)
        #expect(Report.billsAll(Settings()) == nil)
    }

    @Test func accountsBehindPrivateNamesAreNotAsked() throws {
        let account = "[httpdns]\ntoken = \"101\"\n[private]\nthenTry = "
        let words = try Report.withoutEffect(Settings.load(account + "[\"httpdns\", \"fallback\"]\n"))
        #expect(words.count == 1 && words[0].hasPrefix("private.thenTry names httpdns without effect"))
        #expect(try Report.withoutEffect(Settings.load(account + "[\"fallback\"]\n")).isEmpty)
        let only = "[httpdns]\ntoken = '1'\nhttpOnly = true\n[fallback]\nthenTry = ['private']\n"
        #expect(try Report.withoutEffect(Settings.load(only)).map { $0.prefix(16) } == ["fallback.thenTry"])
    }

    @Test func checkSaysOfAProxyWhatTheStartSays() throws {
        var settings = try Settings.load("[httpdns]\ntoken = \"101\"\n")
        (settings.fallback.hosts, settings.fallback.resolvConf) = ([], [])
        for (environment, isBypassed) in [([:], false), (["https_proxy": "http://192.0.2.1:3128"], true)] {
            let words = try Daemon.check(settings, environment: environment)
            #expect(words.contains { $0.hasPrefix("https_proxy is set, and httpdns.proxy is") } == isBypassed)
            #expect(words.contains { $0.hasPrefix("domains.intercept is empty") } == !isBypassed)
        }
    }
}
