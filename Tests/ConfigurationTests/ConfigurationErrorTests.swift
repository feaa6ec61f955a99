import Base
import Configuration
import Foundation
import TestSupport
import Testing

@Suite struct ConfigurationErrorTests {
    @Test(
        "the value that may be meant is suggested, where there is one",
        arguments: [
            ("[httpdns]\nencryptType = 'HTTPS'", "\"https\""), ("[httpdns]\nencryptType = 'http'", "\"https\""),
            ("[httpdns]\nencryptType = 'tls'", nil), ("[httpdns]\nencryptType = 'ae'", nil),
            ("[httpdns]\nencryptType = 's'", nil), ("[httpdns]\nprovider = 'Tencent'", "\"tencent\""),
            ("[httpdns]\nprovider = 'volcano'", nil), ("[httpdns]\nprovider = 'alibba'", "\"alibaba\""),
            ("[httpdns]\nprovider = 'huawei'", nil), ("[httpdns]\naddressType = 'IPv4'", "\"ipv4\""),
            ("[httpdns]\naddressType = 'ipv'", nil), ("[log]\nlevel = 'WARN'", "\"warning\""),
            ("[log]\nlevel = 'err'", "\"error\""), ("[log]\nlevel = 'trace'", nil),
            ("[domains]\nprivateAddresses = 'refuse '", "\"refuse\""),
            ("[httpdns]\nthenTryOn = ['NXDOMAIN']", "\"nxdomain\""),
            ("[httpdns]\nthenTryOn = ['no-data']", "\"nodata\""),
            ("[listen]\nallow = ['10.1.2.3/8']", "\"10.0.0.0/8\""),
            ("[listen]\nallow = ['2001:db8::1/32']", "\"2001:db8::/32\""),
            ("[listen]\nallow = ['10.1.2.3/33']", nil), ("[listen]\nallow = ['localhost']", nil),
            ("[domains]\nbypass = ['.corp.example']", "\"corp.example\""),
            ("[domains]\nbypass = ['*.corp.example']", "\"corp.example\""),
            ("[domains]\nbypass = ['*']", nil), ("[listen]\nworkers = '2'", "2"), ("[listen]\nworkers = '200'", nil),
            ("[httpdns]\nhttpOnly = 'TRUE'", "true"), ("[httpdns]\nhttpOnly = 'yes'", nil),
            ("[httpdns]\nhttpOnly = 'false'", "false"),
            ("[fallback]\nthenTry = ['Office']\n[upstreams.office]\nservers = ['192.0.2.1']", "\"office\""),
            ("[fallback]\nthenTry = ['offise']\n[upstreams.office]\nservers = ['192.0.2.1']", "\"office\""),
            ("[fallback]\nthenTry = ['home']\n[upstreams.office]\nservers = ['192.0.2.1']", nil),
            ("[upstreams.ads]\nanswer = 'NXDomain'\ndomains = ['x.example']", "\"nxdomain\""),
            ("[upstreams.ads]\nanswer = 'blocked'\ndomains = ['x.example']", nil),
            ("[upstreams.a]\nservers = ['192.0.2.1']\ndomains = ['*']", "\".\""),
            ("[upstreams.a]\nservers = ['192.0.2.1']\ndomains = ['.corp.example']", "\"corp.example\""),
            ("[upstreams.a]\nservers = ['192.0.2.1']\ndomains = ['10.1.0.0/8']", "\"10.0.0.0/8\""),
            ("[upstreams.a]\nservers = ['192.0.2.1']\ndomains = ['x']\nexcept = ['..']", nil),
        ])
    func suggestions(_ text: String, _ meant: String?) {
        let parts = message(text).components(separatedBy: "; did you mean ")
        #expect(parts[0].contains("give ") && parts.dropFirst().first == meant.map { $0 + "?" }, "\(parts)")
    }

