import Addresses
import DNSCache
import DNSWire
import Testing

@testable import Forwarding

/// The caps, and what does not grow.
@Suite struct BoundsTests {
    private static let now = Tick(nanoseconds: 1_000_000_000_000)

    private static func forwarder(batch: Int = 8) -> Forwarder<Int> {
        var timing = Timing()
        timing.batch = batch
        return Forwarder(
            policy: Policy(hasService: true, httpOnly: false, negativeTTL: 30, intercept: [], bypass: []),
            timing: timing, serviceServers: 1, resolverServers: 1,
            cache: DNSCache(bytes: 1 << 20, staleSeconds: 1000, seed: (1, 2)))
    }

    private func name(_ number: Int) -> Name { Name("n\(number).example")! }

    @Test func pastTheMostFlightsANewQuestionIsRefusedAndAnOldOneIsJoined() {
        var forwarder = Self.forwarder()
        let most = Forwarder<Int>.maximumFlights
        for number in 0..<most { forwarder.receive(name(number), .a, for: .everyone, from: number, at: Self.now) }
        #expect(forwarder.actions.isEmpty)
        forwarder.receive(name(most), .a, for: .everyone, from: most, at: Self.now)
        forwarder.receive(name(most + 1), .a, for: .everyone, from: most + 1, at: Self.now)
        #expect(forwarder.underWay.flights == most)
        #expect(forwarder.counters.refused == 2)
        var said: [String] = []
        for action in forwarder.actions {
            switch action {
            case .reply(let clients, let answer, _): said.append("\(clients) \(ScenarioAnswer.said(answer))")
            case .report(let event): said.append(event.said)
            default: said.append("else")
            }
        }
        #expect(said == ["refusing too many flights", "[\(most)] SERVFAIL", "[\(most + 1)] SERVFAIL"])
        forwarder.actions = []
        forwarder.receive(name(5), .a, for: .everyone, from: -1, at: Self.now)
        #expect(forwarder.actions.isEmpty)
        #expect(forwarder.counters.joined == 1)
    }

    @Test func pastTheMostRequestsNamesWaitAndGoOutFuller() {
        var forwarder = Self.forwarder()
        let most = Forwarder<Int>.maximumRequests
        for number in 0..<most {
            forwarder.receive(name(number), .a, for: .everyone, from: number, at: Self.now)
            forwarder.endTurn(at: Self.now)
        }
        #expect(forwarder.underWay.requests == most)
        for number in most..<most + 8 {
            forwarder.receive(name(number), .a, for: .everyone, from: number, at: Self.now)
            forwarder.endTurn(at: Self.now)
        }
        #expect(forwarder.underWay.requests == most)
        guard case .askService(let first, _, let names, _) = forwarder.actions[0] else {
            Issue.record("no request")
            return
        }
        forwarder.actions = []
        forwarder.settle(
            first,
            .answered(
                names.map { NameAddresses(name: $0, ipv4: .addresses([.v4(1, 2, 3, 4)], ttl: 60), ipv6: .noRecord) }),
            at: Self.now)
        forwarder.endTurn(at: Self.now)
        let sent = forwarder.actions.compactMap { if case .askService(_, _, let names, _) = $0 { names } else { nil } }
        #expect(sent == [(most..<most + 8).map(name)])
    }

    /// Whoever settles quickly leaves deadlines behind that are due in seconds; they must not pile up until then.
    @Test func settledFlightsLeaveNoDeadlinesBehind() {
        var forwarder = Self.forwarder(batch: 1)
        var most = 0
        for number in 0..<100_000 {
            forwarder.receive(name(number % 1000), .txt, for: .everyone, from: number, at: Self.now)
            for action in forwarder.actions {
                guard case .askResolver(let query, _, _, let question) = action else { continue }
                let answer = Answer.failure(question.name, type: .txt, .noError, extendedError: nil)
                forwarder.settle(query, .answered(answer), at: Self.now)
            }
            forwarder.actions = []
            most = max(most, forwarder.deadlines.count)
        }
        #expect(forwarder.counters.flights == 100_000)
        #expect(most < 1000)
    }

    @Test func settledServiceFlightsLeaveNoDeadlinesBehind() {
        var forwarder = Self.forwarder(batch: 1)
        var most = 0
        for number in 0..<20_000 {
            forwarder.receive(name(number), .a, for: .everyone, from: number, at: Self.now)
            forwarder.endTurn(at: Self.now)
            for action in forwarder.actions {
                guard case .askService(let request, _, let names, _) = action else { continue }
                let all = names.map {
                    NameAddresses(name: $0, ipv4: .addresses([.v4(1, 2, 3, 4)], ttl: 60), ipv6: .noRecord)
                }
                forwarder.settle(request, .answered(all), at: Self.now)
            }
            forwarder.actions = []
            most = max(most, forwarder.deadlines.count)
        }
        #expect(most < 1000)
    }
}
