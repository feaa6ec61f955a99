import Base
import DNSCache
import DNSWire
import Testing

@testable import Forwarding

/// What the desk of the groups does, by itself: nobody carries out what it tells of flights.
@Suite struct GroupDeskTests {
    private static let start = Tick(nanoseconds: 1_000_000_000_000)
    private static let account = GroupID(0)
    private static let resolver = GroupID(1)
    private static let failure = Failure(.unreachable, "x")

    /// A desk with an account and a resolver, and what it has said.
    private struct World: ~Copyable {
        var desk: GroupDesk
        var now = start
        var actions: [Action] = []
        var queries: [QueryID] = []
        var flights: UInt32 = 0
        let policy = TestUpstreams().policy()

        init(
            servers: Int = 2, names: Int = 3, plan: Int = 0, concurrency: Int = 0,
            _ choice: UpstreamGroup.Choice = .lastThatAnswered
        ) {
            var account = UpstreamGroup(
                GroupDeskTests.account, .scenario(servers, list: 0), .addresses(namesPerRequest: names),
                .inOrder(switchAfter: 3, returnAfterMinutes: 1), timeout: 2000)
            account.namesPerSecond = plan
            var resolver = UpstreamGroup(
                GroupDeskTests.resolver, .scenario(servers, list: 1), .messages, choice, timeout: 2000)
            resolver.concurrency = concurrency
            desk = GroupDesk(timing: Timing(), groups: [account, resolver])
        }

        @discardableResult
        mutating func ask(
            _ name: String, _ type: RecordType = .a, at groups: [GroupID] = [resolver], of source: Source = .host
        ) -> Flight {
            flights += 1
            let flight = Flight(
                Flight.Key(name: NameKey(Name(name)!), type: type, audience: .everyone), groups.map { Step($0) },
                id: TableID(standalone: flights), for: Waiter(number: Int(flights), share: 0, isProven: true), share: 0,
                of: source,
                after: StepsBefore(), staleAt: nil, answerBy: now.advanced(milliseconds: 3800))
            _ = flight.take(.begun, desk.rules, at: now)
            desk.ask(flight, 0, at: now, &actions)
            return flight
        }

        mutating func endTurn() { desk.endTurn(policy, at: now, &actions) }

        /// Goes on in time, from one moment of the desk to the next.
        mutating func pass(_ milliseconds: Int) {
            let end = now.advanced(milliseconds: milliseconds)
            while let next = desk.nextDeadline, next <= end {
                now = next
                desk.expireFirst(at: now, &actions)
            }
            now = end
        }

        mutating func answer(_ number: Int, _ code: ResponseCode = .noError) -> Flight? {
            guard let to = desk.answered(queries[number].id, code, toRepeat: false, at: now, &actions) else {
                return nil
            }
            if !code.isAnswer { desk.sendNext(to.messages, at: now, &actions) }
            return to.flight
        }

        mutating func fail(_ number: Int, _ failure: Failure = failure) {
            desk.failed(queries[number].id, failure, at: now, &actions)
        }

        /// The names of which something was found.
        mutating func found(_ number: Int, _ names: [String]) -> [String] {
            let results = names.map {
                NameAddresses(name: Name($0)!, ipv4: .addresses([.v4(192, 0, 2, 1)], ttl: 60), ipv6: .noRecord)
            }
            return desk.found(queries[number].id, results, toRepeat: false, at: now, &actions)?.names
                .map { "\($0.lookup.key.name)" } ?? []
        }

        /// The new actions in words.
        mutating func said() -> [String] {
            defer { actions = [] }
            return actions.map { action in
                switch action {
                case .ask(let id, let server, let ask):
                    queries.append(id)
                    let names =
                        switch ask {
                        case .addresses(let names, _): names
                        case .message(let question): [question.name]
                        }
                    return "ask \(server.place) " + names.map { "\($0)" }.joined(separator: " ")
                case .askAgain(let id): return "again \(queries.firstIndex(of: id)!)"
                case .cancel(let id): return "cancel \(queries.firstIndex(of: id)!)"
                case .report(let event): return "report " + "\(event)".prefix { $0 != "(" }
                default: return "\(action)"
                }
            }
        }

