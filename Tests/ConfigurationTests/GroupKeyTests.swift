import Base
import Testing

@testable import Configuration

/// Every key of every kind of group: given in the file, given in the environment, in effect, printed by `check`, and
/// told by a reload. A key that is missing in ``samples`` fails the test.
@Suite struct GroupKeyTests {
    /// A value that is not the default, as in a file.
    private struct Sample {
        let value: String
        /// What is given beside it, before and after; keys that are the same in all samples are in `GroupKind.base`.
        var beside: [String: String] = [:]
        /// The key that shows what this one has led to; nil: itself.
        var standsFor: String?
    }

    private static let samples: [String: Sample] = {
        let aes = ["encryptType": "\"aes\""]
        let alibaba = ["provider": "\"alibaba\"", "encryptType": "\"aes\""]
        return [
            "servers": Sample(value: "[\"192.0.2.7:5353\", \"tls://192.0.2.8:8853\"]"),
            "answer": Sample(value: "[\"192.0.2.5\", \"2001:db8::5\"]"),
            "domains": Sample(value: "[\"*.corp.example\", \"10.0.0.0/8\"]"),
            "domainsFile": Sample(value: "[\"/names\", \"/more\"]"),
            "alias": Sample(value: "\"www.example.com\""),
            "except": Sample(value: "[\"www.a.example\"]"),
            "provider": Sample(value: "\"baidu\""),
            "encryptType": Sample(value: "\"aes\""),
            "dnsId": Sample(value: "9", beside: aes),
            "dnsKey": Sample(value: "\"fedcba9876543210\"", beside: aes),
            "dnsKeyFile": Sample(value: "\"/secret\"", beside: aes, standsFor: "dnsKey"),
            "aesKey": Sample(value: "\"fedcba9876543210fedcba9876543210\"", beside: alibaba),
            "aesKeyFile": Sample(value: "\"/digits\"", beside: alibaba, standsFor: "aesKey"),
            "token": Sample(value: "\"other\""),
            "tokenFile": Sample(value: "\"/secret\"", standsFor: "token"),
            "dnsIp": Sample(value: "[\"192.0.2.9:444\", \"[2001:db8::9]:445\"]"),
            "thenTry": Sample(value: "[\"other\"]"),
            "thenTryOn": Sample(value: "[\"refused\", \"nodata\"]"),
            "timeout": Sample(value: "900"),
            "concurrency": Sample(value: "9"),
            "from": Sample(value: "\"2001:db8::7\""),
            "device": Sample(value: "\"eth0.7\""),
            "mark": Sample(value: "4294967295"),
            "routeIp": Sample(value: "\"198.51.100.7\""),
            "routeIpEncrypted": Sample(value: "true"),
            "retryTimesBeforeSwitchServer": Sample(value: "5"),
            "minutesBeforeSwitchToMain": Sample(value: "6"),
            "addressType": Sample(value: "\"ipv4\""),
            "signed": Sample(value: "\"addresses\""),
            "serviceBinding": Sample(value: "\"none\""),
            "without": Sample(value: "[\"AAAA\", \"TYPE65400\"]"),
            "bogusAddresses": Sample(value: "[\"192.0.2.1/32\", \"198.51.100.0/24\"]"),
            "batch": Sample(value: "2"),
            "queriesPerSecond": Sample(value: "7"),
            "authExpirySeconds": Sample(value: "60"),
            "confIp": Sample(value: "[\"192.0.2.3:444\"]"),
            "proxy": Sample(value: "\"ignore\""),
            "appId": Sample(value: "\"shop\""),
            "enableReport": Sample(value: "true"),
            "reportUrl": Sample(value: "\"http://192.0.2.4/reports\""),
            "debug": Sample(value: "true"),
            "trace": Sample(value: "true", beside: ["provider": "\"alibaba\""]),
            "trustAD": Sample(value: "true"),
            "serverName": Sample(value: "\"dns.example\""),
            "caFile": Sample(value: "\"/authority\""),
            "caOnly": Sample(value: "false"),
            "pins": Sample(value: "[\"sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"]"),
            "validateDomain": Sample(value: "false", beside: ["caFile": "\"/authority\""]),
            "clientCertificate": Sample(value: "\"/certificate\""),
            "clientCertificatePasswordFile": Sample(
                value: "\"/secret\"", beside: ["clientCertificate": "\"/certificate\""]),
            "whenClockUnset": Sample(value: "\"refuse\""),
        ]
    }()

    private static let files = [
        "/secret": "fedcba9876543210", "/digits": "fedcba9876543210fedcba9876543210", "/authority": "a",
        "/certificate": "c",
    ]

    /// A section of keys of a group.
    struct GroupKind: Sendable, CustomTestStringConvertible {
        let section: String
        let holder: Holders
        let base: [String: String]

        var testDescription: String {
            base["provider"] != nil
                ? "\(section), an account" : base["answer"] != nil ? "\(section), an answer" : section
        }

    }

    /// Of `share` and `httpOnly` the default depends on the section.
    private func given(_ key: Key<Settings.Group>, in kind: GroupKind) -> Sample? {
        switch key.name {
        case "share": Sample(value: ["httpdns", "fallback"].contains(kind.section) ? "false" : "true")
        case "httpOnly": Sample(value: kind.section.hasPrefix("upstreams") ? "false" : "true")
        default: Self.samples[key.name]
        }
    }

