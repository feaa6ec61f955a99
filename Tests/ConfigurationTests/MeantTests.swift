import Base
import Configuration
import Testing

/// What the message about a mistake leads to, and what it does not show.
@Suite struct MeantTests {
    @Test(
        "a key of another program leads to the one that has an effect here",
        arguments: [
            ("[cache]\nsize = 1", "did you mean cache.megabytes?"),
            ("[cache]\nmaxEntries = 1", "did you mean cache.megabytes?"),
            ("[log]\nfile = 'x'", "messages go to the journal (journalctl -u httpdnsd), or else to standard error"),
            ("[log]\nfacility = 'x'", "[log] has level, format"),
            ("[control]\nport = 1", "did you mean control.metrics?"),
            ("[control]\nmetric = 'x'", "did you mean control.metrics?"),
            ("[listen]\nserverName = 'x'", "did you mean listen.name?"),
            ("[listen]\ncert = 'x'", "did you mean listen.certificateFile?"),
            ("[listen]\nKey = 'x'", "did you mean listen.keyFile?"),
            ("[listen]\nsocket = 'x'", "did you mean control.socket?"),
            (
                "[fallback]\nservers = ['tls://192.0.2.1']\nservername = 'x'",
                "the name in a server's certificate is given behind \"#\" in servers, as in \"tls://192.0.2.1#dns.example\""
            ),
            ("[domains]\nservers = ['192.0.2.1']", "did you mean fallback.servers?"),
        ])
    func otherPrograms(_ text: String, _ meant: String) {
        #expect(message(text).hasSuffix(": unknown key in version \(Version.current); \(meant)"), "\(message(text))")
    }

    @Test(
        "no key of another section is suggested that is like a short one by chance",
        arguments: [
            ("fallback", "tls"), ("fallback", "https"), ("upstreams.a", "name"), ("domains", "file"),
            ("nat64", "share"),
        ])
    func notByChance(_ section: String, _ key: String) {
        let line = message("[\(section)]\n\(key) = 'x'")
        #expect(line.contains("; [\(section)] has ") && !line.contains("did you mean"), "\(line)")
    }

    @Test(
        "a key that was uncommented without its section's header is said to be",
        arguments: [
            ("#[httpdns]\nprovider = 'tencent'", 1, "httpdns"),
            ("[listen]\n\n # [httpdns]\n# x\ndnsId = 1", 3, "httpdns"),
            ("[log]\n#[cache]  # as it is\r\nmegabytes = 1", 2, "cache"), ("##[tls]\ncaOnly = true", 1, "tls"),
            ("[private]\n# [upstreams.office]\ndomains = ['x']", 2, "upstreams.office"),
            ("[log]\n#[httpdns]\n#token = ''\n#[tls]\ntoken = 'x'", 2, "httpdns"),
        ])
    func commentedHeader(_ text: String, _ line: Int, _ section: String) {
        let right = "the header of its section, [\(section)], is a comment (line \(line)); remove the \"#\" there"
        #expect(message(text).hasSuffix("; " + right), "\(message(text))")
    }

    @Test(
        "a comment that is the header of nothing is none",
        arguments: [
            "#[httpdns]\n[listen]\nprovider = 'x'", "[listen]\n# see [httpdns]\nprovider = 'x'",
            "# [x\n#[]\n#]\nprovider = 'x'",
            "[listen]\n#[log]\nprovider = 'x'", "[listen]\nprovider = 'x'\n#[httpdns]",
        ])
    func noHeader(_ text: String) { #expect(!message(text).contains("is a comment"), "\(message(text))") }

    @Test(
        "a text beside secrets, where a secret may stand by mistake, is not repeated",
        arguments: ["encryptType", "dnsId"])
    func besideSecrets(_ key: String) {
        let secret = "q7Vx!z-Kp2#Lm9&W"
        for (text, environment) in [
            ("[httpdns]\n\(key) = '\(secret)'", [:]),
            ("[upstreams.a]\n\(key) = '\(secret)'", [:]),
            ("[httpdns]", ["HTTPDNSD_HTTPDNS_\(key.uppercased())": secret]),
        ] {
            let line = message(text, environment: environment)
            #expect(line.contains(": what it says is not right; give ") && !line.contains(secret), "\(line)")
        }
    }

    @Test(
        "a file that is not UTF-8 is refused with its line",
        arguments: [
            ([0xC3, 0x0A], 1), ([0x0A, 0x23, 0xE9, 0x0A, 0x80], 2), ([0x61, 0x0A, 0x0D, 0x0A, 0xED, 0xA0, 0x80], 3),
            ([0xEF, 0xBB, 0xBF, 0x23, 0x0A, 0xC0, 0x80], 2), ([0x0A, 0xF0, 0x9F, 0x98], 2),
            ([0xE4, 0xB8, 0x0A, 0xAD], 1),
        ])
    func notUTF8(_ octets: [UInt8], _ line: Int) {
        #expect(throws: ConfigurationError.self) { try Settings.text(octets, file: "a.toml") }
        do {
            _ = try Settings.text(octets, file: "a.toml")
        } catch {
            #expect("\(error)".hasPrefix("a.toml:\(line): syntax: a character that is not UTF-8; "), "\(error)")
        }
    }

    @Test("a variable that is not UTF-8 is refused", arguments: ["HTTPDNSD_FALLBACK_HOSTS", "HTTPDNSD_HTTPDNS_TOKEN"])
    func variableNotUTF8(_ variable: String) {
        let octets: [UInt8] = [0x2F, 0x68, 0xF6]
        #expect(
            message(nil, environment: [variable: String(decoding: octets, as: UTF8.self)])
                == "environment: \(variable): a character that is not UTF-8; give the value as UTF-8")
    }

    @Test("every character of Unicode is right", arguments: ["", "é\n中\u{FFFD}\u{1F600}", "\u{FEFF}# x"])
    func utf8(_ text: String) throws { #expect(try Settings.text(Array(text.utf8), file: "a.toml") == text) }
}
