import Testing

@testable import Configuration

/// Words of other programs' configurations.
@Suite struct ForeignTests {
    @Test func keysOfOtherProgramsAreKnown() {
        #expect(ForeignKeys.names.count > 200 && Set(ForeignKeys.names).count == ForeignKeys.names.count)
        for name in ForeignKeys.names {
            let known = Key<Settings>.all.map(\.name) + Key<Settings.Group>.ofGroup.map(\.name)
            #expect(ForeignKeys.meaning(of: name) != nil, "\(name)")
            #expect(known.contains(name) == false || ["upstreams"].contains(name), "\(name) is a key here")
        }
    }

    /// What is said of a key that is not known, behind the version.
    private func said(_ text: String) -> String? {
        Settings.mistakes(file: "f", contents: text, environment: [:]).first.map {
            String("\($0)".split(separator: "; ", maxSplits: 1).last ?? "")
        }
    }

    @Test(arguments: [
        ("[cache]\ncache-size = 1000", "cache.megabytes"), ("[fallback]\nupstream_dns = []", "servers of [fallback]"),
        ("[upstreams.a]\nblock_ipv6 = true", "without = [\"AAAA\"]"), ("cname = 'a'", "alias or answer"),
        ("[domains]\nbogus-priv = true", "[private]"), ("[listen]\nBind-TLS = ':853'", "listen.tls"),
    ])
    func whatTheyAreHereIsSaid(_ text: String, _ meant: String) {
        #expect(said(text)?.contains("here it is " + meant) ?? false, "\(said(text) ?? "nothing")")
    }

    @Test(arguments: [
        ("/etc/coredns/Corefile", ".:53 {\n    forward . 192.0.2.1\n    cache 30\n}\n", "CoreDNS"),
        ("smartdns.conf", "bind [::]:53\nserver 192.0.2.1\nserver-tls 192.0.2.2\n", "smartdns"),
        ("/tmp/x", "bind [::]:53\nserver-tls 192.0.2.2\naddress /ads.example/#\n", "smartdns"),
        ("dnsmasq.conf", "# dnsmasq\nno-resolv\nserver=192.0.2.1\n", "dnsmasq"),
        ("x.conf", "server=/a.example/192.0.2.1\nserver=/b.example/192.0.2.1\n", "dnsmasq"),
        ("stubby.yml", "resolution_type: GETDNS_RESOLUTION_STUB\nround_robin_upstreams: 1\n", "stubby"),
        ("unbound.conf", "server:\n  interface: 127.0.0.1\nforward-zone:\n  forward-addr: 192.0.2.1\n", "unbound"),
        ("dnscrypt-proxy.toml", "server_names = ['x']\nlisten_addresses = ['127.0.0.1:53']\n", "dnscrypt-proxy"),
        ("AdGuardHome.yaml", "dns:\n  bind_hosts:\n    - 0.0.0.0\n  upstream_dns:\n", "AdGuard Home"),
        ("resolved.conf", "[Resolve]\nDNS=192.0.2.1\n", "systemd-resolved"),
        ("nextdns.conf", "profile abcdef\nreport-client-info true\n", "nextdns"),
    ])
    func aFileOfAnotherProgramIsKnown(_ path: String, _ contents: String, _ program: String) {
        let remark = ForeignFile.remark(path, contents)
        #expect(remark?.contains("is a configuration of \(program), ") ?? false, "\(remark ?? "nothing")")
        #expect(remark?.contains("docs/migrating.md") ?? false)
    }

    @Test(arguments: [
        "[listen]\nadress = []\n[fallback]\nservers = ['192.0.2.1']\nhosts = ''\n", "", "<html>\n<body>\n",
        "key: value\n",
        "[upstreams.a]\nservers = []\ndomainsFile = 'x'\nanswer = 'nxdomain'\n[cache]\nfile = 'x'\n[log]\nlevel = 'x'\n",
    ])
    func anyOtherFileIsNone(_ contents: String) {
        #expect(ForeignFile.remark("httpdnsd.toml", contents) == nil)
    }
}
