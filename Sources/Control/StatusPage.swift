import Base
import Counters
import DNSCache
import Forwarding
import Transport

/// The status page: one HTML document that loads nothing and runs no script. Its style sheet carries a random nonce,
/// and the response's Content-Security-Policy allows no other.
struct StatusPage {
    let overview: Overview
    private let nonce: String

    init(_ overview: Overview) {
        self.overview = overview
        var random = Random()
        nonce = String(random.uint64(), radix: 36) + String(random.uint64(), radix: 36)
    }

    var fields: String {
        """
        Content-Security-Policy: default-src 'none'; style-src 'nonce-\(nonce)'; img-src data:; base-uri 'none'; \
        form-action 'none'; frame-ancestors 'none'\r
        Referrer-Policy: no-referrer\r

        """
    }

    var html: String {
        """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <meta http-equiv="refresh" content="10">
        <title>\(escaped(overview.verdict)) httpdnsd</title>
        <link rel="icon" href="data:image/svg+xml,\(icon)">
        <style nonce="\(nonce)">
        \(StatusPage.style)
        </style>
        </head>
        <body class="\(overview.state.rawValue)">
        <main>
        <header>
        <p class="name">httpdnsd</p>
        <h1>\(escaped(overview.verdict))</h1>
        <p class="why">\(escaped(overview.explanation))</p>
        </header>
        \(figures)
        \(section("What left this machine in the last hour", whatLeft))
        \(section("Who is asked", servers))
        <div class="pair">
        \(section("How fast", speed))
        \(section("The last hour", lastHour))
        </div>
        <div class="pair">
        \(section("Cache", cache))
        \(section("Fallback", fallbacks))
        </div>
        <footer>httpdnsd \(Version.current), up \(Overview.span(overview.uptimeSeconds)), \
        \(Overview.grouped(overview.asked)) questions. This page renews itself every ten seconds.</footer>
        </main>
        </body>
        </html>

        """
    }

    /// The icon for the browser's tab: a dot in the colour of the state.
    private var icon: String {
        let colour =
            switch overview.state {
            case .healthy: "2a9d5c"
            case .degraded, .starting, .stopping: "c98a00"
            case .down: "d13b3b"
            }
        return
            "%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 8 8'%3E%3Ccircle cx='4' cy='4' r='4' fill='%23\(colour)'/%3E%3C/svg%3E"
    }

    private func section(_ title: String, _ content: String) -> String {
        "<section>\n<h2>\(title)</h2>\n\(content)\n</section>"
    }

    private var figures: String {
        let half =
            overview.durations.total > 0
            ? Overview.milliseconds(nanoseconds: overview.durations.bound(ofShare: 0.5)) : "–"
        let questions = overview.hour.questions
        var figures = [
            (
                questions.all > 0 ? Overview.share(questions.clear, of: questions.all) : "–",
                "left in the clear in the last hour"
            ),
            (half, "median answer, at most"),
            (overview.hitRate.map(Overview.percent) ?? "–", "answered from the cache"),
            (Overview.grouped(questions.asked), "questions in the last hour"),
        ]
        if !overview.hour.names.isEmpty {
            let names = overview.hour.names.values.reduce(0, +)
            figures.append((Overview.grouped(names), "names billed in the last hour, at most"))
        }
        return "<dl class=\"figures\">\n"
            + figures.map { "<div><dt>\($0.1)</dt><dd>\($0.0)</dd></div>\n" }.joined() + "</dl>"
    }

    // MARK: Where questions went

    private var whatLeft: String {
        let questions = overview.hour.questions
        guard questions.all > 0 else { return "<p class=\"quiet\">Nobody has asked.</p>" }
        let parts = overview.questionParts.filter { $0.count > 0 || $0.exposure == .clear }
        let items = parts.map { part in
            let share = Overview.share(part.count, of: questions.all)
            let place = "<span>\(Overview.grouped(part.count))</span>"
            return "<li class=\"\(Bars.name(part.exposure))\"><b>\(share)</b> \(part.words) \(place)</li>"
        }
        return """
            \(Bars.stack(parts.map { ($0.exposure, $0.count) }, label: overview.whereQuestionsWent))
            <ul class="parts">
            \(items.joined(separator: "\n"))
            </ul>
            """
    }

    // MARK: Servers

    private var servers: String {
        if overview.groups.allSatisfy(\.servers.isEmpty) {
            return "<p class=\"quiet\">Nobody: only what is cached is answered.</p>"
        }
        return overview.groups.map(group).joined(separator: "\n")
    }

    private func group(_ group: Overview.Group) -> String {
        let way = group.exposureText.map { "<em class=\"\(Bars.name(group.exposure ?? .none))\">\($0)</em>" } ?? ""
        let list =
            group.servers.isEmpty
            ? "<p class=\"quiet\">It has no server: what only it could answer fails.</p>"
            : "<ul class=\"servers\">\n\(group.servers.map { item($0, group) }.joined(separator: "\n"))\n</ul>"
        return """
            <div class="group">
            <h3>\(escaped(group.heading)) \(way) <span>\(escaped(overview.facts(group).joined(separator: "; ")))</span></h3>
            \(list)
            </div>
            """
    }

