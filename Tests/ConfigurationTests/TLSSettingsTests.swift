import Base
import Configuration
import TestSupport
import Testing

@Suite struct TLSSettingsTests {
    /// What `printf X | openssl dgst -sha256 -binary | base64` and the same with `od -An -tx1` say for X = httpdnsd.
    @Test("a pin is the base64 of a SHA-256 digest")
    func pin() throws {
        let text = "sha256/uEWPAxVs3kPC9AI7THxeI8FvlSUUtmWoHTclokt2Rag="
        let digest: [UInt8] = [
            0xb8, 0x45, 0x8f, 0x03, 0x15, 0x6c, 0xde, 0x43, 0xc2, 0xf4, 0x02, 0x3b, 0x4c, 0x7c, 0x5e, 0x23,
            0xc1, 0x6f, 0x95, 0x25, 0x14, 0xb6, 0x65, 0xa8, 0x1d, 0x37, 0x25, 0xa2, 0x4b, 0x76, 0x45, 0xa8,
        ]
        let settings = try load("tls.pins = ['\(text)', 'sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=']")
        #expect(settings.tls.pins == [digest, Array(repeating: 0, count: 32)])
        #expect(
            settings.effectiveText.contains("[\"\(text)\", \"sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"]"))
        #expect(try load(nil, environment: ["HTTPDNSD_TLS_PINS": text]).tls.pins == [digest])
    }

    @Test("any digest comes back from what check shows")
    func anyPin() throws {
        var random = Chance.announced("TLSSettingsTests.anyPin")
        for _ in 0..<200 {
            var settings = Settings()
            settings.tls.pins = [(0..<32).map { _ in UInt8.random(in: 0...255, using: &random) }]
            #expect(try load(settings.effectiveText) == settings)
        }
    }

    @Test(
        "anything else is no pin",
        arguments: [
            // 31 and 33 bytes, without padding, with too much, with bits behind the digest, curl's notation,
            // base64url, white space, another hash, in hexadecimal.
            "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==",
            "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==",
            "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB=",
            "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            "sha256/_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            "sha256/ AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= ",
            "sha256/AAAAAAAAAAAAAAAAAAAAA=AAAAAAAAAAAAAAAAAAAAAA",
            "sha1/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            "sha256/0000000000000000000000000000000000000000000000000000000000000000", "sha256/", "",
        ])
    func noPin(_ text: String) {
        let message = message("[tls]\npins = [\n'\(text)']")
        #expect(message.hasPrefix("test.toml:3: tls.pins: \""), "\(message)")
        #expect(message.contains("give \"sha256/BASE64\", where"), "\(message)")
    }

    @Test("no check of the name needs a private authority, trusted alone")
    func validateDomain() throws {
        let files = ["/ca": "x"]
        #expect(!(try load("[tls]\nvalidateDomain = false\ncaFile = '/ca'", files: files).tls.validateDomain))
        #expect(
            message("[tls]\n\nvalidateDomain = false")
                == "test.toml:3: tls.validateDomain: false is not right without caFile: anybody has a certificate that the "
                + "system's store trusts; give true, or trust a caFile alone")
        #expect(
            message("[tls]\ncaOnly = false\nvalidateDomain = false\ncaFile = '/ca'", files: files).hasPrefix(
                "test.toml:3: tls.validateDomain: false is not right with caOnly = false: "))
        #expect(
            message("[tls]\ncaFile = ''\n", environment: ["HTTPDNSD_TLS_VALIDATEDOMAIN": "false"], files: files)
                .hasPrefix(
                    "environment: HTTPDNSD_TLS_VALIDATEDOMAIN: false is not right without caFile: "))
    }

    @Test("the client certificate and its password are read from their files")
    func clientCertificate() throws {
        let text = "[tls]\nclientCertificate = 'c.p12'\nclientCertificatePasswordFile = 'p'"
        let files = ["/etc/httpdnsd/c.p12": "1\n", "/etc/httpdnsd/p": "2\r\n", "/run/c/p": "3\n", "/run/c/c.p12": "4"]
        let beside = try load(text, files: files).tls
        #expect(beside.clientCertificate.path == "/etc/httpdnsd/c.p12")
        #expect(beside.clientCertificateBytes == Array("1\n".utf8))
        #expect(beside.clientCertificatePassword == Secret(Array("2".utf8)))
        let credentials = try load(text, environment: ["CREDENTIALS_DIRECTORY": "/run/c"], files: files).tls
        #expect(credentials.clientCertificateBytes == Array("1\n".utf8))
        #expect(credentials.clientCertificatePassword == Secret(Array("3".utf8)))
        #expect(credentials.clientCertificatePasswordFile.path == "/run/c/p")
        let open = try load("[tls]\nclientCertificate = 'c.p12'", files: files).tls
        #expect(open.clientCertificateBytes == Array("1\n".utf8) && open.clientCertificatePassword == nil)
        let none = try load("[tls]\nclientCertificatePasswordFile = 'p'", files: files).tls
        #expect(none.clientCertificateBytes == nil && none.clientCertificatePassword == nil)
    }

    @Test("what is wrong with the client certificate's files is said without their contents")
    func wrongFiles() {
        let text = "[tls]\nclientCertificate = '/c'\nclientCertificatePasswordFile = 'p'"
        #expect(
            message(text)
                == "test.toml:2: tls.clientCertificate: cannot read \"/c\": No such file or directory; give one that the daemon may read"
        )
        #expect(
            message(text, environment: ["CREDENTIALS_DIRECTORY": "/run/c"], files: ["/c": "1"])
                == "test.toml:3: tls.clientCertificatePasswordFile: cannot read "
                + ["/run/c/p", "/run/c/credentials_p", "/etc/httpdnsd/credentials/p", "/etc/httpdnsd/p"].map {
                    "\"\($0)\": No such file or directory"
                }.joined(separator: ", ") + "; put the password into \"/etc/httpdnsd/credentials/p\"")
        #expect(
            message(text, files: ["/c": "1", "/etc/httpdnsd/p": "\n"])
                == "test.toml:3: tls.clientCertificatePasswordFile: \"/etc/httpdnsd/p\" is empty; "
                + "put the password into it")
    }
}
