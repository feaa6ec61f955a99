import Base
import Testing

@testable import Daemon

@Suite struct NetworkPaceTests {
    private let start = Tick(nanoseconds: 1_000_000_000_000)

    @Test func aFewChangesAreHeededAtOnceAndThenOneASecond() {
        var pace = NetworkPace()
        var heeded: [Int] = []
        for millisecond in stride(from: 0, through: 6000, by: 100) {
            let now = start.advanced(milliseconds: millisecond)
            if pace.isDue(at: now) { heeded.append(millisecond) }
            if pace.happened(at: now) { heeded.append(millisecond) }
        }
        #expect(heeded == [0, 100, 200, 300, 1000, 2000, 3000, 4000, 5000, 6000])
    }

    /// The last of many is heeded too, and after a quiet time there are as many at once again.
    @Test func noneIsForgotten() {
        var pace = NetworkPace()
        func atOnce(_ count: Int, at now: Tick, _ pace: inout NetworkPace) -> Int {
            var heeded = 0
            for _ in 0..<count where pace.happened(at: now) { heeded += 1 }
            return heeded
        }
        #expect(atOnce(6, at: start, &pace) == 4)
        let due = start.advanced(milliseconds: 1000)
        #expect(pace.nextDeadline == due)
        let early = pace.isDue(at: start.advanced(milliseconds: 999))
        let inTime = pace.isDue(at: due)
        let again = pace.isDue(at: due)
        #expect(!early && inTime && !again && pace.nextDeadline == nil)
        #expect(atOnce(6, at: start.advanced(milliseconds: 60_000), &pace) == 4)
    }
}
