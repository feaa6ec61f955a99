import Logging
import ShellTestSupport
import Testing

@testable import Log

@Suite struct LogThrottleTests {
    private static let second: UInt64 = 1_000_000_000
    private static let counted = " (more of this is counted, and said every 10 min)"
    private var throttle = LogThrottle()

    private func fails(_ reason: String = "silent") -> LogLine {
        LogLine(level: .warning, text: "A fails: \(reason)", event: .serviceFails, fields: ["server": "A"])
    }
    private let answers = LogLine(level: .notice, text: "A answers again", event: .serviceAnswersAgain)

    /// The texts of what is said about A, or another, at a second.
    private mutating func say(_ line: LogLine, _ seconds: UInt64, about subject: String = "A") -> [String] {
        throttle.take(line, about: subject, at: seconds * Self.second).map(\.text)
    }

    @Test mutating func aServerThatAlternatesIsSummedUp() {
        for cycle in 0..<2 as Range<UInt64> {
            #expect(say(fails(), cycle * 10) == ["A fails: silent"])
            #expect(say(answers, cycle * 10 + 5) == ["A answers again"])
        }
        #expect(say(fails(), 20) == ["A fails: silent"])
        #expect(throttle.nextDeadline == nil)
        #expect(say(answers, 25) == ["A answers again" + Self.counted])
        for cycle in 3..<15 as Range<UInt64> {
            #expect(say(fails(cycle < 14 ? "silent" : "refused"), cycle * 10) == [])
            #expect(say(answers, cycle * 10 + 5) == [])
        }
        #expect(throttle.nextDeadline == 600 * Self.second)
        #expect(throttle.expire(at: 599 * Self.second) == [])
        let sum = throttle.expire(at: 600 * Self.second)
        #expect(
            sum.map(\.text) == [
                "A fails: refused (12 more times in 10 min)", "A answers again (12 more times in 10 min)",
            ])
        #expect(sum[0].fields == ["server": "A", "repeated": "12"])
        #expect(sum[0].level == .warning && sum[0].event == .serviceFails)
        #expect(throttle.nextDeadline == nil)
        #expect(say(fails(), 601) == ["A fails: silent"])
    }

    @Test mutating func theLastWordIsHowThingsStand() {
        for second in 0..<6 as Range<UInt64> { _ = say(fails(), second) }
        _ = say(answers, 10)
        _ = say(fails(), 11)
        #expect(
            throttle.expire(at: 600 * Self.second).map(\.text) == [
                "A answers again (1 more time in 10 min)", "A fails: silent (1 more time in 10 min)",
            ])
    }

    @Test mutating func whatWasHeldComesBeforeWhatIsNew() {
        for second in 0..<7 as Range<UInt64> { _ = say(fails(), second) }
        #expect(say(answers, 700) == ["A fails: silent (1 more time in 10 min)", "A answers again"])
    }

    @Test mutating func anotherSubjectIsAnotherMatter() {
        for second in 0..<20 as Range<UInt64> { _ = say(fails(), second) }
        #expect(say(fails(), 21, about: "B") == ["A fails: silent"])
    }

    @Test mutating func aFewLinesInALongTimeAreAllSaid() {
        for hour in 0..<24 as Range<UInt64> { #expect(say(fails(), hour * 3600).count == 1) }
        #expect(throttle.nextDeadline == nil)
    }

    @Test mutating func itsMemoryIsBounded() {
        for number in 0..<LogThrottle.maximumSubjects {
            _ = say(fails(), 0, about: "\(number)")
        }
        // No window of its own: said, however often.
        for _ in 0..<20 { #expect(say(fails(), 1, about: "one more") == ["A fails: silent"]) }
        #expect(say(fails(), 600, about: "one more") == ["A fails: silent"])
    }
}

@Suite struct LogBookTests {
    @Test func whatIsHeldIsSaidAtTheEnd() {
        let lines = LogLines()
        let report = lines.report
        for _ in 0..<9 { report.say(.warning, .networkGone, about: "network", "the network is gone") }
        #expect(lines.all.count == LogThrottle.allowance)
        report.stopping("SIGTERM")
        #expect(
            lines.all.suffix(2) == [
                "warning the network is gone (3 more times in 10 min)",
                "notice stopping: SIGTERM",
            ])
    }
}
