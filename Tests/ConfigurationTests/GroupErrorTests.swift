import Base
import Configuration
import Testing

@Suite struct GroupErrorTests {
    /// A group that is right, on three lines.
    private static func group(_ name: String, _ domain: String, _ more: String = "") -> String {
        "[upstreams.\(name)]\nservers = ['::1']\ndomains = ['\(domain)']\n\(more)"
    }

    private static let wrongKeys: [(String, String)] = [
        (
            "[upstreams.office]\n",
            "1: upstreams.office.servers: missing; give whom this group asks, such as [\"192.168.1.1\"]"
        ),
        (
            "[upstreams.office]\nservers = []\ndomains = ['a']",
            "2: upstreams.office.servers: missing; give whom this group asks, such as [\"192.168.1.1\"]"
        ),
        (
            "[upstreams.office]\nservers = ['::1']",
            "1: upstreams.office.domains: missing, and no thenTry names this group; give the names it takes, or name it in "
                + "a thenTry"
        ),
        (
            "[fallback]\nresolvConf = []\n[upstreams.portal]\nservers = ['resolvConf']\ndomains = ['a']",
            "4: upstreams.portal.servers: \"resolvConf\" finds nobody, as fallback.resolvConf is empty; name files there"
        ),
        (
            "[upstreams.ads]\nanswer = 'nxdomain'",
            "1: upstreams.ads.domains: missing; give the names that this group answers"
        ),
        (
            "[upstreams.ads]\nanswer = 'NXDOMAIN'\ndomains = ['a']",
            "2: upstreams.ads.answer: \"NXDOMAIN\" is not right; give \"nxdomain\", \"nodata\", \"refused\", an address or a "
                + "list of addresses; did you mean \"nxdomain\"?"
        ),
        (
            "[upstreams.ads]\nanswer = ['192.0.2.1', 'nodata']\ndomains = ['a']",
            "2: upstreams.ads.answer: \"nodata\" is not right; give \"nxdomain\", \"nodata\", \"refused\", an address or a list of "
                + "addresses"
        ),
        (
            "[upstreams.ads]\nanswer = []\ndomains = ['a']",
            "2: upstreams.ads.answer: an empty list is not right; give a list that is not empty, each item \"nxdomain\", \"nodata\", "
                + "\"refused\", an address or a list of addresses"
        ),
        (
            "[upstreams.ads]\nanswer = 'nodata'\nservers = ['::1']\ndomains = ['a']",
            "3: upstreams.ads.servers: a group with an answer asks no server, and has no servers; leave it out, or leave out answer"
        ),
        (
            "[upstreams.ads]\nanswer = 'nodata'\nprovider = 'baidu'\ndomains = ['a']",
            "3: upstreams.ads.provider: a group with an answer asks no server, and has no provider; leave it out, or leave out answer"
        ),
        (
            "[upstreams.ads]\nanswer = 'nodata'\nthenTry = ['fallback']\ndomains = ['a']",
            "3: upstreams.ads.thenTry: a group with an answer asks no server, and has no thenTry; leave it out, or leave out answer"
        ),
        (
            group("a", "x", "thenTry = ['ads']\n[upstreams.ads]\nanswer = 'nodata'\ndomains = ['y']"),
            "4: upstreams.a.thenTry: \"ads\" has an answer for its own names and asks no server; give other groups"
        ),
        (
            group("a", "x", "[upstreams.ads]\nanswer = 'nodata'\ndomains = ['x']"),
            "6: upstreams.ads.domains: \"x\" is in [upstreams.a] as well (line 3); give it to one group"
        ),
        (
            group("a", "x", "whenClockUnset = true"),
            "4: upstreams.a.whenClockUnset: true is not right; give one of \"accept\", \"refuse\""
        ),
        (
            group("a", "x", "caFile = 'ca'"),
            "4: upstreams.a.caFile: cannot read \"/etc/httpdnsd/ca\": No such file or directory; give one that the daemon may read"
        ),
        (
            group("a", "x", "validateDomain = false"),
            "4: upstreams.a.validateDomain: false is not right without caFile: anybody has a certificate that the system's "
                + "store trusts; give true, or trust a caFile alone"
        ),
        (
            "[fallback]\nvalidateDomain = false",
            "2: fallback.validateDomain: false is not right without caFile: anybody has a "
                + "certificate that the system's store trusts; give true, or trust a caFile alone"
        ),
        (
            group("a", "*a.b"),
            "3: upstreams.a.domains: \"*a.b\" is not right; give a pattern: \"example.com\", \"*.example.com\", \".\", a network "
                + "such as \"10.0.0.0/8\", or \"\" for single labels"
        ),
        (
            group("a", "10.0.0.1/8"),
            "3: upstreams.a.domains: \"10.0.0.1/8\" is not right; give a pattern: \"example.com\", \"*.example.com\", \".\", a "
                + "network such as \"10.0.0.0/8\", or \"\" for single labels; did you mean \"10.0.0.0/8\"?"
        ),
        (
            group("a", "a\\\\032b"),
            "3: upstreams.a.domains: \"a\\\\\\\\032b\" is not right; give a pattern: \"example.com\", \"*.example.com\", \".\", a "
                + "network such as \"10.0.0.0/8\", or \"\" for single labels"
        ),
        (group("a", "x', 'X."), "3: upstreams.a.domains: \"X.\" is listed twice; give it once"),
        (
            "[upstreams.a]\nservers = ['1.1.1.1@853#x.example']",
            "2: upstreams.a.servers: \"1.1.1.1@853#x.example\" is not right; give \"tls://1.1.1.1:853#x.example\""
        ),
        (
            "[upstreams.a]\nservers = ['::1', '[::1]:53']",
            "2: upstreams.a.servers: \"[::1]:53\" is listed twice; give it once"
        ),
        (
            "[upstreams.a]\nservers = '::1'",
            "2: upstreams.a.servers: \"::1\" is not right; give a list, each item ADDRESS, ADDRESS:PORT, \"tls://HOST\", "
                + "\"https://HOST/PATH\" or another form of a server"
        ),
        (
            group("a", "x", "thenTryOn = ['late']"),
            "4: upstreams.a.thenTryOn: \"late\" is not right; give one of \"failure\", "
                + "\"norecord\", \"refused\", \"nxdomain\", \"nodata\""
        ),
        (
            group("a", "x", "thenTryOn = []"),
            "4: upstreams.a.thenTryOn: an empty list is not right; give a list that is not empty, "
                + "each item one of \"failure\", \"norecord\", \"refused\", \"nxdomain\", \"nodata\""
        ),
        (
            group("a", "x", "thenTry = 'fallback'"),
            "4: upstreams.a.thenTry: \"fallback\" is not right; give a list, each item the name "
                + "of a group, such as \"fallback\""
        ),
        (
            "[upstreams.a]\nalias = ''\ndomains = ['x']",
            "2: upstreams.a.alias: \"\" is not right; give a host name such as \"dns.example.com\""
        ),
        (
            group("a", "x", "thenTry = ['the office']"),
            "4: upstreams.a.thenTry: \"the office\" is not right; give the name of a group, "
                + "such as \"fallback\""
        ),
        (
            group("a", "x", "provider = 'alibaba'"),
            "2: upstreams.a.servers: an HTTPDNS account has no servers; give dnsIp for its addresses, or leave out provider"
        ),
        (
            group("a", "x", "domain = ['y']"),
            "4: upstreams.a.domain: unknown key in version \(Version.current); did you mean upstreams.a.domains?"
        ),
        (
            group("a", "x", "hedgeAfter = 1"),
            "4: upstreams.a.hedgeAfter: unknown key in version \(Version.current); did you mean fallback.hedgeAfter?"
        ),
        (
            "[fallback]\ndomainsFile = 'x'",
            "2: fallback.domainsFile: unknown key in version \(Version.current); did you mean upstreams.NAME.domainsFile?"
        ),
        (
            "[upstreams]\nservers = ['::1']",
            "2: upstreams.servers: a key of no group; give a section [upstreams.NAME] and the keys of "
                + "that group there"
        ),
        (
            "upstreams.office = 3",
            "1: upstreams.office: a key of no group; give a section [upstreams.NAME] and the keys of that group "
                + "there"
        ),
        ("upstreams = 3", "1: upstreams: 3 is not right; give a section [upstreams.NAME]"),
        (
            "[upstream.office]\nservers = []",
            "1: upstream: unknown section in version \(Version.current); did you mean [upstreams.NAME]?"
        ),
        (group("a", "x") + "[upstreams.a]", "4: upstreams.a: given twice, first on line 1; give it once"),
        (group("a", "x", "domains = ['y']"), "4: upstreams.a.domains: given twice, first on line 3; give it once"),
    ]