    @Test(
        "a wrong value is named with its line and what would be right",
        arguments: [
            (
                "[listen]\n\nworkers = \"2\"",
                "3: listen.workers: \"2\" is not right; give a whole number from 0 to 4; did you mean 2?"
            ),
            (
                "[listen]\nworkers = 1.0",
                "2: listen.workers: a number with a fraction is not right; give a whole number from 0 to 4"
            ),
            (
                "[listen]\naddresses = []",
                "2: listen.addresses: an empty list is not right; give a list that is not empty, each item ADDRESS:PORT, "
                    + "such as \"127.0.0.1:53\" or \"[::1]:53\""
            ),
            (
                "[listen]\naddresses = \"127.0.0.1:53\"",
                "2: listen.addresses: \"127.0.0.1:53\" is not right; give a list that is not empty, each item "
                    + "ADDRESS:PORT, such as \"127.0.0.1:53\" or \"[::1]:53\""
            ),
            (
                "[listen]\naddresses = [\"127.0.0.1\"]",
                "2: listen.addresses: \"127.0.0.1\" is not right; give ADDRESS:PORT, such as \"127.0.0.1:53\" or "
                    + "\"[::1]:53\""
            ),
            (
                "[listen]\naddresses = [\"localhost:53\"]",
                "2: listen.addresses: \"localhost:53\" is not right; give ADDRESS:PORT, such as \"127.0.0.1:53\" or "
                    + "\"[::1]:53\""
            ),
            (
                "[listen]\naddresses = [\"127.0.0.1:53\",\n\"127.0.0.1:53\"]",
                "3: listen.addresses: \"127.0.0.1:53\" is listed twice; give it once"
            ),
            (
                "[listen]\nallow = [\n\"10.0.0.0/8\", \"172.16.0.0/12\",\n\"10.0.0.1/8\"]",
                "4: listen.allow: \"10.0.0.1/8\" is not right; give an address or a range whose bits behind the prefix "
                    + "are 0, such as \"192.168.0.0/16\"; did you mean \"10.0.0.0/8\"?"
            ),
            (
                "[fallback]\nthenTry = [\n\"a\",\n\"b\"]\n[upstreams.a]\nservers = [\"192.0.2.1\"]",
                "4: fallback.thenTry: there is no group \"b\"; give some of \"private\", \"a\""
            ),
            (
                "[httpdns]\nencryptType = \"AES\"",
                "2: httpdns.encryptType: \"AES\" is not right; give one of \"https\", \"aes\", \"des\"; did you mean \"aes\"?"
            ),
            (
                "[httpdns]\ndnsIp = []",
                "2: httpdns.dnsIp: an empty list is not right; give a list that is not empty, each item ADDRESS or "
                    + "ADDRESS:PORT, such as \"119.29.29.99\""
            ),
            (
                "[httpdns]\ndnsIp = [\"119.29.29.99:0\"]",
                "2: httpdns.dnsIp: \"119.29.29.99:0\" is not right; give ADDRESS or ADDRESS:PORT, such as "
                    + "\"119.29.29.99\""
            ),
            (
                "[httpdns]\nrouteIp = \"1.2.3\"",
                "2: httpdns.routeIp: \"1.2.3\" is not right; give an IPv4 or IPv6 address, or \"\" for none"
            ),
            ("[httpdns]\nhttpOnly = 1", "2: httpdns.httpOnly: 1 is not right; give true or false"),
            (
                "[httpdns]\nhttpOnly = \"true\"",
                "2: httpdns.httpOnly: \"true\" is not right; give true or false; did you mean true?"
            ),
            ("[httpdns]\nbatch = 9", "2: httpdns.batch: 9 is not right; \"tencent\" takes 8 at most"),
            (
                "[tls]\nserverName = \"a b\"",
                "2: tls.serverName: \"a b\" is not right; give a host name such as \"dns.example.com\", or \"\" for the "
                    + "address that is dialled"
            ),
            (
                "[domains]\nintercept = [\"*.example.com\"]",
                "2: domains.intercept: \"*.example.com\" is not right; give a name of letters, digits, \"-\" and \"_\" "
                    + "such as \"example.com\", which stands for those under it too; did you mean \"example.com\"?"
            ),
            (
                "[domains]\nbypass = [\"a\", \"A.\"]", "2: domains.bypass: \"A.\" is listed twice; give it once"
            ),
            (
                "[fallback]\nservers = [\"192.0.2.1:0\"]",
                "2: fallback.servers: \"192.0.2.1:0\" is not right; give ADDRESS or ADDRESS:PORT, such as \"192.0.2.53\""
            ),
            ("[fallback]\nresolvConf = [\"\"]", "2: fallback.resolvConf: \"\" is not right; give the path of a file"),
            (
                "[cache]\nminTTL = 2\nmaxTTL = 1",
                "2: cache.minTTL: minTTL 2 is more than maxTTL 1; give a minTTL that is not"
            ),
            (
                "[cache]\nnegativeMinTTL = 2\nmaxTTL = 1",
                "2: cache.negativeMinTTL: negativeMinTTL 2 is more than maxTTL 1; give a negativeMinTTL that is not"
            ),
            (
                "[cache]\nminTTL = 86401",
                "2: cache.minTTL: minTTL 86401 is more than maxTTL 86400; give a minTTL that is not"
            ),
            (
                "[httpdns]\naddressType = 4",
                "2: httpdns.addressType: 4 is not right; give one of \"auto\", \"ipv4\", \"ipv6\", \"dual\""
            ),
            (
                "[httpdns]\nconfIp = [\"conf.example.com\"]",
                "2: httpdns.confIp: \"conf.example.com\" is not right; give ADDRESS or ADDRESS:PORT, such as "
                    + "\"192.0.2.1\""
            ),
            (
                "[httpdns]\nproxy = \"use\"",
                "2: httpdns.proxy: \"use\" is not right; give one of \"bypass\", \"ignore\""
            ),
            (
                "[httpdns]\nappId = \"a\\nb\"",
                "2: httpdns.appId: \"a\\nb\" is not right; give at most 128 printable ASCII characters"
            ),
            (
                "[httpdns]\nreportUrl = \"reports.example.com\"",
                "2: httpdns.reportUrl: \"reports.example.com\" is not right; give a URL such as "
                    + "\"https://reports.example.com/httpdns\" without user and fragment, or \"\" for none"
            ),
            (
                "[tls]\npins = [\"sha256/c2hvcnQ=\"]",
                "2: tls.pins: \"sha256/c2hvcnQ=\" is not right; give \"sha256/BASE64\", where BASE64 is the SHA-256 "
                    + "digest of a public key, 32 bytes in 44 characters"
            ),
            (
                "[control]\nmetrics = \"9153\"",
                "2: control.metrics: \"9153\" is not right; give ADDRESS:PORT, such as \"127.0.0.1:9153\" or "
                    + "\"[::1]:9153\", or \"\" for none"
            ),
            (
                "[control]\nhost = \"192.0.2.1\"",
                "2: control.host: \"192.0.2.1\" is not right; give a host name such as \"dns.example.com\", or \"\" "
                    + "for none"
            ),
            (
                "[control]\nsocket = 7",
                "2: control.socket: 7 is not right; give the path of a socket, at most 107 bytes, or \"\" for none"
            ),
            (
                "[cache]\npreResolve = [\".\"]",
                "2: cache.preResolve: \".\" is not right; give a name of letters, digits, \"-\" and \"_\" such as "
                    + "\"www.example.com\""
            ),
            (
                "[cache]\nrank = [\"a.example:443\", \"b.example:443\", \"A.example:80\"]",
                "2: cache.rank: a.example is listed with two ports; give it one"
            ),
            (
                "[cache]\nrank = [\"a.example:443\", \"A.example:443\"]",
                "2: cache.rank: \"A.example:443\" is listed twice; give it once"
            ),
            (
                "[cache]\nkeepAliveDomains = [\"a.example\", \"A.example\"]",
                "2: cache.keepAliveDomains: \"A.example\" is listed twice; give it once"
            ),
            (
                "[log]\nlevel = 12:00:00",
                "2: log.level: a date or time is not right; give one of \"error\", "
                    + "\"warning\", \"notice\", \"info\", \"debug\""
            ),
            (
                "[log]\nformat = \"xml\"",
                "2: log.format: \"xml\" is not right; give one of \"auto\", \"journal\", \"text\", \"json\""
            ),
        ])
    func wrongValue(_ text: String, _ expected: String) {
        #expect(message(text) == "test.toml:" + expected)
    }

