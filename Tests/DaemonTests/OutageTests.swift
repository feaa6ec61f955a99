import Base
import ShellTestSupport
import Testing

@testable import Daemon
@testable import Forwarding
@testable import Upstreams

@Suite struct OutageTests {
    private var outages = Outages()

    private func group(
        _ id: GroupID = .httpdns, _ name: String = "httpdns", thenTry: [GroupID] = [], on: StepEnds = .any,
        health: [(failures: Int, answers: UInt64)]
    ) -> GroupOverview {
        let servers = health.indices.map { Server(Endpoint("192.0.2.\($0 + 1):53")!) }
        let states = zip(servers, health).map { server, given in
            var health = ServerHealth()
            (health.consecutiveFailures, health.answers) = given
            return ServerState(server, health: health)
        }
        var group = UpstreamGroup(id, servers, .messages, .lastThatAnswered, timeout: 0)
        group.name = name
        return GroupOverview(group, states, thenTry: thenTry, thenTryOn: on)
    }

    /// Whether HTTPDNS is out of use now, if that is news.
    private mutating func news(_ health: [(failures: Int, answers: UInt64)]) -> Bool? {
        let news = outages.update([group(health: health)])
        return news.isEmpty ? nil : outages.out.contains(.httpdns)
    }

    @Test mutating func allMustHaveFailedSeveralTimesAndOneAnswerEndsIt() {
        #expect(news([(2, 0), (9, 0)]) == nil)
        #expect(news([(3, 7), (9, 0)]) == true)
        #expect(news([(4, 7), (9, 0)]) == nil)
        #expect(news([(4, 7), (0, 1)]) == false)
        #expect(news([(4, 7), (0, 1)]) == nil)
    }

    @Test mutating func otherServersAreNoAnswer() {
        _ = news([(3, 0)])
        #expect(news([(0, 0), (0, 0)]) == nil)
        #expect(news([(0, 0), (0, 1)]) == false)
    }

    @Test mutating func withoutAServiceThereIsNone() {
        #expect(news([]) == nil)
        _ = news([(3, 0)])
        #expect(news([]) == nil && outages.out.isEmpty)
        _ = news([(3, 0)])
        #expect(outages.update([]).isEmpty && outages.out.isEmpty)
    }

    @Test mutating func allGroupsAreLookedAtAfterAFailureAlone() {
        let haveFailed = [0, 1, 1].map { outages.haveFailed($0) }
        #expect(haveFailed == [false, true, false])
        _ = news([(3, 0)])
        let haveFailedAgain = outages.haveFailed(1)
        #expect(!haveFailedAgain && outages.out == [.httpdns])
    }

    @Test mutating func theGroupsThatAreOutOfUseSuffice() {
        func groups(_ office: (Int, UInt64)) -> [GroupOverview] {
            [group(health: [(3, 0)]), group(GroupID(2), "office", health: [office])]
        }
        _ = outages.update(groups((3, 0)))
        #expect(outages.out == [.httpdns, GroupID(2)])
        let changed = outages.update(groups((0, 1)))
        #expect(changed.map(\.name) == ["office"] && outages.out == [.httpdns])
    }

    /// What is said of each group in turn when all that are named here fail.
    @Test(arguments: [
        (["httpdns"], ["HTTPDNS is out of use: fallback is asked in its place"]),
        (["fallback"], ["fallback is out of use: what HTTPDNS does not answer gets SERVFAIL, or what is stale"]),
        (
            ["httpdns", "fallback"],
            [
                "HTTPDNS is out of use, and so is fallback: questions get SERVFAIL, or what is cached, even if stale",
                "fallback is out of use, and so is HTTPDNS: questions get SERVFAIL, or what is cached, even if stale",
            ]
        ),
        (["office"], ["office is out of use: its names get SERVFAIL, or what is stale"]),
        (["shop"], ["shop is out of use: HTTPDNS is asked in its place"]),
        (
            ["httpdns", "shop"],
            [
                "HTTPDNS is out of use: fallback is asked in its place",
                "shop is out of use, and so is HTTPDNS: its names get SERVFAIL, or what is stale",
            ]
        ),
    ])
    func saysWhatBecomesOfTheNames(_ failing: [String], _ expected: [String]) {
        func groups(_ out: [String]) -> [GroupOverview] {
            [
                (GroupID.httpdns, "httpdns", [GroupID.fallback]), (.fallback, "fallback", []),
                (GroupID(2), "office", []), (GroupID(3), "shop", [.httpdns]),
            ].map { group($0, $1, thenTry: $2, health: [out.contains($1) ? (3, 0) : (0, 1)]) }
        }
        var outages = Outages()
        let lines = LogLines()
        for groups in [groups(failing), groups([])] {
            for group in outages.update(groups) { lines.report.outage(of: group, among: groups, out: outages.out) }
        }
        let titles = ["httpdns": "HTTPDNS", "fallback": "fallback"]
        let back = failing.map { "notice \(titles[$0] ?? $0) is in use again" }
        #expect(lines.all == expected.map { "warning \($0)" } + back)
        let event = failing[0] == "httpdns" ? "service-lost" : "group-lost"
        #expect(lines.fields.first == ["event": "\(event)", "group": "\(failing[0])"])
    }

