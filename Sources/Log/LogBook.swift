import Dispatch
import Logging
import Synchronization
import Transport

/// Says lines about what changes, unless they repeat themselves; those it holds are said when their time has come, by a
/// timer that there is only while something is held.
final class LogBook: Sendable {
    private let log: Logger
    private let state = Mutex(State())

    private struct State {
        var throttle = LogThrottle()
        var isTimerSet = false
    }

    init(_ log: Logger) { self.log = log }

    /// - Parameter subject: nil: it is said, however often.
    func say(_ line: LogLine, about subject: String?) {
        guard let subject else { return write(line) }
        // Said within the lock, so that lines stand in the order in which they were decided on.
        state.withLock { state in
            for line in state.throttle.take(line, about: subject, at: Clock.now()) { write(line) }
            setTimer(&state)
        }
    }

    /// Says what is held, for there will be no later.
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
