import Base
import Counters
import DNSCache
import Forwarding
import Transport

/// One metric of `/metrics`: its name, kind and labels never change. docs/metrics.md has them all.
struct Metric: Sendable {
    enum Kind: String, Sendable {
        case counter, gauge, histogram
    }

    let name: String
    let kind: Kind
    /// One line for an operator.
    let help: String
    /// Writes the metric's samples.
    let write: @Sendable (Overview, Metric, inout MetricsText) -> Void

    /// A metric without labels.
    static func one<Number: CustomStringConvertible & SendableMetatype>(
        _ name: String, _ kind: Kind, _ help: String, _ value: @escaping @Sendable (Overview) -> Number
    ) -> Metric {
        Metric(name: name, kind: kind, help: help) { overview, metric, text in
            text.sample(metric.name, [], value(overview).description)
        }
    }

    /// A metric with a sample for each set of label values. Servers whose descriptions are the same (they differ only
    /// in parts that are left out there) are added up, since two samples with the same labels would make the page
    /// invalid.
    static func each<Number: CustomStringConvertible & Numeric & Comparable & SendableMetatype>(
        _ name: String, _ kind: Kind, _ labels: [String], _ help: String,
        _ samples: @escaping @Sendable (Overview) -> [([String], Number)]
    ) -> Metric {
        Metric(name: name, kind: kind, help: help) { overview, metric, text in
            for (values, number) in merged(samples(overview), kind == .counter ? { $0 + $1 } : { max($0, $1) }) {
                text.sample(metric.name, Array(zip(labels, values)), number.description)
            }
        }
    }

    static func histogram(
        _ name: String, _ labels: [String], _ help: String,
        _ samples: @escaping @Sendable (Overview) -> [([String], Durations)]
    ) -> Metric {
        Metric(name: name, kind: .histogram, help: help) { overview, metric, text in
            for (values, durations) in merged(samples(overview), { $0 + $1 }) {
                text.histogram(metric.name, Array(zip(labels, values)), durations)
            }
        }
    }

    private static func merged<Value>(
        _ samples: [([String], Value)], _ combine: (Value, Value) -> Value
    ) -> [([String], Value)] {
        var places: [[String]: Int] = [:]
        var merged: [([String], Value)] = []
        for (labels, value) in samples {
            if let place = places[labels] {
                merged[place].1 = combine(merged[place].1, value)
            } else {
                places[labels] = merged.count
                merged.append((labels, value))
            }
        }
        return merged
    }
}

extension Metric {
    static let all = general + ofQuestions + ofCache + ofSharedCache + ofUpstreams + ofLookups + ofProcess

    private static let general: [Metric] = [
        .each("httpdnsd_build_info", .gauge, ["version"], "1, with the version") { _ in [([Version.current], 1)] },
        .one("httpdnsd_ready", .gauge, "Whether a question could be answered now, as /readyz says") {
            $0.isReady ? 1 : 0
        },
    ]

    private static let ofQuestions: [Metric] = [
        .each(
            "httpdnsd_dns_requests_total", .counter, ["proto", "family", "type"],
            "Questions, by udp or tcp, IP version of the client, and type", \.questionSamples),
        .each(
            "httpdnsd_dns_responses_total", .counter, ["rcode"], "Answers to clients, by response code",
            \.responseSamples),
        .histogram(
            "httpdnsd_dns_request_duration_seconds", [], "From a question's arrival to its answer"
        ) { [([], $0.durations)] },
    ]

    private static let ofCache: [Metric] = [
        .one("httpdnsd_cache_entries", .gauge, "Answers in the cache, stale ones included", \.cache.entries),
        .one("httpdnsd_cache_bytes", .gauge, "Memory these answers take", \.cache.bytes),
        .one("httpdnsd_cache_limit_bytes", .gauge, "Memory the cache may take", \.cacheLimit),
        .one("httpdnsd_cache_hits_total", .counter, "Questions answered from the cache", \.cache.hits),
        .one("httpdnsd_cache_misses_total", .counter, "Questions the cache had no answer to", \.cache.misses),
        .one("httpdnsd_cache_evictions_total", .counter, "Answers that made room for newer ones", \.cache.evictions),
        .one(
            "httpdnsd_cache_served_stale_total", .counter, "Expired answers given because nothing better came",
            \.counters.servedStale),
        .one(
            "httpdnsd_cache_prefetch_total", .counter,
            "Answers refreshed before their end because they were asked for", \.prefetches),
    ]

