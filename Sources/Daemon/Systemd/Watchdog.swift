import Base
import Dispatch
import Log
import Logging
import Synchronization
import Transport

/// Regularly tells the service manager that the daemon is well, and gives it a line about the state.
///
/// The daemon is well when each queue on which answers depend makes progress, and a question of its own is answered.
/// (The queue of the cache's file does not count: a disk may hang without any effect on clients.) If the manager does
/// not expect signs of life, only the line is kept up to date.
///
/// `@unchecked Sendable`: confined to its queue.
final class Watchdog: @unchecked Sendable {
    /// The parts of the daemon that it observes; each result comes on any queue.
    struct Sources: Sendable {
        /// Whether every queue makes progress; if the result does not come, one does not.
        let liveness: @Sendable (@escaping @Sendable (Bool) -> Void) -> Void
        /// The state of the daemon in a line.
        let headline: @Sendable (@escaping @Sendable (String) -> Void) -> Void
        /// How many answers were sent to clients: while the number grows, a lost question of our own proves nothing,
        /// since it may be due to a flood.
        let repliesSent: @Sendable () -> UInt64
    }

    private let queue = DispatchQueue(label: "httpdnsd.watchdog", qos: .userInitiated)
    private let timer: any DispatchSourceTimer
    private let sources: Sources
    private let report: Report
    private let isWatched: Bool
    /// Milliseconds between two rounds.
    private let period: Int
    private var selfQuery: SelfQuery
    private var lastReplies: UInt64 = 0
    private var saidImpossible = false
    private var isWithheld = false
    private var headline = ""
    private var headlineSaidAt: UInt64 = 0

    /// The line is sent at most once in this many milliseconds.
    private static let headlinePeriod = 10_000
    /// The milliseconds for the question, and again for the queues, so that a round ends before the next.
    private var share: Int { max(1, period * 2 / 5) }

    /// Nil if there is no service manager.
    /// - Parameter listening: the endpoints of the daemon.
    init?(listening: [Endpoint], _ sources: Sources, report: Report) {
        guard ServiceManager.isPresent else { return nil }
        let limit = ServiceManager.watchdogMicroseconds
        isWatched = limit != nil
        // Half of the manager's limit, as sd_watchdog_enabled(3) advises.
        period = min(limit.map { max(1, Int($0 / 2000)) } ?? .max, Self.headlinePeriod)
        selfQuery = SelfQuery(listening)
        (self.sources, self.report) = (sources, report)
        timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now(), repeating: .milliseconds(period), leeway: .milliseconds(period / 20))
        timer.setEventHandler { [unowned self] in round() }
    }

    func start() { timer.activate() }

    /// May be called from any thread. A round under way ends by itself.
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
            // In the remaining time it may turn out that the queue was only busy.
        } while !answer.isTurning.load(ordering: .relaxed) && .now() < end
        return answer.isTurning.load(ordering: .relaxed)
    }

    private final class Answer: Sendable {
        let arrived = DispatchSemaphore(value: 0)
        let isTurning = Atomic(false)
    }

    private func say(_ line: String) {
        let now = Clock.now()
        // A round may come a little early.
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
            .error, .watchdogWithheld, about: "watchdog",
            "the service manager is not told that all is well, and restarts the daemon unless that passes: \(reason)",
            ["reason": reason])
    }

    func selfQueryIsImpossible() {
        log.notice("no address to ask questions of the daemon's own at: the watchdog looks at the queues alone")
    }
}
