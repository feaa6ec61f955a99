import Configuration
import Testing

@Suite struct SecretFileTests {
    private func key(of settings: Settings) -> String? {
        switch settings.httpdns?.credential {
        case .aes(_, let key), .des(_, let key): String(decoding: key.bytes, as: UTF8.self)
        case .signed(_, _, let secret, _): String(decoding: secret.bytes, as: UTF8.self)
        case .https(let token): String(decoding: token.bytes, as: UTF8.self)
        case nil: nil
        }
    }

    private let aes = "[httpdns]\nencryptType = \"aes\"\ndnsId = 7\n"

    @Test("one newline at the end does not belong to the secret", arguments: ["", "\n", "\r\n"])
    func newline(_ end: String) throws {
        let settings = try load(
            aes + "dnsKeyFile = \"/keys/aes\"", files: ["/keys/aes": "0123456789abcdef" + end])
        #expect(key(of: settings) == "0123456789abcdef")
    }

    @Test("a relative path: systemd's credentials first, then the folder credentials, then the configuration's own")
    func relativePath() throws {
        let text = "[httpdns]\ntokenFile = \"token\""
        let (ofUnit, folder) = ("/run/credentials/httpdnsd.service", "/etc/httpdnsd/credentials")
        let credentials = ["CREDENTIALS_DIRECTORY": ofUnit]
        var files = [
            "\(ofUnit)/token": "1", "\(ofUnit)/credentials_token": "2", "\(folder)/token": "3",
            "/etc/httpdnsd/token": "4",
        ]
        #expect(key(of: try load(text, files: files)) == "3")
        for (path, value) in files.sorted(by: { $0.value < $1.value }) {
            #expect(key(of: try load(text, environment: credentials, files: files)) == value)
            files[path] = nil
        }
        // systemd joins the names on the way by "_".
        let inFolder = "[httpdns]\ntokenFile = \"office/token\""
        files = ["\(ofUnit)/credentials_office_token": "5"]
        #expect(key(of: try load(inFolder, environment: credentials, files: files)) == "5")
        #expect(
            key(of: try load(nil, environment: ["HTTPDNSD_HTTPDNS_TOKENFILE": "token"], files: ["token": "3"])) == "3")
        let absolute = "[httpdns]\ntokenFile = \"/token\""
        files = ["/run/credentials/httpdnsd.service//token": "1", "/token": "4"]
        #expect(key(of: try load(absolute, environment: credentials, files: files)) == "4")
    }

    @Test(
        "what this user may not read is said with what mends it",
        arguments: [
            ("token", "/etc/httpdnsd/token", "as root"),
            ("/token", "/token", "as root"),
            (
                "token", "/etc/httpdnsd/credentials/token",
                "put the token there, if it is not: only root reads that folder, and the service gets what is in it when it starts "
                    + "(systemctl restart httpdnsd)"
            ),
        ])
    func denied(_ row: (given: String, path: String, mend: String)) {
        #expect {
            try Settings.load(
                file: "/etc/httpdnsd/test.toml", contents: "[httpdns]\ntokenFile = \"\(row.given)\"", environment: [:],
                readFile: { $0 == row.path ? .failed("Permission denied", mend: "as root") : FileReading(nil) })
        } throws: { error in
            "\(error)".contains("\"\(row.path)\": Permission denied") && "\(error)".hasSuffix("; \(row.mend)")
        }
    }

    @Test("the environment's secret replaces the file's, whichever way each is given")
    func environmentReplaces() throws {
        let files = ["/a": "from file a", "/b": "from-b"]
        let value = "[httpdns]\ntoken = \"value\""
        let path = "[httpdns]\ntokenFile = \"/a\""
        let setsValue = ["HTTPDNSD_HTTPDNS_TOKEN": "variable"]
        let setsPath = ["HTTPDNSD_HTTPDNS_TOKENFILE": "/b"]
        #expect(key(of: try load(path, environment: setsValue, files: files)) == "variable")
        #expect(key(of: try load(value, environment: setsValue, files: files)) == "variable")
        #expect(key(of: try load(path, environment: setsPath, files: files)) == "from-b")
        #expect(key(of: try load(value, environment: setsPath, files: files)) == "from-b")
        #expect(key(of: try load(value, environment: ["HTTPDNSD_HTTPDNS_TOKEN": ""])) == "value")
        #expect(key(of: try load(value, environment: ["HTTPDNSD_HTTPDNS_TOKENFILE": ""])) == "value")
        // Alone it is no account, and no group.
        let empty = ["HTTPDNSD_HTTPDNS_TOKEN": "", "HTTPDNSD_UPSTREAMS_OTHER_TOKEN": ""]
        #expect(try load(nil, environment: empty).httpdns == nil)
        #expect(try load(nil, environment: empty).upstreams.isEmpty)
    }

    @Test("what is wrong with a secret's file is said without its contents")
    func wrongFiles() {
        let none = "No such file or directory"
        #expect(
            message(aes + "dnsKeyFile = \"k\"")
                == "test.toml:4: httpdns.dnsKeyFile: cannot read \"/etc/httpdnsd/credentials/k\": \(none), "
                + "\"/etc/httpdnsd/k\": \(none); put the dnsKey into \"/etc/httpdnsd/credentials/k\"")
        #expect(
            message(aes + "dnsKeyFile = \"a/k\"", environment: ["CREDENTIALS_DIRECTORY": "/run/c"])
                == "test.toml:4: httpdns.dnsKeyFile: cannot read \"/run/c/a/k\": \(none), \"/run/c/credentials_a_k\": \(none), "
                + "\"/etc/httpdnsd/credentials/a/k\": \(none), \"/etc/httpdnsd/a/k\": \(none); "
                + "put the dnsKey into \"/etc/httpdnsd/credentials/a/k\"")
        #expect(
            message(aes + "dnsKeyFile = \"/k\"", files: ["/k": "0123456789abcdef\n\n"])
                == "test.toml:4: httpdns.dnsKeyFile: the key has 17 bytes; \"aes\" needs exactly 16")
        #expect(
            message(aes + "dnsKeyFile = \"/k\"", files: ["/k": "\n"])
                == "test.toml:4: httpdns.dnsKeyFile: \"/k\" is empty; put the dnsKey into it")
        #expect(
            message("[httpdns]\ntokenFile = \"/k\"", files: ["/k": "two words"])
                == "test.toml:2: httpdns.tokenFile: the token has other characters than a URL takes; "
                + "give letters, digits, \"-\", \".\", \"_\" and \"~\" alone")
        #expect(
            message(nil, environment: ["HTTPDNSD_HTTPDNS_TOKENFILE": "/k"])
                == "environment: HTTPDNSD_HTTPDNS_TOKENFILE: cannot read \"/k\": No such file or directory; "
                + "give one that the daemon may read")
    }

    @Test("the files that hold a secret in use are known, and no other")
    func known() throws {
        func files(_ text: String?, environment: [String: String] = [:]) throws -> [String] {
            let readable: Set = ["/token", "/run/c/token", "/p12", "/password", "/ca", "/etc/httpdnsd/unused"]
            return try Settings.load(
                file: "/etc/httpdnsd/test.toml", contents: text, environment: environment,
                readFile: { FileReading(readable.contains($0) ? Array("1".utf8) : nil) }
            ).origins.secretFiles
        }
        #expect(try files(nil) == [])
        #expect(try files("[tls]\ncaFile = '/ca'") == [])
        #expect(try files("[httpdns]\ntokenFile = '/token'\ndnsKeyFile = 'unused'") == ["/token"])
        #expect(
            try files("[httpdns]\ntokenFile = 'token'", environment: ["CREDENTIALS_DIRECTORY": "/run/c"])
                == ["/run/c/token"])
        #expect(
            try files(
                "[tls]\ncaFile = '/ca'\nclientCertificate = '/p12'\nclientCertificatePasswordFile = '/password'")
                == ["/p12", "/password"])
        #expect(try files("[httpdns]\ntoken = '1'") == ["/etc/httpdnsd/test.toml"])
        // It stands there, whichever is used.
        #expect(
            try files("[httpdns]\ntoken = '1'", environment: ["HTTPDNSD_HTTPDNS_TOKENFILE": "/token"])
                == ["/etc/httpdnsd/test.toml", "/token"])
        #expect(try files(nil, environment: ["HTTPDNSD_HTTPDNS_TOKEN": "1"]) == [])
    }

    @Test("a secret's file beside the configuration may be in the folder credentials, and no other file")
    func credentialPaths() throws {
        let folder = "/etc/httpdnsd"
        let text = """
            [listen]
            tls = ['127.0.0.1:853']
            certificateFile = 'server.pem'
            keyFile = 'server.key'
            [httpdns]
            tokenFile = 'office/token'
            [tls]
            caFile = 'ca'
            clientCertificate = 'p12'
            clientCertificatePasswordFile = '/etc/httpdnsd/password'
            """
        let names = ["server.pem", "server.key", "office/token", "ca", "p12", "password"]
        func paths(_ environment: [String: String] = [:], _ more: [String: String] = [:]) throws -> [String: String] {
            let files = Dictionary(uniqueKeysWithValues: names.map { ("\(folder)/\($0)", "1") })
            return try loaded(text, environment: environment, files: files.merging(more) { $1 }).origins.credentialPaths
        }
        #expect(try paths() == ["\(folder)/office/token": "\(folder)/credentials/office/token"])
        #expect(try paths([:], ["\(folder)/credentials/office/token": "2"]) == [:])
        let handedOver = ["/run/c/credentials_office_token": "3"]
        #expect(try paths(["CREDENTIALS_DIRECTORY": "/run/c"], handedOver) == [:])
    }

    @Test("a secret is given once in a source")
    func bothGiven() {
        #expect(
            message(aes + "dnsKeyFile = \"/k\"\ndnsKey = \"0123456789abcdef\"")
                == "test.toml:4: httpdns.dnsKeyFile: dnsKey is given as well; give one of the two")
        #expect(
            message(
                "[httpdns]\n", environment: ["HTTPDNSD_HTTPDNS_TOKEN": "1", "HTTPDNSD_HTTPDNS_TOKENFILE": "/k"])
                == "environment: HTTPDNSD_HTTPDNS_TOKENFILE: token is given as well; give one of the two")
        // Wrong in the file, even though the environment would replace both.
        #expect(
            message(
                "[httpdns]\ntoken = \"1\"\ntokenFile = \"/k\"", environment: ["HTTPDNSD_HTTPDNS_TOKEN": "1"])
                == "test.toml:3: httpdns.tokenFile: token is given as well; give one of the two")
    }
}
