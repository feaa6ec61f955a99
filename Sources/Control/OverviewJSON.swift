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
            ("startedAt", .integer(startedAt)),
            ("uptimeSeconds", .integer(uptimeSeconds)),
            ("httpdns", account.map(accountJSON) ?? .null),
            ("localResolvers", .array(fallback.map(serversJSON) ?? [])),
            ("groups", .array(groups.map(groupJSON))),
            ("questions", questionsJSON),
            ("cache", cacheJSON),
            ("sharedCache", sharedCache.map(sharedCacheJSON) ?? .null),
            ("fallbacks", .object(fallbacks.map { ($0.reason.label, .integer($0.count)) })),
            ("limits", limitsJSON),
        ])
    }

    private func accountJSON(_ account: Group) -> JSON {
        .object([
            ("encryptType", account.encryption.map { .string($0) } ?? .null),
            ("httpOnly", .bool(account.isWall)),
            ("requests", .integer(account.counters.queries)),
            ("names", .integer(account.counters.names)),
            ("servers", .array(serversJSON(account))),
        ])
    }

    private func groupJSON(_ group: Group) -> JSON {
        let counters = group.counters
        let next = group.thenTry.compactMap { id in groups.first { $0.id == id }?.name }
        var protocols: [String] = []
        for scheme in group.servers.map(group.scheme) where !protocols.contains(scheme) { protocols.append(scheme) }
        return .object([
            ("name", .string(group.name)),
            ("kind", .string(group.isAccount ? "httpdns" : "dns")),
            ("provider", group.provider.map { .string($0) } ?? .null),
            ("protocols", .array(protocols.map { .string($0) })),
            ("way", group.exposureText.map { .string($0) } ?? .null),
            ("wall", .bool(group.isWall)),
            ("thenTry", .array(next.map { .string($0) })),
            ("servers", .array(serversJSON(group))),
            (
                "counters",
                .object([
                    ("questions", .integer(counters.questions)), ("queries", .integer(counters.queries)),
                    ("names", group.isAccount ? .integer(counters.names) : .null),
                    ("namesLastHour", hour.names[group.id].map { .integer($0) } ?? .null),
                    ("repeats", .integer(counters.repeats)), ("failures", .integer(counters.failures)),
                ])
            ),
        ])
    }

    private func serversJSON(_ group: Group) -> [JSON] { group.servers.map { json(of: $0, in: group) } }

    private func json(of server: ServerState, in group: Group) -> JSON {
        let health = server.health
        let state = !server.isKnown ? "unknown" : !server.isFailing ? "answers" : "fails"
        let figures = upstreams[server.server]
        func milliseconds(_ share: Double) -> JSON {
            figures?.latest.milliseconds(ofShare: share).map { .number($0) } ?? .null
        }
        let failure = health.lastFailure.map { failure in
            JSON.object([
                ("reason", .string(failure.detail)),
                ("kind", .string(FallbackReason(failure.kind).label)),
                ("secondsAgo", .integer(UInt64(health.lastFailureAt.map { at.milliseconds(since: $0) / 1000 } ?? 0))),
            ])
        }
        return .object([
            ("address", .string(server.server.description)),
            ("protocol", .string(group.scheme(server))),
            ("state", .string(state)),
            ("inUse", .bool(group.isInUse(server))),
            ("paused", .bool(health.isPaused(at: at))),
            ("setAside", .bool(server.isSetAside)),
            (
                "secondsUntilNextTry",
                group.secondsUntilNextTry(server, at: at).map { .integer(UInt64($0)) } ?? .null
            ),
            ("roundTripMilliseconds", health.roundTrip.map { .number($0) } ?? .null),
            ("p50Milliseconds", milliseconds(0.5)), ("p95Milliseconds", milliseconds(0.95)),
            ("resumed", figures?.isResumed.map { .bool($0) } ?? .null),
            ("certificateExpiresAt", figures?.certificateEnd.map { .integer($0) } ?? .null),
            ("lastHour", lastHourJSON(of: server.server)),
            ("answers", .integer(health.answers)), ("failures", .integer(health.failures)),
            ("consecutiveFailures", .integer(UInt64(health.consecutiveFailures))),
            ("lastFailure", failure ?? .null),
        ])
    }

    /// The mean round trip and the failures of each minute, the newest last.
    private func lastHourJSON(of server: Server) -> JSON {
        let minutes = hour.answers[server] ?? []
        return .object([
            ("roundTripMilliseconds", .array(minutes.map { $0.mean.map { .number($0) } ?? .null })),
            ("failures", .array(minutes.map { .integer($0.failures) })),
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
        let responses = responses.enumerated().filter { $0.element > 0 }.map {
            (ResponseKind.name($0.offset), JSON.integer($0.element))
        }
        let buckets = durations.counts.enumerated().map { bucket, count in
            JSON.object([
                ("upToSeconds", Durations.upperBound(bucket).map { .number(Double($0) / 1e9) } ?? .null),
                ("count", .integer(count)),
            ])
        }
        return .object([
            ("asked", .integer(asked)),
            ("responses", .object(responses)),
            ("durations", .array(buckets)),
            ("lastHour", lastHourJSON),
            ("lastMinutes", .array(hour.minutes.dropLast().map { .integer($0.asked) })),
        ])
    }

    var cacheJSON: JSON {
        .object([
            ("answers", .integer(UInt64(cache.entries))),
            ("bytes", .integer(UInt64(cache.bytes))),
            ("limitBytes", .integer(UInt64(cacheLimit))),
            ("hits", .integer(cache.hits)),
            ("misses", .integer(cache.misses)),
            ("hitRate", hitRate.map { .number($0) } ?? .null),
            ("evictions", .integer(cache.evictions)),
            ("servedStale", .integer(counters.servedStale)),
            ("prefetches", .integer(prefetches)),
        ])
    }

    private func sharedCacheJSON(_ shared: SharedCacheOverview) -> JSON {
        let counters = shared.counters
        return .object([
            ("inUse", .bool(shared.isOn)),
            ("reason", shared.isOn || shared.reason.isEmpty ? .null : .string(shared.reason)),
            (
                "secondsUntilNextTry",
                shared.nextTry.map { .integer(UInt64($0.milliseconds(since: at) / 1000)) } ?? .null
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
            ("flights", .integer(UInt64(limits.flights))),
            ("refused", .integer(counters.refusedFlights + counters.refusedWaiting + limits.refusedForRoom)),
            ("tcpClients", .integer(UInt64(limits.tcpClients))),
            ("refusedTcpClients", .integer(limits.clients.refused + limits.clients.refusedOfOneSource)),
            ("mismatches", .integer(limits.mismatches.all)),
        ])
    }
}
