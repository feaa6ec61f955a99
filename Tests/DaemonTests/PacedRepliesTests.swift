import Base
import Forwarding
import Testing

@testable import Daemon

@Suite struct PacedRepliesTests {
    private let victim = Source(.v4(192, 0, 2, 66))
    private let other = Source(.v4(192, 0, 2, 1))
    private let start = Tick(nanoseconds: 1_000_000_000_000)

    @Test func whatHasWaitedForLongLeavesInParts() {
        var paced = PacedReplies<Int>()
        let atOnce = (0..<1000).filter { paced.take($0, to: victim, waited: 1_700_000_000, at: start) != nil }
        #expect(atOnce == Array(0..<100) && !paced.isEmpty)
        #expect(paced.take(-1, to: other, waited: 1_700_000_000, at: start) == -1)
        var released: [Int] = []
        for millisecond in 1...100 {
            let now = start.advanced(milliseconds: millisecond)
            if let deadline = paced.nextDeadline { #expect((deadline <= now) == (millisecond % 10 == 0)) }
            let some = paced.release(at: now)
            #expect(some.count == (millisecond % 10 == 0 && millisecond < 100 ? 100 : 0))
            released += some
        }
        #expect(released == Array(100..<1000) && paced.isEmpty && paced.nextDeadline == nil)
    }

    /// In each turn new replies come before those are released that are held back.
    @Test func whatIsHeldBackLeavesInItsTurnAlthoughMoreComes() {
        var paced = PacedReplies<Int>()
        for number in 0..<200 { _ = paced.take(number, to: victim, waited: 1_700_000_000, at: start) }
        var left: [[Int]] = []
        for turn in 1...4 {
            let now = start.advanced(milliseconds: turn * 10)
            let atOnce = paced.take(1000 + turn, to: victim, waited: 1_700_000_000, at: now)
            left.append((atOnce.map { [$0] } ?? []) + paced.release(at: now))
        }
        #expect(left == [Array(100..<200), [1001, 1002], [1003], [1004]])
    }

    @Test func whatIsAnsweredQuicklyLeavesAtOnce() {
        var paced = PacedReplies<Int>()
        let waited = PacedReplies<Int>.shortestWait - 1
        for number in 0..<5000 { #expect(paced.take(number, to: victim, waited: waited, at: start) == number) }
    }

    /// As many as may wait, answered evenly after the shortest wait that counts.
    @Test func nothingIsHeldBackOfAnEvenFlow() {
        var paced = PacedReplies<Int>()
        for number in 0..<20_000 {
            let now = Tick(nanoseconds: start.nanoseconds + UInt64(number) * 100_000)
            #expect(paced.take(number, to: victim, waited: 100_000_000, at: now) == number)
        }
    }

    @Test func noMoreAreHeldBackThanThereIsRoomFor() {
        var paced = PacedReplies<Int>()
        let most = PacedReplies<Int>.maximum + Shares.lateReplies
        for number in 0..<most { _ = paced.take(number, to: victim, waited: 1_700_000_000, at: start) }
        #expect(paced.take(most, to: victim, waited: 1_700_000_000, at: start) == most)
    }
}