    private static let ofSharedCache: [Metric] = [
        .each("httpdnsd_shared_cache_up", .gauge, [], "0: the store of the fleet is not used now", \.sharedCacheUp),
        .each(
            "httpdnsd_shared_cache_reads_total", .counter, ["result"],
            "Looks into the store: hit, miss (or no answer to give), or failed"
        ) { overview in
            overview.sharedCounters.map { counters in
                [
                    (["hit"], counters.hits), (["failed"], counters.failures),
                    (["miss"], counters.reads - min(counters.reads, counters.hits + counters.failures)),
                ]
            } ?? []
        },
        .each(
            "httpdnsd_shared_cache_late_total", .counter, [],
            "Looks that took longer than a question waits; their answers may still have counted"
        ) { $0.sharedCounters.map { [([], $0.late)] } ?? [] },
        .each(
            "httpdnsd_shared_cache_writes_total", .counter, ["result"],
            "Entries written, refused by the store, or given up"
        ) {
            $0.sharedCounters.map {
                [(["written"], $0.writes), (["failed"], $0.writesFailed), (["dropped"], $0.dropped)]
            } ?? []
        },
        .each(
            "httpdnsd_shared_cache_refused_total", .counter, [],
            "Entries that this fleet did not seal, or that are no answer: deleted"
        ) { $0.sharedCounters.map { [([], $0.refused)] } ?? [] },
        .each(
            "httpdnsd_shared_cache_future_total", .counter, [],
            "Entries from the future, which were ignored: a clock is wrong"
        ) { $0.sharedCounters.map { [([], $0.ignored)] } ?? [] },
        .each(
            "httpdnsd_shared_cache_leases_lost_total", .counter, [], "Refreshes that were left to another daemon"
        ) { $0.sharedCounters.map { [([], $0.leasesLost)] } ?? [] },
        .each("httpdnsd_shared_cache_outages_total", .counter, [], "How often the store was found to be of no use") {
            $0.sharedCounters.map { [([], $0.outages)] } ?? []
        },
        .each(
            "httpdnsd_shared_cache_wait_seconds", .gauge, [], "How long a question waits for the store at most"
        ) { $0.sharedCache.map { [([], $0.isOn ? Double($0.budget) / 1000 : 0)] } ?? [] },
    ]

    private static let ofUpstreams: [Metric] = [
        .histogram(
            "httpdnsd_proxy_request_duration_seconds", ["to", "rcode"],
            "From a request to a server to its answer; SERVFAIL also for what HTTPDNS refuses or garbles",
            \.answerSamples),
        .each(
            "httpdnsd_proxy_conn_cache_hits_total", .counter, ["to", "proto"],
            "Requests that found an open connection"
        ) { $0.connectionSamples(\.reused) },
        .each(
            "httpdnsd_proxy_conn_cache_misses_total", .counter, ["to", "proto"],
            "Requests that needed a new connection"
        ) { $0.connectionSamples(\.fresh) },
        .each(
            "httpdnsd_proxy_healthy", .gauge, ["to", "kind"],
            "0: the last attempt at this server failed; kind is httpdns, resolver or a group's own name"
        ) { $0.byKind { $1.isFailing ? 0 : 1 } },
        .each("httpdnsd_proxy_in_use", .gauge, ["to"], "1: the HTTPDNS server that is asked now") { overview in
            overview.account.map { account in
                account.servers.map { ([$0.server.description], account.isInUse($0) ? 1 : 0) }
            } ?? []
        },
        .each("httpdnsd_proxy_failures_total", .counter, ["to", "kind"], "Failed attempts at this server") {
            $0.byKind { $1.health.failures }
        },
        .each(
            "httpdnsd_proxy_round_trip_seconds", .gauge, ["to", "kind"], "Smoothed time to an answer of this server"
        ) { $0.byKind { $1.health.roundTrip.map { $0 / 1000 } } },
        .each(
            "httpdnsd_upstream_up", .gauge, ["group", "to"],
            "0: this server fails, or is passed over for having failed or refused"
        ) { overview in
            overview.byGroup { group, server in
                server.isFailing || group.secondsUntilNextTry(server, at: overview.at) != nil ? 0 : 1
            }
        },
        .each("httpdnsd_upstream_in_use", .gauge, ["group", "to"], "1: the server of its group that is asked first") {
            $0.byGroup { $0.isInUse($1) ? 1 : 0 }
        },
        .each(
            "httpdnsd_upstream_failing", .gauge, ["group", "to", "reason"],
            "1: the last attempt at this server failed for this reason"
        ) { $0.failureSamples },
        .each(
            "httpdnsd_upstream_certificate_expiry_seconds", .gauge, ["group", "to"],
            "Until the certificate expires that this server showed at the last handshake"
        ) { overview in overview.byGroup { overview.certificateSeconds($1.server) } },
        .each("httpdnsd_group_questions_total", .counter, ["group"], "Questions that came to this group") {
            $0.groups.map { ([$0.name], $0.counters.questions) }
        },
        .each("httpdnsd_group_queries_total", .counter, ["group"], "Requests and queries to the group's servers") {
            $0.groups.map { ([$0.name], $0.counters.queries + $0.counters.repeats) }
        },
        .each("httpdnsd_group_failures_total", .counter, ["group"], "Those of them that failed") {
            $0.groups.map { ([$0.name], $0.counters.failures) }
        },
        .each(
            "httpdnsd_group_names_total", .counter, ["group"],
            "Names in requests to an HTTPDNS account: what it is billed for"
        ) { $0.groups.filter(\.isAccount).map { ([$0.name], $0.counters.names) } },
        .one("httpdnsd_httpdns_requests_total", .counter, "Requests to HTTPDNS") {
            $0.account?.counters.queries ?? 0
        },
        .one(
            "httpdnsd_httpdns_names_total", .counter, "Names in these requests: what an account is billed for"
        ) { $0.account?.counters.names ?? 0 },
        .one("httpdnsd_resolver_queries_total", .counter, "Queries to local resolvers") {
            $0.fallback.map { $0.counters.queries + $0.counters.repeats } ?? 0
        },
        .one("httpdnsd_resolver_repeats_total", .counter, "Queries asked again of a resolver that was silent") {
            $0.fallback?.counters.repeats ?? 0
        },
        .each(
            "httpdnsd_fallbacks_total", .counter, ["reason"],
            "Questions for HTTPDNS that a local resolver was asked, by reason"
        ) { overview in FallbackReason.allCases.map { ([$0.label], overview.counters.fallbacks(because: $0)) } },
        .each(
            "httpdnsd_resolver_mismatches_total", .counter, ["reason"],
            "Messages to a query's port that were not its answer: somebody may be guessing"
        ) {
            let mismatches = $0.limits.mismatches
            return [
                (["icmp"], mismatches.errors), (["other_query"], mismatches.otherQuery),
                (["malformed"], mismatches.malformed), (["other_case"], mismatches.otherCase),
            ]
        },
    ]

