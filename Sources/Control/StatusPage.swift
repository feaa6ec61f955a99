import Base
import Counters
import DNSCache
import Forwarding
import Transport

/// The status page, one HTML document that loads nothing and runs no script. Its style sheet has a random nonce, and
/// the response's Content-Security-Policy allows no other style sheet.
struct StatusPage {
    let overview: Overview
    /// The name of this machine; empty if the name is unknown.
    private let host: String
    /// Whether the page is static. If not, the page refreshes itself.
    private let isStill: Bool
    private let nonce: String

    init(_ overview: Overview, host: String = "", isStill: Bool = false) {
        (self.overview, self.host, self.isStill) = (overview.withoutMistake, host, isStill)
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

    var html: HTML {
        """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        \(refresh)
        <title>\(overview.verdict) \(name)</title>
        <link rel="icon" href="data:image/svg+xml,\(icon)">
        <style nonce="\(nonce)">
        \(StatusPage.style)
        </style>
        </head>
        <body class="\(overview.state.rawValue)">
        <main>
        <header>
        <p class="name">\(name) \(asOf)</p>
        <h1>\(overview.verdict)</h1>
        <p class="why">\(overview.explanation) \(overview.reachText ?? "")</p>\(advice)\(remarks)
        </header>
        \(figures)
        \(section("What left this machine in the last hour", sentQuestions))
        \(courses)
        \(section("Who asks", clients))
        <div class="pair">
        \(section("How fast", speed))
        \(section("Cache", cache))
        </div>
        \(section("Who is asked", servers))
        \(overview.account == nil ? "" : section("Fallback", fallbacks))
        <footer>httpdnsd \(Version.current), up \(Overview.span(overview.uptimeSeconds)). For programs: <a href="/metrics">metrics</a>, \
        <a href="/readyz">is it ready?</a>, <a href="/healthz">does it live?</a></footer>
        </main>
        </body>
        </html>

        """
    }

    private var advice: HTML { overview.advice.isEmpty ? "" : "\n<p class=\"why\">\(overview.advice)</p>" }

    /// The remarks on problems.
    private var remarks: HTML {
        let items = overview.notes.map { words -> HTML in "<li>\(words)</li>" }
        return items.isEmpty ? "" : "\n<ul class=\"remarks\">\(items)</ul>"
    }

    private var refresh: HTML { isStill ? "" : "<meta http-equiv=\"refresh\" content=\"10\">" }

    private var name: String { host.isEmpty ? "httpdnsd" : "httpdnsd on \(host)" }

    /// The time of the figures, and a link to newer ones.
    private var asOf: HTML {
        let time = TimeText(utc: overview.now).dated.replacing("T", with: " ")
        return isStill
            ? "<span>as of \(time) UTC: <a href=\"/?still\">later</a>, or <a href=\"/\">every ten seconds</a></span>"
            : "<span>as of \(time) UTC, renewed every ten seconds: <a href=\"/?still\">stand still</a></span>"
    }

    /// The icon for the browser's tab: a dot in the colour of the state.
    private var icon: HTML {
        let colour: HTML =
            switch overview.state {
            case .healthy: "2a9d5c"
            case .degraded, .starting, .stopping: "c98a00"
            case .down: "d13b3b"
            }
        return
            "%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 8 8'%3E%3Ccircle cx='4' cy='4' r='4' fill='%23\(colour)'/%3E%3C/svg%3E"
    }

    private func section(_ title: HTML, _ content: HTML) -> HTML {
        "<section>\n<h2>\(title)</h2>\n\(content)\n</section>"
    }

    private var figures: HTML {
        let questions = overview.hour.questions
        func median(_ durations: Durations) -> String {
            durations.total > 0 ? Overview.milliseconds(nanoseconds: durations.bound(ofShare: 0.5)) : "–"
        }
        var figures: [(label: HTML, value: String)] = [
            ("left in the clear in the last hour", questions.clearShare.map(Overview.percent) ?? "–"),
            ("median answer, at most", median(overview.durations)),
            ("median of those not in the cache, at most", median(overview.lookups)),
            ("answered from the cache", overview.hitRate.map(Overview.percent) ?? "–"),
            ("questions in the last hour", Overview.grouped(questions.asked)),
        ]
        let names = overview.hour.names.values.reduce(0, +)
        if names > 0 || overview.groups.contains(where: \.isAccount) {
            figures.append(("names billed in the last hour, at most", Overview.grouped(names)))
        }
        let items = figures.enumerated().map { index, figure -> HTML in
            let tone: HTML = index == 0 && questions.clear > 0 ? " class=\"warn\"" : ""
            return "<div><dt>\(figure.label)</dt><dd\(tone)>\(figure.value)</dd></div>"
        }
        return "<dl class=\"figures\">\n\(items)\n</dl>"
    }

    // MARK: Ways of questions

    private var sentQuestions: HTML {
        let questions = overview.hour.questions
        guard questions.all > 0 else { return "<p class=\"quiet\">No question yet.</p>" }
        let hour = Columns(
            course: Course(width: .minute, steps: overview.hour.minutes, elapsed: 0), title: "The last hour",
            axis: ["1 h ago", "30 min", "now"], rows: (steps: 10, length: 10, unit: "min"))
        return "\(Bars.stack(questions.parts, label: questions.words))\n\(hour.html)"
    }

    private var courses: HTML {
        let forms: [(title: String, axis: [String], rows: Columns.Rows)] = [
            ("The last 24 hours", ["24 h ago", "12 h", "now"], (steps: 12, length: 1, unit: "h")),
            ("The last 30 days", ["30 d ago", "15 d", "now"], (steps: 24, length: 1, unit: "d")),
        ]
        let sections = zip(forms, overview.past).filter { $0.1.steps.contains { $0.all + $0.failed > 0 } }.map {
            form, course in
            section(
                "\(form.title)", Columns(course: course, title: form.title, axis: form.axis, rows: form.rows).html)
        }
        return sections.isEmpty ? "" : "<div class=\"pair\">\n\(sections)\n</div>"
    }

    // MARK: Clients

    private var clients: HTML {
        let lines = ["\(overview.askedText)."] + overview.turnedAway + [overview.certificateText].compactMap(\.self)
        return "\(lines.map { line -> HTML in "<p>\(line)</p>" })"
    }

    // MARK: Servers

    private var servers: HTML {
        if overview.groups.allSatisfy({ $0.servers.isEmpty && $0.answer == nil }) {
            return "<p class=\"quiet\">No server: only what is cached is answered.</p>"
        }
        return "\(overview.groups.map(group))"
    }

    /// The number of groups above which healthy groups are folded.
    private static let mostUnfolded = 3

    private func group(_ group: GroupView) -> HTML {
        let way: HTML =
            group.exposureText.map { "<em class=\"\(Bars.name(group.exposure ?? .none))\">\($0)</em>" } ?? ""
        let list: HTML =
            group.answer != nil
            ? ""
            : group.servers.isEmpty
                ? "<p class=\"quiet\">It has no server: what only it could answer fails.</p>"
                : "<ul class=\"servers\">\n\(group.servers.map { item($0, isAlone: group.servers.count == 1) })\n</ul>"
        let heading: HTML =
            "<h3>\(group.title) \(way) <span>\(overview.facts(group).joined(separator: "; "))</span></h3>"
        guard overview.groups.count > Self.mostUnfolded else {
            return "<div class=\"group\">\n\(heading)\n\(list)\n</div>"
        }
        return """
            <details class="group"\(group.isWell ? "" : " open")>
            <summary>\(heading)</summary>
            \(list)
            </details>
            """
    }

    private func item(_ server: ServerView, isAlone: Bool) -> HTML {
        var facts: [String] = []
        // The speed of a failing server would read as if the server answered.
        if !server.isFailing {
            if let roundTrip = server.health.roundTrip { facts.append("in about \(Overview.milliseconds(roundTrip))") }
            facts += server.latest
        }
        if server.standing != .unknown { facts.append("\(Overview.grouped(server.health.answers)) answered") }
        if server.health.failures > 0 { facts.append("\(Overview.grouped(server.health.failures)) failed") }
        if let nextTry = server.nextTry { facts.append(nextTry) }
        let last: HTML =
            server.last.map { last in
                "<p class=\"failure\">\(server.isFailing ? "Fails" : "Last failure"): \(last.text)</p>"
            } ?? ""
        let expiry: HTML = server.expiry.map { "<p class=\"failure warn\">\($0)</p>" } ?? ""
        return """
            <li>
            <p class="server">\(server.address)</p>
            <p class="state \(tone(server.standing))">\(server.standing.words)</p>
            <p class="way">\(server.way)\(!isAlone && server.isInUse ? ", in use" : "")</p>
            <p class="facts">\(facts.joined(separator: ", "))</p>\(last)\(expiry)\(roundTrips(server))
            </li>
            """
    }

    /// The class of the style sheet.
    private func tone(_ standing: Standing) -> HTML {
        switch standing {
        case .unknown: "idle"
        case .answers: "good"
        case .setAside: "warn"
        case .paused, .fails: "bad"
        }
    }

    /// The round trips of the last hour: a column for each minute, red for attempts that failed.
    private func roundTrips(_ server: ServerView) -> HTML {
        let failures = server.hour.reduce(0) { $0 + $1.failures }
        let span = server.roundTrips.map { "Round trips \($0)" }
        guard span != nil || failures > 0 else { return "" }
        let failed = failures > 0 ? "\(Overview.grouped(failures)) failed (red)" : nil
        let words = [span, failed].compactMap(\.self).joined(separator: ", ") + " in the last hour"
        return "<div class=\"trips\">\(Bars.roundTrips(server.hour, label: words))<p class=\"facts\">\(words)</p></div>"
    }

    // MARK: Pictures

    private var speed: HTML {
        let durations = overview.durations
        guard durations.total > 0, let words = overview.pace else {
            return "<p class=\"quiet\">Nothing was answered yet.</p>"
        }
        // A bar's bound at each quarter, and at the end.
        let axis = (0...4).map { quarter -> HTML in
            "<span>\(Overview.milliseconds(nanoseconds: Durations.upperBound(quarter * (Durations.bucketCount - 1) / 4)))</span>"
        }
        return """
            <p>\(words)</p>
            \(Bars.columns(durations.counts, label: words))
            <p class="axis">\(axis)</p>
            <p class="quiet">From bar to bar the time doubles.</p>
            """
    }

    private var sharedCache: HTML { overview.sharedCacheLine.map { "\n<p class=\"quiet\">\($0).</p>" } ?? "" }

    private var cache: HTML {
        let cache = overview.cache
        let share = overview.cacheLimit > 0 ? Double(cache.bytes) / Double(overview.cacheLimit) : 0
        let fill = "\(Overview.octets(cache.bytes)) of \(Overview.octets(overview.cacheLimit))"
        return """
            <p>\(Overview.counted(UInt64(cache.entries), "answer")) in \(fill).</p>
            \(Bars.meter(share, label: "Fill: \(fill)"))
            <p>\(overview.hitRate.map { "\(Overview.percent($0)) of the questions were answered from it." } ?? "Nothing was asked yet.")</p>
            \(Bars.meter(overview.hitRate ?? 0, label: "Hit rate"))
            <p class="quiet">\(Overview.grouped(cache.hits)) hits, \(Overview.grouped(cache.misses)) misses, \
            \(Overview.grouped(overview.counters.servedStale)) served stale, \(Overview.grouped(cache.evictions)) evicted.</p>\
            \(sharedCache)
            """
    }

    private var fallbacks: HTML {
        let fallbacks = overview.fallbacks
        guard let most = fallbacks.first?.count else {
            return
                "<p class=\"quiet\">No question for HTTPDNS had to go to \(overview.substitute ?? "another group").</p>"
        }
        let items = fallbacks.map { reason, count -> HTML in
            """
            <li><p><b>\(Overview.counted(count, "time"))</b>: \(reason.text)</p>\
            \(Bars.meter(Double(count) / Double(most), label: reason.text))</li>
            """
        }
        return """
            <p>Questions for HTTPDNS that \(overview.substitute ?? "another group") was asked:</p>
            <ul class="reasons">
            \(items)
            </ul>
            """
    }
}
