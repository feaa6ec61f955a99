import Base
import HTTPDNS
import Testing

@testable import Upstreams

/// The decisions about the list of service addresses, in invented time.
@Suite struct ServiceListScheduleTests {
    /// The schedule, its time in milliseconds, and its actions.
    private final class Clockwork {
        var schedule: ServiceListSchedule
        /// A start long after the machine's start.
        private static let start = Tick(nanoseconds: 5_000_000_000_000)
        private(set) var now = 0

        init(servers: Int) { schedule = ServiceListSchedule(servers: servers, at: Self.start) }

        private var tick: Tick { Self.start.advanced(milliseconds: now) }

        func actions() -> [ServiceListSchedule.Action] {
            defer { schedule.actions = [] }
            return schedule.actions
        }

        /// Lets time pass to the next deadline, and returns its millisecond and its actions.
        func next() -> (at: Int, actions: [ServiceListSchedule.Action]) {
            now = schedule.nextDeadline.milliseconds(since: Self.start)
            schedule.expire(at: tick)
            return (now, actions())
        }

        func pass(_ milliseconds: Int) -> [ServiceListSchedule.Action] {
            now += milliseconds
            schedule.expire(at: tick)
            return actions()
        }

        func answer(_ addresses: [IPAddress], minutes: Int = 60) -> [ServiceListSchedule.Action] {
            schedule.answered(ServiceConfiguration(addresses: addresses, ttlMinutes: minutes), at: tick)
            return actions()
        }

        func fail() -> [ServiceListSchedule.Action] {
            schedule.failed(at: tick)
            return actions()
        }

        func askSoon() { schedule.askSoon(at: tick) }
    }

    private let list = [IPAddress.v4(192, 0, 2, 98), .v4(192, 0, 2, 99)]

    @Test func theFirstRoundBeginsAtOnceAndAnAnswerHoldsForItsTime() {
        let clockwork = Clockwork(servers: 2)
        #expect(clockwork.next() == (0, [.ask(0)]))
        #expect(clockwork.answer(list, minutes: 7) == [.use(list, from: 0)])
        #expect(clockwork.next() == (7 * 60_000, [.ask(0)]))
        #expect(clockwork.answer([], minutes: 1440) == [.use([], from: 0)])
        #expect(clockwork.next() == ((7 + 1440) * 60_000, [.ask(0)]))
    }

    @Test func eachServerIsAskedTwiceForTwoSecondsInOrder() {
        let clockwork = Clockwork(servers: 2)
        #expect(clockwork.next() == (0, [.ask(0)]))
        #expect(clockwork.next() == (2000, [.cancel, .ask(0)]))
        #expect(clockwork.next() == (4000, [.cancel, .ask(1)]))
        #expect(clockwork.next() == (6000, [.cancel, .ask(1)]))
        #expect(clockwork.next() == (8000, [.cancel, .giveUp]))
        #expect(clockwork.next() == (8000 + 5 * 60_000, [.ask(0)]))
    }

    @Test func aFailureIsFollowedByTheNextAttemptAtOnce() {
        let clockwork = Clockwork(servers: 2)
        #expect(clockwork.next() == (0, [.ask(0)]))
        #expect(clockwork.fail() == [.ask(0)])
        #expect(clockwork.fail() == [.ask(1)])
        // The second attempt has its own two seconds.
        #expect(clockwork.pass(1999) == [])
        #expect(clockwork.fail() == [.ask(1)])
        #expect(clockwork.pass(1999) == [])
        #expect(clockwork.answer(list, minutes: 1) == [.use(list, from: 1)])
        #expect(clockwork.pass(59_999) == [])
        #expect(clockwork.pass(1) == [.ask(0)])
    }

    @Test func nothingIsDoneBeforeItsTime() {
        let clockwork = Clockwork(servers: 1)
        #expect(clockwork.next() == (0, [.ask(0)]))
        #expect(clockwork.pass(1) == [])
        #expect(clockwork.answer(list) == [.use(list, from: 0)])
        // An answer that no request has asked for.
        #expect(clockwork.answer([]) == [])
        #expect(clockwork.fail() == [])
    }

    @Test func aChangeAsksAnewButNotMoreThanTwiceAMinute() {
        let clockwork = Clockwork(servers: 1)
        #expect(clockwork.next() == (0, [.ask(0)]))
        #expect(clockwork.answer(list) == [.use(list, from: 0)])
        #expect(clockwork.pass(40_000) == [])
        clockwork.askSoon()
        #expect(clockwork.next() == (40_000, [.ask(0)]))
        #expect(clockwork.answer(list) == [.use(list, from: 0)])
        for _ in 0..<100 { clockwork.askSoon() }
        #expect(clockwork.next() == (70_000, [.ask(0)]))
        #expect(clockwork.answer(list, minutes: 60) == [.use(list, from: 0)])
        // No request waits any more.
        #expect(clockwork.next() == (70_000 + 3_600_000, [.ask(0)]))
    }

    @Test func aChangeDuringARoundIsNotForgotten() {
        let clockwork = Clockwork(servers: 1)
        #expect(clockwork.next() == (0, [.ask(0)]))
        clockwork.askSoon()
        #expect(clockwork.fail() == [.ask(0)])
        #expect(clockwork.fail() == [.giveUp])
        #expect(clockwork.next() == (30_000, [.ask(0)]))
        #expect(clockwork.fail() == [.ask(0)])
        #expect(clockwork.fail() == [.giveUp])
        #expect(clockwork.next() == (330_000, [.ask(0)]))
    }

    @Test func aChangeDoesNotPutOffWhatIsDueBefore() {
        let clockwork = Clockwork(servers: 1)
        #expect(clockwork.next() == (0, [.ask(0)]))
        #expect(clockwork.answer(list, minutes: 1) == [.use(list, from: 0)])
        #expect(clockwork.pass(59_000) == [])
        clockwork.askSoon()
        #expect(clockwork.next() == (59_000, [.ask(0)]))
        #expect(clockwork.answer(list, minutes: 1) == [.use(list, from: 0)])
        clockwork.askSoon()
        #expect(clockwork.next() == (89_000, [.ask(0)]))
    }
}
