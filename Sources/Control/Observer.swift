import Base
package import Configuration
package import Counters
import Dispatch
import Synchronization
import Transport

/// Collects an observation from the forwarder's loop and the tallies of all queues. No caller is blocked, and no query
/// waits longer than a few copies take.
package final class Observer: Sendable {
    /// A queue on the path of queries. `ping` calls `turned` as soon as the queue makes a turn; `progress` increases
    /// while the queue makes turns. Both may be called from any thread.
    package typealias Queue = (
        ping: @Sendable (_ turned: @escaping @Sendable () -> Void) -> Void, progress: @Sendable () -> UInt64
    )

    /// Calls `done` with an observation that has the parts known only to the forwarder's loop; on that loop, and never
    /// if it is stuck or has ended.
    private let describe: @Sendable (_ done: @escaping @Sendable (Observation) -> Void) -> Void
    /// Makes the daemon find out by a question of its own whether servers answer, if that is uncertain, for a later
    /// request. May be called from any thread.
    let checkReadiness: @Sendable () -> Void
    private let queues: [Queue]
    /// The counts of each listener.
    private let listeners: [Tally]
    /// The counts of the answers that did not come from a listener.
    private let forwarderLoop: Tally
    /// Returns the number of log lines lost since the start; may be called from any thread.
    private let logLinesLost: @Sendable () -> UInt64
    private let cacheLimit: Int
    private let started = Mutex(StartTime.now)
    private let hasToStop = Atomic(false)
    private let reloads = Mutex(Reloads())
    /// When the settings in effect were read.
    private let settled = Mutex(StartTime.now)

    /// How long a queue may take to answer before it counts as stuck.
    static let patience = DispatchTimeInterval.seconds(1)

    package init(
        _ settings: Settings, describe: @escaping @Sendable (_ done: @escaping @Sendable (Observation) -> Void) -> Void,
        checkReadiness: @escaping @Sendable () -> Void, queues: [Queue], listeners: [Tally], forwarderLoop: Tally,
        logLinesLost: @escaping @Sendable () -> UInt64
    ) {
        (self.describe, self.checkReadiness, self.queues) = (describe, checkReadiness, queues)
        (self.listeners, self.forwarderLoop, self.logLinesLost) = (listeners, forwarderLoop, logLinesLost)
        cacheLimit = settings.cache.megabytes << 20
    }

    /// Notes that the daemon takes no more questions from now on.
    package func stopping() { hasToStop.store(true, ordering: .relaxed) }

    /// Whether the daemon takes no more questions, and queues end. From any thread.
    var isStopping: Bool { hasToStop.load(ordering: .relaxed) }

    /// Notes a reload.
    /// - Parameter failure: Why it was refused; nil if its settings are in effect.
    package func reloaded(failure: String?) {
        reloads.withLock {
            $0.lastFailure = failure
            if failure == nil { $0.succeeded += 1 } else { $0.failed += 1 }
        }
        if failure == nil { settled.withLock { $0 = .now } }
    }

    /// - Parameter done: Called on the forwarder's loop; never if it is stuck or has ended.
    package func observe(_ done: @escaping @Sendable (Observation) -> Void) {
        describe { [self] observation in
            var observation = observation
            complete(&observation)
            done(observation)
        }
    }

    /// Adds the parts that can be read on any thread.
    private func complete(_ observation: inout Observation) {
        let (now, wall) = (Clock.now(), WallClock.unixSeconds())
        observation.at = Tick(nanoseconds: now)
        (observation.startedAt, observation.now) = (started.withLock { $0.unixSeconds(at: now, wall: wall) }, wall)
        observation.isStopping = isStopping
        observation.cacheLimit = cacheLimit
        observation.logLinesLost = logLinesLost()
        observation.reloads = reloads.withLock { $0 }
        observation.reloads.lastSuccess = settled.withLock { $0.unixSeconds(at: now, wall: wall) }
        observation.add(listeners, forwarderLoop)
    }

    /// Whether each queue on the path of queries answers, or at least makes progress: a queue that gives way is slow to
    /// answer while processors are scarce.
    /// - Parameter done: Called once, on any queue, after ``patience`` at the latest.
    package func liveness(_ done: @escaping @Sendable (Bool) -> Void) {
        let round = Round(queues, done)
        for (number, queue) in queues.enumerated() { queue.ping { round.answered(number) } }
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience) { round.timeIsUp() }
    }

    /// The queues that have not answered yet. A round reports its result once.
    private final class Round: Sendable {
        private struct State {
            var waiting: [Int: (queue: Queue, progress: UInt64)]
            /// Nil once called: the timer keeps the round for ``patience``, and must not keep the caller.
            var done: (@Sendable (Bool) -> Void)?
        }
        private let state: Mutex<State>

        init(_ queues: [Queue], _ done: @escaping @Sendable (Bool) -> Void) {
            let waiting = queues.enumerated().map { ($0, (queue: $1, progress: $1.progress())) }
            state = Mutex(State(waiting: Dictionary(uniqueKeysWithValues: waiting), done: done))
        }

        func answered(_ number: Int) {
            take { state in
                state.waiting[number] = nil
                return state.waiting.isEmpty ? true : nil
            }
        }

        func timeIsUp() { take { $0.waiting.values.allSatisfy { $0.queue.progress() != $0.progress } } }

        /// - Parameter result: Returns the result; nil if it is unknown so far.
        private func take(_ result: (inout State) -> Bool?) {
            let callback = state.withLock { state in
                result(&state).flatMap { result in
                    defer { state.done = nil }
                    return state.done.map { done in { done(result) } }
                }
            }
            callback?()
        }
    }
}

extension StartTime {
    fileprivate static var now: StartTime { StartTime(at: Clock.now(), wall: WallClock.unixSeconds()) }
}
