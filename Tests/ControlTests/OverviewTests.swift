import Base
import Configuration
import Counters
import DNSCache
import DNSWire
import Testing

@testable import Control
@testable import Forwarding

@Suite struct OverviewTests {
    private static let now = Tick(nanoseconds: 1_000_000_000_000)

    private func server(
        _ text: String, _ kind: Server.Kind = .plain, failedBefore seconds: Int? = nil, roundTrip: Double? = 21
    ) -> ServerState {
        var health = ServerHealth()
        health.roundTrip = roundTrip
        health.answers = roundTrip == nil ? 0 : 1
        if let seconds {
            health.consecutiveFailures = 1
            health.failures = 1
            health.lastFailure = Failure(.untrusted, "certificate is for <b>\"x\"</b> & 'y'")
            health.lastFailureAt = Tick(nanoseconds: Self.now.nanoseconds - UInt64(seconds) * 1_000_000_000)
        }
        return ServerState(Server(Endpoint(text)!, kind), health: health)
    }

    private func group(
        _ id: GroupID, _ name: String, _ servers: [ServerState], current: Int = 0, thenTry: [GroupID] = [],
        on: StepEnds = .any, counters: GroupCounters = GroupCounters()
    ) -> GroupOverview {
        var group = UpstreamGroup(
            id, servers.map(\.server), id == .httpdns ? .addresses(namesPerRequest: 8) : .messages, .lastThatAnswered,
            timeout: 2000)
        group.name = name
        return GroupOverview(
            group, servers, current: servers.indices.contains(current) ? servers[current].server : nil,
            counters: counters, thenTry: thenTry, thenTryOn: on)
    }

    @Test("a group that answers by itself asks no server, and is no trouble")
    func answers() throws {
        var ads = UpstreamGroup(GroupID(2), [], .messages, .lastThatAnswered, timeout: 2000)
        (ads.name, ads.answer) = ("ads", .addresses([.v4(0, 0, 0, 0), IPAddress(v6: 0, 0)]))
        var counters = GroupCounters()
        counters.questions = 1200
        let overview = overview(
            [], [server("192.0.2.53:53")], own: [GroupOverview(ads, [], counters: counters)])
        #expect(overview.state == .healthy)
        #expect(overview.text.contains("\nads: answers 0.0.0.0, :: itself, asks no server; 1,200 questions\nCache"))
        let page = StatusPage(overview).html.text
        #expect(page.contains("<h3>ads  <span>answers 0.0.0.0, :: itself, asks no server; 1,200 questions</span></h3>"))
        #expect(!page.contains("It has no server"))
        let group = try #require(overview.json.text.firstMatch(of: /\{"name": ?"ads".*?"servers"/)).output
        #expect(group.contains("\"kind\":\"answer\",\"answer\":\"0.0.0.0, ::\""))
    }

    /// - Parameter resolvers: nil: nobody asks them (`httpOnly`).
    private func overview(
        _ services: [ServerState], _ resolvers: [ServerState]?, current: Int = 0, own: [GroupOverview] = [],
        withoutRecord: UInt64 = 0, _ hour: Hour = Hour(minutes: []), _ change: (inout Observation) -> Void = { _ in }
    ) -> Overview {
        var observation = Observation(DNSCache(bytes: 1 << 20, seed: (1, 2)).statistics)
        observation.at = Self.now
        observation.accounts = ["httpdns": AccountWay(.https(token: Secret([])))]
        if !services.isEmpty {
            let thenTry: [GroupID] = resolvers == nil ? [] : [.fallback]
            var counters = GroupCounters()
            counters.withoutRecordInARow = withoutRecord
            observation.groups.append(
                group(.httpdns, "httpdns", services, current: current, thenTry: thenTry, counters: counters))
        }
        if let resolvers { observation.groups.append(group(.fallback, "fallback", resolvers)) }
        observation.mainRoute = observation.groups.filter { !$0.servers.isEmpty }.map(\.id)
        observation.groups += own
        observation.hasLostServers = true
        change(&observation)
        return Overview(observation, hour)
    }

