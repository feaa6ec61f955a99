import Base
import DNSCache
import DNSWire
import TestSupport
import Testing

@testable import Forwarding

/// Which addresses are tried, how many of them, and the answers after that. The scenarios of rank test the rest.
@Suite struct AddressRanksTests {
    private static let start = Tick(nanoseconds: 1_000_000_000_000)

    /// A forwarder that ranks the names of example.com, with a resolver that answers as the test says.
    private struct World: ~Copyable {
        var forwarder: Forwarder
        let cache = DNSCache(bytes: 1 << 20, staleSeconds: 86400, seed: (1, 2))
        var now = AddressRanksTests.start
        var trials: [(id: TrialID, endpoints: [Endpoint])] = []
        var left: [TrialID] = []

        init() {
            var upstreams = TestUpstreams()
            upstreams.hasService = false
            var policy = upstreams.policy()
            policy.ranked = RankedNames([(Name("example.com")!, 443)])
            forwarder = Forwarder(policy: policy, timing: Timing(), groups: upstreams.groups, cache: cache)
        }

        /// Asks, and answers the queries to the resolver.
        /// - Returns: The addresses in the client's answer.
        mutating func ask(_ text: String, _ addresses: [IPAddress], ttl: UInt32 = 60) -> [IPAddress] {
            let name = Name(text)!
            forwarder.receive(name, .a, for: .plain, from: 1, at: now)
            return take(.addresses(name, type: .a, addresses, ttl: ttl))
        }

        mutating func take(_ answer: Answer? = nil) -> [IPAddress] {
            var given: [IPAddress] = []
            var isDone = false
            while !isDone {
                isDone = true
                forwarder.endTurn(at: now)
                for action in forwarder.takeActions() {
                    switch action {
                    case .reply(_, let answer, _, by: _, way: _): given = answer.addresses
                    case .ask(let id, _, _):
                        guard let answer else { continue }
                        forwarder.settle(id, .answer(answer), at: now)
                        isDone = false
                    case .trial(.begin(let id, let endpoints)): trials.append((id, endpoints))
                    case .trial(.end(let id)): left.append(id)
                    default: break
                    }
                }
            }
            return given
        }
    }

    private static func addresses(_ count: Int, _ first: UInt32 = 0xC000_0200) -> [IPAddress] {
        (0..<UInt32(count)).map { IPAddress(v4: first + $0) }
    }

    @Test func ofAHundredAddressesAFewAreTried() {
        var world = World()
        let all = Self.addresses(100)
        #expect(world.ask("www.example.com", all + all) == all + all)
        #expect(world.trials.count == 1)
        let tried = world.trials[0].endpoints
        #expect(tried == all.prefix(AddressRanks.mostAddresses).map { Endpoint($0, port: 443) })
        world.forwarder.tried(world.trials[0].id, 5, hasAnswered: true, at: world.now)
        world.now = world.now.advanced(milliseconds: AddressRanks.patience)
        world.forwarder.expire(at: world.now)
        _ = world.take()
        #expect(world.left == [world.trials[0].id])
        // The address that answered, the addresses that were not tried, and the addresses that did not answer.
        let silent = all.prefix(AddressRanks.mostAddresses).filter { $0 != all[5] }
        let rest = Array(all.dropFirst(AddressRanks.mostAddresses))
        let given = world.ask("www.example.com", [])
        #expect(given == [all[5], all[5]] + rest + rest + silent + silent)
        #expect(world.forwarder.counters.rankAnswered == 1 && world.forwarder.counters.rankFailed == 15)
    }

    @Test func onlySoManyAreTriedAtOnce() {
        var world = World()
        for number in 0..<(AddressRanks.mostTrials + 5) {
            _ = world.ask("n\(number).example.com", Self.addresses(2), ttl: 1)
        }
        #expect(world.trials.count == AddressRanks.mostTrials)
        // One trial has ended: there is room for the next one.
        for number in 0..<2 { world.forwarder.tried(world.trials[3].id, number, hasAnswered: true, at: world.now) }
        _ = world.ask("another.example.com", Self.addresses(2))
        #expect(world.trials.count == AddressRanks.mostTrials + 1)
        // A report about a trial that is over, or about an address that the trial does not have, is ignored.
        world.forwarder.tried(world.trials[3].id, 0, hasAnswered: true, at: world.now)
        world.forwarder.tried(world.trials[4].id, 7, hasAnswered: false, at: world.now)
        world.forwarder.tried(TrialID(standalone: 1), 0, hasAnswered: true, at: world.now)
        #expect(world.forwarder.counters.rankAnswered == 2)
        // A minute later all trials are over, although no report has come, and the left-out trials can begin.
        world.now = world.now.advanced(milliseconds: 60_000)
        world.forwarder.expire(at: world.now)
        _ = world.take()
        #expect(world.left.count == AddressRanks.mostTrials)
        let before = world.trials.count
        for number in 0..<(AddressRanks.mostTrials + 5) { _ = world.ask("n\(number).example.com", Self.addresses(2)) }
        #expect(world.trials.count == before + 5)
        #expect(world.forwarder.nextDeadline != nil)
    }

