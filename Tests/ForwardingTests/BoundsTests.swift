import Base
import DNSCache
import DNSWire
import TestSupport
import Testing

@testable import Forwarding

/// The limits, and the tables that must not grow.
@Suite struct BoundsTests {
    private static let now = Tick(nanoseconds: 1_000_000_000_000)

    private static func forwarder(batch: Int = 8, httpOnly: Bool = false) -> Forwarder {
        var upstreams = TestUpstreams()
        (upstreams.batch, upstreams.httpOnly) = (batch, httpOnly)
        return upstreams.forwarder(DNSCache(bytes: 1 << 20, staleSeconds: 1000, seed: (1, 2)))
    }

    private func name(_ number: Int) -> Name { Name("n\(number).example")! }

    @Test func pastTheMostFlightsANewQuestionIsRefusedAndAnOldOneIsJoined() {
        var forwarder = Self.forwarder()
        let most = Shares.flights
        for number in 0..<most { forwarder.receive(name(number), .a, for: .everyone, from: number, at: Self.now) }
        #expect(forwarder.actions.isEmpty)
        forwarder.receive(name(most), .a, for: .everyone, from: most, at: Self.now)
        forwarder.receive(name(most + 1), .a, for: .everyone, from: most + 1, at: Self.now)
        #expect(forwarder.flightsUnderWay == most)
        #expect(forwarder.counters.refusedFlights == 2)
        var said: [String] = []
        for action in forwarder.actions {
            switch action {
            case .reply(let clients, let answer, _, _, way: _):
                said.append("\(Array(clients)) \(ScenarioAnswer.said(answer))")
            case .report(let event): said.append(event.said)
            default: said.append("else")
            }
        }
        #expect(said == ["refusing too many flights", "[\(most)] SERVFAIL", "[\(most + 1)] SERVFAIL"])
        _ = forwarder.takeActions()
        forwarder.receive(name(5), .a, for: .everyone, from: -1, at: Self.now)
        #expect(forwarder.actions.isEmpty)
        #expect(forwarder.counters.joined == 1)
    }

    /// A refresh of any source takes no room of a client's flight, whose clients would get SERVFAIL.
    @Test func aRefreshTakesNoRoomOfAClientsFlight() {
        var forwarder = Self.forwarder()
        for number in 0..<Shares.flights {
            forwarder.receive(name(number), .a, for: .everyone, from: number, at: Self.now)
        }
        for asker in [Asker.daemon, .host, Asker(Source(.v4(192, 0, 2, 1)))] {
            forwarder.receive(name(-1), .a, for: .everyone, from: nil, by: asker, at: Self.now)
        }
        #expect(forwarder.actions.isEmpty && forwarder.counters.refusedFlights == 0)
        #expect(forwarder.flightsUnderWay == Shares.flights)
        // The same question of a client takes the room.
        forwarder.receive(name(-1), .a, for: .everyone, from: -1, by: Asker(Source(.v4(192, 0, 2, 1))), at: Self.now)
        #expect(forwarder.actions.count == 2 && forwarder.counters.refusedFlights == 1)
    }

