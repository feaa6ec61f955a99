import Base
import DNSCache
import DNSWire
import TestSupport
import Testing

@testable import Forwarding

/// The use of a store by the daemons of a fleet, in invented time.
@Suite struct SharedCacheTests {
    private static let millisecond: UInt64 = 1_000_000

    @Test func whatOneHasLookedUpTheOthersKnow() {
        let world = FleetWorld(nodes: 2, names: 1)
        world.ask(0, 0, 1, andWait: 10_000)
        world.ask(1, 0, 2, andWait: 5)
        #expect(world.billed == 1)
        let reply = world.nodes[1].replies.first
        #expect(reply?.answer.head.answerCount == 1 && reply?.answer.keep == 60)
        // The answer is as old as if it had always been in this cache.
        if case .elapsed(let seconds)? = reply?.age {
            #expect((9...11).contains(seconds))
        } else {
            Issue.record("no age")
        }
        #expect(world.nodes[1].commands.filter { $0 == "read" }.count == 1)
    }

    @Test func aLocalHitAsksNobody() {
        let world = FleetWorld(nodes: 1, names: 1)
        world.ask(0, 0, 1, andWait: 1000)
        let before = world.nodes[0].commands
        for _ in 0..<100 { world.ask(0, 0, 2) }
        world.run(milliseconds: 1000)
        #expect(world.nodes[0].commands == before)
    }

