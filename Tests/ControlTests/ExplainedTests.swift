import Base
import Configuration
import DNSCache
import DNSWire
import Foundation
import Names
import Testing

@testable import Control
@testable import Forwarding

/// How what was decided is put into words.
@Suite struct ExplainedTests {
    private static let now = Tick(nanoseconds: 1_000_000_000_000)
    private static let office = GroupID(2)
    private let name = Name("www.example.com")!

    private func group(
        _ id: GroupID, _ name: String, servers: Int = 1, thenTry: [GroupID] = [], isShared: Bool = false,
        server: Server? = nil
    ) -> GroupOverview {
        let servers = (1...max(1, servers)).prefix(servers).map {
            ServerState(
                server ?? Server(Endpoint("192.0.2.\($0):53")!, id == .httpdns ? .account : .plain),
                health: ServerHealth())
        }
        var group = UpstreamGroup(
            id, servers.map(\.server), id == .httpdns ? .addresses(namesPerRequest: 8) : .messages, .lastThatAnswered,
            timeout: 2000)
        (group.name, group.isShared) = (name, isShared)
        return GroupOverview(group, servers, thenTry: thenTry)
    }

    private func ready(_ group: GroupOverview, after: StepEnds = .failure, hedge: Int? = nil) -> Explanation.Part {
        Explanation.Part(
            group: group, after: after, hedgeAfter: hedge,
            standing: group.servers.first.map { .ready($0.server) } ?? .noServer)
    }

    /// A name that goes to `office`, and to the fallback if that fails.
    private func explained(
        _ said: [[Explained.Said]], wall: Bool = false, _ change: (inout Explanation) -> Void = { _ in }
    ) -> Explained {
        let office = group(
            Self.office, "office", servers: max(1, said.first?.count ?? 1), thenTry: wall ? [] : [.fallback])
        var explanation = Explanation(
            name, .a,
            PolicyDecision(
                taker: .group(Self.office), pattern: DomainPattern("example.com"), location: .init(list: 0, line: 1)),
            .addresses, .asked(0))
        explanation.taker = office
        explanation.parts = [ready(office)] + (wall ? [] : [ready(group(.fallback, "fallback"))])
        change(&explanation)
        var explained = Explained(explanation)
        explained.rule = (key: "upstreams.office.domains", location: .file("/etc/h.toml", line: 14))
        explained.at = Self.now
        explained.said = said
        return explained
    }

    private func says(_ answer: Answer) -> Explained.Said { Explained.Said(.outcome(.answer(answer)), milliseconds: 3) }
    private func says(_ last: UInt8) -> Explained.Said {
        says(.addresses(name, type: .a, [.v4(192, 0, 2, last)], ttl: 60))
    }
    private func fails(_ kind: Failure.Kind = .unreachable, _ detail: String = "no route") -> Explained.Said {
        Explained.Said(.outcome(.failed(Failure(kind, detail))), milliseconds: 3)
    }

