import Base
import Counters
import DNSCache
import Forwarding

/// The overview in words, for people.
extension Overview {
    /// One line for the service manager: `serving; HTTPDNS 119.29.29.99 21 ms; cache 812 answers, 94 % hits`.
    package var headline: String {
        let head =
            switch state {
            case .healthy, .degraded: "serving"
            case .down: "serving from the cache alone"
            case .starting: "starting"
            case .stopping: "stopping"
            }
        var parts = [head]
        if let service { parts.append("HTTPDNS \(brief(service, usualPort: servicePort))") }
        if let resolver, service == nil || resolver.isFailing || services.allSatisfy(\.isFailing) {
            parts.append("local resolver \(brief(resolver, usualPort: 53))")
        }
        if sources.isEmpty { parts.append("nobody to ask") }
        parts.append("cache \(cache.entries) answers" + (hitRate.map { ", \(Self.percent($0)) hits" } ?? ""))
        return parts.joined(separator: "; ")
    }

    private func brief(_ server: ServerState, usualPort: UInt16) -> String {
        let name = server.name(usualPort: usualPort)
        if server.isFailing { return "\(name) fails" }
        return server.health.roundTrip.map { "\(name) \(Self.milliseconds($0))" } ?? name
    }

    var servicePort: UInt16 { encryption == "https" ? 443 : 80 }

    /// Whether names resolve and through whom, in one sentence.
    var verdict: String {
        switch state {
        case .stopping: return "Stopping: no new questions are taken."
        case .starting: return "Starting: the cache file is being read."
        case .down: return sources.isEmpty ? "There is nobody to ask for names." : "Names do not resolve."
        case .degraded where services.allSatisfy(\.isFailing) && !services.isEmpty:
            return "HTTPDNS fails. Names come from the local resolver."
        case .degraded where service?.isFailing == true:
            return "An HTTPDNS server fails. Another answers in its place."
        case .degraded where currentService != 0: return "The first HTTPDNS server is given up. The next answers."
        case .degraded: return "The local resolver fails. HTTPDNS is all there is."
        case .healthy:
            let path = services.isEmpty ? "the local resolver" : "HTTPDNS"
            guard sources.contains(where: \.isKnown) else { return "Ready to resolve names through \(path)." }
            return "Names resolve through \(path)."
        }
    }

    /// What stands behind the verdict, in one or two sentences.
    var explanation: String {
        let cached = "What is cached is still answered."
        switch state {
        case .starting, .stopping: return ""
        case .down:
            guard let server = service ?? resolvers.first else { return cached }
            return "\(reason(server)) \(cached)"
        case .degraded:
            if let service, service.isFailing { return reason(service) }
            if currentService != 0, let first = services.first { return reason(first) }
            return resolver.map(reason) ?? ""
        case .healthy:
            guard let server = service ?? resolver, server.isKnown else { return "Nobody has asked yet." }
            let name = server.name(usualPort: service == nil ? 53 : servicePort)
            let speed = server.health.roundTrip.map { " in about \(Self.milliseconds($0))" } ?? ""
            return "\(name) answers\(encryption.map { " over \($0)" } ?? "")\(speed)."
        }
    }

    private func reason(_ server: ServerState) -> String {
        let detail = server.health.lastFailure?.detail ?? "it does not answer"
        let kind = services.contains { $0.server == server.server } ? "HTTPDNS" : "Local resolver"
        return "\(kind) \(server.name(usualPort: kind == "HTTPDNS" ? servicePort : 53)): \(detail)."
    }

    /// What `httpdnsd status` prints.
    var text: String {
        var lines = [headline, "", verdict]
        lines.append("Up \(Self.span(uptimeSeconds)); \(asked) questions.")
        if durations.total > 0 {
            lines.append("Half of the answers took \(bound(0.5)), 99 in 100 \(bound(0.99)).")
        }
        for (title, servers) in [("HTTPDNS", services), ("Local resolver", isHTTPOnly ? [] : resolvers)] {
            for (place, server) in servers.enumerated() {
                let mark = title == "HTTPDNS" && servers.count > 1 && place == currentService ? ", in use" : ""
                lines.append("\(title) \(server.server)\(mark): \(stateText(server))")
            }
        }
        lines.append(cacheLine)
        for (reason, count) in fallbacks { lines.append("Local resolver asked \(count) times: \(reason.text)") }
        return lines.joined(separator: "\n") + "\n"
    }