    @Test(
        "what an account lacks is asked for at its section",
        arguments: [
            ("\n[httpdns]", "2: httpdns.token: missing; \"https\" needs it: give token or tokenFile"),
            ("[httpdns]\ntoken = \"\"", "2: httpdns.token: missing; \"https\" needs it: give token or tokenFile"),
            ("httpdns = {}", "1: httpdns.token: missing; \"https\" needs it: give token or tokenFile"),
            (
                "[log]\n[httpdns]\nencryptType = \"aes\"\ndnsId = 1",
                "2: httpdns.dnsKey: missing; \"aes\" needs it: give dnsKey or dnsKeyFile"
            ),
            (
                "[httpdns]\nencryptType = \"des\"\ndnsKey = \"01234567\"",
                "1: httpdns.dnsId: \"des\" needs an authorization ID; give 1 to 4294967295"
            ),
            (
                "[httpdns]\nencryptType = \"des\"\ndnsKey = \"01234567\"\ndnsId = 0",
                "4: httpdns.dnsId: \"des\" needs an authorization ID; give 1 to 4294967295"
            ),
            (
                "[httpdns]\nencryptType = \"aes\"\ndnsId = 1\ndnsKey = \"01234567\"",
                "4: httpdns.dnsKey: the key has 8 bytes; \"aes\" needs exactly 16"
            ),
            (
                "[httpdns]\nencryptType = \"des\"\ndnsId = 1\ndnsKey = \"0123456\"",
                "4: httpdns.dnsKey: the key has 7 bytes; \"des\" needs exactly 8"
            ),
        ])
    func incompleteAccount(_ text: String, _ expected: String) {
        #expect(message(text) == "test.toml:" + expected)
    }

