import Testing

@testable import Base

@Suite struct TickTests {
    @Test func secondsAreWholeOnes() {
        #expect(Tick(nanoseconds: 999_999_999).seconds == 0)
        #expect(Tick(nanoseconds: 1_000_000_000).seconds == 1)
    }

    @Test func millisecondsForwardAndBack() {
        let tick = Tick(nanoseconds: 5_000_000_000)
        #expect(tick.advanced(milliseconds: 1500) == Tick(nanoseconds: 6_500_000_000))
        #expect(tick.advanced(milliseconds: -1) == tick)
        #expect(tick.advanced(milliseconds: 1500).milliseconds(since: tick) == 1500)
        #expect(tick.milliseconds(since: tick.advanced(milliseconds: 1)) == 0)
        #expect(tick < tick.advanced(milliseconds: 1))
    }
}
