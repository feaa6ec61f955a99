import Base
import DNSWire
import Testing

@testable import Configuration

@Suite struct SettingsTests {
    /// Every key away from its default.
    static let everyKey = """
        [listen]
        addresses = ["0.0.0.0:5300", "[2001:db8::1]:0"]
        allow = ["10.0.0.0/8", "192.0.2.1"]
        workers = 3
        tcpClients = 10000
        tcpIdleSeconds = 3600
        tls = ["0.0.0.0:853", "[2001:db8::1]:8853"]
        https = ["0.0.0.0:443"]
        name = "dns.example.com"
        certificateFile = "server.pem"
        keyFile = "server.key"

        [httpdns]
        encryptType = "aes"
        dnsId = 4294967295
        dnsKey = "Swift-HTTPDNS-16"
        token = "1234567"
        dnsIp = ["192.0.2.1", "192.0.2.2:8080", "2001:db8::2", "[2001:db8::3]:81"]
        timeout = 100
        concurrency = 1000
        routeIp = "203.0.113.7"
        routeIpEncrypted = true
        httpOnly = true
        thenTryOn = ["nodata", "failure"]
        retryTimesBeforeSwitchServer = 1
        minutesBeforeSwitchToMain = 1440
        addressType = "ipv6"
        signed = "addresses"
        serviceBinding = "none"
        batch = 1
        queriesPerSecond = 1000000
        authExpirySeconds = 600
        confIp = ["192.0.2.9", "[2001:db8::9]:82"]
        proxy = "ignore"
        appId = 'an app "X"'
        enableReport = true
        reportUrl = "https://reports.example.com:8443/httpdns?from=1"
        debug = true
        share = false

        [tls]
        serverName = "DNS.Example.com"
        caFile = "ca.pem"
        caOnly = false
        pins = ["sha256/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="]
        clientCertificate = "client.p12"
        clientCertificatePasswordFile = "/keys/password"
        whenClockUnset = "refuse"

        [domains]
        intercept = ["Example.COM", "example.org."]
        interceptFile = "intercepted"
        bypass = ["local", "Corp.example"]
        bypassFile = "/lists/bypassed"
        privateAddresses = "refuse"
        privateAllowed = ["Office.Example"]

        [fallback]
        servers = ["192.0.2.53", "[2001:db8::53]:5353"]
        resolvConf = ["/run/one", "two"]
        timeout = 60000
        hedgeAfter = 0
        hosts = ""
        trustAD = true
        thenTry = ["office", "httpdns"]
        thenTryOn = ["nxdomain", "nodata", "refused"]
        concurrency = 1
        routeIp = "2001:db8::7"
        share = false
        caFile = "ca.pem"
        caOnly = false
        pins = ["sha256/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="]
        clientCertificate = "client.p12"
        clientCertificatePasswordFile = "/keys/password"
        whenClockUnset = "refuse"

        [private]
        servers = ["192.168.1.1", "resolvConf"]
        timeout = 300
        routeIp = "192.168.1.7"
        thenTry = ["office"]

        [upstreams.office]
        servers = ["https://Dns.corp.example/q{?dns}#192.0.2.54+2001:db8::54", "tls://192.0.2.55#b.corp.example", "resolvConf"]
        domains = ["Corp.example", "*.lan", ".", "", "10.0.0.0/9", "fd12:3456::/32"]
        domainsFile = "office.txt"
        except = ["www.corp.example"]
        thenTry = ["Other2", "fallback"]
        thenTryOn = ["refused"]
        timeout = 100
        concurrency = 1000
        routeIp = "203.0.113.7"
        trustAD = true
        share = true
        caFile = "ca.pem"
        validateDomain = false
        pins = ["sha256/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="]
        clientCertificate = "client.p12"
        clientCertificatePasswordFile = "/keys/password"
        whenClockUnset = "refuse"

        [upstreams.Other2]
        servers = ["tcp://192.0.2.56:54"]

        [nat64]
        prefix = "2001:db8:64::/96"
        synthesize = "always"

        [cache]
        megabytes = 65536
        minTTL = 60
        negativeMinTTL = 7
        maxTTL = 604800
        negativeTTL = 0
        staleSeconds = 0
        staleTTL = 1
        prefetchAt = 0
        keepAliveDomains = ["www.Example.com"]
        preResolve = ["a.example", "b.example."]
        rank = ["www.Example.com:443", "example.net.:8080"]
        file = "cache"

        [sharedCache]
        server = "tls://192.0.2.7#valkey.example"
        user = "dns"
        passwordFile = "store-password"
        keyFile = "fleet-key"
        keyFileBefore = "fleet-key-before"
        caFile = "ca.pem"

        [control]
        socket = "control.sock"
        host = "DNS.Example.com"
        metrics = "[::1]:9153"

        [log]
        level = "warning"
        format = "json"
        """
    static let files = [
        "/etc/httpdnsd/ca.pem": "a certificate", "/etc/httpdnsd/client.p12": "Swift-HTTPDNS-16 as a PKCS#12",
        "/etc/httpdnsd/server.pem": "a server's certificate", "/etc/httpdnsd/server.key": "Swift-HTTPDNS-16 its key\n",
        "/keys/password": "Swift-HTTPDNS-16 the password\n",
        "/etc/httpdnsd/store-password": "Swift-HTTPDNS-16 the store's password\n",
        "/etc/httpdnsd/fleet-key": "Swift-HTTPDNS-16 the key of the fleet\n",
        "/etc/httpdnsd/fleet-key-before": "Swift-HTTPDNS-16 the key of the fleet before\n",
    ]

