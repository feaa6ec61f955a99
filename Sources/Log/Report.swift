package import Base
import Synchronization
package import Transport

/// Writes the daemon's log lines. Each line is a function in an extension beside its subject, which calls the function
/// when a state changes and never for each query. Lines have no query names, no client addresses and no secrets.
package final class Report: Sendable {
    /// Takes lines that are no events, and are always written.
    package let log: Logger
    private let throttle = Mutex(LogThrottle())

    /// - Parameter log: The destination of the lines.
    package init(log: Logger) { self.log = log }

    /// Logs a line about a state that may alternate.
    /// - Parameters:
    ///   - subject: The thing that changes. Too many lines about one thing are counted instead. Nil for the result of
    ///     an operator's command, whose line is always written.
    ///   - fields: The fields for programs; names in camelCase.
    package func say(
        _ level: LogLevel, _ event: LogEventID, about subject: String? = nil, _ text: String,
        _ fields: [String: String] = [:]
    ) {
        var fields = fields
        fields["event"] = event.name
        guard let subject else { return log.log(level, text, fields) }
        // The line is written under the lock, so lines are in the order of the decisions.
        throttle.withLock { throttle in
            guard let note = throttle.take(about: subject, at: Clock.now()) else { return }
            if note.missing > 0 { fields["repeated"] = "\(note.missing)" }
            log.log(level, text + note.text, fields)
        }
    }

    /// - Parameter meaning: The effect on clients or the operator.
    package func systemFailed(_ meaning: String, _ error: SystemError) {
        say(.error, .systemFailed, about: "\(error.call) \(error.subject)", "\(meaning): \(error)")
    }

    /// Reports a call that may fail later.
    package func systemFailed(_ meaning: String) -> @Sendable (SystemError) -> Void {
        { [self] error in systemFailed(meaning, error) }
    }

    /// Logs the end of the daemon, for instance because of `SIGTERM`.
    package func stopping(_ reason: String) {
        say(.notice, .stopping, "stopping: \(reason)", ["reason": reason])
    }
}