        /// What is told, in words.
        mutating func told() -> [String] {
            desk.takeEvents().map { event in
                switch event {
                case .flight(let flight, .exhausted(_, let end, _, let because)):
                    "\(flight.key.name.name) \(end == .refused ? "refused" : "failed")"
                        + (because.map { " \($0)" } ?? "")
                case .flight(let flight, .failed): "\(flight.key.name.name) goes on"
                case .flight(let flight, .dropped): "\(flight.key.name.name) dropped"
                case .flight(let flight, _): "\(flight.key.name.name) ?"
                case .pastPlan: "past plan"
                case .outageEnded(let keys): "outage ended of \(keys.count)"
                case .lookAgain(let key): "look for \(key.name.name)"
                }
            }
        }
    }

    private func source(_ number: UInt8) -> Source { Source(.v4(192, 0, 2, number)) }

    // MARK: Messages

    @Test func serversAreAskedInTurn() {
        var world = World()
        let flight = world.ask("a.example")
        #expect(world.said() == ["ask 1 a.example"])
        world.fail(0)
        #expect(world.said() == ["report failing", "ask 2 a.example"] && world.told() == ["a.example goes on"])
        #expect(world.answer(1) === flight)
        #expect(world.told().isEmpty && world.desk.queries.count == 0)
        // The server that answered is the first from now on.
        world.ask("b.example")
        #expect(world.said() == ["ask 2 b.example"])
    }

    @Test func aStepEndsWithItsLastServer() {
        var world = World()
        let flight = world.ask("a.example")
        _ = world.said()
        world.fail(0)
        _ = world.said()
        world.fail(1)
        #expect(world.told() == ["a.example goes on", "a.example goes on", "a.example failed"])
        // Refused by all is another end; the forwarder tells the flight of each before the next server is asked.
        let other = world.ask("b.example")
        for _ in 0..<2 {
            _ = world.said()
            #expect(world.answer(world.queries.count - 1, .refused) === other)
        }
        #expect(world.told() == ["b.example refused"])
        #expect(world.desk.end(flight, &world.actions) == .clear)
    }

    @Test func aSilentServerIsAskedAgainAndThenFails() {
        var world = World(servers: 1)
        world.ask("a.example")
        _ = world.said()
        world.pass(999)
        #expect(world.said().isEmpty)
        world.pass(1)
        #expect(world.said() == ["again 0"])
        world.pass(1000)
        #expect(world.said() == ["cancel 0", "report failing"])
        #expect(world.told() == ["a.example goes on", "a.example failed"])
        #expect(world.answer(0) == nil && world.desk.nextDeadline == nil)
    }

    @Test func whenAServerIsLateTheNextIsAskedAsWell() {
        var world = World(.inPreference(nextWithin: 300))
        let flight = world.ask("a.example")
        world.pass(300)
        #expect(world.said() == ["ask 1 a.example", "ask 2 a.example"])
        #expect(world.answer(1) === flight)
        // The first goes on, since its time decides the order of servers; nobody wants its answer.
        _ = world.desk.end(flight, &world.actions)
        #expect(world.said().isEmpty && world.desk.queries.count == 1)
        #expect(world.answer(0) == nil && world.desk.queries.count == 0)
    }

    @Test func whatNobodyWantsIsCancelled() {
        var world = World()
        let flight = world.ask("a.example")
        _ = world.desk.end(flight, &world.actions)
        #expect(world.said() == ["ask 1 a.example", "cancel 0"])
    }

    @Test func sourcesHaveTheirTurnAtServersThatAreFull() {
        var world = World(servers: 1, concurrency: 2)
        for number in 1...4 { world.ask("a\(number).example", of: source(1)) }
        world.ask("b.example", of: source(2))
        #expect(world.said() == ["ask 1 a1.example", "ask 1 a2.example"])
        for number in 0..<2 {
            _ = world.answer(number)
            world.endTurn()
        }
        #expect(world.said() == ["ask 1 a3.example", "ask 1 b.example"])
    }

    @Test func otherServersTakeNothingFromWhatIsUnderWay() {
        var world = World()
        let flight = world.ask("a.example")
        _ = world.said()
        var servers = world.desk.groups[1].servers.map(\.server)
        servers.swapAt(0, 1)
        _ = world.desk.setServers(servers, of: Self.resolver)
        #expect(world.desk.groups[1].servers.map(\.underWay) == [0, 1])
        _ = world.desk.setServers([servers[0]], of: Self.resolver)
        #expect(world.answer(0) === flight)
        #expect(world.desk.groups[1].underWay == 0 && world.desk.groups[1].servers.map(\.underWay) == [0])
    }

    // MARK: Names