    @Test(
        "a token that cannot stand in a URL as it is is refused, and not repeated",
        arguments: ["a b", "a&b", "a#b", "ä", "a\\tb", "a+b", "a/b", "a%62", "dG9rZW4=", "a:b", "(1)"])
    func badToken(_ token: String) {
        #expect(
            message("[httpdns]\ntoken = \"\(token)\"")
                == "test.toml:2: httpdns.token: the token has other characters than a URL takes; "
                + "give letters, digits, \"-\", \".\", \"_\" and \"~\" alone")
    }

    @Test(
        "an unknown key is refused with the nearest one",
        arguments: [
            (
                "[listen]\nworker = 1",
                "2: listen.worker: unknown key in version \(Version.current); did you mean listen.workers?"
            ),
            (
                "[httpdns]\ndnsip = []",
                "2: httpdns.dnsip: unknown key in version \(Version.current); did you mean httpdns.dnsIp?"
            ),
            (
                "[cache]\ntimeout = 1000",
                "2: cache.timeout: unknown key in version \(Version.current); did you mean httpdns.timeout?"
            ),
            (
                "[cache]\nretryTimesBeforeSwitchServers = 1",
                "2: cache.retryTimesBeforeSwitchServers: unknown key in version \(Version.current); "
                    + "did you mean httpdns.retryTimesBeforeSwitchServer?"
            ),
            (
                "[fallback]\ntimout = 1000",
                "2: fallback.timout: unknown key in version \(Version.current); did you mean fallback.timeout?"
            ),
            ("dnsKey = 'x'", "1: dnsKey: unknown key in version \(Version.current); did you mean httpdns.dnsKey?"),
            (
                "[tls]\nversion = 3",
                "2: tls.version: unknown key in version \(Version.current); [tls] has serverName, caFile, caOnly, pins, "
                    + "validateDomain, clientCertificate, clientCertificatePasswordFile, whenClockUnset"
            ),
            (
                "[htpdns]\ndnsId = 1",
                "1: htpdns: unknown section in version \(Version.current); did you mean [httpdns]?"
            ),
            (
                "[listen]\nworkers = 1\n[monitoring]\nsocket = ''",
                "3: monitoring: unknown section in version \(Version.current); there are [listen], "
                    + "[httpdns], [tls], [domains], [fallback], [private], [upstreams.NAME], [nat64], [cache], [sharedCache], "
                    + "[control], [log]"
            ),
            (
                "[log.more]\nx = 1",
                "1: log.more: unknown key in version \(Version.current); [log] has level, format"
            ),
            ("listen = 3", "1: listen: 3 is not right; give a section [listen]"),
            (
                "listen = { workers = 1, wrkers = 2 }",
                "1: listen.wrkers: unknown key in version \(Version.current); did you mean listen.workers?"
            ),
        ])
    func unknownKey(_ text: String, _ expected: String) {
        #expect(message(text) == "test.toml:" + expected)
    }

    @Test("the first error of the file is reported, whatever the order of the alphabet")
    func firstError() {
        #expect(message("[log]\nlevel = 1\n[cache]\nmegabytes = 0").hasPrefix("test.toml:2: log.level:"))
        #expect(message("[log]\nlevel = 1\n[aaa]\nx = 0").hasPrefix("test.toml:2: log.level:"))
        #expect(message("[zzz]\nx = 1\n[cache]\nmegabytes = 0").hasPrefix("test.toml:1: zzz:"))
    }

    @Test(
        "an error in the environment names the variable",
        arguments: [
            ("HTTPDNSD_LISTEN_WORKERS", "9", "\"9\" is not right; give a whole number from 0 to 4"),
            ("HTTPDNSD_LISTEN_WORKERS", "", "\"\" is not right; give a whole number from 0 to 4"),
            ("HTTPDNSD_TLS_CAONLY", "yes", "\"yes\" is not right; give true or false"),
            (
                "HTTPDNSD_DOMAINS_BYPASS", "a,,b",
                "\"\" is not right; give a name of letters, digits, \"-\" and \"_\" "
                    + "such as \"example.com\", which stands for those under it too"
            ),
            (
                "HTTPDNSD_LISTEN_WORKER", "1",
                "unknown variable in version \(Version.current); did you mean HTTPDNSD_LISTEN_WORKERS?"
            ),
            (
                "HTTPDNSD_HTTPDNS_DNS_KEY", "1",
                "unknown variable in version \(Version.current); did you mean HTTPDNSD_HTTPDNS_DNSKEY?"
            ),
            (
                "HTTPDNSD_X", "1",
                "unknown variable in version \(Version.current); give HTTPDNSD_SECTION_KEY, such as HTTPDNSD_LISTEN_ADDRESSES"
            ),
            (
                "HTTPDNSD_CACHE_SIZE", "64",
                "unknown variable in version \(Version.current); did you mean cache.megabytes?"
            ),
            (
                "HTTPDNSD_FALLBACK_UPSTREAM", "192.0.2.1",
                "unknown variable in version \(Version.current); another program's key; here it is servers of [fallback], or of "
                    + "a group of [upstreams.NAME] (docs/migrating.md)"
            ),
            ("HTTPDNSD_HTTPDNS_DNSID", "7", nil),
        ] as [(String, String, String?)])
    func environment(_ variable: String, _ value: String, _ expected: String?) {
        if let expected {
            #expect(message(nil, environment: [variable: value]) == "environment: \(variable): \(expected)")
        } else {
            #expect(
                message(nil, environment: [variable: value]) == "environment: HTTPDNSD_HTTPDNS_TOKEN: missing; "
                    + "\"https\" needs it: give token or tokenFile")
        }
    }

    @Test("a key as long as a file is told at once, and means none of ours", .timeLimit(.minutes(1)))
    func endlessKey() {
        let key = String(repeating: "workers", count: 150_000)
        #expect(
            message("[listen]\n\(key) = 1").contains(
                ": unknown key in version \(Version.current); [listen] has addresses, "))
        #expect(
            message(nil, environment: ["HTTPDNSD_\(key)": "1"]).contains(
                ": unknown variable in version \(Version.current); give HTTPDNSD_SECTION"))
    }

    @Test("a wrong key from the environment is its variable's fault, not the file's")
    func environmentOverFile() {
        #expect(
            message(
                "[httpdns]\nencryptType = \"aes\"\ndnsId = 1\ndnsKey = \"0123456789abcdef\"",
                environment: ["HTTPDNSD_HTTPDNS_DNSKEY": "short"])
                == "environment: HTTPDNSD_HTTPDNS_DNSKEY: the key has 5 bytes; \"aes\" needs exactly 16")
        #expect(
            message("[cache]\nmaxTTL = 5\n", environment: ["HTTPDNSD_CACHE_MINTTL": "6"])
                == "environment: HTTPDNSD_CACHE_MINTTL: minTTL 6 is more than maxTTL 5; give a minTTL that is not")
    }

    @Test("the path of a socket counts with the folder of the file")
    func longSocket() throws {
        // Behind "/etc/httpdnsd/".
        let name = String(repeating: "s", count: 93)
        #expect(try load("[control]\nsocket = '\(name)'").control.socket.utf8.count == 107)
        for socket in [name + "s", String(repeating: "s", count: 107)] {
            #expect(
                message("[control]\nsocket = '\(socket)'")
                    == "test.toml:2: control.socket: the path has \(socket.count + 14) bytes with the folder of the file; give one "
                    + "of at most 107 bytes")
        }
    }

    @Test("a long or strange value stays on one line")
    func strangeValue() {
        let long = String(repeating: "x", count: 1000)
        #expect(message("[log]\nlevel = \"\(long)\"").count < 200)
        #expect(message("[log]\n\(long) = 1").count < 200)
        // The sections that there are stand behind it, as many as there are.
        #expect(message("[\"\(long) \"]").count < message("[\"x \"]").count + 100)
        #expect(message("[log]\nlevel = \"a\\nb\\u0001\"").contains("\"a\\nb\\u0001\" is not right"))
    }
}

