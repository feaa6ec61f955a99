import Base
import Counters
import DNSCache
import DNSWire
import Forwarding
import Transport

/// Prometheus' text format, version 0.0.4.
struct MetricsText {
    static let type = "text/plain; version=0.0.4; charset=utf-8"

    private(set) var text = ""
    /// What was written so far, in order.
    private(set) var metrics: [Metric] = []

    private mutating func begin(_ metric: Metric) {
        metrics.append(metric)
        text += "# HELP \(metric.name) \(metric.help)\n# TYPE \(metric.name) \(metric.kind.rawValue)\n"
    }

    private mutating func sample(_ name: String, _ labels: [(String, String)], _ value: String) {
        // The values are addresses, numbers and words of ours: nothing has to be escaped.
        let pairs = labels.map { "\($0)=\"\($1)\"" }.joined(separator: ",")
        text += "\(name)\(pairs.isEmpty ? "" : "{\(pairs)}") \(value)\n"
    }

    /// One sample for each set of label values, in the order of the metric's labels.
    mutating func add<Number: CustomStringConvertible>(_ metric: Metric, _ samples: [([String], Number)]) {
        begin(metric)
        for (values, number) in samples { sample(metric.name, Array(zip(metric.labels, values)), number.description) }
    }

    mutating func add<Number: CustomStringConvertible>(_ metric: Metric, _ value: Number) { add(metric, [([], value)]) }

    mutating func add(_ metric: Metric, _ histograms: [([String], Durations)]) {
        begin(metric)
        for (values, durations) in histograms {
            let labels = Array(zip(metric.labels, values))
            var sum: UInt64 = 0
            for (bucket, count) in durations.counts.enumerated() {
                sum += count
                let bound = Durations.upperBound(bucket).map { "\(Double($0) / 1e9)" } ?? "+Inf"
                sample(metric.name + "_bucket", labels + [("le", bound)], "\(sum)")
            }
            sample(metric.name + "_sum", labels, "\(Double(durations.nanoseconds) / 1e9)")
            sample(metric.name + "_count", labels, "\(sum)")
        }
    }
}

extension Overview {
    /// What `/metrics` says.
    func metrics(_ process: ProcessFigures) -> MetricsText {
        var text = MetricsText()
        text.add(.buildInfo, [([Version.current], 1)])
        text.add(.ready, isReady ? 1 : 0)
        addDoors(to: &text)
        addCache(to: &text)
        addUpstreams(to: &text)
        addLookups(to: &text)
        text.add(.cpu, process.cpuSeconds)
        text.add(.resident, process.residentBytes)
        text.add(.virtual, process.virtualBytes)
        text.add(.descriptors, process.descriptors)
        text.add(.maximumDescriptors, process.maximumDescriptors)
        text.add(.started, startedAt)
        return text
    }

    private func addDoors(to text: inout MetricsText) {
        text.add(
            .requests,
            questions.flatMap { questions in
                questions.counts.enumerated().map { kind, count in
                    ([questions.transport.rawValue, questions.isIPv4 ? "1" : "2", QuestionKind.names[kind]], count)
                }
            })
        text.add(
            .responses,
            responses.enumerated().filter { $0.element > 0 || !ResponseKind.name($0.offset).hasPrefix("RCODE") }
                .map { ([ResponseKind.name($0.offset)], $0.element) })
        text.add(.durations, [([], durations)])
    }

    private func addCache(to text: inout MetricsText) {
        text.add(.cacheEntries, cache.entries)
        text.add(.cacheBytes, cache.bytes)
        text.add(.cacheLimit, cacheLimit)
        text.add(.cacheHits, cache.hits)
        text.add(.cacheMisses, cache.misses)
        text.add(.cacheEvictions, cache.evictions)
        text.add(.servedStale, counters.servedStale)
        text.add(.prefetches, prefetches)
    }

    private func addUpstreams(to text: inout MetricsText) {
        func isBefore(_ a: [String], _ b: [String]) -> Bool { a.lexicographicallyPrecedes(b) }
        text.add(
            .upstreamDurations,
            upstreams.map { ([$0.server.description, ResponseKind.name($0.kind)], $1) }
                .sorted { isBefore($0.0, $1.0) })
        let connections = connections.map { ([$0.description, $1.isSecure ? "https" : "http"], $1) }
            .sorted { isBefore($0.0, $1.0) }
        text.add(.connectionHits, connections.map { ($0, $1.reused) })
        text.add(.connectionMisses, connections.map { ($0, $1.fresh) })
        let servers =
            services.map { ([$0.server.description, "httpdns"], $0) }
            + (isHTTPOnly ? [] : resolvers.map { ([$0.server.description, "resolver"], $0) })
        text.add(.healthy, servers.map { ($0, $1.isFailing ? 0 : 1) })
        text.add(
            .inUse, services.enumerated().map { ([$1.server.description], $0 == currentService ? 1 : 0) })
        text.add(.failures, servers.map { ($0, $1.health.failures) })
        text.add(
            .roundTrip,
            servers.compactMap { labels, server in server.health.roundTrip.map { (labels, $0 / 1000) } })
        text.add(.serviceRequests, account.queries)
        text.add(.serviceNames, account.names)
        text.add(.resolverQueries, local.queries + local.repeats)
        text.add(.resolverRepeats, local.repeats)
        text.add(.fallbacks, FallbackReason.allCases.map { ([$0.label], counters.fallbacks(because: $0)) })
        let mismatches = limits.mismatches
        text.add(
            .mismatches,
            [
                (["stranger"], mismatches.strangers), (["other_query"], mismatches.otherQuery),
                (["malformed"], mismatches.malformed), (["other_case"], mismatches.otherCase),
            ])
    }

    private func addLookups(to text: inout MetricsText) {
        text.add(.flights, limits.flights)
        text.add(.joined, counters.joined)
        text.add(.overdue, counters.overdue)
        text.add(
            .refused,
            [
                (["lookups"], counters.refusedFlights), (["waiting"], counters.refusedWaiting),
                (["queue"], limits.refusedForRoom), (["plan"], counters.pastPlan),
                (["no_record_names"], counters.pastNoRecordBudget),
                (["tcp_clients"], limits.clients.refused),
                (["tcp_clients_of_source"], limits.clients.refusedOfOneSource),
            ])
        text.add(.withoutPrivate, counters.withoutPrivate)
        text.add(.tcpClients, limits.tcpClients)
        text.add(.tcpAccepted, limits.clients.accepted)
        text.add(
            .tcpClosed,
            [
                (["idle"], limits.clients.closedIdle), (["room"], limits.clients.closedForRoom),
                (["unread"], limits.clients.cutOff),
            ])
        text.add(.reloads, [(["success"], reloads.succeeded), (["failure"], reloads.failed)])
        text.add(.lastReload, reloads.lastSucceeded ? 1 : 0)
        text.add(.lastReloadTime, reloads.lastSuccess)
        text.add(.logLinesLost, logLinesLost)
    }
}
