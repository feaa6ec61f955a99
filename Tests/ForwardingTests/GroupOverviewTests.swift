import Base
import DNSCache
import DNSWire
import Testing

@testable import Forwarding

/// The overview of groups for an operator.
@Suite struct GroupOverviewTests {
    private static let now = Tick(nanoseconds: 1_000_000_000_000)
    private let office = GroupID(2)

    private func made(_ upstreams: TestUpstreams) -> Forwarder {
        upstreams.forwarder(DNSCache(bytes: 1 << 20, seed: (1, 2)))
    }

    private func after(_ seconds: Int) -> Tick { Self.now.advanced(milliseconds: seconds * 1000) }

    @Test func thoseAreShownThatMayBeAsked() throws {
        var upstreams = TestUpstreams()
        func shown() -> [[GroupID]] { made(upstreams).groupOverviews.map { [$0.id] + $0.thenTry } }
        #expect(shown() == [[.httpdns, .fallback], [.fallback]])
        upstreams.httpOnly = true
        #expect(shown() == [[.httpdns]])
        upstreams.hasService = false
        #expect(shown() == [[.fallback]])
        var own = try #require(NamedGroup(["office", "1", "takes", "corp.example"]))
        own.thenTry = ["fallback"]
        upstreams.named = [own]
        #expect(shown() == [[.fallback], [office, .fallback]])
        var forwarder = made(upstreams)
        upstreams.named = []
        forwarder.change(
            .settings(upstreams.policy(), Timing(), upstreams.groups, renewed: []),
            at: Self.now)
        let left = forwarder.groupOverviews.map(\.id)
        #expect(left == [.fallback])
    }

    @Test func thoseAreKnownToWhichNamesGoThatNoPatternTakes() throws {
        func route(_ change: (inout TestUpstreams) -> Void) -> [GroupID] {
            var upstreams = TestUpstreams()
            change(&upstreams)
            return made(upstreams).mainRoute
        }
        let behind = try #require(NamedGroup(["office", "1", "takes", "corp.example"]))
        let every = try #require(NamedGroup(["office", "1", "takes", ".", "thenTry", "fallback"]))
        let wall = try #require(NamedGroup(["office", "0", "takes", ".", "answers", "nxdomain"]))
        #expect(route { _ in } == [.httpdns, .fallback])
        #expect(route { $0.httpOnly = true } == [.httpdns])
        #expect(route { $0.hasService = false } == [.fallback])
        #expect(route { $0.intercept = [Name("example.com")!] } == [.fallback])
        #expect(route { $0.resolvers = [] } == [.httpdns])
        #expect(route { ($0.thenTry, $0.named) = (["office"], [behind]) } == [.httpdns, office])
        #expect(route { $0.named = [every] } == [office, .fallback])
        let few = { (servers: String) in
            try #require(NamedGroup(["office", servers, "takes", ".", "thenTry", "fallback", "on", "nxdomain"]))
        }
        let (one, none) = (try few("1"), try few("0"))
        #expect(route { $0.named = [one] } == [office])
        #expect(route { $0.named = [none] } == [.fallback])
        #expect(route { $0.named = [wall] } == [])
    }

    @Test func aQuestionIsCountedOnceAtEachGroupItComesTo() {
        var upstreams = TestUpstreams()
        upstreams.service = .scenario(2, list: 0)
        var forwarder = made(upstreams)
        forwarder.receive(Name("www.example.com")!, .a, for: .everyone, from: 1, at: Self.now)
        forwarder.receive(Name("www.example.com")!, .a, for: .everyone, from: 2, at: Self.now)
        // Both servers of the account fail, then the resolver is asked.
        while true {
            forwarder.endTurn(at: Self.now)
            let asked = forwarder.takeActions().compactMap { action -> QueryID? in
                if case .ask(let id, _, _) = action, id.group == .httpdns { id } else { nil }
            }
            if asked.isEmpty { break }
            for id in asked { forwarder.settle(id, .failed(Failure(.unreachable, "x")), at: Self.now) }
        }
        let counters = forwarder.groupOverviews.map(\.counters)
        #expect(counters.map(\.questions) == [1, 1])
        #expect(counters.map(\.queries) == [2, 1] && counters.map(\.failures) == [2, 0])
        let failed = forwarder.failedQueries
        #expect(failed == 2)
        #expect(forwarder.counters.fallbacks == 1)
    }

