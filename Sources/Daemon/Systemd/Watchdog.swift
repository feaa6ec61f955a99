import Base
import Dispatch
import Log
import Transport

/// Regularly signals to the service manager that the daemon is well, with a line about the state.
///
/// The daemon is well when each queue on which answers depend makes progress. (The queue of the cache's file does not
/// count: a disk may hang without any effect on clients.) If the manager expects no signs of life, only the line is
/// updated.
///
/// `@unchecked Sendable`: confined to its queue.
final class Watchdog: @unchecked Sendable {
    /// The parts of the daemon that it observes; each result comes on any queue.
    struct Sources: Sendable {
        /// Whether each queue makes progress: true as soon as it is known, false after a second.
        let liveness: @Sendable (@escaping @Sendable (Bool) -> Void) -> Void
        /// The state of the daemon in a line.
        let headline: @Sendable (@escaping @Sendable (String) -> Void) -> Void
    }

    private let queue = DispatchQueue(label: "httpdnsd.watchdog", qos: .userInitiated)
    private let timer: any DispatchSourceTimer
    private let sources: Sources
    private let report: Report
    /// Sends the manager a sign of life; nil if it expects none.
    private let isAlive: (@Sendable () -> Void)?
    /// Whether a check of the queues is under way; it ends when all of them turn.
    private var isLooking = false
    private var hasEnded = false
    private var isWithheld = false
    private var headline = ""
    private var headlineSentAt: UInt64 = 0

    /// The line is sent at most once in this many milliseconds.
    private static let headlinePeriod = 10_000

    /// Nil if there is no service manager.
    convenience init?(_ sources: Sources, report: Report) {
        guard ServiceManager.isPresent else { return nil }
        let limit = ServiceManager.watchdogMicroseconds
        // Half of the manager's limit, as sd_watchdog_enabled(3) advises.
        let period = min(limit.map { max(1, Int($0 / 2000)) } ?? .max, Self.headlinePeriod)
        self.init(sources, period: period, isAlive: limit == nil ? nil : ServiceManager.isAlive, report: report)
    }

    /// - Parameters:
    ///   - period: Milliseconds between two signs of life.
    ///   - isAlive: Sends the manager a sign of life; nil if it expects none.
    init(_ sources: Sources, period: Int, isAlive: (@Sendable () -> Void)?, report: Report) {
        (self.sources, self.isAlive, self.report) = (sources, isAlive, report)
        timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now(), repeating: .milliseconds(period), leeway: .milliseconds(period / 20))
        timer.setEventHandler { [unowned self] in round() }
    }

    func start() { timer.activate() }

    /// May be called from any thread.
    func stop() {
        timer.cancel()
        queue.async { [self] in hasEnded = true }
    }

    private func round() {
        if isAlive != nil, !isLooking { look() }
        // It lives as long as the daemon, which lives as long as the process.
        sources.headline { [self] line in queue.async { [self] in say(line) } }
    }

    private func look() {
        isLooking = true
        sources.liveness { [self] isTurning in queue.async { [self] in looked(isTurning) } }
    }

    private func looked(_ isTurning: Bool) {
        isLooking = false
        // Queues that have ended at a stop make no progress.
        if hasEnded { return }
        if isTurning {
            isAlive?()
        } else {
            if !isWithheld { report.watchdogWithheld() }
            // At once, since a queue that was only busy may turn again before the manager's limit.
            look()
        }
        isWithheld = !isTurning
    }

    private func say(_ line: String) {
        let now = Clock.now()
        // A round may come a little early.
        let isDue = headline.isEmpty || now - headlineSentAt >= UInt64(Self.headlinePeriod * 9 / 10) * 1_000_000
        guard isDue, line != headline else { return }
        (headline, headlineSentAt) = (line, now)
        ServiceManager.status(line)
    }
}

extension Report {
    func watchdogWithheld() {
        let reason = "a queue stands still"
        say(
            .error, .watchdogWithheld, about: "watchdog",
            "the service manager is not told that all is well, and restarts the daemon unless that passes: \(reason)",
            ["reason": reason])
    }
}
