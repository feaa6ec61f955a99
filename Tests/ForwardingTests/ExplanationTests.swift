import Base
import DNSCache
import DNSWire
import Testing

@testable import Forwarding

/// Explanations of single questions. ``RandomForwarderTests`` shows that the forwarder does what they say.
@Suite struct ExplanationTests {
    private static let now = Tick(nanoseconds: 1_000_000_000_000)
    private let name = Name("www.example.com")!

    private func made(_ upstreams: TestUpstreams = TestUpstreams()) -> Forwarder {
        upstreams.forwarder(DNSCache(bytes: 1 << 20, staleSeconds: 3600, seed: (1, 2)))
    }

    private func ask(_ forwarder: inout Forwarder, _ type: RecordType = .a, at now: Tick) -> [(QueryID, Ask)] {
        forwarder.receive(name, type, for: .plain, from: 1, at: now)
        return queries(&forwarder, at: now)
    }

    private func queries(_ forwarder: inout Forwarder, at now: Tick) -> [(QueryID, Ask)] {
        forwarder.endTurn(at: now)
        return forwarder.takeActions().compactMap { if case .ask(let id, _, let ask) = $0 { (id, ask) } else { nil } }
    }

    @Test func whoHasSaidWhatIsCachedIsKnown() {
        var forwarder = made()
        let first = forwarder.explain(name, .a, at: Self.now)
        #expect(first.fate == .asked(0) && first.parts.map(\.group.id) == [.httpdns, .fallback] && first.held == nil)
        for (id, query) in ask(&forwarder, at: Self.now) { forwarder.settle(id, .success(query), at: Self.now) }
        let later = Self.now.advanced(milliseconds: 20_000)
        let known = forwarder.explain(name, .a, at: later)
        #expect(known.fate == .cached && known.origin?.id == .httpdns && known.held?.elapsed == 20)
        #expect(known.held?.left == 40 && known.held?.audience == .everyone)
        let stale = forwarder.explain(name, .a, at: Self.now.advanced(milliseconds: 100_000))
        #expect(stale.fate == .asked(0) && stale.held?.isFresh == false)
    }

    @Test func aNameWithoutRecordGoesToTheNextGroupAlsoForServiceBindings() {
        var forwarder = made()
        let before = forwarder.explain(name, .https, at: Self.now)
        #expect(before.reason == .serviceBinding && before.parts.isEmpty)
        for (id, _) in ask(&forwarder, at: Self.now) {
            let none = NameAddresses(name: name, ipv4: .noRecord, ipv6: .noRecord)
            let reason = AbsenceReason(name, .ipv4, code: "RRNotExist".utf8)!
            forwarder.settle(id, .addresses([none], [reason]), at: Self.now)
        }
        for type in [RecordType.a, .https] {
            let known = forwarder.explain(name, type, at: Self.now)
            #expect(known.fate == .asked(1), "\(type)")
            #expect(known.parts.map(\.standing).first == .withoutRecord("RRNotExist"), "\(type)")
        }
        // The local resolver is asked next, and its answer replaces the account's.
        for (id, ask) in queries(&forwarder, at: Self.now) {
            guard case .message = ask else { continue }
            forwarder.settle(id, .success(ask), at: Self.now)
        }
        let kept = forwarder.explain(name, .a, at: Self.now)
        #expect(kept.fate == .cached && kept.origin?.id == .fallback)
    }

    @Test func aQuestionThatHasFailedIsNotAskedForAMoment() {
        var upstreams = TestUpstreams()
        upstreams.hasService = false
        var forwarder = made(upstreams)
        for (id, _) in ask(&forwarder, at: Self.now) {
            forwarder.settle(id, .failed(Failure(.unreachable, "gone")), at: Self.now)
        }
        let failed = forwarder.explain(name, .a, at: Self.now)
        guard case .failedLately(let answer) = failed.fate else {
            Issue.record("it would be asked")
            return
        }
        #expect(answer.head.responseCode == .servFail)
        let later = forwarder.explain(name, .a, at: Self.now.advanced(milliseconds: 1500))
        #expect(later.fate == .asked(0))
    }

