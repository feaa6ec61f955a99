import Base
import Dispatch
import Log
import Logging
import Synchronization
import Transport

/// Tells the service manager, again and again, that all is well, and in a line how things stand.
///
/// All is well when each queue that answers depend on still turns, and a question of the daemon's own is answered. (The
/// queue of the cache's file is none of them: a disk may hang, and no client notices.) Where the manager does not
/// watch, only the line is kept up to date.
///
/// `@unchecked Sendable`: confined to its queue.
final class Watchdog: @unchecked Sendable {
    /// What it asks of the daemon; each answer comes on any queue.
    struct Sources: Sendable {
        /// Whether every queue still turns; an answer that does not come says that one does not.
        let liveness: @Sendable (@escaping @Sendable (Bool) -> Void) -> Void
        /// How things stand, in a line.
        let headline: @Sendable (@escaping @Sendable (String) -> Void) -> Void
        /// Answers that were given to whoever asked: as long as they become more, a question of our own that is lost in
        /// a flood proves nothing.
        let repliesSent: @Sendable () -> UInt64
    }

    private let queue = DispatchQueue(label: "httpdnsd.watchdog", qos: .userInitiated)
    private let timer: any DispatchSourceTimer
    private let sources: Sources
    private let report: Report
    private let isWatched: Bool
    /// Milliseconds between rounds.
    private let period: Int
    private var selfQuery: SelfQuery
    private var lastReplies: UInt64 = 0
    private var saidImpossible = false
    private var isWithheld = false
    private var headline = ""
    private var headlineSaidAt: UInt64 = 0

    /// The line is said anew once in so many milliseconds at most.
    private static let headlinePeriod = 10_000
    /// The milliseconds that the question may take, and the queues after it: then a round is over before the next.
    private var share: Int { max(1, period * 2 / 5) }

    /// Nil where there is no service manager.
    /// - Parameter listening: where the daemon answers.
    init?(listening: [Endpoint], _ sources: Sources, report: Report) {
        guard ServiceManager.isPresent else { return nil }
        let limit = ServiceManager.watchdogMicroseconds
        isWatched = limit != nil
        // Half of the manager's patience, as sd_watchdog_enabled(3) advises.
        period = min(limit.map { max(1, Int($0 / 2000)) } ?? .max, Self.headlinePeriod)
        selfQuery = SelfQuery(listening)
        (self.sources, self.report) = (sources, report)
        timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now(), repeating: .milliseconds(period), leeway: .milliseconds(period / 20))
        timer.setEventHandler { [unowned self] in round() }
    }

    func start() { timer.activate() }

    /// From any thread. A round that is under way ends by itself.
    func stop() { timer.cancel() }

    private func round() {
        if isWatched { watch() }
        // It lives as long as the daemon, and that as long as the process.
        sources.headline { [self] line in queue.async { [self] in say(line) } }
    }

    private func watch() {
        let isAnswered = isSelfQueryAnswered()
        let isTurning = isEveryQueueTurning(until: .now() + .milliseconds(share))
        let isWell = isAnswered && isTurning
        if isWell {
            ServiceManager.isAlive()
        } else if !isWithheld {
            report.watchdogWithheld(isTurning: isTurning, isAnswered: isAnswered)
        }
        isWithheld = !isWell
    }

    private func isSelfQueryAnswered() -> Bool {
        let outcome = selfQuery.ask(within: share)
        let replies = sources.repliesSent()
        defer { lastReplies = replies }
        switch outcome {
        case .answered: return true
        case .unanswered: return replies != lastReplies
        case .impossible:
            if !saidImpossible { report.selfQueryIsImpossible() }
            saidImpossible = true
            return true
        }
    }

    private func isEveryQueueTurning(until end: DispatchTime) -> Bool {
        let answer = Answer()
        repeat {
            sources.liveness { [answer] isTurning in
                answer.isTurning.store(isTurning, ordering: .relaxed)
                answer.arrived.signal()
            }
            guard answer.arrived.wait(timeout: end) == .success else { return false }
            // Else the time that is left may still show that it was only busy.
        } while !answer.isTurning.load(ordering: .relaxed) && .now() < end
        return answer.isTurning.load(ordering: .relaxed)
    }

    private final class Answer: Sendable {
        let arrived = DispatchSemaphore(value: 0)
        let isTurning = Atomic(false)
    }

    private func say(_ line: String) {
        let now = Clock.now()
        // A round that comes a little early is one all the same.
        let isDue = headline.isEmpty || now - headlineSaidAt >= UInt64(Self.headlinePeriod * 9 / 10) * 1_000_000
        guard isDue, line != headline else { return }
        (headline, headlineSaidAt) = (line, now)
        ServiceManager.status(line)
    }
}

extension Report {
    func watchdogWithheld(isTurning: Bool, isAnswered: Bool) {
        let queues = isTurning ? nil : "a queue stands still"
        let question = isAnswered ? nil : "a question of the daemon's own is not answered"
        let reason = [queues, question].compactMap { $0 }.joined(separator: ", and ")
        say(
            .error, .watchdogWithheld, about: "watchdog", "the service manager is not told that all is well: \(reason)",
            ["reason": reason])
    }

    func selfQueryIsImpossible() {
        log.notice("no address to ask questions of the daemon's own at: the watchdog looks at the queues alone")
    }
}
