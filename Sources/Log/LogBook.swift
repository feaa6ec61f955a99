import Dispatch
import Logging
import Synchronization
import Transport

/// Writes log lines about changes, and holds back those that repeat too often; those are written when their time has
/// come, by a timer that exists only while lines are held.
final class LogBook: Sendable {
    private let log: Logger
    private let state = Mutex(State())

    private struct State {
        var throttle = LogThrottle()
        var isTimerSet = false
    }

    init(_ log: Logger) { self.log = log }

    /// - Parameter subject: what the line is about, see ``LogThrottle``; nil: the line is always written.
    func say(_ line: LogLine, about subject: String?) {
        guard let subject else { return write(line) }
        // Written within the lock, so that lines stand in the order in which they were decided on.
        state.withLock { state in
            for line in state.throttle.take(line, about: subject, at: Clock.now()) { write(line) }
            setTimer(&state)
        }
    }

    /// Writes the lines that are held, at the end of the program.
    func close() {
        state.withLock { state in
            for line in state.throttle.expire(at: .max) { write(line) }
        }
    }

    private func write(_ line: LogLine) {
        log.log(level: line.level, "\(line.text)", metadata: line.metadata)
    }

    private func setTimer(_ state: inout State) {
        guard !state.isTimerSet, let deadline = state.throttle.nextDeadline else { return }
        state.isTimerSet = true
        let now = Clock.now()
        let wait = deadline > now ? deadline - now : 0
        DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + .nanoseconds(Int(wait))) { [weak self] in
            self?.state.withLock { state in
                state.isTimerSet = false
                for line in state.throttle.expire(at: Clock.now()) { self?.write(line) }
                self?.setTimer(&state)
            }
        }
    }
}