    @Test func aQuestionIsCountedAtAGroupThatAnswersByItself() throws {
        var upstreams = TestUpstreams()
        upstreams.named = try [
            "office 0 takes ads.example answers nxdomain", "partner 0 takes alias.example answers www.example.com",
        ].map { try #require(NamedGroup($0.split(separator: " ").map(String.init)[...])) }
        var forwarder = made(upstreams)
        for (client, name) in ["a.ads.example", "b.ads.example", "alias.example"].enumerated() {
            forwarder.receive(Name(name)!, .a, for: .everyone, from: client, at: Self.now)
        }
        let questions = [office, GroupID(3)].map { forwarder.overview(of: $0).counters.questions }
        #expect(questions == [2, 1])
    }

    @Test func aQueryThatIsSentASecondTimeIsCounted() {
        var upstreams = TestUpstreams()
        upstreams.hasService = false
        var forwarder = made(upstreams)
        forwarder.receive(Name("www.example.com")!, .a, for: .everyone, from: 1, at: Self.now)
        forwarder.endTurn(at: Self.now)
        func repeats() -> UInt64 { forwarder.overview(of: .fallback).counters.repeats }
        #expect(repeats() == 0)
        forwarder.expire(at: after(1))
        #expect(repeats() == 1)
    }

    /// What is asked beside a group that is down counts as the account's failure, or not at all without an account.
    @Test(arguments: [true, false])
    func whatIsAskedBesideAGroupThatIsDownIsNoSlowAccount(isAccount: Bool) throws {
        var upstreams = TestUpstreams()
        upstreams.hedgeAfter = 1000
        upstreams.named = [try #require(NamedGroup(["office", "1", "takes", "corp.example", "thenTry", "fallback"]))]
        var forwarder = made(upstreams)
        let domain = isAccount ? "example.com" : "corp.example"
        var asked: [GroupID] = []
        for (number, milliseconds) in [0, 100, 200, 1500].enumerated() {
            let now = Self.now.advanced(milliseconds: milliseconds)
            forwarder.expire(at: now)
            forwarder.endTurn(at: now)
            _ = forwarder.takeActions()
            forwarder.receive(Name("n\(number).\(domain)")!, .a, for: .everyone, from: number, at: now)
            forwarder.endTurn(at: now)
            forwarder.expire(at: now)
            forwarder.endTurn(at: now)
            asked = []
            for case .ask(let id, _, _) in forwarder.takeActions() {
                asked.append(id.group)
                if number < 3 { forwarder.settle(id, .failed(Failure(.unreachable, "x")), at: now) }
            }
        }
        #expect(asked == [isAccount ? .httpdns : office, .fallback])
        let counters = forwarder.counters
        let counted = FallbackReason.allCases.filter { counters.fallbacks(because: $0) > 0 }
        #expect(counted == (isAccount ? [.unreachable] : []))
    }

    /// A lookup counts once, by its least protected way, however many servers were asked.
    @Test func aLookupIsCountedByTheWayItWasSent() throws {
        /// - Parameter isWritten: Whether the request to the account could be sent.
        func sent(_ resolver: String, serviceFails: Bool, isWritten: Bool = true) throws -> [UInt64] {
            var upstreams = TestUpstreams()
            upstreams.service = [Server(try #require(Endpoint("127.0.0.1:443")), .account)]
            upstreams.resolvers = [Server(try #require(Endpoint(resolver)))]
            var forwarder = made(upstreams)
            let name = Name("www.example.com")!
            for client in 1...2 { forwarder.receive(name, .a, for: .everyone, from: client, at: Self.now) }
            for _ in 1...2 {
                forwarder.endTurn(at: Self.now)
                for case .ask(let id, _, let ask) in forwarder.takeActions() {
                    let isService = if case .addresses = ask { true } else { false }
                    // A request that is sent a second time is counted again: the service bills its names again.
                    if isWritten { for _ in 1...2 { forwarder.wrote(id) } }
                    let outcome: Outcome =
                        !isService
                        ? .answer(.failure(name, type: .a, .nxDomain, extendedError: nil))
                        : serviceFails ? .failed(Failure(.unreachable, "x")) : .success(ask)
                    forwarder.settle(id, outcome, at: Self.now)
                }
            }
            // An answer from the cache, or a refusal without a lookup: no request is sent.
            forwarder.receive(Name("localhost")!, .a, for: .everyone, from: 3, at: Self.now)
            let counters = forwarder.counters
            let names = forwarder.overview(of: .httpdns).counters.names
            return [counters.sentEncrypted, counters.sentToLoopback, counters.sentInClear, names]
        }
        #expect(try sent("192.0.2.53:53", serviceFails: false) == [1, 0, 0, 2])
        #expect(try sent("192.0.2.53:53", serviceFails: true) == [0, 0, 1, 2])
        #expect(try sent("127.0.0.53:53", serviceFails: true) == [1, 0, 0, 2])
        // A request that could not be sent reached no server, and costs nothing.
        #expect(try sent("127.0.0.53:53", serviceFails: true, isWritten: false) == [0, 1, 0, 0])
        #expect(try sent("192.0.2.53:53", serviceFails: true, isWritten: false) == [0, 0, 1, 0])
    }

    /// Else the names of an account that a reload takes away and brings back would count as sent again.
    @Test func namesStayCountedWithoutTheirAccount() throws {
        var upstreams = TestUpstreams()
        let account = try #require(NamedGroup(["office", "1", "account", "takes", "shop.example"]))
        upstreams.named = [account]
        var forwarder = made(upstreams)
        forwarder.receive(Name("www.shop.example")!, .a, for: .everyone, from: 1, at: Self.now)
        forwarder.endTurn(at: Self.now)
        for case .ask(let id, _, let ask) in forwarder.takeActions() {
            forwarder.wrote(id)
            forwarder.settle(id, .success(ask), at: Self.now)
        }
        var sent = [forwarder.namesSent]
        for named in [[], [account]] {
            upstreams.named = named
            forwarder.change(.settings(upstreams.policy(), Timing(), upstreams.groups, renewed: []), at: Self.now)
            sent.append(forwarder.namesSent)
        }
        let expected: [GroupID: UInt64] = [.httpdns: 0, office: 1]
        #expect(sent == [expected, expected, expected])
    }

    /// Questions of the daemon itself are no questions of clients: names of servers count in no figure.
    @Test func aQuestionForAServerCountsNowhere() throws {
        var upstreams = TestUpstreams()
        upstreams.hasService = false
        upstreams.named = try ["office 1 takes corp.example called dns.example", "resolvers 1"].map {
            try #require(NamedGroup($0.split(separator: " ").map(String.init)[...]))
        }
        var forwarder = made(upstreams)
        for client in 1...2 { forwarder.findServer(Name("dns.example")!, .a, for: -client, at: Self.now) }
        forwarder.endTurn(at: Self.now)
        let asked = forwarder.takeActions().compactMap {
            if case .ask(let id, _, _) = $0 { id } else { nil as QueryID? }
        }
        #expect(asked.count == 1)
        for id in asked {
            forwarder.wrote(id)
            forwarder.settle(id, .failed(Failure(.unreachable, "x")), at: Self.now)
        }
        let (counters, groups) = (forwarder.counters, forwarder.groupOverviews.map(\.counters))
        #expect(counters == Counters() && groups.allSatisfy { $0.questions == 0 }, "\(counters)")
    }

    /// Without a network, no request leaves this machine; a request to a silent server has left it all the same.
    @Test func whatCouldNotBeSentHasNotLeft() throws {
        func left(isWritten: Bool, isSilent: Bool) throws -> UInt64 {
            var upstreams = TestUpstreams()
            upstreams.hasService = false
            upstreams.resolvers = [Server(try #require(Endpoint("192.0.2.53:53")))]
            var forwarder = made(upstreams)
            forwarder.receive(Name("www.example.com")!, .a, for: .everyone, from: 1, at: Self.now)
            forwarder.endTurn(at: Self.now)
            for case .ask(let id, _, _) in forwarder.takeActions() {
                if isWritten { forwarder.wrote(id) }
                if !isSilent { forwarder.settle(id, .failed(Failure(.unreachable, "x")), at: Self.now) }
            }
            forwarder.expire(at: after(60))
            let (counters, flights) = (forwarder.counters, forwarder.flightsUnderWay)
            #expect(flights == 0 && counters.sentEncrypted == 0)
            return counters.sentInClear
        }
        #expect(try left(isWritten: false, isSilent: false) == 0)
        #expect(try left(isWritten: false, isSilent: true) == 0)
        #expect(try left(isWritten: true, isSilent: true) == 1)
        #expect(try left(isWritten: true, isSilent: false) == 1)
    }

    @Test func aServerThatIsPassedOverIsTriedAgainAtATimeThatIsKnown() {
        let servers = [Server].scenario(2, list: 0)
        func tries(_ state: GroupState, at now: Tick) -> [Tick?] {
            let overview = GroupOverview(state, thenTry: [])
            return overview.servers.map { overview.nextTry(of: $0, at: now) }
        }
        func end(_ state: inout GroupState, _ index: Int, _ verdict: ServerChoice.Verdict, at now: Tick = Self.now) {
            let query = Forwarding.Query(
                group: state.id, server: state.servers[index].server, number: state.servers[index].number,
                sent: Self.now, subject: .names([], .both), holder: nil, endsAt: Self.now, isTrial: false)
            state.choice.ended(query, verdict, at: now)
        }
        var inOrder = GroupState(
            UpstreamGroup(
                .httpdns, servers, .addresses(namesPerRequest: 1), .inOrder(switchAfter: 1, returnAfterMinutes: 1),
                timeout: 1000))
        #expect(tries(inOrder, at: Self.now) == [nil, nil])
        end(&inOrder, 0, .failed(Failure(.timedOut, "x")))
        #expect(tries(inOrder, at: Self.now) == [after(60), nil])
        end(&inOrder, 1, .failed(Failure(.tooOften, "x", retryAfter: 7)))
        #expect(tries(inOrder, at: Self.now)[1] == after(7))
        #expect(tries(inOrder, at: after(7))[1] == nil)

        var inPreference = GroupState(
            UpstreamGroup(office, servers, .messages, .inPreference(nextWithin: 1000), timeout: 1000))
        end(&inPreference, 0, .failed(Failure(.timedOut, "x")))
        #expect(tries(inPreference, at: Self.now) == [after(1), nil])
        // Due, and with the next question: that moment has passed, and stays known.
        #expect(tries(inPreference, at: after(5)) == [after(1), nil])
        end(&inPreference, 0, .answered(hasAnswer: true, toRepeat: false), at: after(5))
        #expect(tries(inPreference, at: after(5)) == [nil, nil])
        // Also one behind the server that is asked.
        end(&inPreference, 1, .failed(Failure(.unreachable, "x")), at: after(5))
        #expect(tries(inPreference, at: after(5)) == [nil, after(6)])
    }
}
