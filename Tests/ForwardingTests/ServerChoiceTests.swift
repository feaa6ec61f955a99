import Base
import DNSCache
import DNSWire
import Testing

@testable import Forwarding

/// The table of ``ServerChoice``, row by row, for an account, a group of servers and plain resolvers.
@Suite struct ServerChoiceTests {
    private static let start = Tick(nanoseconds: 1_000_000_000_000)
    private static let account = UpstreamGroup.Choice.inOrder(switchAfter: 2, returnAfterMinutes: 10)
    private static let pool = UpstreamGroup.Choice.inPreference(nextWithin: 1000)
    private static let resolvers = UpstreamGroup.Choice.lastThatAnswered

    /// A choice, and the present moment.
    private struct World {
        var choice: ServerChoice
        var now = start
        var said: [String] = []

        init(_ rule: UpstreamGroup.Choice, servers: Int = 3) {
            choice = ServerChoice(
                UpstreamGroup(GroupID(2), .scenario(servers, list: 0), .messages, rule, timeout: 2000))
        }

        mutating func pass(_ seconds: Int) { now = now.advanced(milliseconds: seconds * 1000) }

        /// `1`, `1 as a trial`, `2 beside 1`, or the reason for which no server is asked.
        mutating func pick(isFirst: Bool = true, leadsOn: Bool = true, tried: [Int] = []) -> String {
            let choice = choice.pick(
                for: nil, isFirst: isFirst, leadsOn: { leadsOn }, unlessTried: { tried.contains($0) }, at: now)
            switch choice {
            case .server(let index, let isTrial, let other):
                return "\(index + 1)\(isTrial ? " as a trial" : "")\(other.map { " beside \($0 + 1)" } ?? "")"
            case .full: return "full"
            case .noServer: return "nobody"
            case .down: return "down"
            case .pastPlan: return "past plan"
            }
        }

        /// A query goes to a server, counted from 1, and ends.
        /// - Parameter isSilentAlike: Whether another server is silent as well.
        mutating func end(
            _ server: Int, _ verdict: ServerChoice.Verdict, isTrial: Bool = false, isSilentAlike: Bool = false
        ) {
            let state = choice.servers[server - 1]
            let flight = Flight(
                Flight.Key(name: NameKey(.root), type: .ns, audience: .plain), [Step(GroupID(2))],
                id: TableID(standalone: 0), for: nil, isWanted: false, of: .host, after: StepsBefore(), staleAt: nil,
                answerBy: now)
            var query = Forwarding.Query(
                group: GroupID(2), server: state.server, number: state.number, sent: now,
                subject: .message(MessageStep(flight, 0)), holder: nil, endsAt: now, isTrial: isTrial)
            query.isOvertaken = isSilentAlike
            choice.asked(server - 1, for: nil, isTrial: isTrial, at: now)
            said += choice.ended(query, verdict, at: now).map(\.said)
        }

        mutating func fails(_ server: Int, times: Int = 1, isTrial: Bool = false) {
            for _ in 0..<times { end(server, .failed(Failure(.unreachable, "x")), isTrial: isTrial) }
        }

        mutating func answers(_ server: Int, _ hasAnswer: Bool = true, isTrial: Bool = false) {
            end(server, .answered(hasAnswer: hasAnswer, toRepeat: false), isTrial: isTrial)
        }
    }

    @Test func theFirstIsAskedWhileItAnswers() {
        for rule in [Self.account, Self.pool, Self.resolvers] {
            var world = World(rule)
            #expect(world.pick() == "1" && world.pick(tried: [1]) == "2" && world.pick(tried: [1, 2, 3]) == "nobody")
            world.answers(2)
            #expect(world.pick() == "1")
        }
        var world = World(Self.pool, servers: 0)
        #expect(world.pick() == "nobody" && !world.choice.isDown && world.choice.current == nil)
    }

    @Test func failuresInARowSetAServerAside() {
        var account = World(Self.account)
        account.fails(1)
        account.answers(1)
        account.fails(1)
        #expect(account.pick() == "1")
        account.fails(1)
        #expect(account.pick() == "2" && account.said.last == "office switched from 1 to 2")
        var pool = World(Self.pool)
        pool.fails(1)
        #expect(pool.pick() == "2" && pool.said == ["office 1 fails refused"])
        // Plain resolvers: the choice begins with the resolver that answered last.
        var resolvers = World(Self.resolvers)
        resolvers.fails(1, times: 5)
        #expect(resolvers.pick() == "1")
        resolvers.answers(2)
        #expect(resolvers.pick() == "2")
    }

    @Test func refusalsInARowSetAServerAside() {
        var pool = World(Self.pool)
        for _ in 1...2 { pool.answers(1, false) }
        pool.answers(1)
        for _ in 1...2 { pool.answers(1, false) }
        #expect(pool.pick() == "1")
        pool.answers(1, false)
        #expect(pool.pick() == "2")
        var resolvers = World(Self.resolvers)
        resolvers.answers(1, false)
        resolvers.answers(2, false)
        #expect(resolvers.pick() == "1")
        resolvers.answers(3)
        #expect(resolvers.pick() == "3" && resolvers.pick(tried: [3]) == "1")
        resolvers.answers(1)
        #expect(resolvers.pick() == "1")
    }