    @Test func anAccountThatWantsToBeLeftAloneIsPassedOver() {
        var forwarder = made()
        for (id, _) in ask(&forwarder, at: Self.now) {
            forwarder.settle(id, .failed(Failure(.tooOften, "429", retryAfter: 30)), at: Self.now)
        }
        _ = queries(&forwarder, at: Self.now)
        let known = forwarder.explain(Name("other.example.com")!, .a, at: Self.now)
        #expect(known.fate == .asked(1) && known.parts[0].standing == .paused)
    }

    /// A question for the other family goes where the lookup goes that it joins, not where that has failed.
    @Test func aServerThatHasFailedForTheNameIsNotAskedForItAgain() {
        var upstreams = TestUpstreams()
        upstreams.service = .scenario(2, list: 0)
        var forwarder = made(upstreams)
        for (id, _) in ask(&forwarder, at: Self.now) {
            forwarder.settle(id, .failed(Failure(.unreachable, "gone")), at: Self.now)
        }
        let known = forwarder.explain(name, .aaaa, at: Self.now)
        #expect(known.fate == .asked(0) && known.parts[0].standing == .ready(upstreams.groups[0].servers[1]))
    }

    /// HTTPS and SVCB of the account's names are asked of a group with encrypted servers.
    private func withBindings() -> TestUpstreams {
        var upstreams = TestUpstreams()
        (upstreams.looksForBindings, upstreams.thenTry) = (true, ["office"])
        upstreams.named = [NamedGroup(["office", "1", "encrypted"])!]
        return upstreams
    }

    @Test func aServiceBindingThatNoServerCanGiveDoesNotExist() {
        var forwarder = made(withBindings())
        for (id, _) in ask(&forwarder, .https, at: Self.now) {
            forwarder.settle(id, .failed(Failure(.tooOften, "429", retryAfter: 30)), at: Self.now)
        }
        _ = forwarder.takeActions()
        let later = Self.now.advanced(milliseconds: 2000)
        let known = forwarder.explain(name, .https, at: later)
        #expect(known.parts.map(\.standing) == [.paused])
        forwarder.receive(name, .https, for: .plain, from: 2, at: later)
        let replies = forwarder.takeActions().compactMap { action -> Explanation.Fate? in
            if case .reply(_, let answer, _, by: _, way: _) = action { .made(answer) } else { nil }
        }
        #expect(replies == [known.fate])
    }

    @Test func whatIsStaleHasItsTTLAndAServiceBindingIsNotGivenSo() {
        var forwarder = made(withBindings())
        for type in [RecordType.a, .https] {
            let answer = Answer.addresses(name, type: type, [.v4(192, 0, 2, 1)], ttl: 5)
            forwarder.cache.store(answer, to: name, type: type, for: .plain, at: Self.now.seconds)
        }
        let later = Self.now.advanced(milliseconds: 10_000)
        let address = forwarder.explain(name, .a, at: later)
        #expect(address.held?.isFresh == false && address.stale?.records().map(\.ttl) == [30])
        let binding = forwarder.explain(name, .https, at: later)
        #expect(binding.held?.isFresh == false && binding.stale == nil)
    }