    @Test func nobodyIsWokenForAQueryThatHasEnded() {
        var forwarder = Self.forwarder()
        forwarder.receive(name(1), .a, for: .everyone, from: 1, at: Self.now)
        forwarder.endTurn(at: Self.now)
        let whileUnderWay = forwarder.nextDeadline
        #expect(whileUnderWay == Self.now.advanced(milliseconds: Timing.patience(roundTrip: nil)))
        guard case .ask(let query, _, _) = forwarder.actions[0] else { return #expect(Bool(false), "nothing is asked") }
        let found = NameAddresses(name: name(1), ipv4: .addresses([.v4(192, 0, 2, 1)], ttl: 60), ipv6: .noRecord)
        forwarder.settle(query, .addresses([found]), at: Self.now)
        let afterwards = forwarder.nextDeadline
        #expect(afterwards == Self.now.advanced(milliseconds: Timing().answerWithin))
    }

    @Test func pastTheMostRequestsNamesWaitAndGoOutFuller() {
        var forwarder = Self.forwarder()
        let most = GroupState.maximumRequests
        for number in 0..<most {
            forwarder.receive(name(number), .a, for: .everyone, from: number, at: Self.now)
            forwarder.endTurn(at: Self.now)
        }
        #expect(forwarder.desk.queries.count == most)
        for number in most..<most + 8 {
            forwarder.receive(name(number), .a, for: .everyone, from: number, at: Self.now)
            forwarder.endTurn(at: Self.now)
        }
        #expect(forwarder.desk.queries.count == most)
        guard case .ask(let first, _, let ask) = forwarder.actions[0] else {
            Issue.record("no request")
            return
        }
        _ = forwarder.takeActions()
        forwarder.settle(first, .success(ask), at: Self.now)
        forwarder.endTurn(at: Self.now)
        let sent = forwarder.actions.compactMap {
            if case .ask(_, _, .addresses(let names, _)) = $0 { names } else { nil }
        }
        #expect(sent == [(most..<most + 8).map(name)])
    }

    /// Requests that end quickly leave deadlines that are due in seconds; these must not pile up until then.
    @Test(arguments: [(RecordType.txt, 100_000, 1000), (.a, 20_000, 20_000)])
    func settledFlightsLeaveNoDeadlinesBehind(_ row: (type: RecordType, questions: Int, names: Int)) {
        var forwarder = Self.forwarder(batch: 1)
        var most = 0
        for number in 0..<row.questions {
            forwarder.receive(name(number % row.names), row.type, for: .everyone, from: number, at: Self.now)
            forwarder.endTurn(at: Self.now)
            for case .ask(let query, _, let ask) in forwarder.takeActions() {
                var outcome = Outcome.success(ask)
                if case .message(let question) = ask {
                    // An answer that is not cached.
                    outcome = .answer(.failure(question.name, type: .txt, .noError, extendedError: nil))
                }
                forwarder.settle(query, outcome, at: Self.now)
            }
            most = max(most, forwarder.deadlines.count + forwarder.desk.deadlines.count)
        }
        #expect(forwarder.counters.flights == UInt64(row.questions))
        #expect(most < 1000)
    }

    /// Requests that fail while they are handed over, as without a network, must leave room for the names that waited
    /// for it, in the same turn.
    @Test func roomThatComesInTheTurnItselfIsUsed() {
        var forwarder = Self.forwarder(batch: 1, httpOnly: true)
        let most = GroupState.maximumRequests
        for number in 0..<most + 5 {
            forwarder.receive(name(number), .a, for: .everyone, from: number, at: Self.now)
        }
        var asked: Set<Name> = []
        while true {
            forwarder.endTurn(at: Self.now)
            let actions = forwarder.takeActions()
            if actions.isEmpty { break }
            for action in actions {
                guard case .ask(let request, _, .addresses(let names, _)) = action else { continue }
                asked.formUnion(names)
                forwarder.settle(request, .failed(Failure(.unreachable, "no route")), at: Self.now)
            }
        }
        #expect(asked.count == most + 5)
    }

    /// A million random names, while upstreams are silent and while they fail or know nothing.
    @Test func aFloodTakesNoMoreRoomThanItMay() {
        var forwarder = Self.forwarder()
        var chance = Chance(seed: 7)
        print("seed 7")
        var now = Self.now
        var most = Rooms()
        var pending: [(QueryID, [Name])] = []
        var wire = [16] + [UInt8](repeating: 0, count: 16) + [3] + "com".utf8 + [0]
        for number in 0..<1_000_000 {
            for offset in 1...16 { wire[offset] = UInt8(ascii: "a") + UInt8(chance.next() & 15) }
            let name = Name(wire: wire.span, at: 0, length: wire.count)
            forwarder.receive(name, .a, for: .plain, from: number, at: now)
            guard number % 64 == 63 else { continue }
            now = now.advanced(milliseconds: 1)
            forwarder.endTurn(at: now)
            for action in forwarder.actions {
                if case .ask(let request, _, .addresses(let names, _)) = action { pending.append((request, names)) }
            }
            _ = forwarder.takeActions()
            if number / 100_000 % 2 == 1 {
                for (number, (request, names)) in pending.enumerated() {
                    let failure = Outcome.failed(Failure(.unreachable, "no route"))
                    let none = names.map { NameAddresses(name: $0, ipv4: .noRecord, ipv6: .noRecord) }
                    forwarder.settle(request, number % 2 == 0 ? failure : .addresses(none), at: now)
                }
                pending = []
            }
            if let next = forwarder.nextDeadline, next <= now { forwarder.expire(at: now) }
            _ = forwarder.takeActions()
            most.grow(forwarder)
        }
        print("at most \(most)")
        #expect(most.flights <= Shares.flights)
        #expect(most.clients <= Shares.flights)
        #expect(most.lookups <= Shares.flights)
        #expect(most.outbox <= Shares.flights)
        #expect(most.queries <= GroupState.maximumRequests + Shares.flights)
        #expect(most.deadlines <= 12 * Shares.flights)
        #expect(most.namesWithoutRecord <= GroupState.maximumNamesWithoutRecord)
        #expect(most.failures <= Shares.flights)
        // After the flood, no request of it is under way.
        while let next = forwarder.nextDeadline {
            now = max(now, next)
            forwarder.expire(at: now)
            forwarder.endTurn(at: now)
            _ = forwarder.takeActions()
        }
        var left = Rooms()
        left.grow(forwarder)
        left.namesWithoutRecord = 0
        left.failures = 0
        #expect(left == Rooms())
    }

    /// The size of each table.
    private struct Rooms: Equatable {
        var (clients, flights, lookups, outbox, queries) = (0, 0, 0, 0, 0)
        var (deadlines, namesWithoutRecord, failures) = (0, 0, 0)

        mutating func grow(_ forwarder: borrowing Forwarder) {
            clients = max(clients, forwarder.admission.clients.all)
            flights = max(flights, forwarder.flights.count, forwarder.flightOf.count)
            lookups = max(lookups, forwarder.desk.groups.reduce(0) { $0 + $1.lookups.count })
            outbox = max(outbox, forwarder.desk.groups.reduce(0) { $0 + $1.outbox.count })
            queries = max(queries, forwarder.desk.queries.count)
            deadlines = max(deadlines, forwarder.deadlines.count + forwarder.desk.deadlines.count)
            namesWithoutRecord = max(namesWithoutRecord, forwarder.desk.groups[0].namesWithoutRecord.count)
            failures = max(failures, forwarder.admission.failures.count)
        }
    }

    /// Clients of few names, more than one source has room for: the newest are refused, and all are answered.
    @Test func pastItsPartOfTheMostClientsASourcesNewestAreRefused() {
        var forwarder = Self.forwarder()
        let (most, names) = (Shares.clients / 8 * 7, 100)
        for number in 0..<most + 1000 {
            forwarder.receive(name(number % names), .a, for: .everyone, from: number, at: Self.now)
        }
        #expect(forwarder.admission.clients.all == most)
        #expect(forwarder.counters.refusedWaiting == 1000)
        // Another source is accepted.
        forwarder.receive(name(0), .a, for: .everyone, from: -1, by: Asker(Source(.v4(192, 0, 2, 1))), at: Self.now)
        #expect(forwarder.admission.clients.all == most + 1)
        let late = Self.now.advanced(milliseconds: 4000)
        forwarder.expire(at: late)
        #expect(forwarder.admission.clients.all == 0)
        var answered = 0
        for case .reply(let clients, _, _, _, way: _) in forwarder.actions { answered += clients.count }
        #expect(answered == most + 1001)
    }

    /// A source whose address may be forged: few wait for one question, and few in all. A proven source has more.
    @Test func ofASourceThatIsNotProvenFewWait() {
        let source = Source(.v4(192, 0, 2, 66))
        var forwarder = Self.forwarder()
        for number in 0..<100 {
            forwarder.receive(
                name(0), .a, for: .everyone, from: number, by: Asker(source, isProven: false), at: Self.now)
        }
        #expect(forwarder.admission.clients.all == Shares.unprovenWaiting)
        #expect(forwarder.counters.refusedWaiting == 36)
        forwarder.receive(name(0), .a, for: .everyone, from: -1, by: Asker(source), at: Self.now)
        forwarder.receive(
            name(0), .a, for: .everyone, from: -2, by: Asker(Source(.v4(192, 0, 2, 1)), isProven: false), at: Self.now)
        #expect(forwarder.admission.clients.all == Shares.unprovenWaiting + 2)
        for number in 100..<2000 {
            forwarder.receive(
                name(number), .a, for: .everyone, from: number, by: Asker(source, isProven: false), at: Self.now)
        }
        #expect(forwarder.admission.clients[source] == Shares.unproven)
        forwarder.receive(name(1), .a, for: .everyone, from: -3, by: Asker(source), at: Self.now)
        #expect(forwarder.admission.clients[source] == Shares.unproven + 1)
    }

    /// Clients whose questions are asked anew after a change of rules do not become proven by that.
    @Test func ofASourceThatIsNotProvenFewWaitAlsoAfterAChangeOfRules() throws {
        let source = Source(.v4(192, 0, 2, 66))
        let most = Shares.unprovenWaiting
        var forwarder = Self.forwarder()
        for number in 0..<most {
            forwarder.receive(
                name(0), .a, for: .everyone, from: number, by: Asker(source, isProven: false), at: Self.now)
        }
        // No client joins the flight under way any more, so a second one begins.
        _ = forwarder.forget(.only(name(0)), at: Self.now)
        for number in most..<2 * most {
            forwarder.receive(
                name(0), .a, for: .everyone, from: number, by: Asker(source, isProven: false), at: Self.now)
        }
        #expect(forwarder.admission.clients.all == 2 * most && forwarder.flightsUnderWay == 2)
        var upstreams = TestUpstreams()
        upstreams.named = [try #require(NamedGroup(["office", "1", "takes", "example"]))]
        forwarder.change(
            .settings(upstreams.policy(), Timing(), upstreams.groups, renewed: []),
            at: Self.now)
        #expect(forwarder.flightsUnderWay == 1)
        #expect(forwarder.admission.clients.all == most)
        #expect(forwarder.counters.refusedWaiting == UInt64(most))
    }
}
