import Synchronization
package import Transport

/// Writes the daemon's log lines. Each line is a function in an extension that stands beside its subject, called when a
/// state changes and never for each query. No query names, no client addresses, no secrets.
package struct Report: Sendable {
    /// For lines that are no events, and are always written.
    package let log: Logger
    private let throttle = Throttle()

    /// Shared by all threads.
    private final class Throttle: Sendable {
        let state = Mutex(LogThrottle())
    }

    /// - Parameter log: where the lines go.
    package init(log: Logger) { self.log = log }

    /// Logs a line about something that may change back and forth.
    /// - Parameters:
    ///   - subject: The thing that changes: too many lines about the same one are counted instead. Nil for the
    ///     result of an operator's command, which is always written.
    ///   - fields: For programs; names in camelCase.
    package func say(
        _ level: Logger.Level, _ event: LogEventID, about subject: String? = nil, _ text: String,
        _ fields: [String: String] = [:]
    ) {
        var fields = fields
        fields["event"] = event.name
        guard let subject else { return log.log(level, text, fields) }
        // The lock is held while the line is written, so lines stand in the order in which they were decided on.
        throttle.state.withLock { throttle in
            guard let note = throttle.take(about: subject, at: Clock.now()) else { return }
            if note.missing > 0 { fields["repeated"] = "\(note.missing)" }
            log.log(level, text + note.text, fields)
        }
    }

    /// - Parameter meaning: what it means for clients or the operator.
    package func systemFailed(_ meaning: String, _ error: SystemError) {
        say(.error, .systemFailed, about: "\(error.call) \(error.subject)", "\(meaning): \(error)")
    }

    /// The same for what may fail later.
    package func systemFailed(_ meaning: String) -> @Sendable (SystemError) -> Void {
        { [self] error in systemFailed(meaning, error) }
    }

    /// Says that the daemon ends, for instance because of `SIGTERM`.
    package func stopping(_ reason: String) {
        say(.notice, .stopping, "stopping: \(reason)", ["reason": reason])
    }
}
