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
            case .down: "serving from \((["the cache"] + othersAnswering).joined(separator: ", ")) alone"
            case .starting: "starting"
            case .stopping: "stopping"
            }
        var parts = [head]
        for group in headlined {
            if let server = group.asked { parts.append("\(group.title) \(brief(server))") }
        }
        if sources.isEmpty { parts.append("no server to ask") }
        parts.append(
            "cache \(Self.counted(UInt64(self.cache.entries), "answer"))"
                + (hitRate.map { ", \(Self.percent($0)) hits" } ?? ""))
        return parts.joined(separator: "; ")
    }

    /// The groups to mention: those that are asked first, and those that fail.
    private var headlined: [GroupView] {
        let first = routedGroups.first { !$0.servers.isEmpty }
        return groups.filter { group in
            group.id == first?.id || group.isFailing || (first?.isFailing ?? false) && self.mainRoute.contains(group.id)
        }
    }

    /// The groups for other names that have answered the last question. `[fallback]` may have no names of its own, and
    /// then it has answered none.
    private var othersAnswering: [String] {
        otherGroups.filter { group in group.servers.contains { $0.standing == .answers } }.map(\.title)
    }

    private func brief(_ server: ServerView) -> String {
        if server.isFailing { return "\(server.brief) fails" }
        return server.brief + (server.health.roundTrip.map { " \(Self.milliseconds($0))" } ?? "")
    }

    /// Whether names resolve and through which groups, in one sentence for each group that matters.
    var verdict: String {
        switch state {
        case .stopping: return "Stopping: no new questions are taken."
        case .starting: return "Starting: the cache file is being read."
        case .down where sources.isEmpty: return "There is no server to ask for names."
        case .down:
            let rest = othersAnswering.joined(separator: ", ")
            return rest.isEmpty ? "Names do not resolve." : "Names do not resolve, but for those of \(rest)."
        case .degraded, .healthy:
            let failing = otherGroups.filter(\.isFailing)
            guard failing.count > 1 else { return ([mainVerdict] + failing.map(failure)).joined(separator: " ") }
            let names = failing.map(\.title).joined(separator: ", ")
            return "\(mainVerdict) \(failing.count) of \(groups.count) groups fail: \(names)."
        }
    }

    private var mainVerdict: String {
        if areAllFailing, !sources.isEmpty { return "No server answered the last question." }
        let well = mainGroups.filter { !$0.isFailing }
        if let first = mainGroups.first, first.isFailing, let next = well.first {
            return "\(first.title) fails. Names come from \(next.title)."
        }
        if let account, !account.isFailing {
            if account.asked?.isFailing ?? false { return "An HTTPDNS server fails. Another answers in its place." }
            if account.isSwitched { return "The first HTTPDNS server is given up. The next answers." }
        }
        if let failing = mainGroups.first(where: \.isFailing) {
            let rest = well.map(\.title).joined(separator: ", ")
            return "\(failing.title) fails. \(rest) \(well.count == 1 ? "is" : "are") all there is."
        }
        if let account, lacksRecords {
            let source = successor(of: account, after: .noRecord).map { " Names come from \($0.title)." } ?? ""
            return "HTTPDNS answers, but had a record of none of the last \(Self.fewestNames) names.\(source)"
        }
        if lacksFallback {
            return "Names resolve through HTTPDNS alone. What it does not answer fails: [fallback] has no server."
        }
        guard let first = mainGroups.first else {
            let others = otherGroups.filter { !$0.servers.isEmpty && !$0.isFailing }
            return "Names resolve through \(others.map(\.title).joined(separator: ", ")) alone."
        }
        let isKnown = sources.contains { $0.standing != .unknown }
        return "\(isKnown ? "Names resolve" : "Ready to resolve names") through \(first.title)."
    }

    /// The consequence of a group for other names whose servers all fail.
    private func failure(_ group: GroupView) -> String {
        guard let successor = successor(of: group) else { return "\(group.title) fails. Its names do not resolve." }
        return "\(group.title) fails. Its names come from \(successor.title)."
    }

    /// The reasons for the verdict, in one or two sentences.
    var explanation: String {
        let cached = "What is cached is still answered."
        switch state {
        case .starting, .stopping: return ""
        case .down:
            guard let group = routedGroups.first(where: \.isFailing) else { return cached }
            return "\(reason(group)) \(cached)"
        case .degraded: return groups.filter(isTroubled).map(reason).joined(separator: " ")
        case .healthy:
            let inUse = routedGroups.first { !$0.servers.isEmpty }
            guard let group = inUse, let server = group.asked, server.standing != .unknown else {
                return "No question yet."
            }
            let speed = server.health.roundTrip.map { " in about \(Self.milliseconds($0))" } ?? ""
            return "\(server.brief) answers\(group.account.map { " over \($0.encryption.rawValue)" } ?? "")\(speed)."
        }
    }

    /// The operator's remedies for the reasons; empty without a problem.
    var advice: String {
        var advice: [String] = []
        if lacksRecords {
            advice.append(
                "Register the domains of your names with the account, or name those that it has in domains.intercept.")
        }
        if lacksFallback { advice.append("Name a server in fallback.servers.") }
        let failing = groups.filter(isTroubled)
        let probe = "httpdnsd probe\(self.fileOption)"
        let others = failing.filter(\.isOwn).map { "\(probe) --group \($0.name)" }
        let commands = (failing.count > others.count ? [probe] : []) + others
        if let first = commands.first {
            advice.append("To see at which step it fails: \(commands.count > 1 ? "\(first), and so on" : first)")
        }
        return advice.joined(separator: " ")
    }

    private func isTroubled(_ group: GroupView) -> Bool {
        group.isFailing || group.id == .httpdns && (group.asked?.isFailing ?? false || group.isSwitched)
    }

    /// The failure of the group's current server, or of the previous server, which was given up.
    private func reason(_ group: GroupView) -> String {
        let asked = group.asked.flatMap { $0.isFailing ? $0 : nil }
        guard let server = asked ?? group.servers.first else { return "" }
        let detail = server.last?.detail ?? "it does not answer"
        return "\(group.title) \(server.brief) \(server.isFailing ? "fails" : "has failed"): \(detail)."
    }

    /// The output of `httpdnsd status`.
    var text: String {
        var lines = [headline, "", verdict]
        if state == .degraded || state == .down { lines += [explanation, advice].filter { !$0.isEmpty } }
        lines += notes
        if let reachText { lines.append(reachText) }
        lines.append("Up \(Self.span(uptimeSeconds)); \(askedText).")
        lines += turnedAway + [certificateText].compactMap(\.self)
        lines.append("Last hour: \(hour.questions.words).")
        if let pace { lines.append(pace) }
        lines += groupLines
        lines.append(cacheLine)
        if let sharedCacheLine { lines.append(sharedCacheLine) }
        for (reason, count) in fallbacks {
            lines.append(
                "\(substitute ?? "Another group") asked \(Self.counted(count, "time")): \(reason.text)")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Lasting differences from the settings, and the shortages of this machine in the last minute.
    var notes: [String] {
        guard let at = self.counters.shortAt, self.at.milliseconds(since: at) < 60_000 else { return self.remarks }
        return self.remarks + [
            "This machine was short of what questions need, \(self.at.milliseconds(since: at) / 1000) s ago: "
                + "\(self.counters.shortOf). No server is to blame"
        ]
    }

    /// The number of questions, by transport: `60 questions, 12 over UDP, 48 over TLS`.
    var askedText: String {
        let ways = self.askedOver.map { ", \(Self.grouped($0.count)) over \($0.transport.rawValue.uppercased())" }
        return Self.counted(self.counts.asked, "question") + ways.joined()
    }

    /// How many clients are turned away, a sentence for each reason.
    var turnedAway: [String] {
        Counted.allCases.compactMap { event in
            let count = self.counts[event]
            return count > 0 ? event.row.words.map { "\(Self.counted(count, $0.noun)) \($0.rest)" } : nil
        }
    }

    /// The certificate for clients; nil without a certificate, or if a remark names the certificate's defect.
    var certificateText: String? {
        guard let certificate = self.certificate, certificate.remarks(at: self.now).isEmpty else { return nil }
        let left = UInt64(max(0, certificate.secondsLeft(at: self.now)))
        return "The certificate for clients over TLS and HTTPS ends in \(Self.span(left))."
    }

    /// The way to IPv4, if it differs from most networks.
    var reachText: String? { self.reach.words.map { $0.prefix(1).uppercased() + $0.dropFirst() + "." } }

    /// The groups that are asked next: `then fallback`, and on what condition, unless a failure is enough. Empty for
    /// `[fallback]`, which is always the last.
    private func order(of group: GroupView) -> String {
        if let answer = group.answer { return "answers \(answer) itself, asks no server" }
        if group.isWall { return "no other server is asked" }
        let next = group.thenTry.compactMap { id in groups.first { $0.id == id }?.title }
        let condition = group.thenTryOn.contains(.failure) ? "" : " if it \(group.thenTryOn.words)"
        return next.isEmpty ? "" : "then \(next.joined(separator: ", "))\(condition)"
    }

    /// A line for each group, and below each group a line for each of its servers, in columns.
    private var groupLines: [String] {
        let rows = groups.map { group in
            group.servers.map { server in
                [server.address, server.way, group.servers.count > 1 && server.isInUse ? "in use" : "", server.text]
            } + group.leftOut.map { [$0.server.description, "", "", $0.brief] }
        }
        let widths = (0..<3).map { column in rows.joined().map { $0[column].count }.max() ?? 0 }
        return zip(groups, rows).flatMap { group, rows in
            let facts = [group.exposureText ?? ""] + facts(group)
            let servers = rows.map { row in
                zip(row, widths).reduce("  ") { line, cell in
                    cell.1 == 0 ? line : line + cell.0 + String(repeating: " ", count: cell.1 - cell.0.count + 2)
                } + row[3]
            }
            return ["\(group.title): \(facts.filter { !$0.isEmpty }.joined(separator: "; "))"]
                + (servers.isEmpty && group.answer == nil ? ["  no server"] : servers)
        }
    }

    /// The next groups, and the counts of questions and billed names.
    func facts(_ group: GroupView) -> [String] {
        var facts = [order(of: group), Self.counted(group.counters.questions, "question")]
        if group.isAccount {
            facts.append(
                "billed for at most \(Self.counted(group.counters.names, "name")), "
                    + "\(Self.grouped(group.namesLastHour ?? 0)) in the last hour")
        }
        return facts.filter { !$0.isEmpty }
    }

    private var cacheLine: String {
        "Cache: \(Self.counted(UInt64(self.cache.entries), "answer")), \(Self.octets(self.cache.bytes)) of \(Self.octets(self.cacheLimit))"
            + (hitRate.map { ", \(Self.percent($0)) hits" } ?? "")
            + "; \(Self.grouped(self.cache.evictions)) evicted, \(Self.grouped(self.counters.servedStale)) served stale, "
            + "\(Self.grouped(self.counts[.refreshed])) refreshed before their end"
    }

    /// The durations of all answers, and of the answers that were not in the cache. Most answers are in the cache, so
    /// only the other answers show the speed of servers. Nil without answers.
    var pace: String? {
        guard self.durations.total > 0 else { return nil }
        func bounds(_ durations: Durations) -> String {
            "took \(Self.bound(durations, 0.5)), 99 in 100 \(Self.bound(durations, 0.99))"
        }
        let others = self.lookups.total > 0 ? "; of those not in the cache half \(bounds(self.lookups))" : ""
        return "Half of the answers \(bounds(self.durations))\(others)."
    }

    /// A duration by the histogram's bounds, such as `under 4 ms`.
    private static func bound(_ durations: Durations, _ share: Double) -> String {
        let bound = durations.bound(ofShare: share)
        return (bound == nil ? "" : "under ") + milliseconds(nanoseconds: bound)
    }
}

/// The shared cache in words.
extension Overview {
    /// `Shared cache: in use; 12 of 30 looks found something; waits 1 ms at most`; nil: no store is configured.
    var sharedCacheLine: String? {
        guard let shared = self.sharedCache else { return nil }
        let counters = shared.counters
        var parts = ["Shared cache: \(shared.state)"]
        if !shared.isOn, let next = shared.nextTry {
            parts.append("next try in \(Self.span(UInt64(next.milliseconds(since: self.at) / 1000)))")
        }
        parts.append("\(counters.hits) of \(counters.reads) looks found something")
        guard shared.isOn else { return parts.joined(separator: "; ") }
        if let usual = shared.usual { parts.append("95 % within \(Self.milliseconds(Double(usual) / 1e6))") }
        parts.append(shared.budget == 0 ? "no question waits for it" : "questions wait \(shared.budget) ms at most")
        if counters.refused > 0 { parts.append("\(counters.refused) foreign entries deleted") }
        return parts.joined(separator: "; ")
    }
}

extension SharedCacheOverview {
    /// Whether the shared cache is in use and takes answers; if not, the reason.
    var state: String {
        if isOn { return reason.isEmpty ? "in use" : "in use, but it takes no answers: \(reason)" }
        return reason.isEmpty ? "not connected yet" : "not in use: \(reason)"
    }
}
