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
        \(section("Who is asked", servers))
        <div class="pair">
        \(section("How fast", speed))
        \(section("The last hour", lastHour))
        </div>
        <div class="pair">
        \(section("Cache", cache))
        \(section("Fallback", fallbacks))
        </div>
        <footer>httpdnsd \(Version.current), up \(Overview.span(overview.uptimeSeconds)). \
        This page renews itself every ten seconds.</footer>
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
        let figures = [
            (half, "median answer, at most"),
            (overview.hitRate.map(Overview.percent) ?? "–", "answered from the cache"),
            (overview.minutes?.last.map(grouped) ?? grouped(overview.thisMinute), "questions in the last minute"),
            (grouped(overview.asked), "questions since the start"),
        ]
        return "<dl class=\"figures\">\n"
            + figures.map { "<div><dt>\($0.1)</dt><dd>\($0.0)</dd></div>\n" }.joined() + "</dl>"
    }

    // MARK: Servers

    private var servers: String {
        if overview.groups.allSatisfy(\.servers.isEmpty) {
            return "<p class=\"quiet\">Nobody: only what is cached is answered.</p>"
        }
        return overview.groups.map(group).joined(separator: "\n")
    }

    private func group(_ group: Overview.Group) -> String {
        let count = group.counters.questions
        let facts = [overview.order(of: group), "\(grouped(count)) question\(count == 1 ? "" : "s")"]
        let list =
            group.servers.isEmpty
            ? "<p class=\"quiet\">It has no server: what only it could answer fails.</p>"
            : "<ul class=\"servers\">\n\(group.servers.map { item($0, group) }.joined(separator: "\n"))\n</ul>"
        return """
            <div class="group">
            <h3>\(escaped(group.heading)) <span>\(escaped(facts.filter { !$0.isEmpty }.joined(separator: "; ")))</span></h3>
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
        if let roundTrip = health.roundTrip { facts.append("in about \(Overview.milliseconds(roundTrip))") }
        facts += overview.latest(server.server)
        if server.isKnown { facts.append("\(grouped(health.answers)) answered") }
        if health.failures > 0 { facts.append("\(grouped(health.failures)) failed") }
        if let passedOver = overview.passedOver(server, of: group) { facts.append(passedOver) }
        var last = ""
        if let failure = health.lastFailure {
            let when = health.lastFailureAt.map { overview.at.milliseconds(since: $0) / 1000 } ?? 0
            let head = server.isFailing ? "Fails" : "Last failure"
            last = "<p class=\"failure\">\(head): \(escaped(failure.detail)), \(Overview.span(UInt64(when))) ago</p>"
        }
        let mark = group.servers.count > 1 && group.isInUse(server) ? ", in use" : ""
        return """
            <li>
            <p class="server">\(escaped(server.server.description))</p>
            <p class="way">\(escaped(group.way(server)))\(mark)</p>
            <p class="state \(state)">\(word)</p>
            <p class="facts">\(escaped(facts.joined(separator: ", ")))</p>\(last)
            </li>
            """
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
        let minutes = (overview.minutes ?? []) + [overview.thisMinute]
        let peak = minutes.max() ?? 0
        let words = "\(grouped(minutes.reduce(0, +))) questions, \(grouped(peak)) in the busiest minute."
        let missing = [UInt64](repeating: 0, count: RateHistory.count + 1 - minutes.count)
        return """
            <p>\(words)</p>
            \(Bars(missing + minutes, isRooted: false, label: words).svg)
            <p class="axis"><span>1 h ago</span><span>30 min</span><span>now</span></p>
            <p class="quiet">A bar is a minute; the last one is not over yet.</p>
            """
    }

    private var cache: String {
        let cache = overview.cache
        let share = overview.cacheLimit > 0 ? Double(cache.bytes) / Double(overview.cacheLimit) : 0
        let fill = "\(Overview.octets(cache.bytes)) of \(Overview.octets(overview.cacheLimit))"
        return """
            <p>\(grouped(UInt64(cache.entries))) answers in \(fill).</p>
            \(Bars.meter(share, label: "Fill: \(fill)"))
            <p>\(overview.hitRate.map { "\(Overview.percent($0)) of the questions were answered from it." } ?? "Nothing was asked yet.")</p>
            \(Bars.meter(overview.hitRate ?? 0, label: "Hit rate"))
            <p class="quiet">\(grouped(cache.hits)) hits, \(grouped(cache.misses)) misses, \
            \(grouped(overview.counters.servedStale)) served stale, \(grouped(cache.evictions)) evicted.</p>
            """
    }

    private var fallbacks: String {
        let fallbacks = overview.fallbacks
        guard let most = fallbacks.first?.count else {
            return "<p class=\"quiet\">No question for HTTPDNS had to go to a local resolver.</p>"
        }
        let items = fallbacks.map { reason, count in
            """
            <li><p><b>\(grouped(count))</b> \(escaped(reason.text))</p>\
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

/// A number with commas: `1,234,567`.
private func grouped(_ number: UInt64) -> String {
    var text = ""
    for (place, digit) in String(number).reversed().enumerated() {
        if place > 0, place % 3 == 0 { text.append(",") }
        text.append(digit)
    }
    return String(text.reversed())
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