    /// What `httpdnsd cache` prints.
    var cacheText: String {
        """
        \(cacheLine)
        \(cache.hits) hits, \(cache.misses) misses, \(cache.evictions) evicted, \
        \(counters.servedStale) served stale, \(prefetches) refreshed before their end

        """
    }

    private var cacheLine: String {
        "Cache: \(cache.entries) answers, \(Self.octets(cache.bytes)) of \(Self.octets(cacheLimit))"
            + (hitRate.map { ", \(Self.percent($0)) hits" } ?? "")
    }

    /// How a server is, with its last failure and when that was.
    func stateText(_ server: ServerState) -> String {
        let health = server.health
        guard server.isKnown else { return "not asked yet" }
        let last = health.lastFailure.map { failure in
            let when = health.lastFailureAt.map { "\(Self.span(UInt64(at.milliseconds(since: $0) / 1000))) ago" } ?? ""
            return "\(failure.detail), \(when)"
        }
        if server.isFailing {
            let count = health.consecutiveFailures
            return "fails (\(count) in a row): \(last ?? "")" + (server.isPaused(at: at) ? "; paused" : "")
        }
        let speed = health.roundTrip.map { "answers in \(Self.milliseconds($0))" } ?? "answers"
        return speed + (last.map { "; last failure: \($0)" } ?? "")
    }

    /// `under 4 ms`, by the histogram's bounds.
    func bound(_ share: Double) -> String {
        guard let bound = durations.bound(ofShare: share) else { return "more than 8 s" }
        return "under \(Self.milliseconds(nanoseconds: bound))"
    }

    // MARK: Numbers

    static func percent(_ share: Double) -> String { "\(Int(share * 100)) %" }

    /// Two digits where they say something: `0.25 ms`, `2.5 ms`, `21 ms`, `1.5 s`.
    static func milliseconds(_ value: Double) -> String {
        if value >= 1000 { return "\(decimal(value / 1000, 1)) s" }
        return "\(decimal(value, value < 1 ? 2 : value < 10 ? 1 : 0)) ms"
    }

    /// - Parameter nanoseconds: a bound of the histogram; nil lies above them all.
    static func milliseconds(nanoseconds: UInt64?) -> String {
        guard let nanoseconds else { return "over 8 s" }
        return nanoseconds < 100_000
            ? "\((nanoseconds + 500) / 1000) µs" : milliseconds(Double(nanoseconds) / 1_000_000)
    }

    /// At most so many places, without zeros at the end.
    static func decimal(_ value: Double, _ places: Int) -> String {
        var scale = 1
        for _ in 0..<places { scale *= 10 }
        let scaled = Int((value * Double(scale)).rounded())
        guard scale > 1, scaled % scale != 0 else { return "\(scaled / scale)" }
        let digits = String(scaled % scale)
        let fraction = String(repeating: "0", count: places - digits.count) + digits
        return "\(scaled / scale).\(fraction.prefix(fraction.count - fraction.reversed().prefix { $0 == "0" }.count))"
    }

    static func octets(_ count: Int) -> String {
        if count < 10_000 { return "\(count) B" }
        if count < 10 << 20 { return "\(decimal(Double(count) / 1024, 0)) KiB" }
        return "\(decimal(Double(count) / Double(1 << 20), 1)) MiB"
    }

    /// The two largest units that say something: `3 d 4 h`.
    static func span(_ seconds: UInt64) -> String {
        if seconds < 60 { return "\(seconds) s" }
        if seconds < 3600 { return "\(seconds / 60) min" }
        if seconds < 86_400 { return "\(seconds / 3600) h \(seconds % 3600 / 60) min" }
        return "\(seconds / 86_400) d \(seconds % 86_400 / 3600) h"
    }
}
