import Base
import DNSCache
import DNSWire
import Testing

@testable import Forwarding

/// The table of transitions of a flight, without a forwarder.
@Suite struct FlightTests {
    private static let name = NameKey(Name("www.example.com")!)
    private static let start = Tick(nanoseconds: 1_000_000_000)
    private static let account = GroupID(0)
    private static let second = GroupID(2)
    private static let resolver = GroupID(1)
    private static let failure = Failure(.timedOut, "no answer")

    /// A flight beside the orders that it has given.
    private struct Run {
        let flight: Flight
        let rules: FlightRules

        init(_ route: [Step], isWanted: Bool = true, before: StepsBefore = StepsBefore(), hasStale: Bool = false) {
            rules = FlightRules(
                timing: Timing(),
                groups: [
                    FlightRules.GroupTraits(hasServers: true, carriesAddresses: true),
                    FlightRules.GroupTraits(hasServers: true, carriesAddresses: false),
                    FlightRules.GroupTraits(hasServers: true, carriesAddresses: true),
                    FlightRules.GroupTraits(hasServers: false, carriesAddresses: true),
                ])
            flight = Flight(
                Flight.Key(name: name, type: .a, audience: .those(dnssecOK: false, checkingDisabled: false)), route,
                id: TableID(standalone: 1), for: isWanted ? Waiter(number: 1, share: 0, isProven: true) : nil, share: 0,
                of: .host, after: before,
                staleAt: hasStale ? start.advanced(milliseconds: 1700) : nil,
                answerBy: start.advanced(milliseconds: 3800))
        }

        /// The orders that an event leads to, in words.
        mutating func take(_ event: FlightEvent, after milliseconds: Int = 0) -> [String] {
            let orders = flight.take(event, rules, at: start.advanced(milliseconds: milliseconds))
            var said: [String] = []
            if let step = orders.leave { said.append("leave \(step)") }
            if let step = orders.ask { said.append("ask \(step)" + (orders.because.map { " \($0)" } ?? "")) }
            switch orders.give {
            case .answer(let isStandIn, _):
                let step = flight.takeSecondBest().map { "\($0.step)" } ?? "nothing"
                said.append("deliver \(step)" + (isStandIn ? " as a stand-in" : ""))
            case .noRecord: said.append("no record \(flight.secondBest?.step ?? -1)")
            case .stale: said.append("stale")
            case .whatThereIs: said.append("give up")
            case .failure: said.append("fail")
            case nil: break
            }
            if orders.ends { said.append("end") }
            return said
        }
    }

    private static let addresses = Answer.addresses(name.name, type: .a, [.v4(192, 0, 2, 1)], ttl: 300)
    private static let nothing = Answer.noData(name.name, type: .a, negativeTTL: 30)
    private static let servFail = Answer.failure(name.name, type: .a, .servFail, extendedError: nil)

