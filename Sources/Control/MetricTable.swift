import Base
import Counters
import DNSCache
import Forwarding
import Transport

/// All metrics.
extension Metric {
    static let all = Array(
        [
            general, ofQuestions, ofCache, ofSharedCache, ofServers, ofGroups, counted(.servers), ofLookups,
            counted(.questions), ofAnswers, counted(.connections), ofProcess,
        ].joined())

    private static let general: [Metric] = [
        each("httpdnsd_build_info", ["version"], "1, with the version as a label") { _ in
            [([Version.current], 1)]
        },
        one("httpdnsd_ready", "1 while a question can be expected to be answered, as /readyz says") {
            $0.isReady ? 1 : 0
        },
        one("httpdnsd_main_up", "0 while the last attempt at each server that /readyz judges has failed") {
            $0.areAllFailing ? 0 : 1
        },
    ]

    private static let ofQuestions: [Metric] = [
        each(
            "httpdnsd_dns_requests_total", ["proto", "family", "type"],
            "Questions of clients, by transport, IP version of the client, and type"
        ) {
            $0.listeners.flatMap { transport, counts -> Samples<UInt64> in
                [true, false].flatMap { isIPv4 -> Samples<UInt64> in
                    counts.questions(fromIPv4: isIPv4).enumerated().map { kind, count in
                        ([transport.rawValue, isIPv4 ? "1" : "2", QuestionKind.names[kind]], count)
                    }
                }
            }
        },
        each("httpdnsd_dns_responses_total", ["rcode"], "Answers to clients, by response code") {
            $0.counts.responses.enumerated().map { ([ResponseKind.name($0)], $1) }
                .filter { $1 > 0 || !$0[0].hasPrefix("RCODE") }
        },
        histogram("httpdnsd_dns_request_duration_seconds", [], "Time from the arrival of a question to its answer") {
            [([], $0.durations)]
        },
    ]

    private static let ofCache: [Metric] = [
        one("httpdnsd_cache_entries", "Answers in the cache, expired ones included", \.cache.entries),
        one("httpdnsd_cache_bytes", "Memory that the answers in the cache take", \.cache.bytes),
        one("httpdnsd_cache_limit_bytes", "Memory that the cache may take", \.cacheLimit),
        one("httpdnsd_cache_hits_total", "Questions answered from the cache", \.cache.hits),
        one("httpdnsd_cache_misses_total", "Questions that the cache had no answer to", \.cache.misses),
        one(
            "httpdnsd_cache_evictions_total", "Answers removed from the cache to make room for newer ones",
            \.cache.evictions),
        one(
            "httpdnsd_cache_served_stale_total", "Expired answers given to clients because no server answered",
            \.counters.servedStale),
        one("httpdnsd_cache_prefetch_total", "Answers looked up again before their end, as clients ask for them") {
            $0.counts[.refreshed]
        },
    ]

    private static let ofSharedCache: [Metric] = [
        shared("httpdnsd_shared_cache_up", "0 while the shared cache is not in use") { $0.isOn ? 1 : 0 },
        shared(
            "httpdnsd_shared_cache_reads_total", ["result"],
            "Reads of the shared cache, by result: hit, miss (nothing that may be given), or failed"
        ) {
            let (reads, hits, failures) = ($0.counters.reads, $0.counters.hits, $0.counters.failures)
            return [(["hit"], hits), (["failed"], failures), (["miss"], reads - hits - failures)]
        },
        shared(
            "httpdnsd_shared_cache_late_total",
            "Reads of the shared cache that took longer than a question waits for it", \.counters.late),
        shared(
            "httpdnsd_shared_cache_writes_total", ["result"],
            "Writes to the shared cache, by result: written, failed, or dropped because too many waited"
        ) {
            let counters = $0.counters
            return [
                (["written"], counters.writes), (["failed"], counters.writesFailed), (["dropped"], counters.dropped),
            ]
        },
        shared(
            "httpdnsd_shared_cache_refused_total",
            "Entries deleted because no daemon of this fleet sealed them, or because they are not answers",
            \.counters.refused),
        shared(
            "httpdnsd_shared_cache_future_total",
            "Entries ignored because they are from the future: the clock of a machine is wrong", \.counters.ignored),
        shared(
            "httpdnsd_shared_cache_leases_lost_total",
            "Refreshes left out because another daemon of the fleet does them", \.counters.leasesLost),
        shared(
            "httpdnsd_shared_cache_outages_total", "Times that the use of the shared cache was ended",
            \.counters.outages),
        shared("httpdnsd_shared_cache_wait_seconds", "Longest time that a question waits for the shared cache") {
            $0.isOn ? Double($0.budget) / 1000 : 0
        },
    ]

