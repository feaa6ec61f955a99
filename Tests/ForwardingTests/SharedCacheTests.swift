import Base
import DNSCache
import DNSWire
import TestSupport
import Testing

@testable import Forwarding

/// What the daemons of a fleet do with a store, in invented time.
@Suite struct SharedCacheTests {
    private static let millisecond: UInt64 = 1_000_000

    @Test func whatOneHasLookedUpTheOthersKnow() {
        let world = FleetWorld(nodes: 2, names: 1)
        world.ask(0, 0, 1)
        world.run(milliseconds: 10_000)
        world.ask(1, 0, 2)
        world.run(milliseconds: 5)
        #expect(world.billed == 1)
        let reply = world.nodes[1].replies.first
        #expect(reply?.answer.head.answerCount == 1 && reply?.answer.keep == 60)
        // Aged as if it had been here all the time.
        if case .elapsed(let seconds)? = reply?.age {
            #expect((9...11).contains(seconds))
        } else {
            Issue.record("no age")
        }
        #expect(world.nodes[1].commands.filter { $0 == "read" }.count == 1)
    }

    @Test func aLocalHitAsksNobody() {
        let world = FleetWorld(nodes: 1, names: 1)
        world.ask(0, 0, 1)
        world.run(milliseconds: 1000)
        let before = world.nodes[0].commands
        for _ in 0..<100 { world.ask(0, 0, 2) }
        world.run(milliseconds: 1000)
        #expect(world.nodes[0].commands == before)
    }

    @Test func anAccountsNoRecordIsSharedToo() {
        let world = FleetWorld(nodes: 2, names: 1, hasFallback: true)
        world.hasNoRecord = true
        world.ask(0, 0, 1)
        world.run(milliseconds: 1000)
        world.ask(1, 0, 2)
        world.run(milliseconds: 1000)
        #expect(world.billed == 1)
        let kinds = world.storedQuestions.filter { $0.group == .httpdns }.map(\.type)
        #expect(Set(kinds) == [.a, .aaaa])
    }

    @Test func whatIsNotSharedIsNeitherReadNorWritten() {
        let world = FleetWorld(nodes: 2, names: 1, isShared: false)
        for node in 0..<2 { world.ask(node, 0, 1) }
        world.run(milliseconds: 1000)
        #expect(world.billed == 2 && world.storedQuestions.isEmpty)
    }

    @Test(arguments: [UInt32(1), 4, 5])
    func whatIsHardlyKeptIsNotShared(ttl: UInt32) {
        let world = FleetWorld(nodes: 1, names: 1)
        world.ttl = ttl
        world.ask(0, 0, 1)
        world.run(milliseconds: 100)
        // That there is no record of the other family is kept for longer.
        #expect(world.storedQuestions.contains { $0.type == .a } == (ttl >= SharedCache.leastLifetime))
    }

    @Test func noQuestionWaitsLongerThanItsBudgetAndAfterFiveFailuresNoneAtAll() {
        let world = FleetWorld(nodes: 1, names: 200)
        world.lookupTime = 0
        world.isStoreSilent = true
        for client in 0..<200 {
            world.ask(0, client, client)
            world.run(milliseconds: 1)
        }
        let node = world.nodes[0]
        #expect(node.replies.count == 200)
        let begin = node.replies[0].at - 5 * Self.millisecond
        for reply in node.replies {
            let asked = begin + UInt64(reply.client) * Self.millisecond
            #expect(reply.at - asked <= 5 * Self.millisecond)
        }
        // Behind a read that is late no other is waited for, and five failures end it.
        let waited = node.replies.filter { $0.at - begin - UInt64($0.client) * Self.millisecond > 0 }
        #expect(waited.count <= 6)
        #expect(node.events.contains(.sharedCacheOff("no answer within 50 ms")))
        #expect(!node.forwarder.shared.isOn)
    }

    @Test func itIsDialledAgainMoreAndMoreSeldomAndSaidOnce() {
        let world = FleetWorld(nodes: 1, names: 1)
        world.storeFault = { action in
            switch action {
            case .dial: .lost("connect: Connection refused")
            case .lookForGeneration: .lost("closed by the store")
            default: nil
            }
        }
        world.run(milliseconds: 400_000)
        let node = world.nodes[0]
        // 1 + 2 + 4 + 8 + 16 + 32 s, then every minute.
        #expect((9...13).contains(node.commands.filter { $0 == "dial" }.count))
        #expect(node.events == [.sharedCacheOn, .sharedCacheOff("closed by the store")])
        world.storeFault = nil
        world.run(milliseconds: 61_000)
        #expect(node.events.last == .sharedCacheOn && node.forwarder.shared.isOn)
    }

