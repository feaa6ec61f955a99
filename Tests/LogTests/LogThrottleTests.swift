import ShellTestSupport
import Testing

@testable import Log

@Suite struct LogThrottleTests {
    private static let second: UInt64 = 1_000_000_000
    private static let counted = " (for up to 10 min more of this is only counted)"
    private var throttle = LogThrottle()

    private func fails(_ reason: String = "silent") -> String { "A fails: \(reason)" }
    private let answers = "A answers again"

    /// The text of what is said about A, or another, at a second.
    private mutating func say(_ line: String, _ seconds: UInt64, about subject: String = "A") -> String? {
        throttle.take(about: subject, at: seconds * Self.second).map { line + $0.text }
    }

    @Test mutating func ofAServerThatAlternatesTheRestIsCounted() {
        for cycle in 0..<2 as Range<UInt64> {
            #expect(say(fails(), cycle * 10) == "A fails: silent")
            #expect(say(answers, cycle * 10 + 5) == "A answers again")
        }
        #expect(say(fails(), 20) == "A fails: silent")
        #expect(say(answers, 25) == "A answers again" + Self.counted)
        for cycle in 3..<15 as Range<UInt64> {
            #expect(say(fails(), cycle * 10) == nil)
            #expect(say(answers, cycle * 10 + 5) == nil)
        }
        #expect(say(fails(), 599) == nil)
        #expect(say(fails("refused"), 600) == "A fails: refused (before, 25 lines of this were not written)")
        #expect(say(answers, 601) == "A answers again")
    }

    @Test mutating func theCountWaitsForTheNextLine() {
        for second in 0..<7 as Range<UInt64> { _ = say(fails(), second) }
        for hour in 1..<3 as Range<UInt64> { _ = say(fails(), hour, about: "B") }
        #expect(say(answers, 86_400) == "A answers again (before, 1 line of this was not written)")
    }

    @Test mutating func anotherSubjectIsAnotherMatter() {
        for second in 0..<20 as Range<UInt64> { _ = say(fails(), second) }
        #expect(say(fails(), 21, about: "B") == "A fails: silent")
    }

    @Test mutating func aFewLinesInALongTimeAreAllSaid() {
        for hour in 0..<24 as Range<UInt64> { #expect(say(fails(), hour * 3600) == "A fails: silent") }
    }

    @Test mutating func itsMemoryIsBounded() {
        for number in 0..<LogThrottle.maximumSubjects {
            _ = say(fails(), 0, about: "\(number)")
        }
        // No window of its own: said, however often.
        for _ in 0..<20 { #expect(say(fails(), 1, about: "one more") == "A fails: silent") }
        // The others' windows have ended: it gets one.
        for _ in 0..<5 { #expect(say(fails(), 600, about: "one more") == "A fails: silent") }
        #expect(say(fails(), 600, about: "one more") == "A fails: silent" + Self.counted)
        #expect(say(fails(), 600, about: "one more") == nil)
    }

    @Test func whatHasNoSubjectIsAlwaysSaid() {
        let lines = LogLines()
        let report = lines.report
        for _ in 0..<9 { report.say(.warning, .networkGone, about: "network", "the network is gone") }
        #expect(lines.all.count == LogThrottle.allowance)
        report.stopping("SIGTERM")
        #expect(lines.all.last == "notice stopping: SIGTERM")
    }
}
