import Base
package import Configuration
package import Counters
import DNSCache
import Dispatch
import Forwarding
package import Synchronization
import Transport

/// Goes round the daemon's queues and asks each for what it alone knows. Nothing waits for it, and no query is held up
/// by more than a few copies.
package final class Observer: Sendable {
    /// What it asks of the daemon.
    package struct Sources: Sendable {
        /// Hands over an overview in which stands what the queues alone know; on one of them, and not at all when one
        /// is stuck or has ended.
        let describe: @Sendable (_ done: @escaping @Sendable (Overview) -> Void) -> Void
        /// For each queue that a query may pass: calls back as soon as that one turns.
        let queues: [@Sendable (_ turned: @escaping @Sendable () -> Void) -> Void]
        /// What each listener has counted.
        let doors: [Tally]
        /// What was counted of the answers that did not come from a listener.
        let forwarderLoop: Tally
        /// Lines of the log that were lost since the start; from any thread.
        let logLinesLost: @Sendable () -> UInt64

        package init(
            describe: @escaping @Sendable (_ done: @escaping @Sendable (Overview) -> Void) -> Void,
            queues: [@Sendable (_ turned: @escaping @Sendable () -> Void) -> Void], doors: [Tally],
            forwarderLoop: Tally,
            logLinesLost: @escaping @Sendable () -> UInt64
        ) {
            (self.describe, self.queues, self.doors, self.forwarderLoop) = (describe, queues, doors, forwarderLoop)
            self.logLinesLost = logLinesLost
        }
    }

    private let sources: Sources
    private let cacheLimit: Int
    private let startedAt = WallClock.unixSeconds()
    private let isStopping = Atomic(false)
    package let reloads = Mutex(Reloads(at: WallClock.unixSeconds()))

    /// How long a queue may take to answer before it counts as stuck.
    static let patience = DispatchTimeInterval.seconds(1)

    package init(_ settings: Settings, _ sources: Sources) {
        self.sources = sources
        cacheLimit = settings.cache.megabytes << 20
    }

    /// The daemon takes no more questions from now on.
    package func stopping() { isStopping.store(true, ordering: .relaxed) }

    /// - Parameter done: called on a queue of the daemon's; not at all when that is stuck or has ended.
    package func overview(_ done: @escaping @Sendable (Overview) -> Void) {
        sources.describe { [self] overview in
            var overview = overview
            complete(&overview)
            done(overview)
        }
    }

    /// What can be read from anywhere.
    private func complete(_ overview: inout Overview) {
        overview.at = Tick(nanoseconds: Clock.now())
        (overview.startedAt, overview.now) = (startedAt, WallClock.unixSeconds())
        overview.isStopping = isStopping.load(ordering: .relaxed)
        overview.cacheLimit = cacheLimit
        overview.logLinesLost = sources.logLinesLost()
        overview.reloads = reloads.withLock { $0 }
        let doors = sources.doors
        for transport in [Tally.Transport.udp, .tcp] {
            for isIPv4 in [true, false] {
                var questions = Overview.Questions(transport: transport, isIPv4: isIPv4)
                for door in doors where door.transport == transport {
                    for kind in 0..<QuestionKind.count {
                        questions.counts[kind] += door.asked(kind, fromIPv4: isIPv4)
                    }
                }
                overview.questions.append(questions)
            }
        }
        for tally in doors + [sources.forwarderLoop] {
            for kind in 0..<ResponseKind.count { overview.responses[kind] += tally.answered(kind) }
            tally.add(to: &overview.durations)
            overview.prefetches += tally.prefetches
        }
    }

    /// Questions since the start; from any thread.
    var asked: UInt64 { sources.doors.reduce(0) { $0 + $1.asked } }

    /// Whether every queue that a query may pass still turns.
    /// - Parameter done: called once, on any queue, after ``patience`` at the latest.
    package func liveness(_ done: @escaping @Sendable (Bool) -> Void) {
        let round = Round(waiting: sources.queues.count, done)
        for queue in sources.queues { queue { round.answered() } }
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience) { round.timeIsUp() }
    }

    /// Counts those who have answered, and says once what came of it.
    private final class Round: Sendable {
        private let state: Mutex<(waiting: Int, done: (@Sendable (Bool) -> Void)?)>

        init(waiting: Int, _ done: @escaping @Sendable (Bool) -> Void) { state = Mutex((waiting, done)) }

        func answered() {
            take { state in
                state.waiting -= 1
                return state.waiting == 0
            }?(true)
        }

        func timeIsUp() { take { _ in true }?(false) }

        private func take(
            when isOver: (inout (waiting: Int, done: (@Sendable (Bool) -> Void)?)) -> Bool
        ) -> (@Sendable (Bool) -> Void)? {
            state.withLock { state in
                guard isOver(&state) else { return nil }
                defer { state.done = nil }
                return state.done
            }
        }
    }
}
