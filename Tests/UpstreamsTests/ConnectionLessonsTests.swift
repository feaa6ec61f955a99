import Base
import Streams
import Testing

@testable import Upstreams

/// The lessons from the ends of connections, and the fates of their queries: values, in invented time.
@Suite struct ConnectionLessonsTests {
    private static func at(_ seconds: Double) -> Tick { Tick(nanoseconds: UInt64(seconds * 1e9)) }

    /// The connections of a server, opened one after the other.
    private struct Story {
        var lessons = ConnectionLessons(StreamLimits(idleTime: 25_000_000_000))
        var serial = 0

        mutating func close(answers: Int, isClean: Bool = true, isAgain: Bool = false, at seconds: Double) {
            serial += 1
            lessons.take(
                ConnectionLessons.Close(answers: answers, isClean: isClean, isAgain: isAgain), of: serial,
                newest: serial,
                at: ConnectionLessonsTests.at(seconds))
        }

        func queries(at seconds: Double) -> Int {
            lessons.queriesPerConnection(at: ConnectionLessonsTests.at(seconds))
        }
    }

    /// A lesson holds for ten minutes, its limit may rise again, and another network ends it.
    @Test func whatIsLearnedIsForgotten() {
        var story = Story()
        for seconds in [10.0, 20] { story.close(answers: 20, at: seconds) }
        #expect(story.queries(at: 619) == 20 && story.queries(at: 621) == .max)
        for seconds in [630.0, 640] { story.close(answers: 100, at: seconds) }
        #expect(story.queries(at: 641) == 100)
        story.lessons.forget()
        #expect(story.queries(at: 641) == .max)
        // An earlier end does not count as the first of two.
        story.close(answers: 100, at: 650)
        #expect(story.queries(at: 650) == .max)
    }

    /// A restart closes several connections at once.
    @Test func closesOfOneRestartAreOne() {
        var lessons = ConnectionLessons(StreamLimits(idleTime: 25_000_000_000))
        for serial in 1...2 {
            lessons.take(ConnectionLessons.Close(answers: 50), of: serial, newest: 2, at: Self.at(10))
        }
        #expect(lessons.queriesPerConnection(at: Self.at(10)) == .max)
        lessons.take(ConnectionLessons.Close(answers: 50), of: 3, newest: 3, at: Self.at(20))
        #expect(lessons.queriesPerConnection(at: Self.at(20)) == 50)
    }

    /// Where each connection is opened before the end of the one before, as while queries wait, the ends are
    /// independent all the same.
    @Test func connectionsThatOverlap() {
        var lessons = ConnectionLessons(StreamLimits(idleTime: 25_000_000_000))
        for serial in 1...3 {
            #expect(lessons.queriesPerConnection(at: Self.at(10)) == .max)
            lessons.take(ConnectionLessons.Close(answers: 1), of: serial, newest: serial + 1, at: Self.at(10))
        }
        #expect(lessons.queriesPerConnection(at: Self.at(10)) == 1)
    }

    /// Ends that are days apart are independent.
    @Test func closesFarApartShowNothing() {
        var story = Story()
        story.close(answers: 30, at: 10)
        story.close(answers: 30, at: 700)
        #expect(story.queries(at: 700) == .max)
        story.close(answers: 30, at: 710)
        #expect(story.queries(at: 710) == 30)
    }

    /// Answers on two connections, the most queries on a connection after that, and for how many seconds.
    @Test(arguments: [
        (100, 100, 100, 600), (100, 95, 95, 600), (100, 50, Int.max, 0), (8, 8, 8, 600), (7, 7, 7, 10), (1, 1, 1, 10),
        (1, 2, .max, 0), (0, 0, .max, 0),
    ])
    func twoClosesThatAreAlikeShowTheLimitOfQueries(first: Int, second: Int, most: Int, seconds: Double) {
        var story = Story()
        story.close(answers: first, at: 10)
        #expect(story.queries(at: 10) == .max)
        story.close(answers: second, at: 11)
        #expect(story.queries(at: 11) == most)
        if seconds > 0 { #expect(story.queries(at: 10.9 + seconds) == most && story.queries(at: 11 + seconds) == .max) }
    }

    /// Whether the connections were closed cleanly, whether the second one took a query that had been lost before, and
    /// for how many seconds connections get no more queries then. Resets count if they take the answer from a query,
    /// and never for long.
    @Test(arguments: [
        (true, true, false, 600), (true, true, true, 600), (true, false, false, 0), (false, true, false, 0),
        (false, false, false, 0), (true, false, true, 10), (false, true, true, 10), (false, false, true, 10),
    ])
    func resetsTeachWhatQueriesAreLostToAgain(first: Bool, second: Bool, isAgain: Bool, seconds: Double) {
        var story = Story()
        story.close(answers: 50, isClean: first, at: 10)
        story.close(answers: 50, isClean: second, isAgain: isAgain, at: 11)
        let most = seconds > 0 ? 50 : Int.max
        #expect(story.queries(at: 11) == most && story.queries(at: 10.9 + seconds) == most)
        #expect(story.queries(at: 11 + seconds) == .max)
    }

    /// One reset shows nothing, nor do two different ones; and a clean close before it still counts.
    @Test func oneResetShowsNothing() {
        var story = Story()
        story.close(answers: 1, isClean: false, isAgain: true, at: 10)
        #expect(story.queries(at: 10) == .max)
        story.close(answers: 2, isClean: false, isAgain: true, at: 11)
        #expect(story.queries(at: 11) == .max)
        story.close(answers: 100, at: 20)
        story.close(answers: 100, isClean: false, at: 21)
        story.close(answers: 100, at: 22)
        #expect(story.queries(at: 621) == 100)
    }

    // MARK: What is lost

    /// The losses of a query beside answers, its losses without any answer, the answers on the ended connection, and
    /// whether the query is sent again: a server that has answered gets further tries, a silent server gets one.
    @Test(arguments: [
        (0, 0, 0, true), (0, 1, 0, false), (1, 0, 0, true), (1, 2, 0, true), (1, 3, 0, false), (2, 0, 5, true),
        (2, 3, 1, true),
        (3, 0, 0, true), (3, 0, 1, false), (0, 1, 1, true),
    ])
    func lossesWithoutAnyAnswerCountApart(answered: Int, unanswered: Int, answers: Int, isAgain: Bool) {
        func goesOutAgain(after end: LinkEnd = .closedByPeer, isAlone: Bool = false) -> Bool {
            var query = PlannedQuery(at: Self.at(10))
            (query.losses, query.unanswered) = (answered + unanswered, unanswered)
            return query.goesOutAgain(after: end, answers: answers, isAlone: isAlone)
        }
        #expect(goesOutAgain() == isAgain)
        #expect(goesOutAgain(isAlone: true) == (answers > 0 ? isAgain : answered + unanswered == 0))
        #expect(goesOutAgain(after: .tooSlow) == isAgain)
        #expect(goesOutAgain(after: .protocolBroken("")) == (answered + unanswered == 0))
    }
}