    /// As after a machine's sleep: both are asked, all clients have been answered, and the account is not asked any more.
    @Test func anAccountThatIsNotAskedAnyMoreStillOwesTheAnswer() {
        var run = Run([Step(Self.account), Step(Self.resolver, hedgeAfter: 300)])
        #expect(run.take(.begun) == ["ask 0"])
        #expect(run.take(.due(hasStale: false), after: 600_000) == ["ask 1 slow", "give up"])
        #expect(run.take(.dropped(step: 0), after: 600_000) == [])
        #expect(
            run.take(.answered(step: 1, Self.addresses, by: .daemon), after: 600_002)
                == ["deliver 1 as a stand-in", "end"])
    }

    @Test func theHedgeOfALaterAccountIsScheduled() {
        var run = Run([Step(Self.account), Step(Self.second), Step(Self.resolver, hedgeAfter: 300)])
        #expect(run.take(.begun) == ["ask 0"])
        #expect(run.flight.hedgeAt == nil)
        #expect(run.take(.exhausted(step: 0, .failure, nil, because: .timedOut)) == ["ask 1 timedOut"])
        #expect(run.flight.nextMoment == Self.start.advanced(milliseconds: 300))
        #expect(run.take(.due(hasStale: false), after: 300) == ["ask 2 slow"])
    }

    @Test func whatAnyAccountOwesIsOwed() {
        // The first has not proven that it has no record, the second has: what the resolver says stands in.
        var run = Run([Step(Self.account), Step(Self.second), Step(Self.resolver)])
        _ = run.take(.begun)
        #expect(run.take(.withoutRecord(step: 0, isProven: false, Self.nothing, by: .daemon)) == ["ask 1 noRecord"])
        #expect(run.take(.withoutRecord(step: 1, isProven: true, Self.nothing, by: .daemon)) == ["ask 2 noRecord"])
        #expect(
            run.take(.answered(step: 2, Self.addresses, by: .daemon)) == ["deliver 2 as a stand-in", "end"])
    }

    @Test func whatIsProvenIsNotOwed() {
        var run = Run([Step(Self.account), Step(Self.second), Step(Self.resolver)])
        _ = run.take(.begun)
        _ = run.take(.withoutRecord(step: 0, isProven: true, Self.nothing, by: .daemon))
        _ = run.take(.withoutRecord(step: 1, isProven: true, Self.nothing, by: .daemon))
        #expect(run.take(.answered(step: 2, Self.addresses, by: .daemon)) == ["deliver 2", "end"])
    }

    @Test func anAnswerBesideASlowAccountLetsItGoOn() {
        var run = Run([Step(Self.account), Step(Self.resolver, hedgeAfter: 0)])
        #expect(run.take(.begun) == ["ask 0"])
        #expect(run.take(.due(hasStale: false)) == ["ask 1 slow"])
        #expect(run.take(.answered(step: 1, Self.addresses, by: .daemon)) == ["deliver 1 as a stand-in"])
        #expect(run.flight.isAnswered && !run.flight.isDone)
        #expect(run.take(.exhausted(step: 0, .failure, nil, because: nil)) == ["fail"])
    }

    @Test func anAnswerThatLeadsOnIsGivenIfNoBetterOneComes() {
        var run = Run([Step(Self.resolver), Step(Self.second, after: [.noData])])
        _ = run.take(.begun)
        #expect(run.take(.answered(step: 0, Self.nothing, by: .daemon)) == ["leave 0", "ask 1"])
        #expect(run.take(.exhausted(step: 1, .failure, nil, because: nil)) == ["deliver 0", "end"])
    }

    @Test func aRefusalNeverReplacesAnAnswer() {
        var run = Run([Step(Self.resolver), Step(GroupID(1), after: [.noData])])
        _ = run.take(.begun)
        _ = run.take(.answered(step: 0, Self.nothing, by: .daemon))
        #expect(run.take(.refused(step: 1, Self.servFail, by: .daemon)) == [])
        #expect(run.flight.secondBest?.answer == Self.nothing)
    }

    @Test func aRefreshIsNotAnsweredByAnotherGroup() {
        var run = Run([Step(Self.account), Step(Self.resolver)], isWanted: false)
        _ = run.take(.begun)
        #expect(run.take(.exhausted(step: 0, .failure, nil, because: .timedOut)) == ["end"])
        var other = Run([Step(Self.account), Step(Self.resolver)], isWanted: false)
        _ = other.take(.begun)
        #expect(other.take(.withoutRecord(step: 0, isProven: false, Self.nothing, by: .daemon)) == ["end"])
        var proven = Run([Step(Self.account), Step(Self.resolver)], isWanted: false)
        _ = proven.take(.begun)
        #expect(proven.take(.withoutRecord(step: 0, isProven: true, Self.nothing, by: .daemon)) == ["ask 1 noRecord"])
    }

    @Test func anUnprovenNoRecordWithoutAnotherGroupIsAFailure() {
        var run = Run([Step(Self.account)])
        _ = run.take(.begun)
        #expect(run.take(.withoutRecord(step: 0, isProven: false, Self.nothing, by: .daemon)) == ["fail"])
        #expect(run.flight.trouble?.failure == .unproven)
        var proven = Run([Step(Self.account)])
        _ = proven.take(.begun)
        #expect(
            proven.take(.withoutRecord(step: 0, isProven: true, Self.nothing, by: .daemon)) == ["no record 0", "end"])
    }

    @Test func aStaleAnswerEndsTheHedge() {
        var run = Run([Step(Self.account), Step(Self.resolver, hedgeAfter: 2000)], hasStale: true)
        _ = run.take(.begun)
        #expect(run.take(.due(hasStale: true), after: 1700) == ["stale"])
        #expect(run.flight.isAnswered && run.flight.hedgeAt == nil && run.flight.nextMoment == nil)
    }

    @Test func timeIsOverOnce() {
        var run = Run([Step(Self.resolver)])
        _ = run.take(.begun)
        #expect(run.take(.due(hasStale: false), after: 3799) == [])
        #expect(run.take(.due(hasStale: false), after: 3800) == ["give up"])
        #expect(run.take(.due(hasStale: false), after: 9000) == [])
        #expect(run.take(.exhausted(step: 0, .failure, nil, because: nil), after: 9000) == ["fail"])
    }

    @Test func whoComesLateHasTheLastStepAskedAgain() {
        var run = Run([Step(Self.account), Step(Self.resolver, hedgeAfter: 0)])
        _ = run.take(.begun)
        _ = run.take(.due(hasStale: false))
        _ = run.take(.answered(step: 1, Self.addresses, by: .daemon))
        #expect(run.take(.reopened, after: 100) == ["ask 1"])
        #expect(!run.flight.isAnswered && run.flight.isUnderWay(1))
    }

    @Test func groupsWithoutServersArePassedOver() {
        var run = Run([Step(GroupID(3)), Step(Self.resolver)])
        #expect(run.take(.begun) == ["ask 1"])
        #expect(run.flight.steps[0] == .withoutServer)
        // An account that could not be asked owes its answer.
        #expect(run.take(.answered(step: 1, Self.addresses, by: .daemon)) == ["deliver 1 as a stand-in", "end"])
    }

    @Test func whatIsKnownBeforeIsNotAsked() {
        var before = StepsBefore()
        before.addWithoutRecord(isProven: false)
        before.addPastBudget()
        var run = Run([Step(Self.account), Step(Self.second), Step(Self.resolver)], before: before)
        #expect(run.take(.begun) == ["ask 2"])
        #expect(run.flight.steps[0] == .unproven && run.flight.steps[1] == .failed)
    }
}