    /// The groups of servers are asked one after the other, and none after a failure that does not lead to it.
    @Test(
        arguments: [
            (["fallback"], "failure", [nil, 1000]), (["fallback"], "norecord", [nil, nil]),
            (["partner", "fallback"], "failure", [nil, 1000, nil]),
        ] as [([String], String, [Int?])])
    func whatIsAskedBesideASlowGroup(_ next: [String], _ end: String, _ expected: [Int?]) throws {
        var upstreams = TestUpstreams()
        upstreams.hedgeAfter = 1000
        let account = ["office", "1", "account", "takes", "example.com", "thenTry"] + next + ["on", end]
        upstreams.named = try [account, ["partner", "1"]].map { try #require(NamedGroup($0[...])) }
        var forwarder = made(upstreams)
        let parts = forwarder.explain(name, .a, at: Self.now).parts
        #expect(parts.map(\.hedgeAfter) == expected)
    }

    @Test func aGroupWithoutServersIsNotAskedBesideASlowOne() {
        var upstreams = TestUpstreams()
        (upstreams.hedgeAfter, upstreams.resolvers) = (1000, [])
        var forwarder = made(upstreams)
        #expect(forwarder.explain(name, .a, at: Self.now).parts.map(\.hedgeAfter) == [nil, nil])
    }

    @Test func theSharedCacheIsNotReadForAServiceBinding() {
        var upstreams = withBindings()
        upstreams.isShared = true
        var forwarder = made(upstreams)
        forwarder.change(.sharedCache(SharedSettings(staleSeconds: 0, prefetchAt: 0)), at: Self.now)
        forwarder.handle(.connected, wall: 0, at: Self.now)
        _ = forwarder.takeActions()
        let known = forwarder.explain(name, .https, at: Self.now)
        let other = forwarder.explain(name, .mx, at: Self.now)
        let isRead = (known.parts + other.parts).map { $0.sharedQuestion != nil }
        #expect(known.fate == .asked(0) && isRead == [false, true])
        #expect(ask(&forwarder, .https, at: Self.now).count == 1)
    }

    @Test func whatTheSharedCacheSaysMayLeadToTheNextGroup() throws {
        var upstreams = TestUpstreams()
        let line = "office 1 takes example.com thenTry fallback on nodata"
        upstreams.named = [NamedGroup(line.split(separator: " ").map(String.init)[...])!]
        upstreams.isShared = true
        var forwarder = made(upstreams)
        forwarder.change(.sharedCache(SharedSettings(staleSeconds: 0, prefetchAt: 0)), at: Self.now)
        forwarder.handle(.connected, wall: 0, at: Self.now)
        let questions = forwarder.explain(name, .mx, at: Self.now).parts.compactMap(\.sharedQuestion)
        try #require(questions.count == 2)
        let none = StoreLook.found(
            .entry(
                SharedEntry(.answer(.noData(name, type: .mx, negativeTTL: 600)), stored: 1000, lifetime: 600),
                isStaleCopy: false))
        let denial = StoreLook.found(
            .entry(
                SharedEntry(.answer(.nxDomain(name, type: .mx, negativeTTL: 600)), stored: 1000, lifetime: 600),
                isStaleCopy: false))
        // The last one: the name exists.
        let expected: [([StoreLook], Explanation.Fate)] = [
            ([none], .asked(1)), ([none, none], .stored(1)), ([denial], .stored(0)), ([none, denial], .stored(0)),
        ]
        for (looks, fate) in expected {
            let found = Dictionary(uniqueKeysWithValues: zip(questions, looks))
            let known = forwarder.explain(name, .mx, StoreLooks(found, wall: 1000), at: Self.now)
            #expect(known.fate == fate, "\(looks)")
        }
    }

    @Test func whatTheSharedCacheHasFromBeforeTheDaemonsOwnAnswerIsNotGiven() throws {
        var upstreams = TestUpstreams()
        upstreams.isShared = true
        var forwarder = made(upstreams)
        for (id, query) in ask(&forwarder, at: Self.now) { forwarder.settle(id, .success(query), at: Self.now) }
        forwarder.change(.sharedCache(SharedSettings(staleSeconds: 3600, prefetchAt: 0)), at: Self.now)
        forwarder.handle(.connected, wall: 0, at: Self.now)
        let later = Self.now.advanced(milliseconds: 61_000)
        let question = try #require(forwarder.explain(name, .a, at: later).parts.first?.sharedQuestion)
        let answer = Answer.addresses(name, type: .a, [.v4(192, 0, 2, 77)], ttl: 600)
        // The daemon's own answer is from 1000.
        let expected: [(stored: UInt64, Explanation.Fate)] = [(990, .asked(0)), (1000, .stored(0))]
        for (stored, fate) in expected {
            let entry = SharedEntry(.answer(answer), stored: stored, lifetime: 600)
            let looks = StoreLooks([question: .found(.entry(entry, isStaleCopy: false))], wall: 1061)
            #expect(forwarder.explain(name, .a, looks, at: later).fate == fate)
        }
    }

    @Test func whatTheSharedCacheHasIsJudgedByThePrefixOfThisNetwork() throws {
        var upstreams = TestUpstreams()
        (upstreams.hasService, upstreams.isShared) = (false, true)
        var forwarder = made(upstreams)
        forwarder.change(.synthesis(NAT64Prefix(Network("64:ff9b::/96")!)!), at: Self.now)
        forwarder.change(.sharedCache(SharedSettings(staleSeconds: 3600, prefetchAt: 0)), at: Self.now)
        forwarder.handle(.connected, wall: 0, at: Self.now)
        let questions = forwarder.explain(name, .aaaa, at: Self.now).parts.compactMap(\.sharedQuestion)
        let question = try #require(questions.first)
        let mapped = Answer.addresses(name, type: .aaaa, [IPAddress("::ffff:192.0.2.77")!], ttl: 60)
        let (fresh, copy) = (
            SharedEntry(.answer(mapped), stored: 1000, lifetime: 60),
            SharedEntry(.answer(.noData(name, type: .aaaa, negativeTTL: 60)), stored: 900, lifetime: 60)
        )
        let known = forwarder.explain(
            name, .aaaa, StoreLooks([question: .found(.entry(fresh, isStaleCopy: false))], wall: 1000), at: Self.now)
        guard case .entry(.answer(let shown), elapsed: _, isFresh: true)? = known.parts[0].stored else {
            Issue.record("\(String(describing: known.parts[0].stored))")
            return
        }
        #expect(shown.records().isEmpty)
        let expired = forwarder.explain(
            name, .aaaa, StoreLooks([question: .found(.entry(copy, isStaleCopy: true))], wall: 1000), at: Self.now)
        guard case .entry(_, elapsed: _, isFresh: false)? = expired.parts[0].stored else {
            Issue.record("\(String(describing: expired.parts[0].stored))")
            return
        }
        #expect(expired.stale == nil)
    }

    @Test func whereNamesWaitForThePlanAnotherSourceHasItsTurn() {
        var upstreams = TestUpstreams()
        (upstreams.httpOnly, upstreams.queriesPerSecond) = (true, 8)
        var forwarder = made(upstreams)
        let flood = Source(.v4(192, 0, 2, 66))
        for number in 0..<20 {
            forwarder.receive(
                Name("flood\(number).example.com")!, .a, for: .plain, from: number, by: Asker(flood), at: Self.now)
        }
        #expect(queries(&forwarder, at: Self.now).count == 1)
        let own = forwarder.explain(name, .a, of: flood, at: Self.now)
        #expect(own.fate == .asked(0) && own.parts[0].standing == .waiting)
        let other = forwarder.explain(name, .a, of: Source(.v4(192, 0, 2, 1)), at: Self.now)
        #expect(other.fate == .asked(0))
        guard case .ready = other.parts[0].standing else {
            Issue.record("\(other.parts[0].standing)")
            return
        }
        forwarder.receive(name, .a, for: .plain, from: 20, by: Asker(Source(.v4(192, 0, 2, 1))), at: Self.now)
        #expect(queries(&forwarder, at: Self.now).map(\.1) == [.addresses([name], .both)])
    }

    @Test func aGroupThatIsNotAskedForItselfIsNotSaidToHaveNoRecord() {
        var upstreams = TestUpstreams()
        let lines = ["office 1 account takes example.com thenTry partner on failure", "partner 1 account"]
        upstreams.named = lines.map { NamedGroup($0.split(separator: " ").map(String.init)[...])! }
        var forwarder = made(upstreams)
        for (id, _) in ask(&forwarder, at: Self.now) {
            let none = NameAddresses(name: name, ipv4: .noRecord, ipv6: .noRecord)
            forwarder.settle(id, .addresses([none]), at: Self.now)
        }
        let known = forwarder.explain(name, .aaaa, at: Self.now)
        #expect(known.parts[0].standing == .withoutRecord(nil))
        #expect(known.parts[1].standing == .ready(forwarder.overview(of: known.parts[1].group.id).servers[0].server))
    }

    @Test func anAccountBehindAnotherGroupIsNotAskedAgainForWhatItDoesNotHave() {
        var upstreams = TestUpstreams()
        let line = "office 1 takes example.com thenTry httpdns on nxdomain"
        upstreams.named = [NamedGroup(line.split(separator: " ").map(String.init)[...])!]
        var forwarder = made(upstreams)
        for (id, _) in ask(&forwarder, at: Self.now) {
            forwarder.settle(id, .answer(.nxDomain(name, type: .a, negativeTTL: 600)), at: Self.now)
        }
        for (id, _) in queries(&forwarder, at: Self.now) {
            let none = NameAddresses(name: name, ipv4: .noRecord, ipv6: .noRecord)
            forwarder.settle(id, .addresses([none]), at: Self.now)
        }
        let known = forwarder.explain(name, .aaaa, at: Self.now)
        #expect(known.fate == .asked(0) && known.parts[1].standing == .withoutRecord(nil))
    }

    @Test func whoAsksWhatIsUnderWayWaitsForTheGroupThatIsAskedNow() {
        var forwarder = made()
        for (id, _) in ask(&forwarder, at: Self.now) {
            forwarder.settle(id, .failed(Failure(.unreachable, "gone")), at: Self.now)
        }
        _ = queries(&forwarder, at: Self.now)
        #expect(forwarder.explain(name, .a, at: Self.now).fate == .asked(1))
        #expect(forwarder.explain(name, .aaaa, at: Self.now).fate == .asked(0))
    }

    @Test func explainingChangesNothing() {
        var explained = made()
        var other = made()
        for type in [RecordType.a, .https, .mx, .axfr, .any] { _ = explained.explain(name, type, at: Self.now) }
        let a = ask(&explained, at: Self.now)
        let b = ask(&other, at: Self.now)
        #expect(a.map(\.0) == b.map(\.0) && a.map(\.1) == b.map(\.1))
        let (flights, groups, cached) = (
            explained.counters.flights, explained.groupOverviews, explained.cache.statistics
        )
        let (otherFlights, otherGroups, otherCached) = (
            other.counters.flights, other.groupOverviews, other.cache.statistics
        )
        #expect(flights == otherFlights && groups == otherGroups && cached == otherCached)
    }

    @Test(
        arguments: [
            ("localhost", .a, .localhost), ("a.onion", .a, .nonexistent), ("_dns.resolver.arpa", .svcb, .noData),
            ("www.example.com", .any, .any), ("www.example.com", .aaaa, .addresses),
            ("www.example.com", .svcb, .serviceBinding),
            ("nas.local", .a, .privateName), ("nas", .a, .singleLabel), ("a\\044b.example.com", .a, .notHostname),
            ("www.example.com", .mx, .type), ("x.lan", .https, .privateName),
        ] as [(String, RecordType, RouteReason)])
    func reasons(_ text: String, _ type: RecordType, _ reason: RouteReason) {
        var forwarder = made()
        let explanation = forwarder.explain(Name(text)!, type, at: Self.now)
        #expect(explanation.reason == reason)
    }
}