    private static let ofServers: [Metric] = [
        histogram(
            "httpdnsd_server_request_duration_seconds", ofServer + ["rcode"],
            "Time from a request to this server to its answer; what HTTPDNS refuses, or cannot be read, counts as SERVFAIL"
        ) {
            $0.ofServers { server in
                server.figures.durations.sorted { $0.key < $1.key }.map { ([ResponseKind.name($0.key)], $0.value) }
            }
        },
        server(
            "httpdnsd_server_requests_total", ["connection"],
            "Requests over connections, by whether one was open or a new one was needed"
        ) { $0.figures.connections.map { [(["open"], $0.reused), (["new"], $0.fresh)] } ?? [] },
        server(
            "httpdnsd_server_up",
            "0 while the last attempt at this server failed, or other servers are asked before it for having failed or refused"
        ) { $0.standing.isWell ? 1 : 0 },
        server("httpdnsd_server_in_use", "1 for the server of its group that is asked first") { $0.isInUse ? 1 : 0 },
        server("httpdnsd_server_failures_total", "Attempts at this server that failed", \.health.failures),
        server("httpdnsd_server_failing", ["reason"], "1 while the last attempt at this server failed for this reason")
        { server in
            FallbackReason.failures.map { ([$0.label], server.isFailing && $0 == server.last?.kind ? 1 : 0) }
        },
        server("httpdnsd_server_round_trip_seconds", "Smoothed time to an answer of this server") {
            $0.health.roundTrip.map { $0 / 1000 }
        },
        server(
            "httpdnsd_server_certificate_expiry_seconds",
            "Time until the certificate expires that this server showed at the last handshake", \.certificateSeconds),
    ]

    private static let ofGroups: [Metric] = [
        group("httpdnsd_group_questions_total", "Questions that came to this group", \.counters.questions),
        group(
            "httpdnsd_group_queries_total", "Requests and queries to the servers of this group, repeated ones included"
        ) { $0.counters.queries + $0.counters.repeats },
        group(
            "httpdnsd_group_repeats_total",
            "Queries that were asked once more since their server was silent, or the network had changed; not those whose connection ended",
            \.counters.repeats),
        group("httpdnsd_group_failures_total", "Requests and queries to this group that failed", \.counters.failures),
        group(
            "httpdnsd_group_names_total",
            "Names in requests that an HTTPDNS account was sent, counted each time: it is billed for at most these"
        ) {
            $0.isAccount ? $0.counters.names : nil
        },
        each("httpdnsd_fallbacks_total", ["reason"], "Questions for HTTPDNS that another group was asked, by reason") {
            overview in FallbackReason.allCases.map { ([$0.label], overview.counters.fallbacks(because: $0)) }
        },
    ]

