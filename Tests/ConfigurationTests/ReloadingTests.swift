import Foundation
import Testing

@testable import Configuration

@Suite struct ReloadingTests {
    /// Lines that stand for a key's other value where its default would not be right, or is in force already.
    private static let others = [
        "listen.certificateFile": "certificateFile = \"/etc/httpdnsd/ca.pem\"",
        "listen.keyFile": "keyFile = \"/keys/password\"",
        "sharedCache.passwordFile": "passwordFile = \"/keys/password\"",
        "sharedCache.keyFile": "keyFile = \"fleet-key-before\"",
    ]

    @Test("no key of a group needs a restart")
    func groups() {
        #expect(Key.all.allSatisfy { $0.holders.isEmpty || $0.effect == .atOnce })
    }

    @Test("the shipped file names the keys that need a restart")
    func documented() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let text = try String(contentsOf: root.appending(path: "config/httpdnsd.toml"), encoding: .utf8)
        let begin = try #require(text.range(of: "These need a restart:")?.upperBound)
        let list = text[begin...].prefix(upTo: try #require(text[begin...].range(of: "Any key")?.lowerBound))
        let sections = Set(Key.all.map(\.section.rawValue))
        let named = list.matches(of: /(\w+)\.\w+/).filter { sections.contains(String($0.1)) }.map { String($0.0) }
        #expect(named == Key.all.filter { $0.effect == .atStart }.map(\.path))
    }

    @Test(
        "a key that differs is named, and holds at once or is left as it was",
        arguments: Key.all.filter(\.holders.isEmpty).map(\.path))
    func differs(_ path: String) throws {
        let (section, name) = (path.split(separator: ".")[0], path.split(separator: ".")[1])
        var lines = SettingsTests.everyKey.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let header = try #require(lines.firstIndex(of: "[\(section)]"))
        let at = try #require(
            lines[header...].dropFirst().prefix { !$0.hasPrefix("[") }.firstIndex { $0.hasPrefix("\(name) =") })
        // The default, unless that would not be right.
        lines[at] = Self.others[path] ?? ""
        let before = try load(SettingsTests.everyKey, files: SettingsTests.files)
        let after = try load(lines.joined(separator: "\n"), files: SettingsTests.files)
        let reloading = before.reloading(after)
        if Key.all.first(where: { $0.path == path })?.effect != .atStart {
            #expect(reloading.applied.contains(path) && reloading.needingRestart == [])
            #expect(reloading.settings == after)
        } else {
            #expect(reloading == Settings.Reloading(settings: before, applied: [], needingRestart: [path]))
            #expect(before != after)
        }
        #expect(after.reloading(after).applied == [])
    }

    @Test("another order of groups that answer is a change, since the first of two lists with a name takes it")
    func order() throws {
        func settings(_ groups: String...) throws -> Settings {
            try load(groups.map { "[upstreams.\($0)]\nanswer = 'nxdomain'\ndomains = ['\($0).example']\n" }.joined())
        }
        let before = try settings("a", "b", "c")
        #expect(before.reloading(try settings("b", "a", "c")).applied == ["upstreams"])
        #expect(before.reloading(try settings("c", "b")).applied == ["upstreams.a", "upstreams"])
        #expect(before.reloading(try settings("d", "a", "c")).applied == ["upstreams.d", "upstreams.b"])
    }

    @Test("what a file holds counts, not what it is called")
    func files() throws {
        let text = "[httpdns]\ntokenFile = 'token'\n[tls]\ncaFile = 'ca'\nclientCertificate = 'p12'"
        func settings(_ token: String, _ ca: String, _ certificate: String) throws -> Settings {
            try load(
                text,
                files: ["/etc/httpdnsd/token": token, "/etc/httpdnsd/ca": ca, "/etc/httpdnsd/p12": certificate])
        }
        let before = try settings("1", "2", "3")
        #expect(before.reloading(try settings("1", "2", "3")).applied == [])
        #expect(before.reloading(try settings("0", "2", "3")).applied == ["httpdns.token"])
        #expect(before.reloading(try settings("1", "0", "3")).applied == ["tls.caFile"])
        #expect(before.reloading(try settings("1", "2", "0")).applied == ["tls.clientCertificate"])
    }

    @Test("what files held can be forgotten, and is compared all the same")
    func forgotten() throws {
        func tls(_ contents: String) throws -> Settings {
            try load(
                "[tls]\ncaFile = '/ca'\nclientCertificate = '/p12'\nclientCertificatePasswordFile = '/password'",
                files: ["/ca": "authority\(contents)", "/p12": "key\(contents)", "/password": "word\(contents)"])
        }
        var before = try tls("")
        before.tls.forgetFiles()
        #expect(before.tls.anchors == nil && before.tls.clientCertificateBytes == nil)
        #expect(before.tls.clientCertificatePassword == nil)
        let same = try tls("")
        #expect(before == same && before.reloading(same).applied == [])
        let after = try tls("!")
        let applied = ["tls.caFile", "tls.clientCertificate", "tls.clientCertificatePasswordFile"]
        #expect(before != after && before.reloading(after).applied == applied)
        #expect(before.reloading(after).settings.tls.anchors == Array("authority!".utf8))
        #expect(before != Settings())
    }

    @Test("the certificate stays as long as the sockets for TLS and HTTPS", arguments: ["tls", "https"])
    func certificate(_ key: String) throws {
        let text = "[listen]\n\(key) = ['127.0.0.1:853']\ncertificateFile = '/cert'\nkeyFile = '/key'"
        func with() throws -> Settings { try load(text, files: ["/cert": "a certificate", "/key": "its key"]) }
        var before = try with()
        before.forgetFiles()
        let stays = ["listen.\(key)", "listen.certificateFile", "listen.keyFile"]
        let without = before.reloading(Settings())
        #expect(without == Settings.Reloading(settings: before, applied: [], needingRestart: stays))
        // The same files again are no change.
        let again = without.settings.reloading(try with())
        #expect(again.applied == [] && again.needingRestart == [] && again.settings.listen.certificate != nil)
        #expect(again.settings.listen.hasCertificate(of: before.listen))
        #expect(!Settings().listen.hasCertificate(of: before.listen))
    }

    @Test("a text that was read before is known by a digest, and any other is read")
    func texts() throws {
        for number in (0..<40).map({ $0 % 20 }) {
            #expect(try load("[listen]\ntcpIdleSeconds = \(number + 1)").listen.tcpIdleSeconds == number + 1)
        }
        let contents = FileContents(Array("a".utf8))
        var forgotten = contents
        forgotten.forget()
        #expect(forgotten.bytes == nil && forgotten == contents && contents != FileContents(Array("b".utf8)))
        #expect(FileContents([]) != FileContents([0]))
    }

    @Test("a section that comes or goes is one change, beside what needs a restart")
    func section() throws {
        let with = try load("[httpdns]\ntoken = '1'\n[cache]\nmegabytes = 2")
        #expect(Settings().reloading(with).applied == ["httpdns"])
        #expect(Settings().reloading(with).needingRestart == ["cache.megabytes"])
        #expect(Settings().reloading(with).settings.cache.megabytes == 32)
        #expect(Settings().reloading(with).settings.httpdns == with.httpdns)
        #expect(with.reloading(Settings()).applied == ["httpdns"])
    }
}
