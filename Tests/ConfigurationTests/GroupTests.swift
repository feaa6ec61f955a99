import Base
import DNSWire
import Testing

@testable import Configuration

@Suite struct GroupTests {
    private let office = "[upstreams.office]\nservers = ['10.1.0.53']\ndomains = ['corp.example']\n"

    private func group(_ text: String, environment: [String: String] = [:]) throws -> Settings.Group {
        let groups = try load(text, environment: environment).upstreams
        #expect(groups.count == 1)
        return try #require(groups.first)
    }

    @Test("a group has the defaults for what is not given")
    func defaults() throws {
        var expected = Settings.Group(name: "office")
        expected.servers = [.server(Server(Endpoint(.v4(10, 1, 0, 53), port: 53)))]
        expected.domains = [.subtree(try #require(Name("corp.example")))]
        let group = try group(office)
        #expect(group == expected)
        #expect(group.thenTry == [] && group.thenTryOn == [.failure] && group.timeout == 2000)
        #expect(
            group.concurrency == 64 && group.routeIp == nil && !group.trustAD && group.tls.whenClockUnset == .accept)
        let account = try #require(try load("[httpdns]\ntoken = '1'").httpdns)
        #expect(account.thenTry == ["fallback"] && account.thenTryOn == [.failure, .norecord] && !account.httpOnly)
        #expect(account.concurrency == 128)
    }

    @Test(
        "whom private names are asked of",
        arguments: [
            ("", ["resolvConf"]), ("[fallback]\nservers = ['https://dns.example/q', '9.9.9.9']", ["resolvConf"]),
            (
                "[fallback]\nservers = ['9.9.9.9', '192.168.1.1', 'tls://10.0.0.1', 'tcp://[fd00::1]', 'resolvConf']",
                ["192.168.1.1:53", "tcp://[fd00::1]"]
            ),
            ("[fallback]\nresolvConf = []\nservers = ['9.9.9.9']", []), ("[private]\nservers = []", []),
            ("[fallback]\nservers = ['192.168.1.1']\n[private]\nservers = ['9.9.9.9']", ["9.9.9.9:53"]),
        ])
    func privateNames(_ text: String, _ servers: [String]) throws {
        let settings = try load(text)
        #expect(settings.privateNames.servers.map(ServerText.text) == servers)
        #expect(try load(settings.effectiveText).privateNames == settings.privateNames)
    }

    @Test("a home: encrypted fallback, the router for its own names")
    func home() throws {
        let settings = try load(
            """
            [httpdns]
            tokenFile = "token"
            [fallback]
            servers = ["https://dns.alidns.com/dns-query#223.5.5.5+223.6.6.6", "tls://dot.pub#1.12.12.12+120.53.53.53"]
            [upstreams.router]
            servers = ["192.168.1.1"]
            domains = ["lan", "fritz.box", "", "192.168.0.0/16"]
            """, files: ["/etc/httpdnsd/token": "1"])
        #expect(
            settings.fallback.servers == [
                .server(
                    Server(
                        .https(path: "/dns-query", usesGET: false), .name("dns.alidns.com"), port: 443,
                        addresses: [.v4(223, 5, 5, 5), .v4(223, 6, 6, 6)])),
                .server(
                    Server(
                        .tls, .name("dot.pub"), port: 853, addresses: [.v4(1, 12, 12, 12), .v4(120, 53, 53, 53)])),
            ])
        #expect(settings.upstreams.map(\.name) == ["router"])
        #expect(settings.upstreams[0].domains.map(\.description) == ["lan", "fritz.box", "", "192.168.0.0/16"])
        #expect(try load(settings.effectiveText).upstreams == settings.upstreams)
    }