    @Test("who answers and who does not make the state, and what is said of it")
    func states() {
        let (good, other) = (server("119.29.29.99:443", .account), server("119.28.28.99:443", .account))
        let (bad, local) = (server("119.29.29.99:443", .account, failedBefore: 1), server("192.0.2.53:53"))
        let deaf = server("192.0.2.53:53", failedBefore: 1)
        for (services, resolvers, state) in [
            ([good], [local], Overview.State.healthy), ([good], [], .healthy), ([], [local], .healthy),
            ([good, bad], [local], .healthy), ([good], [deaf], .degraded), ([bad, other], [local], .degraded),
            ([bad], [local], .degraded), ([good], [deaf, local], .healthy), ([bad], [], .down), ([bad], [deaf], .down),
            ([], [], .down),
        ] {
            #expect(overview(services, resolvers).state == state)
        }
        #expect(
            overview([good], [local]).headline == "serving; HTTPDNS 119.29.29.99 21 ms; cache 0 answers")
        #expect(
            overview([bad], [local]).headline
                == "serving; HTTPDNS 119.29.29.99 fails; fallback 192.0.2.53 21 ms; cache 0 answers")
        #expect(overview([], []).headline == "serving from the cache alone; no server to ask; cache 0 answers")
        let second = overview([bad, other], [], current: 1)
        #expect(second.verdict == "The first HTTPDNS server is given up. The next answers.")
        #expect(overview([bad], [local]).verdict == "HTTPDNS fails. Names come from fallback.")
        #expect(overview([good], [deaf]).verdict == "fallback fails. HTTPDNS is all there is.")
        let only = overview([bad], nil)
        #expect(only.state == .down && !only.isReady)
    }

    @Test("a group of the operator's own that is down is said by name, and what becomes of its names")
    func ownGroups() {
        let (good, local) = (server("119.29.29.99:443", .account), server("192.0.2.53:53"))
        let (fine, gone) = (server("10.1.0.53:853", .tls), server("10.1.0.53:853", .tls, failedBefore: 1))
        func office(_ server: ServerState, thenTry: [GroupID] = []) -> GroupOverview {
            group(GroupID(2), "office", [server], thenTry: thenTry)
        }
        let healthy = overview([good], [local], own: [office(fine)])
        #expect(healthy.state == .healthy && healthy.verdict == "Names resolve through HTTPDNS.")
        let wall = overview([good], [local], own: [office(gone)])
        #expect(wall.state == .degraded && wall.isReady)
        #expect(wall.verdict == "Names resolve through HTTPDNS. office fails. Its names do not resolve.")
        #expect(
            wall.headline
                == "serving; HTTPDNS 119.29.29.99 21 ms; office tls://10.1.0.53 fails; cache 0 answers")
        #expect(wall.explanation.hasPrefix("office tls://10.1.0.53 fails: certificate is for"))
        let open = overview([good], [local], own: [office(gone, thenTry: [.httpdns, .fallback])])
        #expect(open.verdict == "Names resolve through HTTPDNS. office fails. Its names come from HTTPDNS.")
        // A wall that stands does not make the other names resolve.
        let bad = server("119.29.29.99:443", .account, failedBefore: 1)
        let rest = overview([bad], nil, own: [office(fine)])
        #expect(rest.state == .down && !rest.isReady)
        #expect(rest.verdict == "Names do not resolve, but for those of office.")
        #expect(rest.headline == "serving from the cache, office alone; HTTPDNS 119.29.29.99 fails; cache 0 answers")
        let alone = overview([], [], own: [office(fine)])
        #expect(alone.state == .healthy && alone.isReady)
        #expect(alone.verdict == "Names resolve through office alone.")
    }

    @Test("the groups to which names go that no pattern takes make the state, whichever these groups are")
    func routes() {
        let (good, bad) = (server("119.29.29.99:443", .account), server("119.29.29.99:443", .account, failedBefore: 1))
        let (local, deaf) = (server("192.0.2.53:53"), server("192.0.2.53:53", failedBefore: 1))
        let (fine, gone) = (server("10.1.0.53:853", .tls), server("10.1.0.53:853", .tls, failedBefore: 1))
        let other = GroupID(2)
        func routed(
            _ route: [GroupID], _ services: [ServerState], _ resolvers: [ServerState], _ own: ServerState
        ) -> Overview {
            let hour = Hour(minutes: [Hour.Questions(asked: 10, failed: 3)])
            return overview(services, resolvers, own: [group(other, "other", [own])], hour) { $0.mainRoute = route }
        }
        // `thenTry` of [httpdns] names the other group alone.
        let well = routed([.httpdns, other], [good], [], fine)
        #expect(well.state == .healthy && well.verdict == "Names resolve through HTTPDNS.")
        let next = routed([.httpdns, other], [bad], [], fine)
        #expect(next.state == .degraded && next.isReady && next.verdict == "HTTPDNS fails. Names come from other.")
        #expect(
            next.headline
                == "serving; HTTPDNS 119.29.29.99 fails; other tls://10.1.0.53 21 ms; cache 0 answers")
        let only = routed([.httpdns, other], [good], [local], gone)
        #expect(only.state == .degraded && only.verdict == "other fails. HTTPDNS is all there is.")
        let both = routed([.httpdns, other], [bad], [local], gone)
        #expect(both.state == .down && !both.isReady)
        #expect(both.verdict == "Names do not resolve, but for those of fallback.")
        // The other group takes every name.
        let every = routed([other], [], [deaf], fine)
        #expect(every.state == .degraded && every.isReady)
        #expect(every.verdict == "Names resolve through other. fallback fails. Its names do not resolve.")
        let none = routed([other], [], [server("192.0.2.53:53", roundTrip: nil)], gone)
        #expect(none.state == .down && !none.isReady && none.verdict == "Names do not resolve.")
        #expect(none.headline == "serving from the cache alone; other tls://10.1.0.53 fails; cache 0 answers")
        // `domains.intercept` names those of [httpdns].
        let rest = routed([.fallback], [bad], [local], fine)
        #expect(rest.state == .degraded && rest.isReady)
        #expect(rest.verdict == "Names resolve through fallback. HTTPDNS fails. Its names come from fallback.")
        let few = routed([.fallback], [good], [deaf], fine)
        #expect(few.state == .down && !few.isReady)
        #expect(few.verdict == "Names do not resolve, but for those of HTTPDNS, other.")
        // Servers for private names resolve no other names.
        let alone = overview([], [], own: [group(other, "private", [local])])
        #expect(alone.state == .down && !alone.isReady && alone.verdict == "There is no server to ask for names.")
    }

    @Test("a group to which a failure does not lead answers no names of the group that fails")
    func thenTryOn() {
        let (bad, local) = (server("119.29.29.99:443", .account, failedBefore: 1), server("192.0.2.53:53"))
        let office = group(
            GroupID(2), "office", [server("10.1.0.53:853", .tls, failedBefore: 1)], thenTry: [.fallback],
            on: .nxDomain)
        let shown = overview([], [local], own: [office]) { observation in
            observation.groups.append(
                group(.httpdns, "httpdns", [bad], thenTry: [.fallback], on: .noRecord))
            observation.mainRoute = [.httpdns]
        }
        #expect(shown.state == .down && !shown.isReady && shown.areAllFailing)
        #expect(shown.verdict == "Names do not resolve, but for those of fallback.")
        #expect(shown.text.contains("; then fallback if it has no record; "), "\(shown.text)")
        let other = overview([], [local], own: [office])
        #expect(other.verdict == "Names resolve through fallback. office fails. Its names do not resolve.")
    }

    @Test("a line a server, in columns, group by group")
    func text() {
        let own = group(
            GroupID(2), "office", [server("10.1.0.53:853", .tls, failedBefore: 4), server("[2001:db8::1]:53")],
            current: 1)
        let overview = overview(
            [server("119.29.29.99:443", .account, roundTrip: nil)], [server("192.0.2.53:53")], own: [own])
        let expected = """
            HTTPDNS: encrypted; then fallback; 0 questions; billed for at most 0 names, 0 in the last hour
              119.29.29.99:443  HTTPDNS by https, encrypted                 not asked yet
            fallback: in the clear; 0 questions
              192.0.2.53:53     DNS over UDP and TCP, in the clear          answers in 21 ms
            office: partly in the clear; no other server is asked; 0 questions
              tls://10.1.0.53   DNS over TLS, encrypted                     fails (1 in a row): certificate is for <b>"x"</b> & 'y', 4 s ago
              [2001:db8::1]:53  DNS over UDP and TCP, in the clear  in use  answers in 21 ms
            """
        #expect(overview.text.contains(expected + "\n"), "\(overview.text)")
    }

    @Test("programs are told the same of every group")
    func groupsAsJSON() {
        let server = server("10.1.0.53:853", .tls)
        let tallies = UpstreamTallies()
        for milliseconds in 1...99 {
            tallies.server(server.server).answered(.noError, nanoseconds: UInt64(milliseconds) * 1_000_000)
        }
        tallies.server(server.server).secured(isResumed: true, certificateEnd: 7)
        let overview = overview([], [], own: [group(GroupID(2), "office", [server], thenTry: [.fallback])]) {
            $0.upstreams = [GroupID(2): tallies.figures]
            $0.leftOut["office"] = [
                LeftOutServer(Endpoint("10.9.0.53:53")!, in: "/run/systemd/resolve/resolv.conf", .link("tun0"))
            ]
        }
        let expected = """
            {"name":"office","kind":"dns","answer":null,"provider":null,"protocols":["tls"],"way":"encrypted","wall":false,"thenTry":["fallback"],\
            "servers":[\
            {"address":"tls://10.1.0.53","protocol":"tls","state":"answers","inUse":true,\
            "secondsUntilNextTry":null,"roundTripMilliseconds":21.0,"p50Milliseconds":50.0,"p95Milliseconds":95.0,\
            "resumed":true,"certificateExpiresAt":7,"lastHour":{"roundTripMilliseconds":[],"failures":[]},"answers":1,"failures":0,"consecutiveFailures":0,"lastFailure":null}],\
            "leftOut":[{"address":"10.9.0.53:53","source":"/run/systemd/resolve/resolv.conf","reason":"is left out: it is of tun0, which is not for all names"}],\
            "counters":{"questions":0,"queries":0,"names":null,"namesLastHour":null,"repeats":0,"failures":0}}
            """
        let text = overview.json.text
        #expect(text.contains(expected), "\(text)")
    }

    @Test("servers that only their certificates tell apart are one sample, and no label ends early")
    func metricLabels() {
        let name = Server.Host.name("dns.example")
        let servers = ["192.0.2.1", "192.0.2.2"].map { address in
            Server(.https(path: "/a\"b\\", usesGET: false), name, port: 443, addresses: [IPAddress(address)!])
        }
        let tallies = UpstreamTallies()
        for server in servers { tallies.server(server).connected(isReused: false) }
        let office = group(GroupID(2), "office", servers.map { ServerState($0, health: ServerHealth()) })
        let overview = overview([], [], own: [office]) { $0.upstreams = [GroupID(2): tallies.figures] }
        let lines = overview.metrics.split(separator: "\n").filter { $0.contains("dns.example") }
        #expect(Set(lines.map { $0.prefix { $0 != " " } }).count == lines.count)
        let labels = #"group="office",server="https://dns.example/a\"b\\",protocol="https""#
        #expect(lines.contains("httpdnsd_server_requests_total{\(labels),connection=\"new\"} 2"), "\(lines)")
        #expect(lines.contains("httpdnsd_server_up{\(labels)} 1"), "\(lines)")
    }

    /// By the text, the JSON, the page, the metrics and `explain` alike.
    @Test func howAServerIsDoingIsSaidAlike() throws {
        func state(
            failures: Int = 0, answers: UInt64 = 1, pausedFor seconds: UInt64 = 0, refusals: Int = 0
        ) -> ServerState {
            var state = server("192.0.2.1:53", roundTrip: answers > 0 ? 21 : nil)
            state.health.consecutiveFailures = failures
            state.health.failures = UInt64(failures)
            if failures > 0 || seconds > 0 {
                state.health.lastFailure = Failure(.tooOften, "asked too often")
                state.health.lastFailureAt = Self.now
            }
            if seconds > 0 {
                state.health.pausedUntil = Tick(nanoseconds: Self.now.nanoseconds + seconds * 1_000_000_000)
            }
            for _ in 0..<refusals { state.refused(.inPreference(nextWithin: 1000), at: Self.now) }
            return state
        }
        let other = server("192.0.2.2:53")
        for (state, standing, isUp) in [
            (state(answers: 0), Standing.unknown, 1), (state(), .answers, 1), (state(failures: 2), .fails, 0),
            (state(refusals: 3), .setAside, 0), (state(failures: 1, pausedFor: 7), .paused, 0),
            // The answer to a question from before the pause.
            (state(pausedFor: 7), .paused, 0),
        ] {
            let office = group(GroupID(2), "office", [state, other], current: 1)
            let overview = overview([], [], own: [office])
            let words = standing.words
            let json = overview.json.text
            #expect(json.contains(#""address":"192.0.2.1:53","protocol":"plain","state":"\#(standing)""#), "\(json)")
            #expect(overview.text.contains("  192.0.2.1:53  DNS over UDP and TCP, in the clear          \(words)"))
            #expect(StatusPage(overview).html.text.contains(">\(words)</p>"))
            #expect(
                overview.metrics.contains(
                    "server_up{group=\"office\",server=\"192.0.2.1:53\",protocol=\"plain\"} \(isUp)\n"))
            let isTold = standing != .unknown && standing != .answers
            let question = Name("www.example.com")!
            var explanation = Explanation(
                question, .a, PolicyDecision(taker: .group(GroupID(2)), pattern: nil, location: nil), .addresses,
                .asked(0))
            explanation.parts = [Explanation.Part(group: office, after: .failure, standing: .ready(other.server))]
            var explained = Explained(explanation)
            explained.at = Self.now
            #expect(
                explained.text.contains(
                    "  192.0.2.1:53, DNS over UDP and TCP, in the clear\(isTold ? ", \(words)" : "\n")"))
        }
    }

    @Test("one name that no server answers is no outage, and what is not known to be lost is ready")
    func doubt() {
        let (bad, deaf) = (
            server("119.29.29.99:443", .account, failedBefore: 1), server("192.0.2.53:53", failedBefore: 1)
        )
        let doubtful = overview([bad], [deaf]) { $0.hasLostServers = false }
        #expect(doubtful.state == .degraded && doubtful.isReady)
        #expect(doubtful.verdict == "No server answered the last question.")
        #expect(!overview([], []) { $0.hasLostServers = false }.isReady)
        let lost = overview([bad], [deaf])
        #expect(lost.state == .down && !lost.isReady)
        #expect(lost.text.contains("\n\nNames do not resolve.\nHTTPDNS 119.29.29.99 fails: "))
        #expect(lost.text.contains("\nTo see at which step it fails: httpdnsd probe\n"))
        let elsewhere = overview([bad], [deaf]) { $0.fileOption = " -c /etc/other.toml" }
        #expect(elsewhere.text.contains("\nTo see at which step it fails: httpdnsd probe -c /etc/other.toml\n"))
    }

    @Test("an account that has no record of any name is no way to resolve names")
    func withoutRecords() {
        let (good, local) = (server("119.29.29.99:443", .account), server("192.0.2.53:53"))
        for (count, isSaid) in [(0, false), (19, false), (20, true), (500, true)] as [(UInt64, Bool)] {
            for hasLocal in [true, false] {
                let overview = overview([good], hasLocal ? [local] : nil, withoutRecord: count)
                #expect(overview.state == (isSaid ? .degraded : .healthy) && overview.isReady)
                let said =
                    "HTTPDNS answers, but had a record of none of the last 20 names."
                    + (hasLocal ? " Names come from fallback." : "")
                #expect(overview.verdict == (isSaid ? said : "Names resolve through HTTPDNS."))
                #expect(overview.text.contains("Register the domains") == isSaid)
                #expect(StatusPage(overview).html.text.contains("<body class=\"degraded\">") == isSaid)
            }
        }
    }

    @Test("without a fallback it is said once questions fail")
    func withoutFallback() {
        let good = server("119.29.29.99:443", .account)
        func verdict(_ resolvers: [ServerState]?, failed: [UInt64]) -> (String, Overview.State) {
            let minutes = failed.map { Hour.Questions(asked: 10, failed: $0) }
            let overview = overview([good], resolvers, Hour(minutes: minutes))
            return (overview.verdict, overview.state)
        }
        let said =
            "Names resolve through HTTPDNS alone. What it does not answer fails: [fallback] has no server."
        #expect(verdict([], failed: [0, 3, 0, 0]) == (said, .degraded))
        #expect(verdict([], failed: [3, 0, 0, 0, 0, 0]) == ("Names resolve through HTTPDNS.", .healthy))
        #expect(verdict(nil, failed: [0, 3]) == ("Names resolve through HTTPDNS.", .healthy))
        #expect(verdict([server("192.0.2.53:53")], failed: [0, 3]) == ("Names resolve through HTTPDNS.", .healthy))
    }

    @Test("the share of the cache is that of the questions of clients, as the dashboard has it")
    func hitRate() {
        #expect(overview([], []).hitRate == nil)
        let cache = DNSCache(bytes: 1 << 20, seed: (1, 2))
        var statistics = cache.statistics
        (statistics.hits, statistics.misses) = (3, 1)
        var observation = Observation(statistics)
        observation.counters = Counters()
        #expect(Overview(observation).hitRate == 0.75)
        #expect(Overview(observation).headline.hasSuffix("cache 0 answers, 75 % hits"))
    }

    @Test("how many questions came, over what, and how many were refused")
    func transports() {
        let tallies = [Tally(.udp), Tally(.tcp), Tally(.tls)]
        tallies[1].asked(.a, fromIPv4: true)
        for _ in 0..<1200 { tallies[2].asked(.a, fromIPv4: true) }
        tallies[0].count(.notAllowed)
        for _ in 0..<3 { tallies[2].count(.closedNotAllowed) }
        for _ in 0..<2 { tallies[2].count(.handshakeCertificate) }
        let overview = overview([], []) { $0.add(tallies, Tally(.udp)) }
        #expect(
            overview.turnedAway == [
                "1 question refused: listen.allow does not have the client's address.",
                "3 connections closed: listen.allow does not have the client's address.",
                "2 TLS handshakes failed: the client does not accept the certificate.",
            ])
        #expect(overview.askedText == "1,201 questions, 1 over TCP, 1,200 over TLS")
        #expect(
            overview.text.contains(
                "\nUp 0 s; 1,201 questions, 1 over TCP, 1,200 over TLS.\n1 question refused: listen.allow"))
        #expect(overview.json.text.contains("\"over\":{\"tcp\":1,\"tls\":1200}"))
        let page = StatusPage(overview).html.text
        #expect(page.contains("<h2>Who asks</h2>\n<p>1,201 questions, 1 over TCP, 1,200 over TLS.</p>"))
        #expect(page.contains("<p>1 question refused: listen.allow does not have the client&#39;s address.</p>"))
        #expect(!page.contains("The last 24 hours"), "no chart without a question in it")
        #expect(overview.metrics.contains("\nhttpdnsd_not_allowed_total 1\n"))
    }

    @Test("each count is shown, and as its row says", arguments: Counted.allCases)
    func counted(_ event: Counted) {
        let listener = Tally(.tls)
        for _ in 0..<3 { listener.count(event) }
        let overview = overview([], []) { $0.add([listener], Tally(.udp)) }
        let row = event.row
        #expect(overview.metrics.contains(" 3\n"))
        if let metric = row.metric {
            let proto = metric.subject == .connections ? ["proto=\"tls\""] : []
            let labels = (proto + row.labels.map { "reason=\"\($0)\"" }).joined(separator: ",")
            #expect(overview.metrics.contains("\n\(metric.name)\(labels.isEmpty ? "" : "{\(labels)}") 3\n"))
        }
        if let key = row.key { #expect(overview.json.text.contains("\"\(key)\":3")) }
        #expect(overview.turnedAway == (row.words.map { ["3 \($0.noun)s \($0.rest)"] } ?? []))
    }

    @Test("each metric is there once, and what is counted of connections only where there are such")
    func families() {
        let names = Metric.all.map(\.name)
        #expect(Set(names).count == names.count)
        #expect(Set(Counted.allCases.compactMap(\.row.metric?.name)).isSubset(of: names))
        let metrics = overview([], []) { $0.add([Tally(.udp), Tally(.tcp)], Tally(.udp)) }.metrics
        #expect(metrics.contains("\nhttpdnsd_tcp_clients{proto=\"tcp\"} 0\n"))
        #expect(metrics.contains("\nhttpdnsd_tcp_closed_total{proto=\"tcp\",reason=\"not_allowed\"} 0\n"))
        #expect(!metrics.contains("reason=\"handshake\"") && !metrics.contains("httpdnsd_tls_handshakes_failed_total{"))
        #expect(!metrics.contains("httpdnsd_tcp_clients{proto=\"udp\"}"))
    }

    @Test("a refused reload is a remark until one is applied")
    func refusedReload() {
        let observer = Observer(
            Settings(), describe: { $0(Observation(DNSCache(bytes: 1 << 20, seed: (1, 2)).statistics)) },
            checkReadiness: {}, queues: [], listeners: [], forwarderLoop: Tally(.udp), logLinesLost: { 0 })
        for failure in [nil, "a.toml:1: log: not TOML", nil] as [String?] {
            observer.reloaded(failure: failure)
            let remarks = failure.map { ["The last reload was refused, and a restart may fail: \($0)"] } ?? []
            observer.observe { observation in
                let overview = Overview(observation)
                #expect(overview.remarks.filter { $0.hasPrefix("The last reload") } == remarks)
                // Anybody may read the page, and the mistake may quote a secret.
                let page = StatusPage(overview).html.text
                #expect(!page.contains("not TOML") && page.contains("httpdnsd status says why") == (failure != nil))
            }
        }
    }

    @Test("several groups that fail are one sentence")
    func severalFail() {
        let (good, local) = (server("119.29.29.99:443", .account), server("192.0.2.53:53"))
        let gone = server("10.1.0.53:853", .tls, failedBefore: 1)
        let own = ["vpn", "office"].enumerated().map { group(GroupID(2 + $0), $1, [gone]) }
        let overview = overview([good], [local], own: own)
        #expect(overview.verdict == "Names resolve through HTTPDNS. 2 of 4 groups fail: vpn, office.")
        #expect(overview.text.contains("To see at which step it fails: httpdnsd probe --group vpn, and so on\n"))
    }

    @Test("ready is who has somebody to ask that did not fail within the last half minute")
    func readiness() {
        #expect(overview([server("192.0.2.1:443", roundTrip: nil)], []).isReady)
        #expect(!overview([server("192.0.2.1:443", failedBefore: 29)], []).isReady)
        #expect(overview([server("192.0.2.1:443", failedBefore: 30)], []).isReady)
        #expect(overview([server("192.0.2.1:443", failedBefore: 1)], [server("192.0.2.53:53")]).isReady)
        #expect(!overview([], []).isReady)
        let stopping = overview([server("192.0.2.1:443")], []) { $0.isStopping = true }
        #expect(!stopping.isReady && stopping.headline.hasPrefix("stopping; "))
    }

    @Test("what a server says of itself is text on the page, not markup")
    func escaping() {
        let page = StatusPage(overview([server("192.0.2.1:443", failedBefore: 5)], []))
        #expect(!page.html.text.contains("<b>\"x\""))
        #expect(page.html.text.contains("&lt;b&gt;&quot;x&quot;&lt;/b&gt; &amp; &#39;y&#39;"))
        #expect(StatusPage(page.overview).fields != page.fields)
    }

    @Test(
        "numbers as people read them",
        arguments: [
            (Overview.milliseconds(0.25), "0.25 ms"), (Overview.milliseconds(2.04), "2 ms"),
            (Overview.milliseconds(21.4), "21 ms"), (Overview.milliseconds(1500), "1.5 s"),
            (Overview.milliseconds(nanoseconds: 15_625), "16 µs"),
            (Overview.milliseconds(nanoseconds: nil), "over 8.2 s"),
            (Overview.octets(9999), "9999 B"), (Overview.octets(32 << 20), "32 MiB"),
            (Overview.octets(20_000), "20 KiB"),
            (Overview.span(59), "59 s"), (Overview.span(3 * 3600 + 61), "3 h 1 min"),
            (Overview.span(90_000), "1 d 1 h"),
            (Overview.percent(0.999), "over 99 %"), (Overview.percent(0.001), "under 1 %"),
            (Overview.percent(1), "100 %"),
            (Overview.percent(0), "0 %"), (Overview.percent(0.666), "67 %"), (Overview.decimal(1.005, 1), "1"),
            (Overview.decimal(1.05, 2), "1.05"),
            (Overview.decimal(-0.75, 2), "-0.75"),
        ])
    func numbers(_ text: String, _ expected: String) {
        #expect(text == expected)
    }

    @Test("JSON has no bare control characters and its parts in order")
    func json() {
        let value = JSON.object([
            ("a\"\\", .array([.null, .bool(true), .integer(1), .number(0.5), .string("\n\u{1}é")])), ("b", .object([])),
        ])
        #expect(value.text == #"{"a\"\\":[null,true,1,0.5,"\n\u0001é"],"b":{}}"#)
    }
}