    private static let ofLookups: [Metric] = [
        .one("httpdnsd_lookups_in_flight", .gauge, "Questions being looked up", \.limits.flights),
        .one(
            "httpdnsd_lookups_joined_total", .counter, "Questions that waited for an equal one's answer",
            \.counters.joined),
        .one(
            "httpdnsd_lookups_overdue_total", .counter,
            "Lookups whose clients were answered because time ran out", \.counters.overdue),
        .each(
            "httpdnsd_lookups_sent_total", .counter, ["way"],
            "Lookups that somebody was asked for, by the most readable way in which they were sent"
        ) {
            [
                (["encrypted"], $0.counters.sentEncrypted), (["loopback"], $0.counters.sentToLoopback),
                (["clear"], $0.counters.sentInClear),
            ]
        },
        .each("httpdnsd_refused_total", .counter, ["limit"], "Questions and connections past a limit") {
            [
                (["lookups"], $0.counters.refusedFlights), (["waiting"], $0.counters.refusedWaiting),
                (["queue"], $0.limits.refusedForRoom), (["plan"], $0.counters.pastPlan),
                (["no_record_names"], $0.counters.pastNoRecordBudget),
                (["tcp_clients"], $0.limits.clients.refused),
                (["tcp_clients_of_source"], $0.limits.clients.refusedOfOneSource),
            ]
        },
        .one(
            "httpdnsd_private_addresses_refused_total", .counter,
            "Answers of upstreams that private addresses were taken out of (domains.privateAddresses)",
            \.counters.withoutPrivate),
        .each(
            "httpdnsd_rank_connections_total", .counter, ["result"],
            "Addresses that were connected to, to learn which answers first (cache.rank)"
        ) { [(["answered"], $0.counters.rankAnswered), (["failed"], $0.counters.rankFailed)] },
        .one("httpdnsd_tcp_clients", .gauge, "Open TCP connections of clients", \.limits.tcpClients),
        .one("httpdnsd_tcp_accepted_total", .counter, "TCP connections taken on", \.limits.clients.accepted),
        .each("httpdnsd_tcp_closed_total", .counter, ["reason"], "TCP connections that the daemon ended") {
            let clients = $0.limits.clients
            return [(["idle"], clients.closedIdle), (["room"], clients.closedForRoom), (["unread"], clients.cutOff)]
        },
    ]

    private static let ofProcess: [Metric] = [
        .each(
            "httpdnsd_config_reloads_total", .counter, ["result"], "Configurations read again, by success or failure"
        ) { [(["success"], $0.reloads.succeeded), (["failure"], $0.reloads.failed)] },
        .one(
            "httpdnsd_config_last_reload_successful", .gauge, "0: the last configuration read again was wrong"
        ) { $0.reloads.lastSucceeded ? 1 : 0 },
        .one(
            "httpdnsd_config_last_reload_success_timestamp_seconds", .gauge,
            "When the settings in effect were read, since 1970", \.reloads.lastSuccess),
        .one("httpdnsd_log_lines_lost_total", .counter, "Lines of the log that nobody took in time", \.logLinesLost),
        .one("process_cpu_seconds_total", .counter, "User and system time", \.process.cpuSeconds),
        .one("process_resident_memory_bytes", .gauge, "Resident memory", \.process.residentBytes),
        .one("process_virtual_memory_bytes", .gauge, "Virtual memory", \.process.virtualBytes),
        .one("process_open_fds", .gauge, "Open file descriptors", \.process.descriptors),
        .one("process_max_fds", .gauge, "The most there may be", \.process.maximumDescriptors),
        .one("process_start_time_seconds", .gauge, "When the daemon started, since 1970", \.startedAt),
    ]
}