    private func endpoint(_ text: String) throws -> Endpoint { try #require(Endpoint(text)) }

    private func file(_ path: String, _ contents: String) -> NamedFile {
        NamedFile(path: path, contents: FileContents(Array(contents.utf8)))
    }

    @Test("without a file and environment there are the defaults, and no HTTPDNS")
    func defaults() throws {
        let settings = try load(nil)
        #expect(settings == Settings())
        #expect(settings == (try load("")))
        #expect(settings.httpdns == nil)
    }

    @Test("an account has the defaults of its encryption")
    func accountDefaults() throws {
        let https = try #require(try load("[httpdns]\ntoken = \"1\"").httpdns)
        #expect(https.credential == .https(token: Secret(Array("1".utf8))))
        #expect(https.dnsIp.map(\.description) == ["119.29.29.99:443"])
        #expect(https.timeout == 2000)
        #expect(https.routeIp == nil)
        #expect(!https.routeIpEncrypted && !https.httpOnly && !https.debug)
        #expect(https.retryTimesBeforeSwitchServer == 3)
        #expect(https.minutesBeforeSwitchToMain == 10)
        #expect(https.addressType == .auto)
        #expect(https.batch == 8)
        #expect(https.queriesPerSecond == 0 && https.authExpirySeconds == 0)
        #expect(https.confIp == [])
        #expect(https.proxy == .bypass)
        #expect(https.appId == "" && !https.enableReport && https.reportUrl == nil)
        let aes = try load("[httpdns]\nencryptType = \"aes\"\ndnsId = 1\ndnsKey = \"0123456789abcdef\"").httpdns
        #expect(aes?.dnsIp.map(\.description) == ["119.29.29.98:80"])
        let des = try load("[httpdns]\nencryptType = \"des\"\ndnsId = 1\ndnsKey = \"01234567\"").httpdns
        #expect(des?.credential == .des(id: 1, key: Secret(Array("01234567".utf8))))
        #expect(des?.dnsIp.map(\.description) == ["119.29.29.98:80"])
        #expect(try load("[httpdns]\ntoken = \"1\"\ndnsIp = [\"::1\"]").httpdns?.dnsIp == [endpoint("[::1]:443")])
        #expect(
            try load("[httpdns]\ntoken = \"1\"\nconfIp = [\"::1\", \"192.0.2.1:80\"]").httpdns?.confIp == [
                endpoint("[::1]:443"), endpoint("192.0.2.1:80"),
            ])
    }

