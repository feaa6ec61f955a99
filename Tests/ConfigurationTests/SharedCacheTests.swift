import Base
import Foundation
import Testing

@testable import Configuration

@Suite struct SharedCacheTests {
    private let key = String(repeating: "0123456789abcdef", count: 2)

    private func section(_ server: String, _ more: String = "") -> String {
        "[sharedCache]\nserver = \"\(server)\"\nkeyFile = \"fleet-key\"\n" + more
    }

    private var files: [String: String] { ["/etc/httpdnsd/fleet-key": key + "\n"] }

    @Test(arguments: [
        ("redis://192.0.2.7", StoreServer.plain(Endpoint(.v4(192, 0, 2, 7), port: 6379)), "redis://192.0.2.7:6379"),
        ("redis://[2001:db8::1]:7000", .plain(Endpoint("[2001:db8::1]:7000")!), "redis://[2001:db8::1]:7000"),
        (
            "tls://10.96.7.7:6379#valkey.example",
            .tls(
                Server(
                    .tls, .address(.v4(10, 96, 7, 7), nil), port: 6379, certificateName: "valkey.example")),
            "tls://10.96.7.7:6379"
        ),
        (
            "tls://valkey.example#192.0.2.1+192.0.2.2",
            .tls(
                Server(
                    .tls, .name("valkey.example"), port: 6379, addresses: [.v4(192, 0, 2, 1), .v4(192, 0, 2, 2)])),
            "tls://valkey.example:6379"
        ),
        ("unix:/run/valkey/valkey.sock", .path("/run/valkey/valkey.sock"), "unix:/run/valkey/valkey.sock"),
    ])
    func servers(text: String, server: StoreServer, shown: String) throws {
        let settings = try load(section(text), files: files)
        #expect(settings.sharedCache.server == server && "\(server)" == shown)
        #expect(settings.sharedCache.key?.bytes == Array(key.utf8))
        // What is shown is read again.
        let again = try load(settings.effectiveText, files: files)
        #expect(again.sharedCache == settings.sharedCache)
        #expect(!settings.effectiveText.contains(key))
    }

    @Test(arguments: [
        "192.0.2.7", "redis://valkey.example", "redis://192.0.2.7/0", "redis://u:p@192.0.2.7", "tls://valkey.example",
        "tls://192.0.2.7/x", "rediss://192.0.2.7", "valkey://192.0.2.7", "unix:run/x", "unix://run/x",
        "unix:/" + String(repeating: "x", count: 107), "http://192.0.2.7", "redis://192.0.2.7:0", "redis://a b",
    ])
    func wrongServers(text: String) {
        let said = message(section(text), files: files)
        #expect(said.hasPrefix("test.toml:2: sharedCache.server: ") && said.contains("give "))
        #expect(!said.contains("u:p"))
    }

    @Test func nothingIsSharedWithoutAKey() {
        let alone = "[sharedCache]\nserver = \"redis://192.0.2.7\"\n"
        #expect(message(alone).hasPrefix("test.toml:1: sharedCache.keyFile: missing; answers are shared only sealed"))
        #expect(message(section("redis://192.0.2.7")).contains("\"/etc/httpdnsd/fleet-key\": No such file"))
        let short = ["/etc/httpdnsd/fleet-key": String(key.dropLast()) + "\n"]
        #expect(
            message(section("redis://192.0.2.7"), files: short)
                == "test.toml:3: sharedCache.keyFile: the key has 31 octets; give 32 or more, such as "
                + "`openssl rand -hex 32`")
        #expect(
            message(
                section("redis://192.0.2.7", "keyFileBefore = \"old\""),
                files: files.merging(["/etc/httpdnsd/old": "x"]) { $1 }
            ).hasPrefix("test.toml:4: sharedCache.keyFileBefore: the key has 1 octets"))
    }

    @Test(arguments: [
        String(repeating: "a", count: 32), String(repeating: "\0", count: 32), String(repeating: "1234567", count: 9),
    ])
    func aKeyThatCanBeGuessedIsRefused(key: String) {
        let said = message(section("redis://192.0.2.7"), files: ["/etc/httpdnsd/fleet-key": key])
        #expect(said.hasPrefix("test.toml:3: sharedCache.keyFile: the key has only \(Set(key).count) different octets"))
    }

    @Test func itsFilesAreReadAndTellWhetherTheyChanged() throws {
        let text = section(
            "tls://192.0.2.7", "keyFileBefore = \"old\"\nuser = \"dns\"\npasswordFile = \"pw\"\ncaFile = \"ca.pem\"")
        var files = files
        files["/etc/httpdnsd/old"] = key.uppercased()
        files["/run/c/pw"] = "hunter2\n"
        files["/etc/httpdnsd/ca.pem"] = "PEM"
        let environment = ["CREDENTIALS_DIRECTORY": "/run/c"]
        let settings = try load(text, environment: environment, files: files)
        let shared = settings.sharedCache
        #expect(shared.password?.bytes == Array("hunter2".utf8) && shared.user == "dns")
        #expect(shared.keyBefore?.bytes == Array(key.uppercased().utf8) && shared.anchors == Array("PEM".utf8))
        for (path, section) in [
            ("/etc/httpdnsd/fleet-key", "keyFile"), ("/etc/httpdnsd/old", "keyFileBefore"),
            ("/run/c/pw", "passwordFile"), ("/etc/httpdnsd/ca.pem", "caFile"),
        ] {
            var changed = files
            changed[path]? += "x"
            let new = try load(text, environment: environment, files: changed)
            #expect(settings.reloading(new).applied == ["sharedCache.\(section)"])
        }
        #expect(settings.reloading(settings).applied.isEmpty)
        #expect(
            message(section("redis://192.0.2.7", "user = \"dns\""), files: files)
                == "test.toml:4: sharedCache.user: a user without a password; give a passwordFile, or no user")
    }

    @Test func whatIsSharedUnlessSomethingElseIsSaid() throws {
        let text = "[httpdns]\ntoken = \"1\"\n[upstreams.a]\nservers = [\"192.0.2.1\"]\ndomains = [\".\"]"
        let settings = try load(text)
        #expect(settings.httpdns?.share == true && settings.fallback.share && settings.upstreams[0].share == false)
        let other = try load(
            text + "\nshare = true\n[fallback]\nshare = false", environment: ["HTTPDNSD_HTTPDNS_SHARE": "false"])
        #expect(other.httpdns?.share == false && !other.fallback.share && other.upstreams[0].share)
    }
}