    private static let ofLookups: [Metric] = [
        one("httpdnsd_lookups_in_flight", "Lookups under way", \.flights),
        one("httpdnsd_lookups_joined_total", "Questions that waited for the answer to an equal one", \.counters.joined),
        one(
            "httpdnsd_lookups_overdue_total", "Lookups that took too long: clients got an expired answer or SERVFAIL",
            \.counters.overdue),
        one(
            "httpdnsd_short_total",
            "Queries that could not be sent because this machine was short of something, such as descriptors or ports",
            \.counters.short),
        each(
            "httpdnsd_lookups_sent_total", ["way"],
            "Lookups that were sent to a server, by the least protected way in which they were sent"
        ) {
            let counters = $0.counters
            return [
                (["encrypted"], counters.sentEncrypted), (["loopback"], counters.sentToLoopback),
                (["clear"], counters.sentInClear),
            ]
        },
        each("httpdnsd_refused_total", ["limit"], "Questions and connections refused because of a limit") {
            let (counters, counts) = ($0.counters, $0.counts)
            return [
                (["lookups"], counters.refusedFlights), (["waiting"], counters.refusedWaiting),
                (["queue"], counts[.noRoom]), (["plan"], counters.pastPlan),
                (["no_record_names"], counters.pastNoRecordBudget), (["tcp_clients"], counts[.refused]),
                (["tcp_clients_of_source"], counts[.refusedOfOneSource]),
            ]
        },
    ]

    private static let ofAnswers: [Metric] = [
        one(
            "httpdnsd_private_addresses_refused_total",
            "Answers that private addresses were removed from (domains.privateAddresses)", \.counters.withoutPrivate),
        each(
            "httpdnsd_rank_connections_total", ["result"],
            "Connections made to addresses to find out which answers first (cache.rank)"
        ) { [(["answered"], $0.counters.rankAnswered), (["failed"], $0.counters.rankFailed)] },
    ]

    private static let ofProcess: [Metric] = [
        each(
            "httpdnsd_listen_certificate_expiry_seconds", [],
            "Time until the certificate ends that clients are shown over TLS and HTTPS (listen.certificateFile)"
        ) { overview in overview.certificate.map { [([], $0.secondsLeft(at: overview.now))] } ?? [] },
        each("httpdnsd_config_reloads_total", ["result"], "Reloads of the configuration, by result") {
            [(["success"], $0.reloads.succeeded), (["failure"], $0.reloads.failed)]
        },
        one(
            "httpdnsd_config_last_reload_successful",
            "0 after a reload that found the configuration wrong: the settings of before are in effect"
        ) { $0.reloads.lastFailure == nil ? 1 : 0 },
        one(
            "httpdnsd_config_last_reload_success_timestamp_seconds",
            "When the settings in effect were read, in seconds since 1970", \.reloads.lastSuccess),
        one(
            "httpdnsd_log_lines_lost_total", "Lines of the log that were lost because they were not read in time",
            \.logLinesLost),
        one("process_cpu_seconds_total", "User and system time of the processor", \.process.cpuSeconds),
        one("process_resident_memory_bytes", "Resident memory", \.process.residentBytes),
        one("process_virtual_memory_bytes", "Virtual memory", \.process.virtualBytes),
        one("process_open_fds", "Open file descriptors", \.process.descriptors),
        one("process_max_fds", "Most file descriptors that may be open", \.process.maximumDescriptors),
        one("process_start_time_seconds", "When the daemon started, in seconds since 1970", \.startedAt),
    ]

    /// The metrics of ``Counted`` that are about one subject.
    private static func counted(_ subject: Counted.Subject) -> [Metric] {
        var metrics: [Counted.Metric] = []
        for case let metric? in Counted.allCases.map(\.row.metric) where metric.subject == subject {
            if metric != metrics.last { metrics.append(metric) }
        }
        return metrics.map { metric in
            let events = Counted.allCases.filter { $0.row.metric == metric }
            let reason = events[0].row.labels.isEmpty ? [] : ["reason"]
            guard subject == .connections else {
                return each(metric.name, reason, metric.help) { overview -> Samples<UInt64> in
                    events.map { ($0.row.labels, overview.counts[$0]) }
                }
            }
            return each(metric.name, ["proto"] + reason, metric.help) { overview -> Samples<UInt64> in
                overview.listeners.flatMap { transport, counts -> Samples<UInt64> in
                    events.filter { $0.isCounted(over: transport) }
                        .map { ([transport.rawValue] + $0.row.labels, counts[$0]) }
                }
            }
        }
    }
}
