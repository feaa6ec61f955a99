package import Logging
package import Transport

/// Writes the daemon's log lines. Each line is a function in an extension that stands beside its subject, called when a
/// state changes and never for each query. No query names, no client addresses, no secrets.
package struct Report: Sendable {
    package let log: Logger
    private let book: LogBook

    package init(log: Logger) {
        self.log = log
        book = LogBook(log)
    }

    /// Logs a line about something that may change back and forth.
    /// - Parameters:
    ///   - subject: The thing that changes: too many lines about the same one are held back and counted. Nil for the
    ///     result of an operator's command, which is always written.
    ///   - fields: For programs; names in camelCase.
    package func say(
        _ level: Logger.Level, _ event: LogEventID, about subject: String? = nil, _ text: String,
        _ fields: [String: String] = [:]
    ) {
        book.say(LogLine(level: level, text: text, event: event, fields: fields), about: subject)
    }

    /// - Parameter meaning: what it means for clients or the operator.
    package func systemFailed(_ meaning: String, _ error: SystemError) {
        say(.error, .systemFailed, about: "\(error.call) \(error.subject)", "\(meaning): \(error)")
    }

    /// The same for what may fail later.
    package func systemFailed(_ meaning: String) -> @Sendable (SystemError) -> Void {
        { [self] error in systemFailed(meaning, error) }
    }

    package func stopping(_ reason: String) {
        book.close()
        say(.notice, .stopping, "stopping: \(reason)", ["reason": reason])
    }
}
