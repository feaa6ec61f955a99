/// A configuration file of another program, recognised by the first words of its lines.
public enum ForeignFile {
    /// A remark on the program that an invalid file belongs to; nil: none is recognised.
    /// - Parameters:
    ///   - path: Its last component may be the usual name of such a file.
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
        let title: String
        /// The usual names of its file.
        let files: [String]
        /// Beginnings of lines that no other program has.
        let signs: [String]
    }

    /// The number of lines that are this program's alone. The file's name counts as two lines, and only if there is one
    /// line.
    private static func rank(_ program: Program, _ name: String, _ lines: [Substring]) -> Int {
        let count = lines.count { line in program.signs.contains { line.hasPrefix($0) } }
        return count > 1 || count > 0 && program.files.contains(name)
            ? count + (program.files.contains(name) ? 2 : 0) : 0
    }

    private static let programs = [
        Program(
            title: "CoreDNS", files: ["Corefile"],
            signs: [
                ".:", ". {", "forward .", "cache {", "errors", "health", "kubernetes ", "reload", "loadbalance",
                "prometheus",
            ]),
        Program(
            title: "smartdns", files: ["smartdns.conf"],
            signs: [
                "server ", "server-tls ", "server-https ", "server-tcp ", "bind ", "bind-", "nameserver /", "address /",
                "domain-",
                "speed-check-mode ", "force-AAAA-SOA", "rr-ttl", "cache-size ", "conf-file ", "serve-expired ",
                "prefetch-domain ",
                "group-begin", "dualstack-ip-selection ",
            ]),
        Program(
            title: "dnsmasq", files: ["dnsmasq.conf"],
            signs: [
                "server=", "local=", "address=", "no-resolv", "bogus-priv", "domain-needed", "cache-size=",
                "listen-address=",
                "addn-hosts=", "bogus-nxdomain=", "dhcp-", "cname=", "conf-dir=", "resolv-file=", "rev-server=",
                "expand-hosts",
            ]),
        Program(
            title: "stubby", files: ["stubby.yml"],
            signs: [
                "resolution_type:", "dns_transport_list:", "upstream_recursive_servers:", "- address_data:",
                "tls_auth_name:",
                "tls_authentication:", "round_robin_upstreams:",
            ]),
        Program(
            title: "unbound", files: ["unbound.conf"],
            signs: [
                "forward-zone:", "forward-addr:", "stub-zone:", "access-control:", "interface:", "local-zone:",
                "local-data:",
                "private-address:", "msg-cache-size:", "auto-trust-anchor-file:", "forward-tls-upstream:",
                "remote-control:",
            ]),
        Program(
            title: "dnscrypt-proxy", files: ["dnscrypt-proxy.toml"],
            signs: [
                "server_names", "listen_addresses", "[sources", "[static", "bootstrap_resolvers", "require_",
                "dnscrypt_servers",
                "doh_servers", "lb_strategy", "[anonymized_dns", "forwarding_rules", "cloaking_rules", "[blocked_names",
            ]),
        Program(
            title: "AdGuard Home", files: ["AdGuardHome.yaml"],
            signs: [
                "upstream_dns:", "bind_hosts:", "schema_version:", "blocking_mode:", "querylog:", "whitelist_filters:",
                "safe_search:", "bootstrap_dns:", "filtering:", "user_rules:",
            ]),
        Program(
            title: "dnsproxy", files: ["dnsproxy.yaml"],
            signs: ["listen-addrs:", "listen-ports:", "upstream:", "ipv6-disabled:", "hosts-files:", "upstream-mode:"]),
        Program(
            title: "systemd-resolved", files: ["resolved.conf"],
            signs: [
                "[Resolve]", "DNS=", "FallbackDNS=", "Domains=", "DNSOverTLS=", "DNSSEC=", "LLMNR=", "DNSStubListener",
            ]),
        Program(
            title: "cloudflared", files: ["config.yml"],
            signs: ["proxy-dns:", "proxy-dns-", "tunnel:", "credentials-file:"]),
        Program(
            title: "nextdns", files: ["nextdns.conf"],
            signs: [
                "profile ", "config ", "report-client-info ", "detect-captive-portals ", "setup-router ",
                "auto-activate ",
            ]),
    ]
}