    @Test func namesOfATurnAreSentTogether() {
        var world = World()
        for name in ["a", "b", "c", "d"] { world.ask("\(name).example", at: [Self.account]) }
        world.ask("a.example", .aaaa, at: [Self.account])
        #expect(world.said().isEmpty)
        world.endTurn()
        #expect(world.said() == ["ask 1 a.example b.example c.example", "ask 1 d.example"])
        #expect(world.desk.groups[0].lookups[NameKey(Name("a.example")!)]?.flights.map(\.key.type).first == .a)
    }

    @Test func namesThatAreLeftOutAreAskedForAlone() {
        var world = World()
        for name in ["a", "b", "c"] { world.ask("\(name).example", at: [Self.account]) }
        world.endTurn()
        _ = world.said()
        #expect(world.found(0, ["b.example", "other.example"]) == ["b.example"])
        world.endTurn()
        #expect(world.said() == ["ask 1 a.example", "ask 1 c.example"])
        // Left out of an answer to it alone, it has failed there.
        #expect(world.found(1, []).isEmpty && world.told() == ["a.example goes on"])
        world.endTurn()
        #expect(world.said() == ["report failing", "ask 2 a.example"])
    }

    @Test func aRequestThatFailsGoesToTheNextServerWhole() {
        var world = World()
        for name in ["a", "b"] { world.ask("\(name).example", at: [Self.account, Self.resolver]) }
        world.endTurn()
        _ = world.said()
        world.fail(0)
        world.ask("c.example", at: [Self.account])
        world.endTurn()
        #expect(world.said() == ["report failing", "ask 2 a.example b.example", "ask 1 c.example"])
        _ = world.told()
        world.fail(1, Failure(.timedOut, "x"))
        world.endTurn()
        #expect(
            world.told() == [
                "a.example goes on", "b.example goes on", "a.example failed timedOut", "b.example failed timedOut",
            ])
    }

    @Test func pastThePlanNamesGoOnOrWait() {
        var world = World(plan: 2)
        for name in ["a", "b", "c"] { world.ask("\(name).example", at: [Self.account]) }
        world.ask("d.example", at: [Self.account, Self.resolver])
        world.endTurn()
        #expect(world.said() == ["ask 1 a.example b.example", "report planExceeded"])
        #expect(world.told().isEmpty && world.desk.groups[0].outbox.count == 2)
        world.pass(500)
        world.endTurn()
        #expect(world.said() == ["ask 1 c.example"])
        #expect(world.told() == ["past plan", "d.example failed plan"])
    }

    @Test func namesForWhichNobodyWaitsAreNotSent() {
        var world = World(plan: 1)
        let flights = ["a", "b"].map { world.ask("\($0).example", at: [Self.account]) }
        world.endTurn()
        _ = flights[1].take(.due(hasStale: false), world.desk.rules, at: world.now.advanced(milliseconds: 3800))
        world.pass(5000)
        world.endTurn()
        _ = world.said()
        #expect(world.told() == ["a.example goes on", "b.example dropped"])
    }

    @Test func aFlightIsWithdrawnWhileItsNameWaits() {
        var world = World()
        let flight = world.ask("a.example", at: [Self.account])
        world.desk.withdraw(flight)
        world.endTurn()
        #expect(world.said().isEmpty && world.desk.groups[0].lookups.isEmpty)
    }

    @Test func namesThatMayNotBeToldAreTakenBack() {
        var world = World()
        let flights = ["a", "b"].map { world.ask("\($0).example", at: [Self.account]) }
        world.endTurn()
        for flight in flights { flight.outdate() }
        world.desk.outdateLookups { _ in true }
        world.desk.takeBack(unless: { $1.name.name != Name("a.example") }, &world.actions)
        world.endTurn()
        #expect(world.said() == ["ask 1 a.example b.example", "cancel 0", "ask 1 b.example"])
    }

    // MARK: Outages

    @Test func aGroupThatFailsIsAskedAgainForWhatAnotherHasAnswered() {
        var world = World(servers: 1)
        let flight = world.ask("a.example", at: [Self.resolver, Self.account])
        _ = world.said()
        world.fail(0)
        _ = flight.take(.exhausted(step: 0, .failure, nil, because: nil), world.desk.rules, at: world.now)
        world.desk.noteStandIn(flight, at: world.now)
        _ = world.told()
        world.pass(2000)
        #expect(world.told() == ["look for a.example"])
        world.ask("a.example")
        _ = world.said()
        _ = world.answer(1)
        #expect(world.said() == ["report answersAgain"] && world.told() == ["outage ended of 1"])
    }
}
