import Base
import DNSCache
import DNSWire
import TestSupport
import Testing

@testable import Forwarding

/// Sources with many questions, and zones with silent servers, beside other clients that need answers.
@Suite struct SharingTests {
    private static let start = Tick(nanoseconds: 1_000_000_000_000)
    private static let flood = Source(.v4(192, 0, 2, 66))
    private static let other = Source(.v4(192, 0, 2, 1))

    /// A world in which names that begin with `dead` get no answer, and other names get one in 20 to 40 ms.
    private struct World: ~Copyable {
        var forwarder: Forwarder
        var chance: Chance
        var now = SharingTests.start
        var due: [(at: Tick, id: QueryID, ask: Ask)] = []
        var clients = 0
        var live: [Int: Name] = [:]
        var (answered, refused) = (0, 0)
        /// The number of answered names that went to another server or group than the first.
        var moved = 0
        var names: UInt64 = 0

        init(_ upstreams: TestUpstreams, seed: UInt64) {
            chance = Chance(seed: seed)
            forwarder = upstreams.forwarder(DNSCache(bytes: 1 << 20, seed: (seed, 2)))
        }

        mutating func ask(_ name: String, _ type: RecordType, of source: Source) {
            clients += 1
            let name = Name(name)!
            if !name.description.hasPrefix("dead"), source == SharingTests.other { live[clients] = name }
            forwarder.receive(name, type, for: .everyone, from: clients, by: Asker(source), at: now)
        }

        /// Lets a millisecond pass.
        mutating func pass() {
            now = now.advanced(milliseconds: 1)
            forwarder.expire(at: now)
            let ended = due.filter { $0.at <= now }
            due.removeAll { $0.at <= now }
            for (_, id, ask) in ended { forwarder.settle(id, .success(ask), at: now) }
            forwarder.endTurn(at: now)
            for action in forwarder.takeActions() { carryOut(action) }
        }

        private mutating func carryOut(_ action: Action) {
            switch action {
            case .ask(let id, let server, let ask):
                let names =
                    switch ask {
                    case .message(let question): [question.name]
                    case .addresses(let names, _): names
                    }
                if case .addresses = ask { self.names += UInt64(names.count) }
                if id.group == .fallback || server.position > 1 {
                    moved += names.count { name in live.values.contains(name) }
                }
                guard !names.contains(where: { $0.description.hasPrefix("dead") }) else { return }
                due.append((now.advanced(milliseconds: 20 + chance.below(20)), id, ask))
            case .reply(let numbers, let answer, _, _, way: _):
                for number in numbers where live.removeValue(forKey: number) != nil {
                    if answer.head.answerCount > 0 { answered += 1 } else { refused += 1 }
                }
            default: break
            }
        }
    }

    private static func group(_ line: String) -> TestUpstreams {
        var upstreams = TestUpstreams()
        upstreams.named = [NamedGroup(line.split(separator: " ").map(String.init)[...])!]
        return upstreams
    }

    /// 10 silent names a second beside 10 that are answered, for a minute.
    @Test(arguments: ["office 2 takes corp.example", "office 2 encrypted takes corp.example"], [UInt64](1...2))
    func aSilentZoneMovesNoOtherName(group: String, seed: UInt64) {
        var world = World(Self.group(group), seed: seed)
        for millisecond in 0..<60_000 {
            if millisecond % 100 == 0 {
                world.ask("dead\(millisecond).silent.corp.example", .a, of: Self.flood)
            } else if millisecond % 100 == 50 {
                world.ask("live\(millisecond).corp.example", .a, of: Self.other)
            }
            world.pass()
        }
        for _ in 0..<5000 { world.pass() }
        #expect([world.answered, world.refused, world.live.count, world.moved] == [600, 0, 0, 0])
    }