@Suite struct SyntaxErrorTests {
    private static let value =
        "give a text in quotes, such as \"text\", a whole number of at most 64 bits, true or false"

    @Test(
        "text that is not TOML is shown with its line",
        arguments: [
            ("[listen\nworkers = 1", "1: listen: not TOML; close the name of the section with \"]\""),
            ("[listen]\nworkers = abc", "2: listen.workers: not TOML; " + value),
            ("[listen]\nworkers =", "2: listen.workers: not TOML; " + value),
            ("[listen]\nworkers = 9223372036854775808", "2: listen.workers: not TOML; " + value),
            ("[listen]\nworkers 1", "2: syntax: not TOML; give \"=\" and a value behind the key"),
            ("[listen]\n= 1", "2: syntax: not TOML; give a line such as \"key = 1\""),
            (
                "[listen]\nworkers = 1 2",
                "2: listen.workers: not TOML; give one key and its value on a line, or \"#\" before a comment"
            ),
            (
                "[listen]\nallow = [ # all\n'::1'\n'::2']",
                "4: listen.allow: not TOML; give \",\" between the items of the list from line 2, and \"]\" at its end"
            ),
            (
                "listen = { workers = 1\n}",
                "1: listen.workers: not TOML; give \",\" between the keys and \"}\" behind the last, on one line"
            ),
            ("[log]\nlevel = 'info", "2: log.level: not TOML; the text that begins here has no quote at its end"),
            (
                "[log]\nlevel = \"\"\"\ninfo\n",
                "2: log.level: not TOML; the text that begins here has no quote at its end"
            ),
            (
                "[cache]\nfile = \"C:\\cache\"",
                "2: cache.file: not TOML; give \"\\\\\" for a backslash, or the text in single quotes"
            ),
            (
                "[cache]\nfile = \"\\uD800\"",
                "2: cache.file: not TOML; give \\uXXXX or \\UXXXXXXXX with the number of a character"
            ),
            (
                "[log]\n# \0\n[nonsense]",
                "2: syntax: a control character, with the number 0, is invalid in a text; remove it"
            ),
            (
                "[httpdns]\r\n\r\ntoken = \"ab\\U00000000cd\"",
                "3: httpdns.token: a control character, with the number 0, is invalid in a text; remove it"
            ),
            ("[[listen]]", "1: listen: \"[[\" begins a list of sections, which no setting is; give one \"[\""),
        ])
    func syntaxError(_ text: String, _ expected: String) {
        #expect(message(text) == "test.toml:" + expected)
    }