    @Test func aServerIsTriedAfterAPauseThatDoubles() {
        var pool = World(Self.pool)
        pool.fails(1)
        #expect(pool.pick() == "2")
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            pool.pass(pause - 1)
            #expect(pool.pick() == "2", "\(pause)")
            pool.pass(1)
            #expect(pool.pick() == "2 beside 1" && pool.pick(isFirst: false) == "2", "\(pause)")
            pool.fails(1, isTrial: true)
        }
        pool.pass(60)
        pool.answers(1, isTrial: true)
        #expect(pool.pick() == "1")
    }

    @Test func anAccountsTrialIsALiveQuestion() {
        var account = World(Self.account)
        account.fails(1, times: 2)
        for _ in 1...3 {
            account.pass(599)
            #expect(account.pick() == "2")
            account.pass(1)
            #expect(account.pick() == "1 as a trial" && account.pick(tried: [1]) == "2")
            account.fails(1, isTrial: true)
            #expect(account.pick() == "2")
        }
        // No query tries a server after the one that is asked.
        account.fails(3, times: 2)
        account.pass(600)
        account.answers(1, isTrial: true)
        account.pass(600)
        #expect(
            account.pick() == "1" && account.said.suffix(2) == ["office 1 answers again", "office returned from 2"])
    }

    @Test func aTrialWithoutAVerdictIsFollowedByAnother() {
        for rule in [Self.account, Self.pool] {
            var world = World(rule)
            world.fails(1, times: 2)
            world.pass(600)
            let trial = world.pick()
            #expect(trial != "2")
            world.end(1, .withdrawn, isTrial: true)
            #expect(world.pick() == "2")
            world.pass(1)
            #expect(world.pick() == trial)
            // A query that was no trial changes nothing.
            world.answers(1, false, isTrial: true)
            world.fails(1, isTrial: true)
            world.end(1, .withdrawn)
            world.pass(1)
            #expect(rule == Self.pool ? world.pick() == "2" : true)
        }
    }

    @Test func whenAllAreSetAsideTheyAreAskedInOrder() {
        for rule in [Self.account, Self.pool] {
            var world = World(rule, servers: 2)
            world.fails(1, times: 2)
            world.fails(2, times: 2)
            #expect(world.pick() == "1" && world.pick(tried: [1]) == "2")
            world.answers(2)
            #expect(world.pick() == "2")
        }
    }

    @Test func onAnotherNetworkAllBeginAfresh() {
        for rule in [Self.account, Self.pool, Self.resolvers] {
            var world = World(rule)
            world.fails(1, times: 3)
            world.answers(2)
            #expect(world.pick() == "2")
            world.choice.networkChanged(at: world.now)
            #expect(world.pick() == (rule == Self.account ? "1 as a trial" : "1"))
        }
    }

    @Test func anotherListKeepsWhatIsKnownOfServersThatStay() {
        for rule in [Self.account, Self.pool, Self.resolvers] {
            var world = World(rule)
            world.fails(1, times: 3)
            world.answers(2)
            var group = UpstreamGroup(GroupID(2), .scenario(2, list: 0), .messages, rule, timeout: 2000)
            world.choice.replace(group)
            #expect(world.pick() == "2")
            group.servers = .scenario(1, list: 1) + group.servers
            world.choice.replace(group)
            #expect(world.pick() == "1" && world.pick(tried: [4]) == "3")
            let before = world.choice.servers.map(\.number)
            world.choice.renew()
            #expect(world.pick(tried: before) == "1" && world.pick(tried: [world.choice.servers[0].number]) == "2")
        }
    }

    /// A resolver that was set aside for good is tried again when the group gets another rule.
    @Test func anotherRuleTriesWhatTheFormerDidNot() {
        var world = World(Self.resolvers)
        world.fails(1)
        world.answers(2)
        world.pass(1000)
        #expect(world.pick() == "2")
        let group = UpstreamGroup(GroupID(2), .scenario(3, list: 0), .messages, Self.pool, timeout: 2000)
        world.choice.replace(group)
        #expect(world.pick() == "2 beside 1")
    }

    /// The new pause counts from the failure; a longer one does not hold for a server that was set aside before.
    @Test func aShorterPauseHoldsForServersThatWereSetAside() {
        var world = World(Self.account)
        world.fails(1, times: 2)
        world.pass(59)
        for minutes in [1, 20] {
            let rule = UpstreamGroup.Choice.inOrder(switchAfter: 2, returnAfterMinutes: minutes)
            world.choice.replace(UpstreamGroup(GroupID(2), .scenario(3, list: 0), .messages, rule, timeout: 2000))
            #expect(world.pick() == "2")
        }
        world.pass(1)
        #expect(world.pick() == "1 as a trial")
    }

    @Test func aGroupIsDownWhenEachServerHasFailedThrice() {
        for rule in [Self.account, Self.pool, Self.resolvers] {
            var world = World(rule, servers: 2)
            world.fails(1, times: 3)
            world.fails(2, times: 2)
            #expect(!world.choice.isDown)
            // A shortage of this machine is no failure.
            world.end(2, .failed(Failure(.here, "x")))
            #expect(!world.choice.isDown)
            world.fails(2)
            #expect(world.choice.isDown && world.pick() == "down" && world.pick(leadsOn: false) != "down")
            // A question that was asked before moves on to the other server.
            #expect(world.pick(isFirst: false, tried: [1]) == "2")
            world.pass(1)
            #expect(world.pick() != "down")
            world.choice.asked(0, for: nil, isTrial: false, at: world.now)
            world.pass(10)
            #expect(world.pick() == "down")
            // SERVFAIL shows that the server is alive.
            world.answers(1, false)
            #expect(!world.choice.isDown && world.pick() != "down")
        }
    }

    @Test func silenceCountsByWhatElseIsSilent() {
        let silent = ServerChoice.Verdict.failed(Failure(.timedOut, "x"))
        var pool = World(Self.pool)
        pool.end(1, silent, isSilentAlike: true)
        #expect(pool.pick() == "1")
        pool.end(1, silent)
        #expect(pool.pick() == "2")
    }
}
