/// Keys of other programs and their equivalents here, for messages about unknown keys: operators copy keys from another
/// program's file, or remember them. Details: `docs/migrating.md`.
enum ForeignKeys {
    /// A message with the equivalent of another program's key; nil: the key is unknown. Case, `-` and `_` are ignored.
    static func meaning(of name: String) -> String? {
        let wanted = plain(name)
        for line in table.split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2, parts[0].split(separator: " ").contains(where: { plain($0) == wanted }) else {
                continue
            }
            let words = parts[1].drop { $0 == " " }
            return "another program's key; here it is " + words + " (docs/migrating.md)"
        }
        return nil
    }

    /// All keys, as other programs write them.
    static var names: [String] {
        table.split(separator: "\n").flatMap { $0.prefix { $0 != ":" }.split(separator: " ") }.map(String.init)
    }

    private static func plain(_ name: some StringProtocol) -> String {
        name.lowercased().filter { $0 != "-" && $0 != "_" }
    }

    /// Each line: the keys of other programs, and their equivalent here.
    private static let table = """
        cache-size cachesize msg-cache-size rrset-cache-size cache-max-size: cache.megabytes, in memory instead of entries
        min-cache-ttl rr-ttl-min cache_min_ttl cache_ttl_min cache-min-ttl min_ttl: cache.minTTL
        max-cache-ttl max-ttl rr-ttl-max cache_max_ttl cache_ttl_max cache-max-ttl cache-max-age: cache.maxTTL
        neg-ttl cache-max-negative-ttl cache_neg_max_ttl denial: cache.negativeTTL, where no SOA says otherwise
        cache_neg_min_ttl: cache.negativeMinTTL
        use-stale-cache serve-expired serve_expired serve-expired-ttl cache_optimistic serve_stale: cache.staleSeconds
        serve-expired-reply-ttl: cache.staleTTL
        prefetch prefetch-domain prefetch-key: cache.prefetchAt, of all names that are asked for again
        cache-persist cache_file: cache.file
        speed-check-mode response-mode dualstack-ip-selection fastest_timeout fastest-addr: cache.rank, for names that it lists
        upstream upstreams upstream_dns upstream_dns_file upstream_recursive_servers address_data forward forward-addr nameserver nameservers \
        server-tls server-https server-tcp proxy_servers dns: servers of [fallback], or of a group of [upstreams.NAME]
        server_names sources static require_dnssec require_nolog require_nofilter refresh_delay: servers, with stamps or addresses; no list of servers is downloaded
        fallback_dns fallbackdns fallback_resolvers forward-first: a group that thenTry names
        forward-zone stub-zone rev-server conditional_forwarding forwarding_rules forwarders forwarder: [upstreams.NAME] with servers and domains
        domain-set domain-rules conditionalmapping: domains or domainsFile of [upstreams.NAME]
        server-quic server-h3 quic-port port_dns_over_quic http3 dnscrypt_servers odoh_servers anonymized_dns dnscrypt-port: not there: DNS over TLS and HTTPS alone
        bootstrap bootstrap_dns bootstrap_resolvers bootstrap-dns bootstrapdns ignore_system_dns netprobe_address: the addresses behind "#" in servers
        tls_auth_name tls-host-verify host-name tls-server-name server-name servername tls_servername: the name behind "#" in servers
        forward-tls-upstream tls-upstream force_tcp dnsovertls dns_transport_list tls_authentication: "tls://", "tcp://" or "https://" before a server
        tls_pubkey_pinset spki-pin pinset: pins of the group, with "sha256/"
        tls-cert-bundle tls_ca_file ca-cert: caFile of the group
        no-check-certificate insecure insecure_skip_verify: validateDomain = false with a caFile
        doh_client_x509_auth client-cert: clientCertificate of the group
        bogus-nxdomain bogus_nxdomain blocked_ips blacklist-ip ignore-ip: bogusAddresses of [fallback] or a group
        filter-aaaa filter-a filter-rr block_ipv6 aaaa_disabled ipv6-disabled force-aaaa-soa force-qtype-soa disable_ipv6: without = ["AAAA"] of [fallback], a group or an account
        cname rewrites rewrite safe_search safesearch cloaking_rules cloak customdns: alias or answer of [upstreams.NAME]
        local local-zone address-record block_names blocked_names filters user_rules blocklist blacklists denylists blacklist blacklist_file blocking: [upstreams.NAME] with answer and domainsFile
        blocking_mode blocked_response_ttl blocktype blocked_services parental safebrowsing: answer of [upstreams.NAME]
        allowed_names whitelist_filters whitelist allowlist allowlists whitelists: except of the group, or "@@" rules of its list
        local-data local-data-ptr host-record hosts-file hostsfile hosts_files hostsfile_enabled hosts-file-enabled addn-hosts hostsdir use-hosts hostsfilepath: fallback.hosts
        no-hosts: fallback.hosts = ""
        no-resolv resolv-file resolv_file: fallback.resolvConf, which servers in [fallback] replace
        bogus-priv domain-needed block_unqualified block_undelegated local_ptr_upstreams private-rdns-upstream use_private_ptr_resolvers private_upstreams: [private]
        stop-dns-rebind rebind-localhost-ok private-address rebinding_protection rebind: domains.privateAddresses = "refuse"
        rebind-domain-ok private-domain: domains.privateAllowed
        edns-client-subnet edns_client_subnet add-subnet edns edns-addr ecs subnet edns_custom_ip: routeIp
        dns64 dns64-prefix dns64_prefixes use_dns64: [nat64]
        listen_addresses listen-address listen-addr listen-addrs bind bind-tcp bind_hosts bind_host interface interfaces listen-ports dnslistener: listen.addresses
        bind-tls port_dns_over_tls tls-port tlslistener: listen.tls
        bind-https port_https https-port local_doh httpslistener: listen.https
        bind-cert-file certificate_path certificate_chain tls-crt tls-service-pem cert_file certfile tls_cert: listen.certificateFile
        bind-cert-key-file private_key private_key_path tls-key tls-service-key cert_key_file: listen.keyFile
        access-control acl allowed_clients allow-query local-service disallowed_clients: listen.allow
        num-threads threads: listen.workers
        max_clients incoming-num-tcp: listen.tcpClients
        upstream_timeout query_timeout dns_timeout round_trip_timeout: timeout of the group
        limit_outstanding_queries max-inflight-requests max-concurrent max_concurrent max_goroutines: concurrency of the group
        outgoing-interface source-address query-source source: from of the group
        set-mark so-mark so_mark: mark of the group
        lb_strategy lb_estimator strict-order all-servers upstream_mode upstream-mode round_robin_upstreams load_balance policy: not there: the first of servers that works, and the next beside a slow one
        dnssec dnssec-check-unsigned enable_dnssec val-permissive-mode auto-trust-anchor-file trust-anchor domain-insecure: not there: validation; trustAD passes it on
        proxy-dnssec trust-ad: trustAD
        log-queries log_queries query_log querylog querylog_enabled nx_log audit-enable log-facility: httpdnsd watch; no questions are logged
        log-level log_level loglevel verbosity: log.level
        monitoring_ui prometheus statistics statistics-interval remote-control pprof-addr: control.metrics
        ratelimit ip-ratelimit rate_limit refuse_any: fixed: shares, which docs/answers.md describes
        ipset nftset clients client-rules dhcp-range dhcp-host dhcp-option mdns tproxy sni-proxy views rpz blocked_schedule: not there
        txt-record mx-host srv-host ptr-record auth-zone auth-server srv-record https-record zonefile: not there: zones of one's own
        local-cache accountid account_id token_id auth_id: dnsId and token, or dnsKey, of [httpdns]
        """
}