    @Test(arguments: ["it still reads its data (LOADING)", "it asks for a password (NOAUTH)"])
    func errorsEndItLikeSilence(reason: String) {
        let world = FleetWorld(nodes: 1, names: 10)
        world.storeFault = { if case .read(let id, _) = $0 { .failed(id, reason) } else { nil } }
        for client in 0..<10 { world.ask(0, client, client) }
        world.run(milliseconds: 100)
        #expect(world.nodes[0].replies.count == 10)
        #expect(world.nodes[0].events.contains(.sharedCacheOff(reason)))
    }

    @Test func aFullStoreIsStillReadAndSaidOnce() {
        let world = FleetWorld(nodes: 1, names: 50)
        world.storeFault = { if case .write = $0 { .writeFailed("its memory is full (OOM)") } else { nil } }
        for name in 0..<50 {
            world.ask(0, name, name)
            world.run(milliseconds: 100)
        }
        let node = world.nodes[0]
        #expect(node.events == [.sharedCacheOn, .sharedCacheTakesNothing("its memory is full (OOM)")])
        // At first, and after 1, 2 and 4 s; both families are written each time.
        #expect((2...12).contains(node.commands.filter { $0 == "write" }.count))
        world.storeFault = nil
        for name in 0..<50 {
            world.ask(0, name, name)
            world.run(milliseconds: 1000)
            if name % 10 == 0 { world.flush(0, nil) }
        }
        #expect(node.events.last == .sharedCacheTakesAgain && node.forwarder.shared.isOn)
    }

    @Test func aStoreThatIsAlwaysSlowIsNotUsed() {
        let world = FleetWorld(nodes: 1, names: 100)
        world.storeTime = 8 * Self.millisecond
        for name in 0..<100 {
            world.ask(0, name, name)
            world.run(milliseconds: 20)
        }
        #expect(world.nodes[0].events.contains(.sharedCacheOff("it takes longer than 5 ms")))
    }

    @Test func whereItSeldomHelpsLittleIsWaited() {
        let world = FleetWorld(nodes: 2, names: 200)
        world.storeTime = 3 * Self.millisecond
        for name in 0..<30 {
            world.ask(0, name, name)
            world.run(milliseconds: 50)
        }
        #expect(world.nodes[0].forwarder.shared.overview.budget == 0)
        // It is still looked at: as soon as it helps again, it is waited for again.
        for name in 100..<130 {
            world.ask(1, name, name)
            world.run(milliseconds: 50)
        }
        for name in 100..<130 {
            world.ask(0, name, name)
            world.run(milliseconds: 50)
        }
        #expect(world.nodes[0].forwarder.shared.overview.budget == 5)
    }

    @Test func lateAnswersWinIfTheyAreFirst() {
        let world = FleetWorld(nodes: 2, names: 1)
        world.ask(0, 0, 1)
        world.run(milliseconds: 100)
        world.storeTime = 12 * Self.millisecond
        world.ask(1, 0, 2)
        world.run(milliseconds: 13)
        #expect(world.billed == 2 && world.nodes[1].replies.count == 1)
        world.run(milliseconds: 100)
        #expect(world.nodes[1].replies.count == 1)
    }

    @Test func whatTheStoreHasIsBetterThanAFailureHoweverSoonThatComes() {
        let world = FleetWorld(nodes: 2, names: 1)
        world.ask(0, 0, 1)
        world.run(milliseconds: 100)
        world.storeTime = 8 * Self.millisecond
        world.serviceFault = Failure(.unreachable, "connect: Connection refused")
        world.ask(1, 0, 2)
        world.run(milliseconds: 20)
        #expect(world.nodes[1].replies.map(\.answer.head.answerCount) == [1])
        // And where it has nothing, the failure is told at once.
        world.flush(0, 0)
        world.flush(1, 0)
        world.ask(1, 0, 3)
        world.run(milliseconds: 20)
        #expect(world.nodes[1].replies.last?.answer.head.responseCode == .servFail)
    }