    @Test("an office: its zones over the VPN, verified with its own authority, a partner's with the fallback behind")
    func laptop() throws {
        let settings = try load(
            """
            [httpdns]
            encryptType = "aes"
            dnsId       = 1234
            dnsKeyFile  = "key"
            [fallback]
            servers = ["https://doh.example.net/dns-query{?dns}", "9.9.9.9"]      # plain as the last resort
            [upstreams.office]
            servers = ["tls://10.1.0.53#dns.corp.example", "tls://10.1.0.54#dns.corp.example"]
            caFile = "corp-ca.pem"
            domains = ["corp.example", "corp.internal", "10.0.0.0/8", "fd12:3456::/32"]
            except  = ["www.corp.example"]
            [upstreams.partner]
            servers = ["172.20.0.10", "172.20.0.11"]
            domains = ["*.partner.example"]
            thenTry = ["fallback"]
            """, files: ["/etc/httpdnsd/key": "0123456789abcdef", "/etc/httpdnsd/corp-ca.pem": "x"])
        #expect(settings.upstreams.map(\.name) == ["office", "partner"])
        let office = settings.upstreams[0]
        #expect(office.thenTry == [] && office.except.map(\.description) == ["www.corp.example"])
        #expect(office.tls.caFile.path == "/etc/httpdnsd/corp-ca.pem" && office.tls.anchors == Array("x".utf8))
        #expect(settings.tls.caFile.isEmpty && settings.fallback.tls.caFile.isEmpty)
        #expect(settings.upstreams[1].thenTry == ["fallback"])
        #expect(settings.upstreams[1].domains.map(\.description) == ["*.partner.example"])
        #expect(
            settings.fallback.servers.map(ServerText.text) == ["https://doh.example.net/dns-query{?dns}", "9.9.9.9:53"])
    }

    @Test("a Kubernetes node: the cluster's zones to the cluster; the nodes share what they look up")
    func node() throws {
        let text = """
            [listen]
            addresses = ["169.254.20.10:53"]
            allow     = ["10.244.0.0/16"]
            [httpdns]
            token = "1"
            queriesPerSecond = 50
            [fallback]
            servers = ["tls://223.5.5.5#dns.alidns.com", "223.6.6.6"]
            [upstreams.cluster]
            servers = ["10.96.0.10"]
            domains = ["cluster.local", "10.96.0.0/12", "10.244.0.0/16"]
            [sharedCache]
            server = "tls://10.96.7.7:6379#valkey.example"
            keyFile = "fleet-key"
            """
        let settings = try load(text, files: SettingsTests.files)
        #expect(settings.upstreams[0].domains.map(\.description) == ["cluster.local", "10.96.0.0/12", "10.244.0.0/16"])
        #expect(settings.sharedCache.key?.bytes == Array("Swift-HTTPDNS-16 the key of the fleet".utf8))
        #expect(settings.httpdns?.share == true && settings.fallback.share && !settings.upstreams[0].share)
    }

    @Test("a group is given in each of TOML's notations, and keeps its position in the file")
    func notations() throws {
        let expected = try group(office)
        for text in [
            "upstreams.office.servers = ['10.1.0.53']\nupstreams.office.domains = ['corp.example']",
            "[upstreams]\noffice = { servers = ['10.1.0.53'], domains = ['corp.example'] }",
            "upstreams = { office = { servers = ['10.1.0.53'], domains = ['corp.example'] } }",
            "[upstreams]\n[upstreams.'office']\nservers = ['10.1.0.53']\n\"domains\" = ['corp.example']",
        ] { #expect(try group(text) == expected, "\(text)") }
        let many = ["zebra", "Alpha", "m1"].map { "[upstreams.\($0)]\nservers = ['::1']\ndomains = ['\($0)']\n" }
        #expect(try load(many.joined()).upstreams.map(\.name) == ["zebra", "Alpha", "m1"])
        #expect(try load("[upstreams]").upstreams == [])
    }

    @Test("the environment wins over the file, key by key, and makes groups in lower case")
    func environment() throws {
        let text = "[upstreams.Office]\nservers = ['10.1.0.53']\ntimeout = 300\ndomains = ['a']"
        let changed = try group(
            text,
            environment: [
                "HTTPDNSD_UPSTREAMS_OFFICE_SERVERS": "10.1.0.54, tls://dns.example#10.1.0.55+10.1.0.56",
                "HTTPDNSD_UPSTREAMS_OFFICE_DOMAINS": "-, corp.example, 10.0.0.0/8",
                "HTTPDNSD_UPSTREAMS_OFFICE_TRUSTAD": "1",
            ])
        #expect(changed.name == "Office" && changed.timeout == 300 && changed.trustAD)
        #expect(changed.domains.map(\.description) == ["", "corp.example", "10.0.0.0/8"])
        #expect(
            changed.servers.map(ServerText.text) == ["10.1.0.54:53", "tls://dns.example#10.1.0.55+10.1.0.56"])
        let alone = try load(
            nil,
            environment: [
                "HTTPDNSD_UPSTREAMS_B2_SERVERS": "::1", "HTTPDNSD_UPSTREAMS_B2_DOMAINS": "b",
                "HTTPDNSD_UPSTREAMS_A_SERVERS": "::1", "HTTPDNSD_UPSTREAMS_A_DOMAINSFILE": "a.txt",
                "HTTPDNSD_UPSTREAMS_A_THENTRY": "b2,fallback", "HTTPDNSD_UPSTREAMS_A_THENTRYON": "failure,nodata",
            ]
        ).upstreams
        #expect(alone.map(\.name) == ["a", "b2"])
        #expect(alone[0].thenTry == ["b2", "fallback"] && alone[0].thenTryOn == [.failure, .nodata])
    }

    @Test("paths start from the file's folder, and a list of names is not read")
    func paths() throws {
        let group = try group(office + "domainsFile = 'names.txt'")
        #expect(group.domainsFile == ["/etc/httpdnsd/names.txt"])
        #expect(try load("[domains]\ninterceptFile = 'i'").domains.interceptFile == ["/etc/httpdnsd/i"])
        #expect(try load("[domains]\nbypassFile = ['/b', 'c']").domains.bypassFile == ["/b", "/etc/httpdnsd/c"])
    }

    @Test("httpOnly is another word for an empty thenTry")
    func httpOnly() throws {
        let account = "[httpdns]\ntoken = '1'\n"
        let only = try #require(try load(account + "httpOnly = true").httpdns)
        #expect(only == (try load(account + "thenTry = []").httpdns))
        #expect(only == (try load(account + "thenTry = []\nhttpOnly = true").httpdns))
        #expect(only.thenTry == [] && only.httpOnly)
        var changed = only
        changed.httpOnly = false
        #expect(changed.thenTry == ["fallback"])
        let other = try load(account + "httpOnly = false\nthenTry = ['office']\n" + office).httpdns
        #expect(other?.thenTry == ["office"] && other?.httpOnly == false)
        let tail = "httpOnly = true\n[private]\nservers = ['192.168.1.1']\n"
        #expect(try !load(account + tail).isFallbackNeeded)
        #expect(try load(account + tail + "thenTry = ['fallback']").isFallbackNeeded)
    }

    @Test("the secrets of groups' certificates are known as such, their authorities are not")
    func secretFiles() throws {
        let text =
            office + "caFile = '/ca'\nclientCertificate = '/p12'\nclientCertificatePasswordFile = 'password'\n"
            + "[fallback]\ncaFile = '/ca2'\nclientCertificate = '/p13'"
        var loaded = try Settings.load(
            file: "/etc/httpdnsd/test.toml", contents: text, environment: ["CREDENTIALS_DIRECTORY": "/run/c"],
            readFile: { FileReading(Array($0.utf8)) })
        #expect(loaded.origins.secretFiles.sorted() == ["/p12", "/p13", "/run/c/password"])
        let tls = loaded.settings.upstreams[0].tls
        #expect(tls.anchors == Array("/ca".utf8) && tls.clientCertificateBytes == Array("/p12".utf8))
        #expect(tls.clientCertificatePassword == Secret(Array("/run/c/password".utf8)))
        let before = loaded.settings
        loaded.settings.forgetFiles()
        #expect(loaded.settings.upstreams[0].tls.clientCertificateBytes == nil)
        #expect(loaded.settings.fallback.tls.clientCertificateBytes == nil)
        #expect(loaded.settings == before)
    }

    @Test("a reload names the keys of groups that differ, and groups that came or went")
    func reloading() throws {
        let partner = "[upstreams.Partner]\nservers = ['10.2.0.53']\ndomains = ['p.example']\n"
        let before = try load(office + "caFile = '/ca'\n" + partner, files: ["/ca": "1"])
        func applied(_ text: String, _ authority: String = "1") throws -> [String] {
            let after = try load(text, files: ["/ca": authority])
            let reloading = before.reloading(after)
            #expect(reloading.settings == after && reloading.needingRestart == [])
            return reloading.applied
        }
        #expect(try applied(office + "caFile = '/ca'\n" + partner) == [])
        #expect(try applied(office + "caFile = '/ca'\n" + partner, "2") == ["upstreams.office.caFile"])
        #expect(try applied(partner + office + "caFile = '/ca'") == [])
        #expect(try applied(office + "caFile = '/ca'") == ["upstreams.Partner"])
        #expect(try applied(partner + office + "caFile = '/ca'\ntimeout = 100") == ["upstreams.office.timeout"])
        let new = "[upstreams.new]\nservers = ['::1']\ndomains = ['.']\n"
        #expect(try applied(new + partner) == ["upstreams.new", "upstreams.office"])
    }

    @Test("an error found in use stands at the group's key, its section or its variable")
    func origins() throws {
        let inFile = try loaded("\n" + office).origins
        let file = "/etc/httpdnsd/test.toml"
        #expect("\(inFile.error("upstreams.office.domains", "no"))" == "\(file):4: upstreams.office.domains: no")
        #expect("\(inFile.error("upstreams.office.pins", "no"))" == "\(file):2: upstreams.office.pins: no")
        let variables = try loaded(
            nil, environment: ["HTTPDNSD_UPSTREAMS_A_SERVERS": "::1", "HTTPDNSD_UPSTREAMS_A_DOMAINS": "a"]
        ).origins
        #expect("\(variables.error("upstreams.a.pins", "no"))" == "environment: HTTPDNSD_UPSTREAMS_A_PINS: no")
        #expect("\(variables.error("upstreams.a.domains", "no"))" == "environment: HTTPDNSD_UPSTREAMS_A_DOMAINS: no")
    }
}
