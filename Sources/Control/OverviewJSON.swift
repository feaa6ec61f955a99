import Base
import Counters
import DNSCache
import DNSWire
import Forwarding

/// The overview for programs: what `httpdnsd status --json` and `cache --json` print. Keys are added, never changed.
extension Overview {
    var json: JSON {
        .object([
            ("version", .string(Version.current)),
            ("state", .string(state.rawValue)),
            ("ready", .bool(isReady)),
            ("headline", .string(headline)),
            ("verdict", .string(verdict)),
            ("startedAt", .integer(self.startedAt)),
            ("uptimeSeconds", .integer(uptimeSeconds)),
            ("groups", .array(groups.map(groupJSON))),
            ("questions", questionsJSON),
            ("cache", cacheJSON),
            ("sharedCache", self.sharedCache.map(sharedCacheJSON) ?? .null),
            ("fallbacks", .object(fallbacks.map { ($0.reason.label, .integer($0.count)) })),
            ("limits", limitsJSON),
        ])
    }

    private func groupJSON(_ group: GroupView) -> JSON {
        let counters = group.counters
        let next = group.thenTry.compactMap { id in groups.first { $0.id == id }?.name }
        var protocols: [String] = []
        for proto in group.servers.map(\.proto) where !protocols.contains(proto) { protocols.append(proto) }
        return .object([
            ("name", .string(group.name)),
            ("kind", .string(group.isAccount ? "httpdns" : "dns")),
            ("provider", group.account.map { .string($0.provider.rawValue) } ?? .null),
            ("protocols", .array(protocols.map { .string($0) })),
            ("way", group.exposureText.map { .string($0) } ?? .null),
            ("wall", .bool(group.isWall)),
            ("thenTry", .array(next.map { .string($0) })),
            ("servers", .array(group.servers.map(\.json))),
            (
                "counters",
                .object([
                    ("questions", .integer(counters.questions)), ("queries", .integer(counters.queries)),
                    ("names", group.isAccount ? .integer(counters.names) : .null),
                    ("namesLastHour", group.namesLastHour.map { .integer($0) } ?? .null),
                    ("repeats", .integer(counters.repeats)), ("failures", .integer(counters.failures)),
                ])
            ),
        ])
    }

    private var lastHourJSON: JSON {
        let questions = hour.questions
        return .object([
            ("questions", .integer(questions.asked)), ("encrypted", .integer(questions.encrypted)),
            ("loopback", .integer(questions.loopback)), ("clear", .integer(questions.clear)),
            ("clearShare", questions.clearShare.map { .number($0) } ?? .null),
        ])
    }

    private var questionsJSON: JSON {
        let responses = self.responses.enumerated().filter { $0.element > 0 }.map {
            (ResponseKind.name($0.offset), JSON.integer($0.element))
        }
        let buckets = self.durations.counts.enumerated().map { bucket, count in
            JSON.object([
                ("upToSeconds", Durations.upperBound(bucket).map { .number(Double($0) / 1e9) } ?? .null),
                ("count", .integer(count)),
            ])
        }
        return .object([
            ("asked", .integer(self.asked)),
            ("responses", .object(responses)),
            ("durations", .array(buckets)),
            ("lastHour", lastHourJSON),
            ("lastMinutes", .array(hour.minutes.dropLast().map { .integer($0.asked) })),
        ])
    }

    var cacheJSON: JSON {
        .object([
            ("answers", .integer(UInt64(self.cache.entries))),
            ("bytes", .integer(UInt64(self.cache.bytes))),
            ("limitBytes", .integer(UInt64(self.cacheLimit))),
            ("hits", .integer(self.cache.hits)),
            ("misses", .integer(self.cache.misses)),
            ("hitRate", hitRate.map { .number($0) } ?? .null),
            ("evictions", .integer(self.cache.evictions)),
            ("servedStale", .integer(self.counters.servedStale)),
            ("prefetches", .integer(self.prefetches)),
        ])
    }

    private func sharedCacheJSON(_ shared: SharedCacheOverview) -> JSON {
        let counters = shared.counters
        return .object([
            ("inUse", .bool(shared.isOn)),
            ("reason", shared.isOn || shared.reason.isEmpty ? .null : .string(shared.reason)),
            (
                "secondsUntilNextTry",
                shared.nextTry.map { .integer(UInt64($0.milliseconds(since: self.at) / 1000)) } ?? .null
            ),
            ("waitMilliseconds", .integer(UInt64(shared.isOn ? shared.budget : 0))),
            ("p95Milliseconds", shared.usual.map { .number(Double($0) / 1e6) } ?? .null),
            ("reads", .integer(counters.reads)), ("hits", .integer(counters.hits)),
            ("late", .integer(counters.late)), ("failures", .integer(counters.failures)),
            ("writes", .integer(counters.writes)), ("writesFailed", .integer(counters.writesFailed)),
            ("writesDropped", .integer(counters.dropped)), ("refused", .integer(counters.refused)),
            ("fromTheFuture", .integer(counters.ignored)), ("leasesLost", .integer(counters.leasesLost)),
            ("outages", .integer(counters.outages)),
        ])
    }

    private var limitsJSON: JSON {
        .object([
            ("flights", .integer(UInt64(self.limits.flights))),
            (
                "refused",
                .integer(self.counters.refusedFlights + self.counters.refusedWaiting + self.limits.refusedForRoom)
            ),
            ("tcpClients", .integer(UInt64(self.limits.tcpClients))),
            ("refusedTcpClients", .integer(self.limits.clients.refused + self.limits.clients.refusedOfOneSource)),
            ("mismatches", .integer(self.limits.mismatches.all)),
        ])
    }
}

extension ServerView {
    fileprivate var json: JSON {
        func milliseconds(_ share: Double) -> JSON {
            figures.latest.milliseconds(ofShare: share).map { .number($0) } ?? .null
        }
        let failure = last.map { last in
            JSON.object([
                ("reason", .string(last.detail)), ("kind", .string(last.kind.label)),
                ("secondsAgo", .integer(last.secondsAgo)),
            ])
        }
        return .object([
            ("address", .string(address)),
            ("protocol", .string(proto)),
            ("state", .string(standing.rawValue)),
            ("inUse", .bool(isInUse)),
            ("secondsUntilNextTry", secondsUntilNextTry.map { .integer(UInt64($0)) } ?? .null),
            ("roundTripMilliseconds", health.roundTrip.map { .number($0) } ?? .null),
            ("p50Milliseconds", milliseconds(0.5)), ("p95Milliseconds", milliseconds(0.95)),
            ("resumed", figures.isResumed.map { .bool($0) } ?? .null),
            ("certificateExpiresAt", figures.certificateEnd.map { .integer($0) } ?? .null),
            ("lastHour", lastHourJSON),
            ("answers", .integer(health.answers)), ("failures", .integer(health.failures)),
            ("consecutiveFailures", .integer(UInt64(health.consecutiveFailures))),
            ("lastFailure", failure ?? .null),
        ])
    }

    /// The mean round trip and the failures of each minute, the newest last.
    private var lastHourJSON: JSON {
        .object([
            ("roundTripMilliseconds", .array(hour.map { $0.mean.map { .number($0) } ?? .null })),
            ("failures", .array(hour.map { .integer($0.failures) })),
        ])
    }
}