    private func item(_ server: ServerState, _ group: Overview.Group) -> String {
        let health = server.health
        let (state, word) =
            !server.isKnown
            ? ("idle", "not asked yet")
            : server.isFailing
                ? ("bad", health.isPaused(at: overview.at) ? "paused" : "fails")
                : server.isSetAside ? ("warn", "set aside") : ("good", "answers")
        var facts: [String] = []
        // How fast one was that fails now would read as if it answered.
        if !server.isFailing {
            if let roundTrip = health.roundTrip { facts.append("in about \(Overview.milliseconds(roundTrip))") }
            facts += overview.latest(server.server)
        }
        if server.isKnown { facts.append("\(Overview.grouped(health.answers)) answered") }
        if health.failures > 0 { facts.append("\(Overview.grouped(health.failures)) failed") }
        if let passedOver = overview.passedOver(server, of: group) { facts.append(passedOver) }
        var last = ""
        if let failure = health.lastFailure {
            let when = health.lastFailureAt.map { overview.at.milliseconds(since: $0) / 1000 } ?? 0
            let head = server.isFailing ? "Fails" : "Last failure"
            last = "<p class=\"failure\">\(head): \(escaped(failure.detail)), \(Overview.span(UInt64(when))) ago</p>"
        }
        if let expiry = overview.expiry(server.server) { last += "<p class=\"failure warn\">\(expiry)</p>" }
        let mark = group.servers.count > 1 && group.isInUse(server) ? ", in use" : ""
        return """
            <li>
            <p class="server">\(escaped(server.server.description))</p>
            <p class="way">\(escaped(group.way(server)))\(mark)</p>
            <p class="state \(state)">\(word)</p>
            <p class="facts">\(escaped(facts.joined(separator: ", ")))</p>\(last)\(roundTrips(server.server))
            </li>
            """
    }

    /// The round trips of the last hour: a column for each minute, red where attempts failed.
    private func roundTrips(_ server: Server) -> String {
        let minutes = overview.hour.answers[server] ?? []
        let failures = minutes.reduce(0) { $0 + $1.failures }
        let span = overview.roundTrips(server).map { "Round trips \($0)" }
        guard span != nil || failures > 0 else { return "" }
        let failed = failures > 0 ? "\(Overview.grouped(failures)) failed (red)" : nil
        let words = [span, failed].compactMap(\.self).joined(separator: ", ") + " in the last hour"
        return "<div class=\"trips\">\(Bars.roundTrips(minutes, label: words))<p class=\"facts\">\(words)</p></div>"
    }

    // MARK: Pictures

    private var speed: String {
        let durations = overview.durations
        guard durations.total > 0 else { return "<p class=\"quiet\">Nothing was answered yet.</p>" }
        let words = "Half of the answers took \(overview.bound(0.5)), 99 in 100 \(overview.bound(0.99))."
        return """
            <p>\(words)</p>
            \(Bars(durations.counts, isRooted: true, label: words).svg)
            <p class="axis"><span>16 µs</span><span>0.5 ms</span><span>16 ms</span><span>0.5 s</span><span>more</span></p>
            <p class="quiet">From bar to bar the time doubles; heights by square root, so that few are seen, too.</p>
            """
    }

    private var lastHour: String {
        let minutes = overview.hour.minutes.map(\.asked)
        let peak = minutes.max() ?? 0
        let words =
            "\(Overview.grouped(minutes.reduce(0, +))) questions, \(Overview.grouped(peak)) in the busiest minute."
        let missing = [UInt64](repeating: 0, count: Growth<UInt64>.count + 1 - minutes.count)
        return """
            <p>\(words)</p>
            \(Bars(missing + minutes, isRooted: false, label: words).svg)
            <p class="axis"><span>1 h ago</span><span>30 min</span><span>now</span></p>
            <p class="quiet">A bar is a minute; the last one is not over yet.</p>
            """
    }

    private var sharedCache: String {
        overview.sharedCacheLine.map { "\n<p class=\"quiet\">\(escaped($0)).</p>" } ?? ""
    }

    private var cache: String {
        let cache = overview.cache
        let share = overview.cacheLimit > 0 ? Double(cache.bytes) / Double(overview.cacheLimit) : 0
        let fill = "\(Overview.octets(cache.bytes)) of \(Overview.octets(overview.cacheLimit))"
        return """
            <p>\(Overview.grouped(UInt64(cache.entries))) answers in \(fill).</p>
            \(Bars.meter(share, label: "Fill: \(fill)"))
            <p>\(overview.hitRate.map { "\(Overview.percent($0)) of the questions were answered from it." } ?? "Nothing was asked yet.")</p>
            \(Bars.meter(overview.hitRate ?? 0, label: "Hit rate"))
            <p class="quiet">\(Overview.grouped(cache.hits)) hits, \(Overview.grouped(cache.misses)) misses, \
            \(Overview.grouped(overview.counters.servedStale)) served stale, \(Overview.grouped(cache.evictions)) evicted.</p>\
            \(sharedCache)
            """
    }

    private var fallbacks: String {
        let fallbacks = overview.fallbacks
        guard let most = fallbacks.first?.count else {
            return "<p class=\"quiet\">No question for HTTPDNS had to go to a local resolver.</p>"
        }
        let items = fallbacks.map { reason, count in
            """
            <li><p><b>\(Overview.grouped(count))</b> \(escaped(reason.text))</p>\
            \(Bars.meter(Double(count) / Double(most), label: reason.text))</li>
            """
        }
        return """
            <p>Questions for HTTPDNS that a local resolver was asked:</p>
            <ul class="reasons">
            \(items.joined(separator: "\n"))
            </ul>
            """
    }
}

/// A text escaped for HTML. The words of a failure may come from a server's certificate.
func escaped(_ text: String) -> String {
    var escaped = ""
    for character in text.unicodeScalars {
        switch character {
        case "&": escaped += "&amp;"
        case "<": escaped += "&lt;"
        case ">": escaped += "&gt;"
        case "\"": escaped += "&quot;"
        case "'": escaped += "&#39;"
        default: escaped.unicodeScalars.append(character)
        }
    }
    return escaped
}