    @Test func aGroupThatAnswersByItself() {
        let explained = explained([]) { explanation in
            var ads = UpstreamGroup(Self.office, [], .messages, .lastThatAnswered, timeout: 2000)
            (ads.name, ads.answer) = ("ads", .nxdomain)
            (explanation.taker, explanation.parts, explanation.reason) = (GroupOverview(ads, []), [], .groupAnswers)
            explanation.rule = PolicyDecision(
                taker: .group(Self.office), pattern: .only(name), location: PatternLocation(list: 0, line: 1))
            explanation.fate = .made(.nxDomain(name, type: .a, negativeTTL: 30))
        }
        #expect(
            explained.text == """
                www.example.com A

                Rule:  www.example.com alone, in upstreams.office.domains (/etc/h.toml:14)
                Why:   answered here: [upstreams.ads] answers nxdomain itself, and asks no server
                Asked: nobody
                Cache: nothing
                Now:   made here: NXDOMAIN

                Add www.example.com to upstreams.ads.except if this group is not to answer it.
                """)
        #expect(explained.json.text.contains("\"groupAnswers\""))
    }

    /// A pattern is in `domains` or in `except`, not in both.
    @Test func howANameGetsPastAGroupThatAnswers() {
        for (pattern, advice) in [
            ("www.example.com", "Take www.example.com out of upstreams.ads.domains if this group is not to answer it."),
            ("example.com", "Add www.example.com to upstreams.ads.except if this group is not to answer it."),
        ] {
            var explained = explained([]) { explanation in
                explanation.taker = group(Self.office, "ads", servers: 0)
                (explanation.parts, explanation.reason) = ([], .groupAnswers)
                explanation.rule = PolicyDecision(
                    taker: .group(Self.office), pattern: DomainPattern(pattern), location: .init(list: 0, line: 1))
                explanation.fate = .made(.nxDomain(name, type: .a, negativeTTL: 30))
            }
            explained.rule?.key = "upstreams.ads.domains"
            #expect(explained.advice == advice)
        }
    }

    @Test func whereTheRuleStandsAndWhoIsAsked() {
        let text = explained([[says(7)], [says(8)]]).text
        #expect(
            text == """
                www.example.com A

                Rule:  example.com, in upstreams.office.domains (/etc/h.toml:14)
                Asked: office, then fallback if it fails
                Cache: nothing
                Now:   office is asked, at 192.0.2.1:53

                office:
                  192.0.2.1:53, DNS over UDP and TCP, in the clear
                    NOERROR: A 192.0.2.7, ttl 60, in 3 ms
                fallback:
                  192.0.2.1:53, DNS over UDP and TCP, in the clear
                    NOERROR: A 192.0.2.8, ttl 60, in 3 ms
                """)
    }

    @Test func whatCouldBeDone() {
        let servFail = Answer.failure(name, type: .a, .servFail, extendedError: nil)
        for (said, wall, advice) in [
            (
                [[fails()], [says(8)]], false,
                "Check 192.0.2.1:53: no route; fallback is asked in the place of office."
            ),
            ([[fails()], [fails()]], false, "Check 192.0.2.1:53: no route; no group answers in its place."),
            (
                [[fails()], [Explained.Said(.notAsked("it bills for that"))]], false,
                "Check 192.0.2.1:53: no route; fallback is asked in the place of office."
            ),
            ([[fails()]], true, "Check 192.0.2.1:53: no route; no other group may be asked."),
            (
                [[fails(), fails()]], true,
                "Check 192.0.2.1:53: no route; no other server of office answers, and no other group may be asked."
            ),
            (
                [[fails(), Explained.Said(.notAsked("its address was not looked up yet"))]], true,
                "Check 192.0.2.1:53: no route; no other group may be asked."
            ),
            (
                [[fails(.untrusted, "certificate expired")]], true,
                "Check the certificate of 192.0.2.1:53, or what [upstreams.office] trusts: certificate expired; no other group may "
                    + "be asked."
            ),
            (
                [[says(servFail), says(7)]], true,
                "Check 192.0.2.1:53: it says SERVFAIL; another server of office answers in its place."
            ),
            ([[says(.nxDomain(name, type: .a, negativeTTL: 5))]], true, nil),
            ([[says(.noData(name, type: .a, negativeTTL: 5))]], true, nil),
        ] {
            #expect(explained(said, wall: wall).advice == advice)
        }
        let nobody = explained([], wall: true) {
            $0.parts = [ready(group(Self.office, "office", servers: 0))]
            $0.fate = .noServer(servFail)
        }
        #expect(nobody.advice == "Name a server in upstreams.office.servers: there is none to ask.")
        let alone = explained([], wall: true) {
            ($0.parts, $0.fate) = ([], .made(.noData(name, type: .mx, negativeTTL: 5)))
        }
        #expect(alone.advice?.hasPrefix("Name a group in upstreams.office.thenTry, or ") ?? false)
        let only = explained([]) {
            ($0.parts, $0.fate) = ([], .made(.noData(name, type: .mx, negativeTTL: 5)))
            $0.taker = group(.fallback, "fallback")
        }
        #expect(only.advice?.hasSuffix("with httpdns.httpOnly no name goes to fallback.") ?? false)
    }

    @Test func whatIsCachedAndWhoSaidIt() {
        func cached(
            _ said: Explained.Said, elapsed: UInt32 = 20, by origin: Bool = true, server: Server? = nil
        ) -> Explained {
            explained([[said]], wall: true) { explanation in
                explanation.parts = [ready(group(Self.office, "office", server: server))]
                explanation.held = DNSCache.Held(
                    answer: .addresses(name, type: .a, [.v4(192, 0, 2, 7)], ttl: 60), elapsed: elapsed,
                    audience: .everyone, origin: 3)
                explanation.origin = origin ? explanation.taker : nil
                explanation.stale = .addresses(name, type: .a, [.v4(192, 0, 2, 7)], ttl: 30)
                explanation.fate = elapsed < 60 ? .cached : .asked(0)
            }
        }
        let known = cached(says(7))
        #expect(known.heldText == "NOERROR: A 192.0.2.7, ttl 40; by office, 20 s ago; fresh for 40 s more")
        #expect(known.advice == nil)
        #expect(
            cached(says(9)).advice
                == "Run httpdnsd flush www.example.com if what is cached is wrong: office says something else now. "
                + "Answers of a server that is asked in the clear can be forged on the way.")
        var encrypted = cached(says(9), server: Server(.tls, .address(.v4(192, 0, 2, 1), nil), port: 853))
        #expect(encrypted.advice?.hasSuffix("office says something else now.") ?? false)
        encrypted.fileOption = " -c /etc/h.toml"
        #expect(encrypted.advice?.hasPrefix("Run httpdnsd flush www.example.com -c /etc/h.toml if ") ?? false)
        #expect(cached(says(9), by: false).heldText.contains("by an HTTPDNS account that cache.file does not name"))
        #expect(cached(says(.nxDomain(name, type: .a, negativeTTL: 60))).advice?.contains("something else") ?? false)
        let stale = cached(says(7), elapsed: 100)
        #expect(stale.heldText.hasSuffix("stale, past its TTL for 40 s"))
        #expect(
            stale.fateText.contains(
                "if no server answers within 1.7 s, what is stale in the cache: NOERROR: A 192.0.2.7, ttl 30"))
    }

    @Test func whatIsMadeOfAnAnswerIsNoReasonToSuspectTheCache() {
        let without = [
            Answer.noData(name, type: .aaaa, negativeTTL: 60), .nxDomain(name, type: .aaaa, negativeTTL: 60),
        ]
        func advice(_ cached: Answer, _ said: Answer, _ change: (inout Explanation) -> Void) -> String? {
            explained([[says(said)]], wall: true) { explanation in
                explanation.type = .aaaa
                explanation.held = DNSCache.Held(answer: cached, elapsed: 0, audience: .everyone)
                (explanation.origin, explanation.fate) = (explanation.taker, .cached)
                change(&explanation)
            }.advice
        }
        let made = Answer.addresses(name, type: .aaaa, [IPAddress("64:ff9b::192.0.2.7")!], ttl: 60)
        #expect(advice(without[0], without[1]) { _ in } == nil)
        #expect(advice(made, without[0]) { $0.translation = .addresses(NAT64Prefix(Network("64:ff9b::/96")!)!) } == nil)
        #expect(advice(made, without[0]) { _ in } != nil)
        let other = Answer.addresses(name, type: .aaaa, [IPAddress("2001:db8::1")!], ttl: 60)
        #expect(advice(made, other) { $0.reason = .serviceBinding } == nil)
        #expect(advice(made, other) { _ in } != nil)
    }

    @Test func whoseAnswerASubstituteReplaces() {
        func substitute(_ parts: [Explanation.Part]) -> String {
            explained([]) { explanation in
                explanation.parts = parts
                explanation.held = DNSCache.Held(
                    answer: .addresses(name, type: .a, [.v4(192, 0, 2, 8)], ttl: 60), elapsed: 0, audience: .everyone,
                    isStandIn: true)
                explanation.origin = group(.fallback, "fallback")
            }.heldText
        }
        let (office, account) = (group(Self.office, "office"), group(.httpdns, "httpdns"))
        let fallback = ready(group(.fallback, "fallback"))
        let known = "NOERROR: A 192.0.2.8, ttl 60; by fallback, 0 s ago; fresh for 60 s more; in the place of "
        #expect(substitute([ready(office), fallback]) == known + "office")
        #expect(substitute([ready(account), fallback]) == known + "HTTPDNS")
        #expect(substitute([]) == known + "another group")
        var (left, none) = (ready(account), ready(group(Self.office, "office", servers: 0)))
        left.standing = .withoutRecord(nil)
        #expect(substitute([left, ready(office), fallback]) == known + "office")
        #expect(substitute([left, none, fallback]) == known + "another group")
        none = ready(group(.httpdns, "httpdns", servers: 0))
        #expect(substitute([none, fallback]) == known + "HTTPDNS")
    }

    @Test func addressesThatAreTakenOut() {
        let said = says(.addresses(name, type: .a, [.v4(10, 0, 0, 1)], ttl: 60))
        let refused = explained([[said]], wall: true) { $0.refusesPrivate = true }
        #expect(refused.advice?.hasPrefix("Add the name to domains.privateAllowed") ?? false)
        let under = says(.addresses(name, type: .aaaa, [IPAddress("2001:db8:64::a01:203")!], ttl: 60))
        let translated = explained([[under]], wall: true) {
            ($0.refusesPrivate, $0.translation) = (true, .addresses(NAT64Prefix(Network("2001:db8:64::/96")!)!))
        }
        #expect(translated.advice?.hasPrefix("Add the name to domains.privateAllowed") ?? false)
        #expect(explained([[said]], wall: true).advice == nil)
    }

    @Test(arguments: [
        ("localhost", "RFC 6761"), ("a.invalid", "RFC 6761"), ("a.test", "RFC 6761"), ("a.onion", "RFC 7686"),
        ("a.alt", "RFC 9476"), ("a.local", "RFC 6762"), ("a.home.arpa", "RFC 8375"), ("ipv4only.arpa", "RFC 7050"),
        ("_dns.resolver.arpa", "RFC 9462"), ("resolver.arpa", "RFC 9462"), ("use-application-dns.net", "the canary"),
        ("1.1.168.192.in-addr.arpa", "reverse names of 192.168.0.0/16"), ("1.d.f.ip6.arpa", "RFC 6303"),
        ("printer", "single labels"),
    ]) func whyANameIsReserved(_ text: String, _ words: String) {
        let policy = Policy(
            groups: [], routes: [:], rules: DomainRules(), otherwise: .fallback, negativeTTL: 30)
        let name = Name(text)!
        let explained = Explained(
            Explanation(
                name, .a, policy.rule(for: name), policy.reason(name, .a),
                .made(.noData(name, type: .a, negativeTTL: 1))))
        #expect(explained.ruleText.contains(words), "\(explained.ruleText)")
        let isOfHere = [RouteReason.localhost, .nonexistent, .noData].contains(explained.explanation.reason)
        #expect((explained.advice == nil) == isOfHere)
    }

    /// Whether a server has said anything or not.
    @Test func whereAPrivateNameMayLeaveThisNetwork() {
        for (text, isPrivate) in [("nas.lan", true), ("printer", true), ("www.example.com", false)] {
            for said in [[], [[says(7)]], [[fails()]]] {
                let text = explained(said) { $0.name = Name(text)! }.text
                #expect(
                    text.contains("is a private name, and 192.0.2.1:53, which may be asked for it, has no private")
                        == isPrivate)
            }
        }
        let router = ServerState(Server(Endpoint("192.168.1.1:53")!), health: ServerHealth())
        let group = UpstreamGroup(Self.office, [router.server], .messages, .lastThatAnswered, timeout: 2000)
        let stays = explained([]) {
            ($0.name, $0.parts) = (Name("nas.lan")!, [ready(GroupOverview(group, [router]))])
        }
        #expect(stays.privateRemark == nil)
    }

    @Test func whoseAnswersAreShared() throws {
        let office = ready(group(Self.office, "office", isShared: true))
        let shared = { (state: SharedCacheOverview?) in
            explained([]) {
                $0.parts = [office] + $0.parts.dropFirst()
                $0.sharedCache = state
            }
        }
        let looks = "\nStore: the shared cache is looked into before office is asked; it is "
        #expect(shared(SharedCacheOverview(isOn: true)).text.contains(looks + "in use\nNow: "))
        #expect(shared(SharedCacheOverview(isOn: false)).text.contains(looks + "not connected yet\n"))
        let full = shared(SharedCacheOverview(isOn: true, reason: "its memory is full (OOM)"))
        #expect(full.text.contains(looks + "in use, but it takes no answers: its memory is full (OOM)\n"))
        let away = shared(SharedCacheOverview(isOn: false, reason: "closed by the store"))
        #expect(away.text.contains(looks + "not in use: closed by the store\n"))
        let store = try #require(try object(away)["sharedCache"] as? [String: Any])
        #expect(store["inUse"] as? Bool == false)
        let groups = try #require(try object(away)["groups"] as? [[String: Any]])
        #expect(groups.map { $0["shared"] as? Bool } == [true, false])
        #expect(!shared(nil).text.contains("Store: "))
        #expect(!explained([]) { $0.sharedCache = SharedCacheOverview(isOn: true) }.text.contains("Store: "))
    }

    @Test func theConfigurationAlone() throws {
        var alone = explained([])
        alone.whyAlone = "no daemon answers: connect: no such file"
        #expect(alone.text.contains("\nBy the configuration alone: no daemon answers: connect: no such file\n"))
        #expect(alone.text.contains("Cache: not known\n"))
        #expect(alone.advice == nil)
        let json = try object(alone)
        #expect((json["source"] as? [String: Any])?["daemon"] as? Bool == false && json["cache"] is NSNull)
    }

    private func object(_ explained: Explained) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(explained.json.text.utf8)) as? [String: Any])
    }

    @Test func theSameForPrograms() throws {
        let json = try object(explained([[says(7)], [fails()]]))
        let rule = try #require(json["rule"] as? [String: Any])
        #expect(rule["pattern"] as? String == "example.com" && rule["group"] as? String == "office")
        #expect(rule["file"] as? String == "/etc/h.toml" && rule["line"] as? Int == 14)
        let groups = try #require(json["groups"] as? [[String: Any]])
        #expect(groups.map { $0["name"] as? String } == ["office", "fallback"])
        #expect(groups[1]["after"] as? [String] == ["failure"] && groups[0]["after"] is NSNull)
        let said = try groups.map { group in
            let servers = try #require(group["servers"] as? [[String: Any]])
            return try #require(servers[0]["says"] as? [String: Any])
        }
        #expect(said[0]["rcode"] as? String == "NOERROR" && said[0]["records"] as? [String] == ["A 192.0.2.7, ttl 60"])
        #expect(said[1]["result"] as? String == "failure" && said[1]["reason"] as? String == "no route")
    }

    /// The command reads 64 KiB at most.
    @Test func howeverMuchServersSayItHasItsBound() {
        let many = Answer.addresses(
            name, type: .a, (0..<2000).map { .v4(1, 2, UInt8($0 / 256), UInt8($0 % 256)) }, ttl: 1)
        let large = explained([Array(repeating: says(many), count: 64), [says(many)]], wall: false)
        #expect(large.text.utf8.count < 40_000 && large.json.text.utf8.count < 60_000)
        #expect(large.text.contains("and 1992 more") && large.text.contains("and 32 more"))
        #expect(Explained.cut(String(repeating: "x", count: 70_000)).count == Explained.longestRecord + 1)
    }
}