    @Test(
        "what is wrong with a group's keys or between groups is named with its lines and what would be right",
        arguments: wrongKeys + collisions)
    func wrong(_ text: String, _ expected: String) {
        #expect(message(text) == "test.toml:" + expected)
    }

    @Test(
        "a group's name has letters and digits, and is no other group's",
        arguments: [
            ("my_office", "the name \"my_office\" is not right; give letters and digits, at most 63"),
            ("my-office", "the name \"my-office\" is not right; give letters and digits, at most 63"),
            ("\"\"", "the name \"\" is not right; give letters and digits, at most 63"),
            ("\"a.b\"", "the name \"a.b\" is not right; give letters and digits, at most 63"),
            ("bü", nil),
            ("httpdns", "is the group of [httpdns] already; give another name"),
            ("Fallback", "is the group of [fallback] already; give another name"),
        ] as [(String, String?)])
    func names(_ name: String, _ expected: String?) {
        let message = message("\n[upstreams.\(name)]\nservers = ['::1']\ndomains = ['a']")
        guard let expected else {
            #expect(message.hasPrefix("test.toml:2: upstreams.b"))
            return
        }
        #expect(message.hasPrefix("test.toml:2: upstreams.") && message.hasSuffix(": " + expected), "\(message)")
    }

    @Test("two groups do not differ in their case alone, and there are so many at most")
    func number() throws {
        #expect(
            message(Self.group("office", "a") + Self.group("Office", "b"))
                == "test.toml:4: upstreams.Office: differs from [upstreams.office] on line 1 in its case alone; give another "
                + "name")
        let most = (1...62).map { Self.group("g\($0)", "d\($0)") }.joined()
        #expect(try load(most).upstreams.count == 62)
        #expect(
            message(most + Self.group("more", "x"))
                == "test.toml:187: upstreams.more: more than 62 groups; give at most so many")
        #expect(
            message(most, environment: ["HTTPDNSD_UPSTREAMS_MORE_SERVERS": "::1"])
                == "environment: HTTPDNSD_UPSTREAMS_MORE_SERVERS: more than 62 groups; give at most so many")
    }

    private static let collisions: [(String, String)] = [
        (
            group("a", "x") + group("b", "y', 'X"),
            "6: upstreams.b.domains: \"x\" is in [upstreams.a] as well (line 3); give it to one group"
        ),
        (
            group("a", "10.0.0.0/8") + group("b", "10.0.0.0/8"),
            "6: upstreams.b.domains: \"10.0.0.0/8\" is in [upstreams.a] as well (line 3); give it to one group"
        ),
        (
            group("a", "") + group("b", ""),
            "6: upstreams.b.domains: \"\" is in [upstreams.a] as well (line 3); give it to one group"
        ),
        (
            group("a", "x", "except = ['y', 'x']"),
            "3: upstreams.a.domains: \"x\" stands in except as well (line 4); give it in one of the two"
        ),
        (
            group("a", "x", "thenTry = ['a']"),
            "4: upstreams.a.thenTry: \"a\" is this group itself, asked already; give other groups"
        ),
        (
            "[fallback]\nthenTry = ['fallback']",
            "2: fallback.thenTry: \"fallback\" is this group itself, asked already; give other groups"
        ),
        (
            group("a", "x", "thenTry = ['A']"),
            "4: upstreams.a.thenTry: there is no group \"A\"; give some of \"fallback\", \"private\""
        ),
        (
            "[httpdns]\ntoken = '1'\nthenTry = ['offise']\n" + group("office", "x"),
            "3: httpdns.thenTry: there is no group \"offise\"; give some of \"fallback\", \"private\", \"office\"; did you mean "
                + "\"office\"?"
        ),
        (
            group("a", "x", "thenTry = ['httpdns']"),
            "4: upstreams.a.thenTry: \"httpdns\" is not configured; give a section [httpdns] too, or other groups"
        ),
        (
            group("a", "x", "thenTry = ['fallback', 'fallback']"),
            "4: upstreams.a.thenTry: \"fallback\" is listed twice; give it once"
        ),
        (
            "[httpdns]\ntoken = '1'\nhttpOnly = true\nthenTry = ['fallback']",
            "3: httpdns.httpOnly: true is not right beside thenTry (line 4), which names who else is asked; give one of the two"
        ),
        (
            "[upstreams.a]\nprovider = 'tencent'\ntoken = '1'\ndomains = ['x']\nhttpOnly = true\nthenTry = ['fallback']",
            "5: upstreams.a.httpOnly: true is not right beside thenTry (line 6), which names who else is asked; "
                + "give one of the two"
        ),
        (
            "[upstreams.a]\nservers = ['::1']\nthenTry = ['b']\n[upstreams.b]\nservers = ['::2']\nthenTry = ['a']",
            "1: upstreams.a.domains: nobody reaches this group: [upstreams.b] tries it (line 6), but takes no names itself; "
                + "give the names it takes, or name it in another thenTry"
        ),
        (
            group("a", "x", "thenTry = ['b']\n")
                + "[upstreams.b]\nservers = ['::2']\nthenTry = ['c']\n[upstreams.c]\nservers = ['::3']",
            "8: upstreams.c.domains: nobody reaches this group: [upstreams.b] tries it (line 7), but takes no names itself; "
                + "give the names it takes, or name it in another thenTry"
        ),
    ]

    @Test("a location in the environment is named by its variable")
    func betweenSources() {
        #expect(
            message(Self.group("a", "x") + Self.group("b", "y"), environment: ["HTTPDNSD_UPSTREAMS_A_DOMAINS": "y"])
                == "test.toml:6: upstreams.b.domains: \"y\" is in [upstreams.a] as well (HTTPDNSD_UPSTREAMS_A_DOMAINS); give it "
                + "to one group")
        #expect(
            message("[httpdns]\ntoken = '1'\nthenTry = ['fallback']", environment: ["HTTPDNSD_HTTPDNS_HTTPONLY": "1"])
                == "environment: HTTPDNSD_HTTPDNS_HTTPONLY: true is not right beside thenTry (line 3), which names who else is "
                + "asked; give one of the two")
    }

    @Test("groups that try each other are right if names come to them")
    func circle() throws {
        let text = Self.group("a", "x", "thenTry = ['b', 'fallback']\n") + Self.group("b", "y", "thenTry = ['a']\n")
        #expect(try load(text).upstreams.map(\.thenTry) == [["b", "fallback"], ["a"]])
        let account = "[httpdns]\ntoken = '1'\nthenTry = ['fallback', 'a']\n[fallback]\nthenTry = ['httpdns']\n"
        #expect(try load(account + "[upstreams.a]\nservers = ['::1']").upstreams.map(\.domains) == [[]])
    }

    @Test(
        "a wrong variable of a group is named with what would be right",
        arguments: [
            (
                "HTTPDNSD_UPSTREAMS_OFFICE_SERVER", "::1",
                "unknown variable in version \(Version.current); did you mean HTTPDNSD_UPSTREAMS_OFFICE_SERVERS?"
            ),
            (
                "HTTPDNSD_UPSTREAMS_OFFICE_TTL", "5",
                "unknown variable in version \(Version.current); give HTTPDNSD_SECTION_KEY, such as HTTPDNSD_LISTEN_ADDRESSES"
            ),
            (
                "HTTPDNSD_UPSTREAMS_MY_OFFICE_SERVERS", "::1",
                "unknown variable in version \(Version.current); give HTTPDNSD_UPSTREAMS_NAME_KEY, where NAME has letters and digits alone, such as "
                    + "HTTPDNSD_UPSTREAMS_OFFICE_SERVERS"
            ),
            (
                "HTTPDNSD_UPSTREAMS_SERVERS", "::1",
                "unknown variable in version \(Version.current); give HTTPDNSD_UPSTREAMS_NAME_KEY, where NAME has letters and digits alone, such as "
                    + "HTTPDNSD_UPSTREAMS_OFFICE_SERVERS"
            ),
            (
                "HTTPDNSD_UPSTREAMS_A-B_SERVERS", "::1",
                "the name \"a-b\" is not right; give letters and digits, at most 63"
            ),
            ("HTTPDNSD_UPSTREAMS_FALLBACK_SERVERS", "::1", "is the group of [fallback] already; give another name"),
            ("HTTPDNSD_UPSTREAMS_A_SERVERS", "", "missing; give whom this group asks, such as [\"192.168.1.1\"]"),
            ("HTTPDNSD_UPSTREAMS_A_DOMAINS", "a,,b", "\"\" is not right; give \"-\" for single labels"),
            ("HTTPDNSD_UPSTREAMS_A_DOMAINS", "-,-", "\"-\" is listed twice; give it once"),
        ])
    func environment(_ variable: String, _ text: String, _ expected: String) {
        #expect(message(nil, environment: [variable: text]) == "environment: \(variable): \(expected)")
    }

    @Test("a comma where a plus was meant makes no plain server of an encrypted one's second address")
    func splitAddresses() throws {
        let list = "https://dns.google/dns-query#8.8.8.8, 8.8.4.4"
        #expect(
            message(nil, environment: ["HTTPDNSD_FALLBACK_SERVERS": list])
                == "environment: HTTPDNSD_FALLBACK_SERVERS: \"8.8.4.4\" behind \"https://dns.google/dns-query#8.8.8.8\" would be "
                + "asked in the clear; give \"+\" between the addresses of a server, or plain servers first")
        #expect(
            message(
                nil, environment: ["HTTPDNSD_UPSTREAMS_A_SERVERS": "tls://dns.example#192.0.2.1+192.0.2.2,2001:db8::1"]
            )
            .contains("\"2001:db8::1\" behind "))
        for right in [
            "8.8.4.4,https://dns.google/dns-query#8.8.8.8", "tls://8.8.8.8#dns.google,8.8.4.4",
            "tls://dns.google#8.8.8.8,tls://dns.google#8.8.4.4", "tls://dns.google,8.8.4.4",
        ] { #expect(try load(nil, environment: ["HTTPDNSD_FALLBACK_SERVERS": right]).fallback.servers.count == 2) }
        // In a file nothing is split.
        #expect(
            try load("[fallback]\nservers = ['tls://dns.google#8.8.8.8', '8.8.4.4']").fallback.servers.count == 2)
    }

    @Test("a list of servers has an end")
    func limit() throws {
        func servers(_ count: Int) -> String {
            "[fallback]\nservers = [" + (1...count).map { "'192.0.2.\($0)'" }.joined(separator: ", ") + "]"
        }
        #expect(try load(servers(64)).fallback.servers.count == 64)
        #expect(message(servers(65)) == "test.toml:2: fallback.servers: 65 items; give at most 64")
    }
}
