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
            ("httpdns", encryption.map(serviceJSON) ?? .null),
            ("localResolvers", .array(isHTTPOnly ? [] : resolvers.map { json(of: $0) })),
            ("questions", questionsJSON),
            ("cache", cacheJSON),
            ("fallbacks", .object(fallbacks.map { ($0.reason.label, .integer($0.count)) })),
            ("limits", limitsJSON),
        ])
    }

    private func serviceJSON(_ encryption: String) -> JSON {
        .object([
            ("encryptType", .string(encryption)),
            ("httpOnly", .bool(isHTTPOnly)),
            ("requests", .integer(account.queries)),
            ("names", .integer(account.names)),
            (
                "servers",
                .array(
                    services.enumerated().map { json(of: $1, inUse: $0 == currentService) })
            ),
        ])
    }

    private func json(of server: ServerState, inUse: Bool? = nil) -> JSON {
        let health = server.health
        let state = !server.isKnown ? "unknown" : !server.isFailing ? "answers" : "fails"
        var members: [(String, JSON)] = [
            ("address", .string(server.server.description)), ("state", .string(state)),
            ("paused", .bool(server.isPaused(at: at))),
        ]
        if let inUse { members.append(("inUse", .bool(inUse))) }
        let failure = health.lastFailure.map { failure in
            JSON.object([
                ("reason", .string(failure.detail)),
                ("kind", .string(FallbackReason(failure.kind).label)),
                ("secondsAgo", .integer(UInt64(health.lastFailureAt.map { at.milliseconds(since: $0) / 1000 } ?? 0))),
            ])
        }
        members += [
            ("roundTripMilliseconds", health.roundTrip.map { .number($0) } ?? .null),
            ("answers", .integer(health.answers)), ("failures", .integer(health.failures)),
            ("consecutiveFailures", .integer(UInt64(health.consecutiveFailures))),
            ("lastFailure", failure ?? .null),
        ]
        return .object(members)
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
            ("lastMinutes", minutes.map { .array($0.map { .integer($0) }) } ?? .null),
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