    @Test func aGroupToWhichAFailureDoesNotLeadIsNotAskedInItsPlace() {
        let lines = LogLines()
        let service = group(thenTry: [.fallback], on: .noRecord, health: [(3, 0)])
        let fallback = group(.fallback, "fallback", health: [(0, 1)])
        lines.report.outage(of: service, among: [service, fallback], out: [.httpdns])
        #expect(
            lines.all == ["warning HTTPDNS is out of use: questions get SERVFAIL, or what is cached, even if stale"])
    }

    @Test func withoutALocalResolverWhatIsKnownIsAllThereIs() {
        let lines = LogLines()
        let lonely = group(thenTry: [.fallback], health: [(3, 0)])
        for groups in [[lonely], [lonely, group(.fallback, "fallback", health: [])]] {
            lines.report.outage(of: lonely, among: groups, out: [.httpdns])
        }
        let line = "warning HTTPDNS is out of use: questions get SERVFAIL, or what is cached, even if stale"
        #expect(lines.all == [line, line])
    }
}

@Suite struct OccasionTests {
    private let server = Server(Endpoint("192.0.2.2:443")!, .account)

    @Test func aFailureIsToldApartByWhoMustMendIt() {
        for (failure, event) in [
            (Failure(.untrusted, "certificate expired"), "certificate-refused"),
            (Failure(.unauthorized, "x", statusCode: 401), "account-refused"),
            (Failure(.badAnswer, "x", statusCode: 403), "account-refused"),
            (Failure(.badAnswer, "x", statusCode: 503), "service-fails"), (Failure(.timedOut, "x"), "service-fails"),
        ] {
            let lines = LogLines()
            lines.report.event(.failing(.httpdns, server, failure), overview)
            #expect(lines.all == ["warning HTTPDNS 192.0.2.2:443 fails: \(failure.detail)"])
            #expect(
                lines.fields == [
                    [
                        "event": "\(event)", "group": "httpdns", "server": "192.0.2.2:443",
                        "reason": "\(failure.detail)",
                    ]
                ])
        }
    }

    @Test func aRefusalOfNamesIsNoFailureOfTheServer() {
        let lines = LogLines()
        lines.report.event(.failing(.httpdns, server, Failure(.refusedTogether, "x", statusCode: 403)), overview)
        #expect(lines.all == ["warning HTTPDNS 192.0.2.2:443 refuses names asked together: x"])
        #expect(lines.fields.map { $0["event"] } == ["names-refused"])
    }

    private func overview(_ id: GroupID) -> GroupOverview {
        var group = UpstreamGroup(
            id, [], id == .httpdns ? .addresses(namesPerRequest: 1) : .messages, .lastThatAnswered, timeout: 0)
        group.name = id == .httpdns ? "httpdns" : id == .fallback ? "fallback" : "office"
        return GroupOverview(group, [])
    }

    @Test func aServerIsNamedWithItsGroup() {
        let lines = LogLines()
        let tls = Server(Endpoint("10.1.0.53:853")!, .tls)
        lines.report.event(.failing(GroupID(2), tls, Failure(.untrusted, "certificate expired")), overview)
        lines.report.event(.failing(GroupID(2), tls, Failure(.timedOut, "x")), overview)
        lines.report.event(.answersAgain(GroupID(2), tls), overview)
        lines.report.event(.answersAgain(.fallback, Server(Endpoint("192.0.2.53:53")!)), overview)
        #expect(
            lines.all == [
                "warning office tls://10.1.0.53 fails: certificate expired", "warning office tls://10.1.0.53 fails: x",
                "notice office tls://10.1.0.53 answers again", "notice fallback 192.0.2.53:53 answers again",
            ])
        #expect(
            lines.fields.map { $0["event"] } == [
                "certificate-refused", "resolver-fails", "resolver-answers-again", "resolver-answers-again",
            ])
    }
}