    @Test("every key is read into its setting")
    func everyKeyIsRead() throws {
        let settings = try load(Self.everyKey, files: Self.files)
        var expected = Settings()
        expected.listen.addresses = [try endpoint("0.0.0.0:5300"), try endpoint("[2001:db8::1]:0")]
        expected.listen.allow = ["10.0.0.0/8", "192.0.2.1/32"].compactMap { Network($0) }
        expected.listen.workers = 3
        expected.listen.tcpClients = 10000
        expected.listen.tcpIdleSeconds = 3600
        expected.listen.tls = [try endpoint("0.0.0.0:853"), try endpoint("[2001:db8::1]:8853")]
        expected.listen.https = [try endpoint("0.0.0.0:443")]
        expected.listen.name = Name("dns.example.com")
        expected.listen.certificateFile.path = "/etc/httpdnsd/server.pem"
        expected.listen.keyFile.path = "/etc/httpdnsd/server.key"
        expected.listen.take(
            certificatePEM: Array("a server's certificate".utf8), keyPEM: Array("Swift-HTTPDNS-16 its key".utf8))
        var httpdns = Settings.Group(
            credential: .aes(id: 4_294_967_295, key: Secret(Array("Swift-HTTPDNS-16".utf8))))
        httpdns.dnsIp = [
            try endpoint("192.0.2.1:80"), try endpoint("192.0.2.2:8080"), try endpoint("[2001:db8::2]:80"),
            try endpoint("[2001:db8::3]:81"),
        ]
        httpdns.timeout = 100
        httpdns.concurrency = 1000
        httpdns.routeIp = .v4(203, 0, 113, 7)
        httpdns.routeIpEncrypted = true
        httpdns.httpOnly = true
        httpdns.thenTryOn = [.failure, .nodata]
        httpdns.retryTimesBeforeSwitchServer = 1
        httpdns.minutesBeforeSwitchToMain = 1440
        httpdns.addressType = .ipv6
        httpdns.signed = .addresses
        httpdns.serviceBinding = .none
        httpdns.batch = 1
        httpdns.queriesPerSecond = 1_000_000
        httpdns.authExpirySeconds = 600
        httpdns.confIp = [try endpoint("192.0.2.9:80"), try endpoint("[2001:db8::9]:82")]
        httpdns.proxy = .ignore
        httpdns.appId = "an app \"X\""
        httpdns.enableReport = true
        httpdns.reportUrl = settings.httpdns?.reportUrl
        httpdns.debug = true
        httpdns.share = false
        #expect(httpdns.reportUrl?.description == "https://reports.example.com:8443/httpdns?from=1")
        expected.httpdns = httpdns
        let prefix = try #require(Network("2001:db8:64::/96"))
        expected.nat64.prefix = .given(try #require(NAT64Prefix(prefix)))
        expected.nat64.synthesize = .always
        expected.tls.serverName = "dns.example.com"
        expected.tls.caFile = file("/etc/httpdnsd/ca.pem", "a certificate")
        expected.tls.caOnly = false
        expected.tls.pins = [Array(0...31)]
        expected.tls.clientCertificate = file("/etc/httpdnsd/client.p12", "Swift-HTTPDNS-16 as a PKCS#12")
        expected.tls.clientCertificatePasswordFile = file("/keys/password", "Swift-HTTPDNS-16 the password")
        expected.tls.whenClockUnset = .refuse
        expected.domains.intercept = ["example.com", "example.org"].compactMap { Name($0) }
        expected.domains.interceptFile = ["/etc/httpdnsd/intercepted"]
        expected.domains.bypass = ["local", "corp.example"].compactMap { Name($0) }
        expected.domains.bypassFile = ["/lists/bypassed"]
        expected.domains.privateAddresses = .refuse
        expected.domains.privateAllowed = ["office.example"].compactMap { Name($0) }
        expected.fallback.servers = [
            .server(Server(try endpoint("192.0.2.53:53"))), .server(Server(try endpoint("[2001:db8::53]:5353"))),
        ]
        expected.fallback.resolvConf = ["/run/one", "/etc/httpdnsd/two"]
        expected.fallback.timeout = 60000
        expected.fallback.hedgeAfter = 0
        expected.fallback.hosts = []
        expected.fallback.trustAD = true
        expected.fallback.share = false
        expected.fallback.thenTry = ["office", "httpdns"]
        expected.fallback.thenTryOn = [.refused, .nxdomain, .nodata]
        expected.fallback.concurrency = 1
        expected.fallback.routeIp = IPAddress("2001:db8::7")
        expected.fallback.tls = expected.tls
        expected.fallback.tls.serverName = ""
        expected.privateNames.servers = [.server(Server(try endpoint("192.168.1.1:53"))), .resolvConf]
        expected.privateNames.timeout = 300
        expected.privateNames.routeIp = .v4(192, 168, 1, 7)
        expected.privateNames.thenTry = ["office"]
        var office = Settings.Group(name: "office")
        office.servers = [
            .server(
                Server(
                    .https(path: "/q", usesGET: true), .name("dns.corp.example"), port: 443,
                    addresses: [.v4(192, 0, 2, 54), try #require(IPAddress("2001:db8::54"))])),
            .server(
                Server(.tls, .address(.v4(192, 0, 2, 55), nil), port: 853, certificateName: "b.corp.example")),
            .resolvConf,
        ]
        office.domains = [
            .subtree(try #require(Name("corp.example"))), .below(try #require(Name("lan"))), .subtree(.root),
            .singleLabels, .network(try #require(Network("10.0.0.0/9"))),
            .network(try #require(Network("fd12:3456::/32"))),
        ]
        office.domainsFile = ["/etc/httpdnsd/office.txt"]
        office.except = [.subtree(try #require(Name("www.corp.example")))]
        office.thenTry = ["Other2", "fallback"]
        office.thenTryOn = [.refused]
        office.timeout = 100
        office.concurrency = 1000
        office.routeIp = .v4(203, 0, 113, 7)
        office.trustAD = true
        office.share = true
        office.tls = expected.fallback.tls
        office.tls.caOnly = true
        office.tls.validateDomain = false
        var other = Settings.Group(name: "Other2")
        other.servers = [.server(Server(.tcp, .address(.v4(192, 0, 2, 56), nil), port: 54))]
        expected.upstreams = [office, other]
        expected.cache.megabytes = 65536
        expected.cache.minTTL = 60
        expected.cache.negativeMinTTL = 7
        expected.cache.maxTTL = 604800
        expected.cache.negativeTTL = 0
        expected.cache.staleSeconds = 0
        expected.cache.staleTTL = 1
        expected.cache.prefetchAt = 0
        expected.cache.keepAliveDomains = ["www.example.com"].compactMap { Name($0) }
        expected.cache.preResolve = ["a.example", "b.example"].compactMap { Name($0) }
        expected.cache.rank = [
            Settings.Cache.Ranked(try #require(Name("www.example.com")), port: 443),
            Settings.Cache.Ranked(try #require(Name("example.net")), port: 8080),
        ]
        expected.cache.file = "/etc/httpdnsd/cache"
        expected.sharedCache.server = .tls(
            Server(.tls, .address(.v4(192, 0, 2, 7), nil), port: 6379, certificateName: "valkey.example"))
        expected.sharedCache.user = "dns"
        expected.sharedCache.passwordFile = file(
            "/etc/httpdnsd/store-password", "Swift-HTTPDNS-16 the store's password")
        expected.sharedCache.keyFile = file("/etc/httpdnsd/fleet-key", "Swift-HTTPDNS-16 the key of the fleet")
        expected.sharedCache.keyFileBefore = file(
            "/etc/httpdnsd/fleet-key-before", "Swift-HTTPDNS-16 the key of the fleet before")
        expected.sharedCache.caFile = expected.tls.caFile
        expected.control.socket = "/etc/httpdnsd/control.sock"
        expected.control.host = Name("dns.example.com")
        expected.control.metrics = try endpoint("[::1]:9153")
        expected.log.level = .warning
        expected.log.format = .json
        #expect(settings == expected)
    }

    @Test("TOML's other notations mean the same")
    func notations() throws {
        var expected = Settings()
        expected.listen.workers = 2
        expected.cache.maxTTL = 3600
        expected.domains.bypass = ["a", "b"].compactMap { Name($0) }
        let dotted = "listen.workers = 2\r\ncache.maxTTL = 3_600\r\ndomains.bypass = ['a', \"b\"]\r\n"
        let inline =
            "listen = { workers = 0x2 }\ncache = { maxTTL = 3600 }\ndomains = { bypass = [\n# all\n'a',\n'b',\n] }"
        let quoted =
            "[\"listen\"]\n\"workers\" = 2\n[ cache ]\nmaxTTL=3600\n['domains']\nbypass = ['''a''', \"\"\"b\"\"\"]"
        for text in [dotted, inline, quoted] { #expect(try load(text) == expected) }
    }

    @Test("the certificates to trust are read, or it is said that they cannot be")
    func caFile() throws {
        let files = ["/ca.der": "x", "/etc/httpdnsd/ca.pem": "y"]
        #expect(try load("tls.caFile = '/ca.der'", files: files).tls.anchors == Array("x".utf8))
        #expect(try load("tls.caFile = 'ca.pem'", files: files).tls.anchors == Array("y".utf8))
        #expect(try load("tls.caFile = ''", files: files).tls.anchors == nil)
        #expect(
            message("[tls]\ncaFile = 'ca.pem'")
                == "test.toml:2: tls.caFile: cannot read \"/etc/httpdnsd/ca.pem\": No such file or directory; "
                + "give one that the daemon may read")
    }

    @Test("the control socket is found without what the secrets need, whatever else is wrong")
    func controlSocketAlone() throws {
        let right = "[httpdns]\ntokenFile = 'not-for-you'\n[control]\nsocket = 'own.sock'\n"
        let (own, usual) = ("/etc/httpdnsd/own.sock", Settings().control.socket)
        for (text, variables, path, wrong) in [
            (right, [:], own, []),
            (right, ["HTTPDNSD_CONTROL_SOCKET": ""], "", []),
            (right, ["HTTPDNSD_CONTROL_SOCKET": "/a"], "/a", []),
            (right, ["HTTPDNSD_CONTROL_SOCKET": "relative.sock"], "/etc/httpdnsd/relative.sock", []),
            (right, ["HTTPDNSD_CONTROL_METRICS": "localhost"], own, ["HTTPDNSD_CONTROL_METRICS"]),
            (right, ["HTTPDNSD_NOTHING": "1"], own, ["HTTPDNSD_NOTHING"]),
            ("x = 1\n" + right, [:], own, ["x"]),
            (right + "[nowhere]\n[cache]\nmegabytes = 0\n", [:], own, ["nowhere", "cache.megabytes"]),
            (right + "sockets = 1\n", [:], own, ["control.sockets"]),
            // Not TOML: before, in and behind the section, in the line of the key, in the header.
            ("no TOML\n" + right, [:], own, ["syntax"]),
            ("a = [1,\n2\n" + right, [:], own, ["a"]),
            ("a = 'no end\n" + right, [:], own, ["a"]),
            ("a = '''\n" + right, [:], own, ["a"]),
            ("a = \u{1}\n\u{7F}\n" + right, [:], own, ["a"]),
            ("[control]\nmetrics =\nsocket = 'own.sock'\n", [:], own, ["control.metrics"]),
            ("[control]\nsocket = 'own.sock'\nmetrics =", [:], own, ["control.metrics"]),
            ("[control]\nsocket = 'own.sock'\nsocket = 'other'\n", [:], own, ["control.socket"]),
            (right + "[cache\nmegabytes = 0\n", [:], own, ["cache"]),
            ("[listen]\n[control\nsocket = 'own.sock'\n", [:], usual, ["control"]),
            ("[control]\nsocket = own.sock\n", [:], usual, ["control.socket"]),
            ("[control]\nsocket = 7\n", [:], usual, ["control.socket"]),
            ("[control]\nsocket = '\(String(repeating: "s", count: 200))'\n", [:], usual, ["control.socket"]),
        ] as [(String, [String: String], String, [String])] {
            let found = Settings.controlSocket(file: "/etc/httpdnsd/test.toml", contents: text, environment: variables)
            #expect(found.path == path && found.mistakes.map(\.key) == wrong, "\(text) \(variables): \(found)")
        }
        let absent = Settings.controlSocket(file: "/etc/httpdnsd/test.toml", contents: nil, environment: [:])
        #expect(absent.path == usual && absent.mistakes.isEmpty)
    }

    @Test("a value from the environment wins, key by key")
    func environmentWins() throws {
        let settings = try load(
            "[listen]\nworkers = 1\ntcpClients = 7\n[httpdns]\nencryptType = \"aes\"\n",
            environment: [
                "HTTPDNSD_LISTEN_WORKERS": "4", "HTTPDNSD_LISTEN_TCPIDLESECONDS": "5",
                "HTTPDNSD_LISTEN_ADDRESSES": "127.0.0.1:1, [::1]:2", "HTTPDNSD_LISTEN_ALLOW": "",
                "HTTPDNSD_HTTPDNS_ENCRYPTTYPE": "https", "HTTPDNSD_HTTPDNS_TOKEN": "t~o",
                "HTTPDNSD_HTTPDNS_HTTPONLY": "true", "HTTPDNSD_HTTPDNS_DEBUG": "1", "HTTPDNSD_TLS_CAONLY": "0",
                "HTTPDNSD_HTTPDNS_ROUTEIP": "192.0.2.1", "HTTPDNSD_HTTPDNS_ROUTEIPENCRYPTED": "false",
                "HTTPDNSD_CACHE_MAXTTL": "100", "HTTPDNSD_LOG_LEVEL": "error",
                "HTTPDNSD_HTTPDNS_RETRYTIMESBEFORESWITCHSERVER": "5",
                "HTTPDNSD_HTTPDNS_CONFIP": "192.0.2.1,192.0.2.2:8443",
                "HTTPDNSD_HTTPDNS_REPORTURL": "http://[::1]:8080", "HTTPDNSD_FALLBACK_HEDGEAFTER": "7",
                "HTTPDNSD_CACHE_PRERESOLVE": "a.example, b.example",
                "HTTPDNSD_CACHE_RANK": "a.example:1,b.example:65535",
                "HTTPDNSD_TLS_PINS": "", "PATH": "/bin",
                "HTTPDNS": "x",
            ])
        #expect(settings.listen.workers == 4)
        #expect(settings.listen.tcpClients == 7)
        #expect(settings.listen.tcpIdleSeconds == 5)
        #expect(settings.listen.addresses.map(\.description) == ["127.0.0.1:1", "[::1]:2"])
        #expect(settings.listen.allow == [])
        #expect(settings.httpdns?.credential == .https(token: Secret(Array("t~o".utf8))))
        #expect(settings.httpdns?.httpOnly == true)
        #expect(settings.httpdns?.debug == true)
        #expect(settings.httpdns?.routeIp == .v4(192, 0, 2, 1))
        #expect(!settings.tls.caOnly)
        #expect(settings.cache.maxTTL == 100)
        #expect(settings.log.level == .error)
        #expect(settings.httpdns?.retryTimesBeforeSwitchServer == 5)
        #expect(settings.httpdns?.confIp.map(\.description) == ["192.0.2.1:443", "192.0.2.2:8443"])
        #expect(settings.httpdns?.reportUrl?.description == "http://[::1]:8080/")
        #expect(settings.fallback.hedgeAfter == 7)
        #expect(settings.cache.preResolve == ["a.example", "b.example"].compactMap { Name($0) })
        #expect(settings.cache.rank.map { "\($0.name) \($0.port)" } == ["a.example 1", "b.example 65535"])
        #expect(settings.tls.pins == [])
    }

    @Test(
        "the daemon asks for a thousand names by itself, and has the addresses of as many in order; no more",
        arguments: [("keepAliveDomains", ""), ("preResolve", ""), ("rank", ":443")])
    func longList(_ key: String, _ port: String) throws {
        let names = (1...1000).map { "\"n\($0).example\(port)\"" }.joined(separator: ", ")
        #expect(try load("[cache]\n\(key) = [\(names)]") != Settings())
        #expect(
            message("[cache]\n\(key) = [\(names), 'one-more.example\(port)']")
                == "test.toml:2: cache.\(key): 1001 items; give at most 1000")
    }

    @Test("a daemon listens on 32 addresses at most")
    func listeningAddresses() throws {
        let addresses = (1...32).map { "'127.0.0.1:\($0)'" }.joined(separator: ", ")
        #expect(try load("[listen]\naddresses = [\(addresses)]").listen.addresses.count == 32)
        #expect(
            message("[listen]\naddresses = [\(addresses), '127.0.0.1:53']")
                == "test.toml:2: listen.addresses: 33 items; give at most 32")
    }

    @Test("reports need no address of their own, and an address needs no reports")
    func reports() throws {
        #expect(try load("[httpdns]\ntoken = '1'\nenableReport = true").httpdns?.reportUrl == nil)
        #expect(try load("[httpdns]\ntoken = '1'\nreportUrl = 'http://a.example'").httpdns?.enableReport == false)
    }

    @Test("a container is configured by the environment alone")
    func environmentAlone() throws {
        let settings = try load(nil, environment: ["HTTPDNSD_HTTPDNS_TOKEN": "1"])
        #expect(settings.httpdns == Settings.Group(credential: .https(token: Secret(Array("1".utf8)))))
    }

    @Test("what the encryption in use does not need is not looked at")
    func unusedCredentials() throws {
        let text = """
            [httpdns]
            encryptType = "https"
            token = "1"
            dnsKey = "too short"
            """
        #expect(try load(text).httpdns?.credential == .https(token: Secret(Array("1".utf8))))
        let file = text.replacing("dnsKey = \"too short\"", with: "dnsKeyFile = \"/nowhere\"")
        #expect(try load(file).httpdns?.credential == .https(token: Secret(Array("1".utf8))))
        let aes = "[httpdns]\nencryptType = \"aes\"\ndnsId = 5\ndnsKey = \"0123456789abcdef\"\ntoken = \"not good\""
        #expect(try load(aes).httpdns?.credential == .aes(id: 5, key: Secret(Array("0123456789abcdef".utf8))))
    }

    @Test("nothing shows a secret")
    func secretsStaySecret() throws {
        for text in [Self.everyKey, "[httpdns]\ntoken = \"Swift-HTTPDNS-16\""] {
            let settings = try load(text, files: Self.files)
            var dumped = ""
            dump(settings, to: &dumped)
            let bytes = "\(Array("Swift-HTTPDNS-16".utf8))"
            for shown in [dumped, "\(settings)", String(reflecting: settings), settings.effectiveText] {
                #expect(!shown.contains("Swift-HTTPDNS-16") && !shown.contains(bytes) && !shown.contains("83, 119"))
                #expect(shown.contains("***") || shown.contains("masked") || shown == dumped)
            }
        }
    }
}