    @Test func anAccountsNoRecordIsSharedToo() {
        let world = FleetWorld(nodes: 2, names: 1, hasFallback: true)
        world.hasNoRecord = true
        world.ask(0, 0, 1, andWait: 1000)
        world.ask(1, 0, 2, andWait: 1000)
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

    /// The bits are in the keys of all daemons of a fleet, of whatever version.
    @Test func theBitsOfAQuestionsKeyAreTheSameForever() {
        func bits(_ audience: Audience, _ families: Families = [], refusesPrivate: Bool = false) -> UInt8 {
            SharedQuestion(
                group: .httpdns, name: Name("www.example.com")!, type: .a, audience: audience, families: families,
                refusesPrivate: refusesPrivate
            ).traits
        }
        #expect(bits(.those(dnssecOK: false, checkingDisabled: false)) == 0)
        #expect(bits(.those(dnssecOK: false, checkingDisabled: true)) == 4)
        #expect(bits(.those(dnssecOK: true, checkingDisabled: false)) == 2)
        #expect(bits(.those(dnssecOK: true, checkingDisabled: true)) == 6)
        #expect([Audience.everyone, .exceptValidators, .validators].map { bits($0) } == [1, 1, 2])
        #expect([Families.ipv4, .ipv6, .both].map { bits(.everyone, $0) } == [0x11, 0x21, 0x31])
        #expect(bits(.everyone, .both, refusesPrivate: true) == 0x39)
    }

    /// A reload that takes the store away: a question that waits for it goes to its group at once.
    @Test func aStoreThatIsGivenUpIsNotWaitedFor() {
        var upstreams = TestUpstreams()
        upstreams.isShared = true
        var forwarder = upstreams.forwarder(DNSCache(bytes: 1 << 20, seed: (1, 2)))
        let now = Tick(nanoseconds: 1_000_000_000_000)
        func asks() -> Int {
            forwarder.endTurn(at: now)
            return forwarder.takeActions().count { if case .ask = $0 { true } else { false } }
        }
        forwarder.change(.sharedCache(SharedSettings(staleSeconds: 0, prefetchAt: 0)), at: now)
        forwarder.handle(.connected, wall: 0, at: now)
        forwarder.receive(Name("www.example.com")!, .a, for: .plain, from: 1, at: now)
        #expect(asks() == 0)
        forwarder.change(.sharedCache(nil), at: now)
        #expect(asks() == 1)
    }

    @Test(arguments: [UInt32(1), 4, 5])
    func whatIsHardlyKeptIsNotShared(ttl: UInt32) {
        let world = FleetWorld(nodes: 1, names: 1)
        world.ttl = ttl
        world.ask(0, 0, 1, andWait: 100)
        // The answer without a record of the other family is kept for longer.
        #expect(world.storedQuestions.contains { $0.type == .a } == (ttl >= 5))
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
        #expect(node.events.last == .sharedCacheOn && node.forwarder.store.isOn)
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

    /// A read whose answer came too late makes no further question skip the store.
    @Test func aLateReplyIsAReply() {
        let world = FleetWorld(nodes: 1, names: 2)
        world.storeTime = 60 * Self.millisecond
        world.ask(0, 0, 1, andWait: 200)
        world.storeTime = Self.millisecond / 10
        let late = world.nodes[0].forwarder.store.counters.late
        world.ask(0, 1, 1, andWait: 200)
        #expect(world.nodes[0].forwarder.store.counters.late == late)
    }

    @Test func aFullStoreIsStillReadAndSaidOnce() {
        let world = FleetWorld(nodes: 1, names: 50)
        world.storeFault = { if case .write = $0 { .writeFailed("its memory is full (OOM)") } else { nil } }
        for name in 0..<50 { world.ask(0, name, name, andWait: 100) }
        let node = world.nodes[0]
        #expect(node.events == [.sharedCacheOn, .sharedCacheTakesNothing("its memory is full (OOM)")])
        #expect(node.forwarder.store.overview.reason == "its memory is full (OOM)")
        // At first, and after 1, 2 and 4 s; each time both families are written.
        #expect((2...12).contains(node.commands.filter { $0 == "write" }.count))
        world.storeFault = nil
        for name in 0..<50 {
            world.ask(0, name, name, andWait: 1000)
            if name % 10 == 0 { world.flush(0, nil) }
        }
        #expect(node.events.last == .sharedCacheTakesAgain && node.forwarder.store.isOn)
        #expect(node.forwarder.store.overview.reason.isEmpty)
    }

    @Test func aStoreThatIsAlwaysSlowIsNotUsed() {
        let world = FleetWorld(nodes: 1, names: 100)
        world.storeTime = 8 * Self.millisecond
        for name in 0..<100 { world.ask(0, name, name, andWait: 20) }
        #expect(world.nodes[0].events.contains(.sharedCacheOff("it takes longer than 5 ms")))
    }

    @Test func whereItSeldomHelpsLittleIsWaited() {
        let world = FleetWorld(nodes: 2, names: 200)
        world.storeTime = 3 * Self.millisecond
        for name in 0..<30 { world.ask(0, name, name, andWait: 50) }
        #expect(world.nodes[0].forwarder.store.overview.budget == 0)
        // The store is still read: as soon as it answers in time, questions wait for it again.
        for name in 100..<130 { world.ask(1, name, name, andWait: 50) }
        for name in 100..<130 { world.ask(0, name, name, andWait: 50) }
        #expect(world.nodes[0].forwarder.store.overview.budget == 5)
    }

    @Test func lateAnswersWinIfTheyAreFirst() {
        let world = FleetWorld(nodes: 2, names: 1)
        world.ask(0, 0, 1, andWait: 100)
        world.storeTime = 12 * Self.millisecond
        world.ask(1, 0, 2, andWait: 13)
        #expect(world.billed == 2 && world.nodes[1].replies.count == 1)
        world.run(milliseconds: 100)
        #expect(world.nodes[1].replies.count == 1)
    }

    @Test func whatIsOverIsGivenOnlyWhenNothingElseAnswers() {
        let world = FleetWorld(nodes: 2, names: 1)
        world.ask(0, 0, 1, andWait: 120_000)
        world.isServiceDown = true
        world.ask(1, 0, 2, andWait: 1600)
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
        // The daemon whose clock is behind sees the other's answers in the future.
        #expect(offset > 0 ? said == [0, 1] : said == [0, 0])
        // When its clock has caught up, the ignored answers are still not fresh.
        world.run(milliseconds: 3_610_000)
        for name in 0..<3 { world.ask(1, name, 10 + name) }
        world.run(milliseconds: 1000)
        #expect(world.billed == 9)
        for reply in world.nodes[1].replies where reply.client >= 10 { #expect(reply.answer.keep == 60) }
    }

    @Test func aClockThatIsKnownToBeAheadMakesNoAnswerYounger() {
        let world = FleetWorld(nodes: 2, names: 2)
        world.ttl = 7200
        world.nodes[0].clockOffset = 3600
        world.ask(0, 0, 1, andWait: 3_500_000)
        world.ask(0, 1, 2, andWait: 1000)
        // From this one the second daemon knows of it.
        world.ask(1, 1, 3, andWait: 199_000)
        // It is 3,700 seconds old, and seems to be 100.
        world.ask(1, 0, 4, andWait: 1000)
        #expect(world.billed == 3)
        guard let reply = world.nodes[1].replies.last, case .elapsed(let seconds) = reply.age else {
            Issue.record("no answer")
            return
        }
        #expect(reply.client == 4 && 3690...3710 ~= seconds, "\(reply.client), \(seconds)")
    }

    /// A machine without a battery for its clock starts in a wrong year, and gets the time a moment later.
    @Test(arguments: [-1_600_000_000, -3600]) func aClockThatIsSetIsNoLongerBehind(offset: Int) {
        let world = FleetWorld(nodes: 2, names: 2)
        world.nodes[1].clockOffset = offset
        world.ask(0, 0, 1, andWait: 1000)
        world.ask(1, 0, 2, andWait: 1000)
        #expect(world.billed == 2)
        world.nodes[1].clockOffset = 0
        world.ask(0, 1, 3, andWait: 1000)
        world.ask(1, 1, 4, andWait: 1000)
        #expect(world.billed == 3)
        #expect(world.nodes[1].replies.map(\.client) == [2, 4])
    }

    @Test func oneOfTheFleetRefreshes() {
        let world = FleetWorld(nodes: 20, names: 1)
        world.ask(0, 0, andWait: 1000)
        for node in 0..<20 { world.ask(node, 0) }
        world.run(milliseconds: 46_000)
        for node in 0..<20 { world.ask(node, 0) }
        world.run(milliseconds: 1000)
        #expect(world.billed == 2)
        #expect(world.nodes.reduce(0) { $0 + Int($1.forwarder.store.counters.leasesLost) } == 19)
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

    /// Routes come and go between a lookup and the command.
    @Test(arguments: [Families.ipv4, .both], [Families.ipv4, .ipv6, .both])
    func flushReachesWhatWasSaidOfOtherFamilies(before: Families, now: Families) {
        let world = FleetWorld(nodes: 1, names: 1)
        world.nodes[0].forwarder.change(.families([.httpdns: before]), at: world.tick)
        world.ask(0, 0, andWait: 1000)
        #expect(!world.storedQuestions.isEmpty)
        world.nodes[0].forwarder.change(.families([.httpdns: now]), at: world.tick)
        world.flush(0, 0)
        #expect(world.storedQuestions.isEmpty)
    }
}