    /// 100 and 400 dead names a second of one source fill the servers, beside 10 names a second of another.
    @Test(arguments: [1, 2], [1, 4])
    func whoFillsTheServersLeavesOthersTheirs(servers: Int, perTenMilliseconds: Int) {
        var world = World(Self.group("office \(servers) encrypted takes corp.example"), seed: 5)
        for millisecond in 0..<20_000 {
            if millisecond % 10 == 0 {
                for number in 0..<perTenMilliseconds {
                    world.ask("dead\(millisecond)x\(number).corp.example", .a, of: Self.flood)
                }
            }
            if millisecond > 4000, millisecond % 100 == 0 {
                world.ask("live\(millisecond).corp.example", .a, of: Self.other)
            }
            world.pass()
        }
        for _ in 0..<5000 { world.pass() }
        #expect([world.answered, world.refused, world.live.count] == [159, 0, 0])
        #expect(world.forwarder.desk.groups[2].waiting.isEmpty && world.forwarder.desk.groups[2].waiting.count == 0)
        // The test waits for queries that were sent just before their client was answered.
        for _ in 0..<5000 { world.pass() }
        #expect(world.forwarder.admission.flights.count == 0)
    }

    /// 100 names a second of one source under a plan of 20, beside 2 a second of another.
    @Test(arguments: [false, true]) func whoSpendsThePlanLeavesOthersTheirs(httpOnly: Bool) {
        var upstreams = TestUpstreams()
        (upstreams.queriesPerSecond, upstreams.httpOnly) = (20, httpOnly)
        var world = World(upstreams, seed: 6)
        for millisecond in 0..<30_000 {
            if millisecond % 10 == 0 { world.ask("flood\(millisecond).example.com", .a, of: Self.flood) }
            if millisecond % 500 == 7 { world.ask("live\(millisecond).example.com", .a, of: Self.other) }
            world.pass()
        }
        #expect(world.answered == 60 && world.moved == 0 && world.refused == 0)
        // Names that move on to another group are counted; with httpOnly there are none.
        #expect(httpOnly == (world.forwarder.counters.pastPlan == 0))
        // The names of 30 seconds, those of a quiet second before, and the reserve.
        #expect(world.names <= 30 * 20 + 20 + 3)
        #expect(world.names >= 30 * 20)
    }

    /// A server that is full does not keep names from the next one.
    @Test func concurrencyOfAnAccountIsThatOfAServer() {
        var upstreams = TestUpstreams()
        (upstreams.service, upstreams.batch, upstreams.hasService) = (.scenario(2, list: 0), 1, true)
        var groups = upstreams.groups
        groups[0].concurrency = 3
        var forwarder = Forwarder(
            policy: upstreams.policy(), timing: Timing(), groups: groups, cache: DNSCache(bytes: 1 << 20, seed: (1, 2)))
        for number in 0..<8 {
            forwarder.receive(Name("n\(number).example")!, .a, for: .everyone, from: number, at: Self.start)
        }
        forwarder.endTurn(at: Self.start)
        let asked = forwarder.takeActions().compactMap { action -> Int? in
            if case .ask(_, let server, _) = action { server.position } else { nil }
        }
        #expect(asked == [1, 1, 1, 2, 2, 2])
        #expect(forwarder.desk.groups[0].outbox.count == 2)
    }

    @Test func thePlanIsSharedAndNeverExceededForLong() {
        for plan in [1, 2, 5, 20, 100] {
            var bucket = TokenBucket(perSecond: plan)
            var chance = Chance(seed: UInt64(plan))
            let sources = (0..<40).map { Source(.v4(192, 0, 2, UInt8($0))) }
            var now = Self.start
            var taken = [Int](repeating: 0, count: sources.count)
            for _ in 0..<60_000 {
                now = now.advanced(milliseconds: 1)
                bucket.fill(at: now)
                // The first source asks as often as all others together.
                let asks = chance.below(2) == 0 ? 0 : 1 + chance.below(3)
                if bucket.hasRoom(for: sources[asks]) {
                    bucket.take(for: sources[asks])
                    taken[asks] += 1
                }
            }
            let all = taken.reduce(0, +)
            #expect(all <= 61 * plan + max(1, plan / 8) + 1 && all >= 60 * plan - 1, "\(plan): \(taken)")
            #expect(taken[0] <= taken[1] + taken[2] && taken[1...3].allSatisfy { $0 * 6 >= all }, "\(plan): \(taken)")
        }
    }
}
