import Base
import Testing

@testable import Configuration

/// The certificate of `[listen]` and its key.
@Suite struct ListenTests {
    private let text = "[listen]\ntls = ['127.0.0.1:853']\ncertificateFile = 'server.pem'\nkeyFile = 'key'"

    @Test("the certificate is beside the configuration, and the key where secrets are looked for; it alone is a secret")
    func read() throws {
        let (settings, origins) = try loaded(
            text, environment: ["CREDENTIALS_DIRECTORY": "/run/c"],
            files: ["/etc/httpdnsd/server.pem": "c\n", "/run/c/key": "k\r\n\n"])
        #expect(settings.listen.certificate?.certificatePEM == Array("c\n".utf8))
        #expect(settings.listen.certificate?.keyPEM == Array("k".utf8))
        #expect(settings.listen.keyFile.path == "/run/c/key")
        #expect(origins.secretFiles == ["/run/c/key"])
    }

    @Test("what the files held is forgotten and still compared, however the key's file ends")
    func forgotten() throws {
        var settings = try load(text, files: ["/etc/httpdnsd/server.pem": "c", "/etc/httpdnsd/key": "k"])
        settings.forgetFiles()
        #expect(settings.listen.certificate == nil)
        for (certificate, key, isEqual) in [
            ("c", "k", true), ("c", "k\n\n", true), ("c", "K", false), ("C", "k", false),
        ] {
            var other = settings.listen
            other.take(certificatePEM: Array(certificate.utf8), keyPEM: Array(key.utf8))
            #expect((other == settings.listen) == isEqual, "\(certificate) \(key)")
        }
    }

    @Test(
        "addresses without a certificate, half of one, and an address that is in the way of another one are errors",
        arguments: [
            ("tls = ['127.0.0.1:853']", "listen.certificateFile: missing"),
            ("keyFile = 'k'", "listen.certificateFile: missing"),
            ("certificateFile = 'c'", "listen.keyFile: missing"),
            ("certificateFile = 'c'\nkeyFile = 'k'", "listen.certificateFile: cannot read \"/etc/httpdnsd/c\""),
            ("https = ['127.0.0.1:443']", "listen.certificateFile: missing"),
            ("https = ['443']", "listen.https"),
            ("name = 'dns.example'", "listen.name: listen.tls and listen.https are empty"),
            ("name = '127.0.0.1'", "listen.name"), ("tls = ['853']", "listen.tls"),
            ("tls = ['127.0.0.1:853', '127.0.0.1:853']", "listed twice"),
            ("addresses = ['127.0.0.1:853']\ntls = ['127.0.0.1:853']", "listen.tls: 127.0.0.1:853 is listed twice"),
            ("tls = ['[::1]:443']\nhttps = ['[::1]:443']", "listen.https: [::1]:443 is listed twice"),
            ("addresses = ['0.0.0.0:53', '127.0.0.1:53']", "listen.addresses: 127.0.0.1:53 is within 0.0.0.0:53"),
            ("addresses = ['[::1]:53', '[::]:53']", "listen.addresses: [::]:53 is within [::1]:53"),
            ("addresses = ['[fe80::1%a]:53', '[fe80::1%a]:53']", "listed twice"),
            (
                "addresses = ['127.0.0.1:53']\n[control]\nmetrics = '127.0.0.1:53'",
                "control.metrics: 127.0.0.1:53 is taken: clients are served at 127.0.0.1:53; give another port"
            ),
            (
                "addresses = ['[::]:53']\n[control]\nmetrics = '127.0.0.1:53'",
                "is taken: clients are served at 0.0.0.0:53"
            ),
            ("addresses = ['[fe80::1]:53']", "give the link of this address, such as \"[fe80::1%eth0]:53\""),
            ("addresses = ['[2001:db8::1%eth0]:53']", "listen.addresses"),
            (
                "[control]\nmetrics = '[fe80::1]:9153'",
                "control.metrics: \"[fe80::1]:9153\" is not right; give ADDRESS:PORT"
            ),
            ("addresses = ['[::ffff:127.0.0.1]:53', '127.0.0.1:53']", "is listed twice"),
        ])
    func wrong(_ row: (text: String, message: String)) {
        #expect(message("[listen]\n" + row.text).contains(row.message), "\(message("[listen]\n" + row.text))")
    }

    @Test(
        "addresses of the command line are judged in the place of listen.addresses",
        arguments: [
            ("", ["127.0.0.1:53"], nil), ("[listen]\naddresses = ['127.0.0.1:9153']", ["127.0.0.1:53"], nil),
            ("", ["127.0.0.1:9153"], "control.metrics: 127.0.0.1:9153 is taken"),
            ("", ["0.0.0.0:53", "127.0.0.1:53"], "command line: --listen: 127.0.0.1:53 is within 0.0.0.0:53"),
            ("", ["127.0.0.1:53", "127.0.0.1:53"], "command line: --listen: 127.0.0.1:53 is listed twice"),
        ] as [(String, [String], String?)])
    func ofCommandLine(_ text: String, _ listen: [String], _ message: String?) {
        do throws(ConfigurationError) {
            let loaded = try Settings.load(
                file: nil, contents: "\(text)\n[control]\nmetrics = '127.0.0.1:9153'", environment: [:],
                listen: listen.compactMap { Endpoint($0) }, readFile: { _ in FileReading(nil) })
            #expect(message == nil && loaded.settings.listen.addresses.map(\.description) == listen)
        } catch {
            #expect(message.map("\(error)".contains) ?? false, "\(error)")
        }
    }

    @Test(
        "[::] takes IPv4 too, unless an IPv4 address of the same port is listed",
        arguments: [
            (["[::]:53"], ["[::]:53", "0.0.0.0:53"]), (["[::]:53", "127.0.0.1:53"], ["[::]:53", "127.0.0.1:53"]),
            (["[::]:53", "0.0.0.0:5353"], ["[::]:53", "0.0.0.0:5353", "0.0.0.0:53"]),
            (["0.0.0.0:53"], ["0.0.0.0:53"]), (["[::1]:53"], ["[::1]:53"]),
            (["[fe80::1%a]:53", "[fe80::1%b]:53"], ["[fe80::1%a]:53", "[fe80::1%b]:53"]),
            (["[::ffff:127.0.0.1]:53"], ["127.0.0.1:53"]),
        ])
    func families(_ row: (listed: [String], all: [String])) throws {
        let list = row.listed.map { "'\($0)'" }.joined(separator: ", ")
        let settings = try load("[listen]\naddresses = [\(list)]")
        #expect(settings.listen.everyAddress.map(\.description) == row.all)
    }
}