    @Test func whatIsNoAnswerOfTheNameIsNotTried() {
        var world = World()
        _ = world.ask("www.example.com", Self.addresses(1))
        _ = world.ask("one.example.com", Self.addresses(1) + Self.addresses(1))
        _ = world.ask("example.net", Self.addresses(2))
        _ = world.ask("notexample.com", Self.addresses(2))
        #expect(world.trials.isEmpty)
        _ = world.ask("a.b.example.com", Self.addresses(2))
        _ = world.ask("EXAMPLE.com", Self.addresses(2))
        #expect(world.trials.count == 2)
    }

    @Test func anAnswerThatIsNotKeptIsTriedForTheNextOne() {
        var world = World()
        let all = Self.addresses(3)
        #expect(world.ask("www.example.com", all, ttl: 0) == all)
        for number in [2, 0, 1] { world.forwarder.tried(world.trials[0].id, number, hasAnswered: true, at: world.now) }
        #expect(world.ask("www.example.com", all, ttl: 0) == [all[2], all[0], all[1]])
        // The name is forgotten, as by `flush`.
        _ = world.forwarder.forget(.only(Name("www.example.com")!), at: world.now)
        #expect(world.ask("www.example.com", all, ttl: 0) == all)
        #expect(world.trials.count == 2)
    }

    @Test func aShortageOfThisMachineChangesNoOrder() {
        var world = World()
        let all = Self.addresses(2)
        #expect(world.ask("www.example.com", all, ttl: 0) == all)
        for number in [1, 0] { world.forwarder.tried(world.trials[0].id, number, hasAnswered: true, at: world.now) }
        world.now = world.now.advanced(milliseconds: AddressRanks.holds)
        #expect(world.ask("www.example.com", all, ttl: 0) == [all[1], all[0]] && world.trials.count == 2)
        world.forwarder.abandon(world.trials[1].id)
        world.forwarder.tried(world.trials[1].id, 0, hasAnswered: true, at: world.now)
        _ = world.take()
        #expect(world.left == [world.trials[1].id])
        // The known order holds, and the addresses are tried again.
        #expect(world.ask("www.example.com", all, ttl: 0) == [all[1], all[0]] && world.trials.count == 3)
    }

    @Test(
        "whatever answers, fails, is asked or changes: the addresses are those of the upstream",
        arguments: 0..<20 as Range<UInt64>)
    func chance(_ seed: UInt64) {
        var world = World()
        var chance = Chance(seed: seed)
        for _ in 0..<400 {
            world.now = world.now.advanced(milliseconds: [0, 1, 100, 400, 5000, 100_000][chance.below(6)])
            world.forwarder.expire(at: world.now)
            let name = "n\(chance.below(4)).example.com"
            switch chance.below(8) {
            case 0: world.forwarder.change(.network, at: world.now)
            case 1: _ = world.forwarder.forget(chance.below(2) == 0 ? .all : .only(Name(name)!), at: world.now)
            case 2...4:
                guard !world.trials.isEmpty else { continue }
                let trial = world.trials[chance.below(world.trials.count)]
                world.forwarder.tried(
                    trial.id, chance.below(trial.endpoints.count + 1), hasAnswered: chance.below(2) == 0, at: world.now)
            default:
                let first = 0xC000_0200 + UInt32(chance.below(3))
                var all = Self.addresses(chance.below(20), first)
                for index in all.indices { all.swapAt(index, chance.below(all.count)) }
                let held = world.cache.find(Name(name)!, type: .a, for: .plain, at: world.now.seconds)
                let given = world.ask(name, all)
                let expected = held.map { $0.isFresh ? $0.answer.addresses : all } ?? all
                #expect(Set(given) == Set(expected) && given.count == expected.count)
            }
            _ = world.take()
            // Late reports of the last few trials are passed on as well.
            world.trials.removeFirst(max(0, world.trials.count - 2 * AddressRanks.mostTrials))
            #expect(world.trials.allSatisfy { $0.endpoints.count <= AddressRanks.mostAddresses })
        }
    }
}
