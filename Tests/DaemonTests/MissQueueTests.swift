import Base
import Forwarding
import Testing

@testable import Daemon

@Suite struct MissQueueTests {
    private static let flooding = Source(.v4(192, 0, 2, 66))
    /// With it the sources of a test share no limit; by a secret salt one in 256 would.
    private static let salt: (UInt64, UInt64) = (0x9E37_79B9_7F4A_7C15, 0xBF58_476D_1CE4_E5B9)

    @Test func oneSourceLeavesRoomForOthers() {
        let queue = MissQueue()
        var taken = 0
        for _ in 0..<5000 where queue.enter(Self.flooding) { taken += 1 }
        #expect(taken == 896)
        // Some may share a bucket with it, one in 256.
        let others = (0..<100).count { queue.enter(Source(.v4(198, 51, 100, UInt8($0)))) }
        #expect(others >= 90)
        // What was refused is not counted, and what is taken on leaves room again.
        for _ in 0..<taken { queue.leave(Self.flooding) }
        #expect(queue.enter(Self.flooding))
    }

    /// A host that floods leaves room for its neighbours, and one that invents addresses for the rest.
    @Test func aNetworkOnALinkLeavesRoom() {
        func neighbour(_ number: Int) -> Source { Source(IPAddress(v6: 0xFD00 << 48, UInt64(number) + 1)) }
        let queue = MissQueue(salt: Self.salt)
        let taken = (0..<5000).filter { queue.enter(neighbour($0)) }
        #expect(taken.count == 896)
        #expect(queue.enter(.host) && queue.enter(Self.flooding))
        for number in taken { queue.leave(neighbour(number)) }
        let again = (0..<5000).count { _ in queue.enter(neighbour(0)) }
        #expect(again > 890)
    }

    @Test func neverMoreThanThereIsRoomFor() {
        let queue = MissQueue(maximum: 64)
        let taken = (0..<10_000).count { queue.enter(Source(IPAddress(v6: UInt64($0) << 32, 1))) }
        #expect(taken <= 64 && taken > 50)
        #expect(!MissQueue(maximum: 0).enter(.host))
    }
}
