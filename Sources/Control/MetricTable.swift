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
        each("httpdnsd_build_info", ["version"]) { _ in [([Version.current], 1)] }
            .about("1, with the version as a label"),
        one("httpdnsd_ready") { $0.isReady ? 1 : 0 }
            .about("1 while a question can be expected to be answered, as /readyz says"),
        one("httpdnsd_main_up") { $0.areAllFailing ? 0 : 1 }
            .about("0 while the last attempt at each server that /readyz judges has failed"),
    ]

    private static let ofQuestions: [Metric] = [
        each("httpdnsd_dns_requests_total", ["proto", "family", "type"]) {
            $0.listeners.flatMap { transport, counts -> Samples<UInt64> in
                [true, false].flatMap { isIPv4 -> Samples<UInt64> in
                    counts.questions(fromIPv4: isIPv4).enumerated().map { kind, count in
                        ([transport.rawValue, isIPv4 ? "1" : "2", QuestionKind.names[kind]], count)
                    }
                }
            }
        }.about("Questions of clients, by transport, IP version of the client, and type"),
        each("httpdnsd_dns_responses_total", ["rcode"]) {
            $0.counts.responses.enumerated().map { ([ResponseKind.name($0)], $1) }
                .filter { $1 > 0 || !$0[0].hasPrefix("RCODE") }
        }.about("Answers to clients, by response code"),
        histogram("httpdnsd_dns_request_duration_seconds", []) { [([], $0.durations)] }
            .about("Time from the arrival of a question to its answer"),
    ]

    private static let ofCache: [Metric] = [
        one("httpdnsd_cache_entries", \.cache.entries).about("Answers in the cache, expired ones included"),
        one("httpdnsd_cache_bytes", \.cache.bytes).about("Memory that the answers in the cache take"),
        one("httpdnsd_cache_limit_bytes", \.cacheLimit).about("Memory that the cache may take"),
        one("httpdnsd_cache_hits_total", \.cache.hits).about("Questions answered from the cache"),
        one("httpdnsd_cache_misses_total", \.cache.misses).about("Questions that the cache had no answer to"),
        one("httpdnsd_cache_evictions_total", \.cache.evictions)
            .about("Answers removed from the cache to make room for newer ones"),
        one("httpdnsd_cache_served_stale_total", \.counters.servedStale)
            .about("Expired answers given to clients because no server answered"),
        one("httpdnsd_cache_prefetch_total") { $0.counts[.refreshed] }
            .about("Answers looked up again before their end, as clients ask for them"),
    ]

    private static let ofSharedCache: [Metric] = [
        shared("httpdnsd_shared_cache_up") { $0.isOn ? 1 : 0 }.about("0 while the shared cache is not in use"),
        shared("httpdnsd_shared_cache_reads_total", ["result"]) {
            let (reads, hits, failures) = ($0.counters.reads, $0.counters.hits, $0.counters.failures)
            return [(["hit"], hits), (["failed"], failures), (["miss"], reads - hits - failures)]
        }.about("Reads of the shared cache, by result: hit, miss (nothing that may be given), or failed"),
        shared("httpdnsd_shared_cache_late_total", \.counters.late)
            .about("Reads of the shared cache that took longer than a question waits for it"),
        shared("httpdnsd_shared_cache_writes_total", ["result"]) {
            let counters = $0.counters
            return [
                (["written"], counters.writes), (["failed"], counters.writesFailed), (["dropped"], counters.dropped),
            ]
        }.about("Writes to the shared cache, by result: written, failed, or dropped because too many waited"),
        shared("httpdnsd_shared_cache_refused_total", \.counters.refused)
            .about("Entries deleted because no daemon of this fleet sealed them, or because they are not answers"),
        shared("httpdnsd_shared_cache_future_total", \.counters.ignored)
            .about("Entries ignored because they are from the future: the clock of a machine is wrong"),
        shared("httpdnsd_shared_cache_leases_lost_total", \.counters.leasesLost)
            .about("Refreshes left out because another daemon of the fleet does them"),
        shared("httpdnsd_shared_cache_outages_total", \.counters.outages)
            .about("Times that the use of the shared cache was ended"),
        shared("httpdnsd_shared_cache_wait_seconds") { $0.isOn ? Double($0.budget) / 1000 : 0 }
            .about("Longest time that a question waits for the shared cache"),
    ]

    private static let ofServers: [Metric] = [
        histogram("httpdnsd_server_request_duration_seconds", ofServer + ["rcode"]) {
            $0.ofServers { server in
                server.figures.durations.sorted { $0.key < $1.key }.map { ([ResponseKind.name($0.key)], $0.value) }
            }
        }.about(
            "Time from a request to this server to its answer; what HTTPDNS refuses, or cannot be read, counts as SERVFAIL"
        ),
        server("httpdnsd_server_requests_total", ["connection"]) {
            $0.figures.connections.map { [(["open"], $0.reused), (["new"], $0.fresh)] } ?? []
        }.about("Requests over connections, by whether one was open or a new one was needed"),
        server("httpdnsd_server_up") { $0.standing.isWell ? 1 : 0 }
            .about(
                "0 while the last attempt at this server failed, or other servers are asked before it for having failed or refused"
            ),
        server("httpdnsd_server_in_use") { $0.isInUse ? 1 : 0 }
            .about("1 for the server of its group that is asked first"),
        server("httpdnsd_server_failures_total", \.health.failures).about("Attempts at this server that failed"),
        server("httpdnsd_server_failing", ["reason"]) { server in
            FallbackReason.failures.map { ([$0.label], server.isFailing && $0 == server.last?.kind ? 1 : 0) }
        }.about("1 while the last attempt at this server failed for this reason"),
        server("httpdnsd_server_round_trip_seconds") { $0.health.roundTrip.map { $0 / 1000 } }
            .about("Smoothed time to an answer of this server"),
        server("httpdnsd_server_certificate_expiry_seconds", \.certificateSeconds)
            .about("Time until the certificate expires that this server showed at the last handshake"),
    ]

    private static let ofGroups: [Metric] = [
        group("httpdnsd_group_questions_total", \.counters.questions).about("Questions that came to this group"),
        group("httpdnsd_group_queries_total") { $0.counters.queries + $0.counters.repeats }
            .about("Requests and queries to the servers of this group, repeated ones included"),
        group("httpdnsd_group_repeats_total", \.counters.repeats)
            .about(
                "Queries that were asked once more since their server was silent, or the network had changed; not those whose connection ended"
            ),
        group("httpdnsd_group_failures_total", \.counters.failures)
            .about("Requests and queries to this group that failed"),
        group("httpdnsd_group_names_total") { $0.isAccount ? $0.counters.names : nil }
            .about(
                "Names in requests that an HTTPDNS account was sent, counted each time: it is billed for at most these"),
        each("httpdnsd_fallbacks_total", ["reason"]) {
            overview in FallbackReason.allCases.map { ([$0.label], overview.counters.fallbacks(because: $0)) }
        }.about("Questions for HTTPDNS that another group was asked, by reason"),
    ]

    private static let ofLookups: [Metric] = [
        one("httpdnsd_lookups_in_flight", \.flights).about("Lookups under way"),
        one("httpdnsd_lookups_joined_total", \.counters.joined)
            .about("Questions that waited for the answer to an equal one"),
        one("httpdnsd_lookups_overdue_total", \.counters.overdue)
            .about("Lookups that took too long: clients got an expired answer or SERVFAIL"),
        one("httpdnsd_short_total", \.counters.short)
            .about(
                "Queries that could not be sent because this machine was short of something, such as descriptors or ports"
            ),
        each("httpdnsd_lookups_sent_total", ["way"]) {
            let counters = $0.counters
            return [
                (["encrypted"], counters.sentEncrypted), (["loopback"], counters.sentToLoopback),
                (["clear"], counters.sentInClear),
            ]
        }.about("Lookups that were sent to a server, by the least protected way in which they were sent"),
        each("httpdnsd_refused_total", ["limit"]) {
            let (counters, counts) = ($0.counters, $0.counts)
            return [
                (["lookups"], counters.refusedFlights), (["waiting"], counters.refusedWaiting),
                (["queue"], counts[.noRoom]), (["plan"], counters.pastPlan),
                (["no_record_names"], counters.pastNoRecordBudget), (["tcp_clients"], counts[.refused]),
                (["tcp_clients_of_source"], counts[.refusedOfOneSource]),
            ]
        }.about("Questions and connections refused because of a limit"),
    ]

    private static let ofAnswers: [Metric] = [
        one("httpdnsd_private_addresses_refused_total", \.counters.withoutPrivate)
            .about("Answers that private addresses were removed from (domains.privateAddresses)"),
        each("httpdnsd_rank_connections_total", ["result"]) {
            [(["answered"], $0.counters.rankAnswered), (["failed"], $0.counters.rankFailed)]
        }.about("Connections made to addresses to find out which answers first (cache.rank)"),
    ]

    private static let ofProcess: [Metric] = [
        each("httpdnsd_listen_certificate_expiry_seconds", []) { overview in
            overview.certificate.map { [([], $0.secondsLeft(at: overview.now))] } ?? []
        }.about("Time until the certificate ends that clients are shown over TLS and HTTPS (listen.certificateFile)"),
        each("httpdnsd_config_reloads_total", ["result"]) {
            [(["success"], $0.reloads.succeeded), (["failure"], $0.reloads.failed)]
        }.about("Reloads of the configuration, by result"),
        one("httpdnsd_config_last_reload_successful") { $0.reloads.lastFailure == nil ? 1 : 0 }
            .about("0 after a reload that found the configuration wrong: the settings of before are in effect"),
        one("httpdnsd_config_last_reload_success_timestamp_seconds", \.reloads.lastSuccess)
            .about("When the settings in effect were read, in seconds since 1970"),
        one("httpdnsd_log_lines_lost_total", \.logLinesLost)
            .about("Lines of the log that were lost because they were not read in time"),
        one("process_cpu_seconds_total", \.process.cpuSeconds).about("User and system time of the processor"),
        one("process_resident_memory_bytes", \.process.residentBytes).about("Resident memory"),
        one("process_virtual_memory_bytes", \.process.virtualBytes).about("Virtual memory"),
        one("process_open_fds", \.process.descriptors).about("Open file descriptors"),
        one("process_max_fds", \.process.maximumDescriptors).about("Most file descriptors that may be open"),
        one("process_start_time_seconds", \.startedAt).about("When the daemon started, in seconds since 1970"),
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
                return each(metric.name, reason) { overview -> Samples<UInt64> in
                    events.map { ($0.row.labels, overview.counts[$0]) }
                }.about(metric.help)
            }
            return each(metric.name, ["proto"] + reason) { overview -> Samples<UInt64> in
                overview.listeners.flatMap { transport, counts -> Samples<UInt64> in
                    events.filter { $0.isCounted(over: transport) }
                        .map { ([transport.rawValue] + $0.row.labels, counts[$0]) }
                }
            }.about(metric.help)
        }
    }
}
