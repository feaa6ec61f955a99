/// A configuration file of another program, recognised by the first words of its lines.
public enum ForeignFile {
    /// A remark on the program that an invalid file belongs to; nil: no program is recognised.
    /// - Parameters:
    ///   - path: Its last component may be the usual name of such a program's file.
    ///   - contents: The file's text.
    public static func remark(_ path: String, _ contents: String) -> String? {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        let lines = contents.split(whereSeparator: \.isNewline).prefix(mostLines).map {
            $0.drop { $0 == " " || $0 == "\t" }
        }
        let found = programs.max { rank($0, name, lines) < rank($1, name, lines) }
        guard let found, rank(found, name, lines) > 0 else { return nil }
        return
            "\(path) is a configuration of \(found.title), which is not read; docs/migrating.md says what each of its keys is here"
    }

    /// The number of lines examined.
    private static let mostLines = 2000

    private struct Program {
        let title: Substring
        /// The usual name of the program's file.
        let file: Substring
        /// Beginnings of lines that no other program has.
        let signs: ArraySlice<Substring>
    }

    /// The number of lines that only this program has. The file's name counts as two lines, and only if there is one
    /// line.
    private static func rank(_ program: Program, _ name: String, _ lines: [Substring]) -> Int {
        let count = lines.count { line in program.signs.contains { line.hasPrefix($0) } }
        let isNamed = program.file == name
        return count > (isNamed ? 0 : 1) ? count + (isNamed ? 2 : 0) : 0
    }

    private static let programs = table.split(separator: "\n").map { row in
        let words = row.split(separator: "|")
        return Program(title: words[0], file: words[1], signs: words[2...])
    }

    /// Each row: the program, the name of its file, and its signs, whose blanks count.
    private static let table = """
        CoreDNS|Corefile|.:|. {|forward .|cache {|errors|health|kubernetes |reload|loadbalance|prometheus
        smartdns|smartdns.conf|server |server-tls |server-https |server-tcp |bind |bind-|nameserver /|address /|\
        domain-|speed-check-mode |force-AAAA-SOA|rr-ttl|cache-size |conf-file |serve-expired |prefetch-domain |\
        group-begin|dualstack-ip-selection |
        dnsmasq|dnsmasq.conf|server=|local=|address=|no-resolv|bogus-priv|domain-needed|cache-size=|listen-address=|\
        addn-hosts=|bogus-nxdomain=|dhcp-|cname=|conf-dir=|resolv-file=|rev-server=|expand-hosts
        stubby|stubby.yml|resolution_type:|dns_transport_list:|upstream_recursive_servers:|- address_data:|\
        tls_auth_name:|tls_authentication:|round_robin_upstreams:
        unbound|unbound.conf|forward-zone:|forward-addr:|stub-zone:|access-control:|interface:|local-zone:|\
        local-data:|private-address:|msg-cache-size:|auto-trust-anchor-file:|forward-tls-upstream:|remote-control:
        dnscrypt-proxy|dnscrypt-proxy.toml|server_names|listen_addresses|[sources|[static|bootstrap_resolvers|\
        require_|dnscrypt_servers|doh_servers|lb_strategy|[anonymized_dns|forwarding_rules|cloaking_rules|\
        [blocked_names
        AdGuard Home|AdGuardHome.yaml|upstream_dns:|bind_hosts:|schema_version:|blocking_mode:|querylog:|\
        whitelist_filters:|safe_search:|bootstrap_dns:|filtering:|user_rules:
        dnsproxy|dnsproxy.yaml|listen-addrs:|listen-ports:|upstream:|ipv6-disabled:|hosts-files:|upstream-mode:
        systemd-resolved|resolved.conf|[Resolve]|DNS=|FallbackDNS=|Domains=|DNSOverTLS=|DNSSEC=|LLMNR=|\
        DNSStubListener
        cloudflared|config.yml|proxy-dns:|proxy-dns-|tunnel:|credentials-file:
        nextdns|nextdns.conf|profile |config |report-client-info |detect-captive-portals |setup-router |\
        auto-activate |
        """
}
