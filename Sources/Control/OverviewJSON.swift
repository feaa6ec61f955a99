import Base
import Counters
import DNSCache
import DNSWire
import Forwarding

/// The overview for programs: what `httpdnsd status --json` prints. Keys are added, never changed.
extension Overview {
    var json: JSON {
        [
            "version": Version.current,
            "state": state.rawValue,
            "ready": isReady,
            "headline": headline,
            "verdict": verdict,
            "remarks": JSON.array(notes.map { .string($0) }),
            "certificate": self.certificate.map { ["beginsAt": $0.begins, "endsAt": $0.ends] as JSON },
            "nat64": [
                "ipv4": self.reach.hasIPv4, "ipv6": self.reach.hasIPv6, "prefix": self.reach.prefix?.description,
                "synthesizes": self.reach.isSynthesizing,
            ] as JSON,
            "startedAt": self.startedAt,
            "uptimeSeconds": uptimeSeconds,
            "groups": groups.map(json),
            "questions": questionsJSON,
            "history": past.map(json),
            "cache": cacheJSON,
            "sharedCache": self.sharedCache.map(json),
            "fallbacks": JSON.object(fallbacks.map { ($0.reason.label, .integer($0.count)) }),
            "limits": limitsJSON,
        ]
    }

    private func json(_ group: GroupView) -> JSON {
        let counters = group.counters
        var protocols: [String] = []
        for proto in group.servers.map(\.proto) where !protocols.contains(proto) { protocols.append(proto) }
        return [
            "name": group.name, "kind": group.kind,
            "answer": group.answer?.description,
            "provider": group.account?.provider.rawValue,
            "protocols": protocols, "way": group.exposureText, "wall": group.isWall,
            "thenTry": group.thenTry.compactMap { id in groups.first { $0.id == id }?.name },
            "servers": group.servers.map(\.json),
            "leftOut": group.leftOut.map(\.json),
            "counters": [
                "questions": counters.questions, "queries": counters.queries,
                "names": group.isAccount ? counters.names : nil, "namesLastHour": group.namesLastHour,
                "repeats": counters.repeats, "failures": counters.failures,
            ] as JSON,
        ]
    }

    private var questionsJSON: JSON {
        func buckets(_ durations: Durations) -> [JSON] {
            durations.counts.enumerated().map { bucket, count in
                ["upToSeconds": Durations.upperBound(bucket).map { Double($0) / 1e9 }, "count": count]
            }
        }
        let responses = self.counts.responses.enumerated().filter { $0.element > 0 }
        let hour = hour.questions
        return [
            "asked": self.counts.asked,
            "over": JSON.object(self.askedOver.map { ($0.transport.rawValue, .integer($0.count)) }),
            "responses": JSON.object(responses.map { (ResponseKind.name($0.offset), .integer($0.element)) }),
            "durations": buckets(self.durations), "lookupDurations": buckets(self.lookups),
            "lastHour": [
                "questions": hour.asked, "encrypted": hour.encrypted, "loopback": hour.loopback, "clear": hour.clear,
                "clearShare": hour.clearShare,
            ] as JSON,
            "lastMinutes": self.hour.minutes.dropLast().map(\.asked),
        ]
    }

    /// The counts of each step. The newest step is last and not over yet.
    private func json(_ course: Course) -> JSON {
        [
            "stepSeconds": course.width.seconds, "beganAt": self.now - min(self.now, course.age),
            "questions": course.steps.map(\.asked), "cache": course.steps.map(\.stayed),
            "encrypted": course.steps.map(\.encrypted), "loopback": course.steps.map(\.loopback),
            "clear": course.steps.map(\.clear), "failed": course.steps.map(\.failed),
            "billed": course.steps.map(\.billed),
        ]
    }

    private var cacheJSON: JSON {
        let cache = self.cache
        return [
            "answers": cache.entries, "bytes": cache.bytes, "limitBytes": self.cacheLimit, "hits": cache.hits,
            "misses": cache.misses, "hitRate": hitRate, "evictions": cache.evictions,
            "servedStale": self.counters.servedStale, "prefetches": self.counts[.refreshed],
        ]
    }

    private func json(_ shared: SharedCacheOverview) -> JSON {
        let counters = shared.counters
        return [
            "inUse": shared.isOn,
            "reason": shared.reason.isEmpty ? nil : shared.reason,
            "secondsUntilNextTry": shared.nextTry.map { $0.milliseconds(since: self.at) / 1000 },
            "waitMilliseconds": shared.isOn ? shared.budget : 0,
            "p95Milliseconds": shared.usual.map { Double($0) / 1e6 },
            "reads": counters.reads, "hits": counters.hits, "late": counters.late, "failures": counters.failures,
            "writes": counters.writes, "writesFailed": counters.writesFailed, "writesDropped": counters.dropped,
            "refused": counters.refused, "fromTheFuture": counters.ignored, "leasesLost": counters.leasesLost,
            "outages": counters.outages,
        ]
    }

    private var limitsJSON: JSON {
        let refused = self.counters.refusedFlights + self.counters.refusedWaiting + self.counts[.noRoom]
        let counts = Counted.allCases.compactMap { event in event.row.key.map { ([$0], self.counts[event]) } }
        return ["flights": self.flights, "refused": refused]
            + JSON.object(Metric.merged(counts, +).map { ($0[0], .integer($1)) })
    }
}

extension LeftOutServer {
    var json: JSON { ["address": server.description, "source": source, "reason": brief] }
}

extension ServerView {
    fileprivate var json: JSON {
        let failure = last.map { last -> JSON in
            ["reason": last.detail, "kind": last.kind.label, "secondsAgo": last.secondsAgo]
        }
        return [
            "address": address, "protocol": proto, "state": standing.rawValue, "inUse": isInUse,
            "secondsUntilNextTry": secondsUntilNextTry, "roundTripMilliseconds": health.roundTrip,
            "p50Milliseconds": figures.latest.milliseconds(ofShare: 0.5),
            "p95Milliseconds": figures.latest.milliseconds(ofShare: 0.95),
            "resumed": figures.isResumed, "certificateExpiresAt": figures.certificateEnd,
            // Minute by minute, the newest last.
            "lastHour": ["roundTripMilliseconds": hour.map(\.mean), "failures": hour.map(\.failures)] as JSON,
            "answers": health.answers, "failures": health.failures, "consecutiveFailures": health.consecutiveFailures,
            "lastFailure": failure,
        ]
    }
}
