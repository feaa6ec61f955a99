/// One metric of `/metrics`: its name, kind and labels never change. docs/metrics.md has them all.
struct Metric: Sendable {
    enum Kind: String, Sendable {
        case counter, gauge, histogram
    }

    let name: String
    let kind: Kind
    let labels: [String]
    /// One line for an operator.
    let help: String

    private init(_ name: String, _ kind: Kind, _ labels: [String] = [], _ help: String) {
        (self.name, self.kind, self.labels, self.help) = (name, kind, labels, help)
    }
}

extension Metric {
    static let buildInfo = Metric("httpdnsd_build_info", .gauge, ["version"], "1, with the version.")
    static let ready = Metric("httpdnsd_ready", .gauge, "Whether a question could be answered now, as /readyz says.")

    static let requests = Metric(
        "httpdnsd_dns_requests_total", .counter, ["proto", "family", "type"],
        "Questions, by udp or tcp, IP version of the client, and type.")
    static let responses = Metric(
        "httpdnsd_dns_responses_total", .counter, ["rcode"], "Answers to clients, by response code.")
    static let durations = Metric(
        "httpdnsd_dns_request_duration_seconds", .histogram, "From a question's arrival to its answer.")

    static let cacheEntries = Metric("httpdnsd_cache_entries", .gauge, "Answers in the cache, stale ones included.")
    static let cacheBytes = Metric("httpdnsd_cache_bytes", .gauge, "Memory these answers take.")
    static let cacheLimit = Metric("httpdnsd_cache_limit_bytes", .gauge, "Memory the cache may take.")
    static let cacheHits = Metric("httpdnsd_cache_hits_total", .counter, "Questions answered from the cache.")
    static let cacheMisses = Metric("httpdnsd_cache_misses_total", .counter, "Questions the cache had no answer to.")
    static let cacheEvictions = Metric(
        "httpdnsd_cache_evictions_total", .counter, "Answers that made room for newer ones.")
    static let servedStale = Metric(
        "httpdnsd_cache_served_stale_total", .counter, "Expired answers given because nothing better came.")
    static let prefetches = Metric(
        "httpdnsd_cache_prefetch_total", .counter, "Answers refreshed before their end because they were asked for.")

    static let upstreamDurations = Metric(
        "httpdnsd_proxy_request_duration_seconds", .histogram, ["to", "rcode"],
        "From a request to a server to its answer; SERVFAIL also for what HTTPDNS refuses or garbles.")
    static let connectionHits = Metric(
        "httpdnsd_proxy_conn_cache_hits_total", .counter, ["to", "proto"],
        "HTTPDNS requests that found an open connection.")
    static let connectionMisses = Metric(
        "httpdnsd_proxy_conn_cache_misses_total", .counter, ["to", "proto"],
        "HTTPDNS requests that needed a new connection.")
    static let healthy = Metric(
        "httpdnsd_proxy_healthy", .gauge, ["to", "kind"],
        "0: the last attempt at this server failed; kind is httpdns or resolver.")
    static let inUse = Metric("httpdnsd_proxy_in_use", .gauge, ["to"], "1: the HTTPDNS server that is asked now.")
    static let failures = Metric(
        "httpdnsd_proxy_failures_total", .counter, ["to", "kind"], "Failed attempts at this server.")
    static let roundTrip = Metric(
        "httpdnsd_proxy_round_trip_seconds", .gauge, ["to", "kind"], "Smoothed time to an answer of this server.")

    static let serviceRequests = Metric("httpdnsd_httpdns_requests_total", .counter, "Requests to HTTPDNS.")
    static let serviceNames = Metric(
        "httpdnsd_httpdns_names_total", .counter, "Names in these requests: what an account is billed for.")
    static let resolverQueries = Metric("httpdnsd_resolver_queries_total", .counter, "Queries to local resolvers.")
    static let resolverRepeats = Metric(
        "httpdnsd_resolver_repeats_total", .counter, "Queries asked again of a resolver that was silent.")
    static let fallbacks = Metric(
        "httpdnsd_fallbacks_total", .counter, ["reason"],
        "Questions for HTTPDNS that a local resolver was asked, by reason.")
    static let mismatches = Metric(
        "httpdnsd_resolver_mismatches_total", .counter, ["reason"],
        "Messages to a query's port that were not its answer: somebody may be guessing.")

    static let flights = Metric("httpdnsd_lookups_in_flight", .gauge, "Questions being looked up.")
    static let joined = Metric(
        "httpdnsd_lookups_joined_total", .counter, "Questions that waited for an equal one's answer.")
    static let overdue = Metric(
        "httpdnsd_lookups_overdue_total", .counter, "Lookups whose clients were answered because time ran out.")
    static let refused = Metric(
        "httpdnsd_refused_total", .counter, ["limit"], "Questions and connections past a limit.")
    static let withoutPrivate = Metric(
        "httpdnsd_private_addresses_refused_total", .counter,
        "Answers of upstreams that private addresses were taken out of (domains.privateAddresses).")
    static let tcpClients = Metric("httpdnsd_tcp_clients", .gauge, "Open TCP connections of clients.")

    static let tcpAccepted = Metric("httpdnsd_tcp_accepted_total", .counter, "TCP connections taken on.")
    static let tcpClosed = Metric(
        "httpdnsd_tcp_closed_total", .counter, ["reason"], "TCP connections that the daemon ended.")

    static let reloads = Metric(
        "httpdnsd_config_reloads_total", .counter, ["result"], "Configurations read again, by success or failure.")
    static let lastReload = Metric(
        "httpdnsd_config_last_reload_successful", .gauge, "0: the last configuration read again was wrong.")
    static let lastReloadTime = Metric(
        "httpdnsd_config_last_reload_success_timestamp_seconds", .gauge,
        "When the settings in effect were read, since 1970.")

    static let logLinesLost = Metric(
        "httpdnsd_log_lines_lost_total", .counter, "Lines of the log that nobody took in time.")

    static let cpu = Metric("process_cpu_seconds_total", .counter, "User and system time.")
    static let resident = Metric("process_resident_memory_bytes", .gauge, "Resident memory.")
    static let virtual = Metric("process_virtual_memory_bytes", .gauge, "Virtual memory.")
    static let descriptors = Metric("process_open_fds", .gauge, "Open file descriptors.")
    static let maximumDescriptors = Metric("process_max_fds", .gauge, "The most there may be.")
    static let started = Metric("process_start_time_seconds", .gauge, "When the daemon started, since 1970.")

    private init(_ name: String, _ kind: Kind, _ help: String) { self.init(name, kind, [], help) }
}
