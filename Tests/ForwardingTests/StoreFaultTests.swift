import Base
import DNSCache
import DNSWire
import Testing

@testable import Forwarding

/// The cost of a failing store, compared with a daemon without one, exact to a nanosecond of invented time.
@Suite struct StoreFaultTests {
    private static let millisecond: UInt64 = 1_000_000
    private static let mostWait = 5 * millisecond
    private static let refused = Failure(.unreachable, "connect: Connection refused")

    enum Fault: CaseIterable {
        case silent, slow, rather, loading, full, lost, unreachable
    }

    enum Service: CaseIterable { case answers, fails, failsLikeItsFallback }

    private static func world(_ service: Service, _ fault: Fault?) -> FleetWorld {
        let world = FleetWorld(
            nodes: 1, names: 400, isShared: fault != nil, hasFallback: service == .failsLikeItsFallback)
        if service != .answers { world.serviceFault = refused }
        switch fault {
        case nil: break
        case .silent: world.isStoreSilent = true
        case .slow: world.storeTime = 1000 * millisecond
        case .rather: world.storeTime = 3 * millisecond
        case .loading:
            world.storeFault = {
                if case .read(let id, _) = $0 { .failed(id, "it still reads its data (LOADING)") } else { nil }
            }
        case .full:
            world.storeFault = { if case .write = $0 { .writeFailed("its memory is full (OOM)") } else { nil } }
        case .lost: world.storeFault = { if case .read = $0 { .lost("closed by the store") } else { nil } }
        case .unreachable: world.storeFault = { _ in .lost("connect: Connection refused") }
        }
        return world
    }

    /// Nanoseconds that each of 400 questions has waited, one every 5 ms, and whether the store was in use then.
    private static func waits(_ world: FleetWorld) -> [(time: UInt64, isOn: Bool)] {
        var asked: [(at: UInt64, isOn: Bool)] = []
        for name in 0..<400 {
            asked.append((world.now, world.nodes[0].forwarder.store.isOn))
            world.ask(0, name, name, andWait: 5)
        }
        world.run(milliseconds: 5000)
        let replies = Dictionary(world.nodes[0].replies.map { ($0.client, $0.at) }, uniquingKeysWith: { at, _ in at })
        return asked.enumerated().map { name, asked in ((replies[name] ?? .max) &- asked.at, asked.isOn) }
    }

    @Test(
        "no answer comes more than 5 ms later, and none later at all where the store is not in use",
        arguments: Fault.allCases, Service.allCases)
    func besideADaemonWithout(fault: Fault, service: Service) {
        let without = Self.waits(Self.world(service, nil))
        let beside = Self.waits(Self.world(service, fault))
        for (without, beside) in zip(without, beside) {
            #expect(beside.time >= without.time && beside.time - without.time <= (beside.isOn ? Self.mostWait : 0))
        }
    }

    @Test func noQuestionWaitsLongerThanItsBudgetAndAfterFiveFailuresNoneAtAll() {
        let world = FleetWorld(nodes: 1, names: 200)
        world.lookupTime = 0
        world.isStoreSilent = true
        for client in 0..<200 { world.ask(0, client, client, andWait: 1) }
        let node = world.nodes[0]
        #expect(node.replies.count == 200)
        let begin = node.replies[0].at - 5 * Self.millisecond
        for reply in node.replies {
            let asked = begin + UInt64(reply.client) * Self.millisecond
            #expect(reply.at - asked <= 5 * Self.millisecond)
        }
        // No question waits after a late read, and five failures end the use of the store.
        let waited = node.replies.filter { $0.at - begin - UInt64($0.client) * Self.millisecond > 0 }
        #expect(waited.count <= 6)
        #expect(node.events.contains(.sharedCacheOff("no answer within 50 ms")))
        #expect(!node.forwarder.store.isOn)
    }

    @Test func whatTheStoreHasIsBetterThanAFailureThatComesSooner() {
        let world = FleetWorld(nodes: 2, names: 30)
        for name in 0..<30 { world.ask(0, name) }
        world.run(milliseconds: 100)
        for name in 0..<20 { world.ask(1, name, andWait: 5) }
        // Now a question waits 1 ms for the store before the group is asked.
        #expect(world.nodes[1].forwarder.store.overview.budget == 1)
        world.storeTime = 4 * Self.millisecond
        world.serviceFault = Self.refused
        let asked = world.now
        world.ask(1, 20, 1, andWait: 50)
        #expect(world.nodes[1].replies.map(\.answer.head.answerCount) == [1])
        #expect(world.nodes[1].replies.map(\.at) == [asked + 4 * Self.millisecond])
        // Not if that takes longer than anything waits for it; but it is there for those who ask again.
        world.storeTime = 8 * Self.millisecond
        for client in [2, 3] { world.ask(1, 21, client, andWait: 50) }
        #expect(world.nodes[1].replies.count == 2)
        #expect(world.nodes[1].replies.last?.client == 2)
        #expect(world.nodes[1].replies.last?.answer.head.responseCode == .servFail)
    }

    @Test func whoJoinsARefreshWaitsNoLongerThanAnybody() {
        let world = FleetWorld(nodes: 1, names: 2)
        world.lookupTime = 0
        world.isStoreSilent = true
        // One reads, the other one, whose read was answered, takes the lease.
        world.refresh(0, 0)
        world.isStoreSilent = false
        world.refresh(0, 1)
        world.isStoreSilent = true
        world.run(milliseconds: 2)
        #expect(world.nodes[0].commands.filter { $0 == "claim" }.count == 1)
        let asked = world.now
        for name in 0..<2 { world.ask(0, name, name) }
        world.run(milliseconds: 100)
        #expect(world.nodes[0].replies.map(\.at) == [asked + Self.mostWait, asked + Self.mostWait])
    }

    @Test func twoGroupsThatAreSharedAreNotWaitedForTwice() {
        let world = FleetWorld(nodes: 1, names: 1, hasFallback: true)
        world.serviceFault = Self.refused
        world.storeTime = 4 * Self.millisecond
        let asked = world.now
        world.ask(0, 0, 1, andWait: 100)
        #expect(world.nodes[0].commands.filter { $0 == "read" }.count == 2)
        #expect(world.nodes[0].replies.map(\.at) == [asked + Self.mostWait])
    }
}