    @Test(
        "a key or section given twice names both lines",
        arguments: [
            ("[listen]\nworkers = 1\nworkers = 2", "3: listen.workers: given twice, first on line 2; give it once"),
            ("[listen]\n[log]\n\n[listen]", "4: listen: given twice, first on line 1; give it once"),
            ("[httpdns]\ntoken = 'a'\ntoken = 'b'", "3: httpdns.token: given twice, first on line 2; give it once"),
        ])
    func twice(_ text: String, _ expected: String) {
        #expect(message(text) == "test.toml:" + expected)
    }

    @Test(
        "no syntax error repeats what may be a secret",
        arguments: [
            "[httpdns]\ntoken = VALUE", "[httpdns]\ndnsKey = VALUE", "[httpdns]\ntoken = \"VALUE",
            "httpdns.token = VALUE",
            "httpdns = { token = VALUE }", "[httpdns]\ndnskey = VALUE", "[httpdns]\ntoken = [\nVALUE\n]",
            "[httpdns]\ntoken = 'x' VALUE", "[httpdns]\ntoken VALUE", "[httpdns]\ntoken = \"x\"\nVALUE",
            "[httpdns]\ntoken = \"x\n[tls]", "[httpdns]\ntoken = \"\"\"\nVALUE",
        ])
    func noSecret(_ text: String) {
        for value in ["0x1234567890abcdefghi", "99999999999999999999", "S3cr3t-S3cr3t", "1979-05-27T07:32:99", "tru3e"]
        {
            let message = message(text.replacing("VALUE", with: value))
            #expect(!message.contains(value.prefix(5)) && !message.contains(value.suffix(5)), "\(message)")
        }
    }

