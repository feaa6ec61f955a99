package import Logging
package import Transport

/// The daemon's log lines: each is a function that stands beside what it is about, said when a state changes and never
/// once a query. No query names, no client addresses, no secrets.
package struct Report: Sendable {
    package let log: Logger
    private let book: LogBook

    package init(log: Logger) {
        self.log = log
        book = LogBook(log)
    }

    /// A line about something that may change back and forth.
    /// - Parameters:
    ///   - subject: What changes: lines about the same are counted when there are too many. Nil for what an operator
    ///     has done, who waits to be told.
    ///   - fields: For programs; names in camelCase.
    package func say(
        _ level: Logger.Level, _ event: LogEventID, about subject: String? = nil, _ text: String,
        _ fields: [String: String] = [:]
    ) {
        book.say(LogLine(level: level, text: text, event: event, fields: fields), about: subject)
    }

    package func systemFailed(_ error: SystemError) {
        say(.error, .systemFailed, about: "\(error.call) \(error.subject)", "\(error)")
    }

    package func stopping(_ reason: String) {
        book.close()
        say(.notice, .stopping, "stopping: \(reason)", ["reason": reason])
    }
}