    private static let account = [
        "token": "\"t\"", "dnsId": "7", "dnsKey": "\"0123456789abcdef\"",
        "aesKey": "\"0123456789abcdef0123456789abcdef\"",
    ]

    static let kinds = [
        GroupKind(section: "httpdns", holder: .httpdns, base: account),
        GroupKind(section: "tls", holder: .tls, base: [:]),
        GroupKind(section: "fallback", holder: .fallback, base: [:]),
        GroupKind(section: "private", holder: .privateNames, base: [:]),
        GroupKind(
            section: "upstreams.a", holder: .servers,
            base: ["servers": "[\"tls://192.0.2.1\"]", "domains": "[\"a.example\"]"]),
        GroupKind(
            section: "upstreams.a", holder: .account,
            base: account.merging(["provider": "\"tencent\"", "domains": "[\"a.example\"]"]) { $1 }),
        GroupKind(
            section: "upstreams.a", holder: .answer,
            base: ["answer": "\"nxdomain\"", "domains": "[\"a.example\"]"]),
        GroupKind(
            section: "upstreams.a", holder: .alias,
            base: ["alias": "\"www.example.net\"", "domains": "[\"a.example\"]"]),
    ]

    private func text(_ kind: GroupKind, _ keys: [String: String]) -> String {
        let lines = keys.sorted(by: { $0.key < $1.key }).map { "\($0.key) = \($0.value)\n" }.joined()
        let httpdns = kind.section == "tls" ? "[httpdns]\ntoken = \"t\"\n" : ""
        let other = "[upstreams.other]\nservers = [\"192.0.2.99\"]\ndomains = [\"other.example\"]\n"
        return "\(httpdns)\(other)[\(kind.section)]\n\(lines)"
    }

    /// The values in one section of what `check` prints.
    private func shown(_ settings: Settings, in section: String) -> [String: String] {
        let lines = settings.effectiveText.split(separator: "\n").drop { $0 != "[\(section)]" }.dropFirst()
        return lines.prefix { !$0.hasPrefix("[") && !$0.hasPrefix("#") }.reduce(into: [:]) { values, line in
            guard let equals = line.firstRange(of: " = "), let end = line.firstRange(of: "  # ") else { return }
            values[String(line.prefix { $0 != " " })] = String(
                line[equals.upperBound..<end.lowerBound].replacing(/\ +$/, with: ""))
        }
    }

    @Test("it is read, in effect, shown and told", arguments: kinds)
    func everyKey(_ kind: GroupKind) throws {
        for key in Key.keys(of: kind.holder) {
            let sample = try #require(given(key, in: kind), "\(key.name) needs a sample here")
            let before = kind.base.merging(sample.beside) { $1 }
            let usual = try load(text(kind, before), files: Self.files)
            let without = before.filter { $0.key != sample.standsFor && $0.key != key.name }
            let after = without.merging([key.name: sample.value]) { $1 }
            let settings = try load(text(kind, after), files: Self.files)
            let path = "\(kind.section).\(sample.standsFor ?? key.name)"
            #expect(settings != usual, "\(path) has no effect")

            let value = key.isSecretSource ? nil : sample.value
            #expect(value == nil || shown(settings, in: kind.section)[key.name] == value, "\(path) is shown otherwise")
            #expect(shown(settings, in: kind.section)[sample.standsFor ?? key.name] != nil, "\(path) is not shown")

            // In the environment a list has commas, and no text has quotes.
            let bare = sample.value.replacing(/^\[|\]$|"/, with: "").replacing(", ", with: ",")
            let variable = "HTTPDNSD_\(kind.section)_\(key.name)".uppercased().replacing(".", with: "_")
            let overridden = try load(text(kind, without), environment: [variable: bare], files: Self.files)
            #expect(overridden == settings, "\(variable) does not do what \(path) does")

            let reloading = usual.reloading(settings)
            #expect(reloading.applied.contains(path) && reloading.needingRestart == [], "\(path): \(reloading.applied)")
            #expect(reloading.settings == settings, "\(path) is not taken over")
        }
    }

    @Test("each kind of group says what it does not take", arguments: kinds)
    func others(_ kind: GroupKind) throws {
        let names = Set(Key.keys(of: kind.holder).map(\.name))
        for key in Key.keys(of: [.all, .trust]) where !names.contains(key.name) && key.name != "provider" {
            let sample = try #require(given(key, in: kind))
            let said = message(text(kind, kind.base.merging([key.name: sample.value]) { $1 }), files: Self.files)
            #expect(said.contains(": \(kind.section).\(key.name): "), "\(said)")
        }
    }

    @Test("an unknown key is told which there are", arguments: ["httpdns", "tls", "upstreams.a"])
    func unknown(_ section: String) throws {
        let holders = ["httpdns": Holders.httpdns, "tls": .tls]
        let names = Key.keys(of: holders[section] ?? .named).map(\.name).joined(separator: ", ")
        #expect(
            message("[\(section)]\nnonsense = 3")
                == "test.toml:2: \(section).nonsense: unknown key in version \(Version.current); [\(section)] has \(names)"
        )
    }
}