    @Test("no wrong type repeats a secret", arguments: ["token", "dnsKey"])
    func wrongTypeOfSecret(_ key: String) {
        for value in ["1234567", "1234567.5", "['1234567']", "{ a = '1234567' }"] {
            #expect(
                message("[httpdns]\n\(key) = \(value)")
                    == "test.toml:2: httpdns.\(key): what is not a string is not right; give a string")
        }
    }

    @Test(
        "a section has a name",
        arguments: ["[.a]", "[=", "[\n", "[[\n", "[[[a]]]", "[#]", "[ ,", "[é]", "\u{FEFF}[.a]", "[log]\n[.a]"])
    func namelessHeader(_ text: String) {
        let line = text.hasPrefix("[log]") ? 2 : 1
        #expect(
            message(text)
                == "test.toml:\(line): syntax: a section without a name is invalid; give a section such as [listen]")
    }

    @Test("a key that is not plain text stays on one line")
    func strangeKeys() {
        #expect(
            message("[listen]\n\"a\\nb: c\" = 1").hasPrefix(
                "test.toml:2: \"listen.a\\nb: c\": unknown key in version \(Version.current); "))
        #expect(message("\"\" = 1").hasPrefix("test.toml:1: \"\": unknown key in version \(Version.current); "))
    }

    @Test("a section in quotes is not that of a group")
    func quotedSection() {
        #expect(
            message("['upstreams.a']\nservers = ['::1']").contains(": unknown section in version \(Version.current); "))
    }

    @Test("a key of more names, or a list in more lists, than any setting has is refused", arguments: [9, 300_000])
    func nesting(_ count: Int) {
        for name in ["a", "'a'", "\"b\" "] {
            let key = Array(repeating: name, count: count).joined(separator: ".")
            for text in ["\n[\(key)]", "[listen]\n\(key) = 1"] {
                #expect(
                    message(text) == "test.toml:2: syntax: more than 8 names in a key; give one such as listen.workers")
            }
            #expect(message("listen = { \(key) = 1 }").hasPrefix("test.toml:1: listen: more than 8 names in a key; "))
        }
        for open in ["[", "{ a = ", "[{ a = "] {
            let text = "[listen]\nallow = " + String(repeating: open, count: count)
            #expect(message(text).contains(": more than 8 lists in each other; give one, such as [\"text\"]"))
        }
    }

    @Test("a byte order mark is no part of the first key")
    func byteOrderMark() throws {
        #expect(try load("\u{FEFF}[listen]\nworkers = 2").listen.workers == 2)
        #expect(message("\u{FEFF}[listen]\nworkers = 9").hasPrefix("test.toml:2: listen.workers:"))
        #expect(message("\u{FEFF}[lisen]").hasPrefix("test.toml:1: lisen: unknown section"))
    }

    @Test("the line of a key is found behind strings, lists and comments that look like keys")
    func lines() {
        let text = """
            # [listen]
            # workers = 9
            [domains] # [listen]
            intercept = [ # workers = 9
                "a", # ]
                'b',
                \"""
            c\""", '''
            workers''',
            ]
            bypass = ["a\\u0022]"  , # "
            ]

              [ "listen" ] # a comment
              'tcpClients' = 5
            \tworkers\t= 9
            """
        let accepted = text.replacing("[\"a\\u0022]\"  , # \"\n]", with: "[\"x\"  , # \"\n]")
        #expect(message(accepted).hasPrefix("test.toml:16: listen.workers: 9 is not right"), "\(message(accepted))")
        #expect(message(text).hasPrefix("test.toml:11: domains.bypass: \"a\\\"]\" is not right"), "\(message(text))")
    }

    @Test("no text makes the reader fail otherwise than with an error on one line of the text")
    func hostileText() {
        var random = Chance.announced("SyntaxErrorTests.hostileText")
        let pieces = [
            "[", "]", "[[", "{", "}", "\"", "'", "\"\"\"", "'''", "\\", "#", "=", ".", ",", "\n", "\r\n", " ", "\t",
            "a", "listen",
            "workers", "httpdns", "token", "1", "0x", "true", "\u{1}", "é", "[listen]\n", "workers = 1\n", "\\u0041",
            "1979-05-27", "T07:32:00", ":", "-", "_", "Z", "e", "9",
        ]
        for _ in 0..<5_000 {
            var text = ""
            for _ in 0..<Int.random(in: 0...24, using: &random) { text += pieces.randomElement(using: &random)! }
            do {
                _ = try Settings.load(file: "f", contents: text, environment: [:], readFile: { _ in FileReading(nil) })
            } catch {
                let lineCount = text.utf8.filter { $0 == 10 }.count + 1
                #expect((1...lineCount).contains(error.line), "\(error) in \(text.debugDescription)")
                #expect(!"\(error)".unicodeScalars.contains("\n"))
                #expect(!error.key.isEmpty, "\(text.debugDescription)")
            }
        }
    }

    @Test(
        "an entry of rank is a name and a port",
        arguments: [
            "www.example.com", "www.example.com:", "www.example.com:0", "www.example.com:65536",
            "www.example.com:https",
            "www.example.com:443:443", ":443", "", ".:443", "*.example.com:443", "www.exa mple.com:443",
            "192.0.2.1:443",
            "[2001:db8::1]:443", "2001:db8::1", "https://www.example.com:443",
        ])
    func rank(_ entry: String) {
        #expect(
            message("[cache]\nrank = ['\(entry)']")
                == "test.toml:2: cache.rank: \"\(entry)\" is not right; give NAME:PORT, such as \"www.example.com:443\", which "
                + "stands for the names under it too")
    }

    @Test func everyMistakeIsFoundInTheOrderOfTheLines() {
        let text = """
            [upstreams.a]
            servers = [1]
            domains = ["x..y"]
            [nowhere]
            anything = 1
            [upstreams.A]
            servers = "x"
            [cache]
            minTTL = -1
            """
        let mistakes = Settings.mistakes(
            file: "f", contents: text, environment: ["HTTPDNSD_CACHE_MAXTTL": "x", "HTTPDNSD_NOTHING": "1"])
        #expect(
            mistakes.map { "\($0.line) \($0.key)" } == [
                "2 upstreams.a.servers", "3 upstreams.a.domains", "4 nowhere", "6 upstreams.A", "9 cache.minTTL",
                "0 HTTPDNSD_CACHE_MAXTTL", "0 HTTPDNSD_NOTHING",
            ])
        #expect(Settings.mistakes(file: nil, contents: "", environment: [:]).isEmpty)
    }
}