    @Test func whatIsOverIsGivenOnlyWhenNothingElseAnswers() {
        let world = FleetWorld(nodes: 2, names: 1)
        world.ask(0, 0, 1)
        world.run(milliseconds: 120_000)
        world.isServiceDown = true
        world.ask(1, 0, 2)
        world.run(milliseconds: 1600)
        #expect(world.nodes[1].replies.isEmpty)
        world.run(milliseconds: 300)
        #expect(world.nodes[1].replies.first?.answer.extendedErrors == [.staleAnswer])
    }

    @Test(arguments: [3600, -3600])
    func withClocksAnHourApartNothingIsGivenPastItsTime(offset: Int) {
        let world = FleetWorld(nodes: 2, names: 3)
        world.nodes[0].clockOffset = offset
        for name in 0..<3 { world.ask(0, name, name) }
        world.run(milliseconds: 1000)
        for name in 0..<3 { world.ask(1, name, name) }
        world.run(milliseconds: 1000)
        #expect(world.billed == 6)
        let said = world.nodes.map { $0.events.filter { $0 == .sharedCacheClock }.count }
        // The one whose clock is behind sees the other's answers in the future.
        #expect(offset > 0 ? said == [0, 1] : said == [0, 0])
        // When its clock has caught up, what was ignored is still not fresh.
        world.run(milliseconds: 3_610_000)
        for name in 0..<3 { world.ask(1, name, 10 + name) }
        world.run(milliseconds: 1000)
        #expect(world.billed == 9)
        for reply in world.nodes[1].replies where reply.client >= 10 { #expect(reply.answer.keep == 60) }
    }

    @Test func oneOfTheFleetRefreshes() {
        let world = FleetWorld(nodes: 20, names: 1)
        world.ask(0, 0)
        world.run(milliseconds: 1000)
        for node in 0..<20 { world.ask(node, 0) }
        world.run(milliseconds: 46_000)
        for node in 0..<20 { world.ask(node, 0) }
        world.run(milliseconds: 1000)
        #expect(world.billed == 2)
        #expect(world.nodes.reduce(0) { $0 + Int($1.forwarder.shared.counters.leasesLost) } == 19)
    }

    @Test func flushReachesIt() {
        let world = FleetWorld(nodes: 2, names: 2)
        for name in 0..<2 { world.ask(0, name) }
        world.run(milliseconds: 1000)
        world.flush(0, 0)
        #expect(Set(world.storedQuestions.map(\.name)) == [Name("n1.example")!])
        world.flush(0, nil)
        #expect(world.storedQuestions.isEmpty)
    }
}

/// What a fleet is billed for, beside one daemon that is asked the same.
@Suite struct FleetEconomyTests {
    /// The questions of all daemons: 10 minutes, 5,000 names by Zipf's law.
    private static func questions(daemons: Int, perSecond: Int) -> [(at: UInt64, node: Int, name: Int)] {
        var chance = Chance(seed: 9)
        var sum = 0.0
        let distribution = (1...5000).map { rank in
            sum += 1 / Double(rank)
            return sum
        }
        return (0..<600 * perSecond).map { number in
            let point = Double.random(in: 0..<sum, using: &chance)
            var (low, high) = (0, distribution.count - 1)
            while low < high {
                let middle = (low + high) / 2
                if distribution[middle] < point { low = middle + 1 } else { high = middle }
            }
            return (UInt64(number) * 1_000_000_000 / UInt64(perSecond), chance.below(daemons), low)
        }
    }

    private static func billed(daemons: Int, isShared: Bool) -> Int {
        let world = FleetWorld(nodes: daemons, names: 5000, isShared: isShared)
        let begin = world.now
        for question in questions(daemons: 1000, perSecond: 200) {
            world.run(until: begin + question.at)
            world.ask(daemons == 1 ? 0 : question.node, question.name)
        }
        world.run(milliseconds: 5000)
        return world.billed
    }

    @Test("a thousand daemons are billed for hardly more lookups than one")
    func thousandDaemons() {
        let alone = Self.billed(daemons: 1, isShared: false)
        let fleet = Self.billed(daemons: 1000, isShared: true)
        let unshared = Self.billed(daemons: 1000, isShared: false)
        print("lookups billed: one daemon \(alone), 1,000 with a store \(fleet), without \(unshared)")
        #expect(Double(fleet) <= 1.05 * Double(alone))
        #expect(unshared > 3 * alone)
    }
}
