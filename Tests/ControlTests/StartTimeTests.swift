import Testing

@testable import Control

@Suite struct StartTimeTests {
    private let second: UInt64 = 1_000_000_000

    @Test("a clock that is set takes the start along")
    func steps() {
        var start = StartTime(at: 50 * second, wall: 100)
        #expect(start.unixSeconds(at: 60 * second, wall: 110) == 100)
        // An hour after the start the clock is set.
        #expect(start.unixSeconds(at: 3650 * second, wall: 1_800_003_600) == 1_800_000_000)
        #expect(start.unixSeconds(at: 3651 * second, wall: 1_800_003_601) == 1_800_000_000)
        // And back, before the start of all time.
        #expect(start.unixSeconds(at: 3651 * second, wall: 10) == 0)
    }

    @Test("what is rounded is no new start")
    func rounding() {
        var start = StartTime(at: 999_999_999, wall: 1000)
        #expect(start.unixSeconds(at: 11 * second, wall: 1010) == 1000)
        #expect(start.unixSeconds(at: 11 * second, wall: 1012) == 1000)
        #expect(start.unixSeconds(at: 11 * second + second / 2, wall: 1009) == 1000)
    }
}
