import Base
import Configuration
import Testing

@Suite struct EffectiveTextTests {
    /// What `check` shows of a file with this text.
    private func shown(_ text: String) throws -> String {
        let (settings, origins) = try Settings.load(
            file: "a.toml", contents: text, environment: [:], readFile: { _ in FileReading(Array("101\n".utf8)) })
        return settings.differingText(origins)
    }

    @Test("the text of the defaults loads to the defaults and names no account")
    func defaults() throws {
        let text = Settings().effectiveText
        #expect(try load(text) == Settings())
        #expect(!text.split(separator: "\n").contains { $0 == "[httpdns]" || $0 == "[tls]" })
        #expect(text.contains("\n# [httpdns] is not configured"))
    }

    @Test("the text of any settings loads to the same, the secrets apart")
    func everyKey() throws {
        let settings = try load(SettingsTests.everyKey, files: SettingsTests.files)
        let again = try load(settings.effectiveText, files: SettingsTests.files)
        #expect(again != settings)
        var masked = settings
        masked.httpdns?.credential = .aes(id: 4_294_967_295, key: Secret(Array("****************".utf8)))
        #expect(again == masked)
        #expect(again.effectiveText == settings.effectiveText)
    }

    @Test(
        "an account of each encryption loads again",
        arguments: [
            ("encryptType = \"https\"\ntoken = \"a~long_token\"", "token = \"masked\""),
            ("encryptType = \"des\"\ndnsId = 3\ndnsKey = \"ab\\\"\\\\defg\"", "dnsKey = \"********\""),
            ("encryptType = \"aes\"\ndnsId = 3\ndnsKey = \"0123456789abcdef\"", "dnsKey = \"****************\""),
        ])
    func accounts(_ keys: String, _ shown: String) throws {
        let settings = try load("[httpdns]\n" + keys)
        let again = try load(settings.effectiveText)
        #expect(again.httpdns?.dnsIp == settings.httpdns?.dnsIp)
        #expect(settings.effectiveText.replacing(/[ ]+=/, with: " =").contains(shown))
        #expect(again.effectiveText == settings.effectiveText)
    }

    @Test(
        "an account in a group is shown with what makes it that account",
        arguments: [
            "provider = \"tencent\"\nencryptType = \"aes\"\ndnsId = 3\ndnsKey = \"0123456789abcdef\"",
            "provider = \"tencent\"\ntoken = \"a\"",
            "provider = \"volcengine\"\ndnsId = 3\ndnsKey = \"a\"\ndnsIp = [\"192.0.2.1\"]",
            "provider = \"alibaba\"\nencryptType = \"aes\"\ndnsId = 4294967295\ndnsKey = \"a\"\naesKey = \"\(String(repeating: "0", count: 32))\"",
        ])
    func accountOfAGroup(_ keys: String) throws {
        let text = "[upstreams.a]\ndomains = [\"x.example\"]\n" + keys
        let shown = try shown(text)
        for (index, line) in text.split(separator: "\n").enumerated()
        where !["Key", "token", "dnsIp"].contains(where: { line.contains($0) }) {
            #expect(index == 0 || shown.contains("\(line)  # a.toml:\(index + 1)\n"), "\(shown)")
        }
        #expect(shown.contains("dnsIp") == keys.contains("dnsIp"), "\(shown)")
    }

    @Test("a path with quotes and control characters survives")
    func escapes() throws {
        var settings = Settings()
        settings.fallback.hosts = ["/a\"b\\c\nd\te\u{1}f é"]
        #expect(try load(settings.effectiveText) == settings)
    }

    @Test("check shows what was given, secrets with the path of their file, and nothing that was not")
    func whatWasGiven() throws {
        #expect(try shown("[httpdns]\ntokenFile = \"t\"\n") == "[httpdns]\ntoken = \"masked\"  # a.toml:2\n")
        #expect(try shown("[httpdns]\ntoken = \"101\"\n") == "[httpdns]\ntoken = \"masked\"  # a.toml:2\n")
        #expect(
            try shown("[httpdns]\ntoken = \"101\"\ndnsIp = [\"119.28.28.99\"]\n")
                == "[httpdns]\ntoken = \"masked\"  # a.toml:2\ndnsIp = [\"119.28.28.99:443\"]  # a.toml:3\n")
        // Given as it is by default.
        #expect(try shown("[cache]\nminTTL = 0\n").isEmpty)
    }
}
