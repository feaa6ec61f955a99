public import Configuration
import Glibc
public import Logging

/// Writes the log: to standard error, one system call a line, or to the journal.
public struct StandardErrorLog: LogHandler {
    private let threshold: LogThreshold
    private let form: LogForm
    public var metadata: Logger.Metadata = [:]

    public init(_ threshold: LogThreshold, _ form: LogForm) {
        self.threshold = threshold
        self.form = form
    }

    public var logLevel: Logger.Level {
        get { threshold.level }
        set { threshold.level = newValue }
    }

    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    public func log(event: LogEvent) {
        var fields: [(name: String, value: String)] = []
        if let given = event.metadata {
            fields = given.map { ($0.key, $0.value.description) }.sorted { $0.name < $1.name }
        }
        let line = LogText(level: event.level, text: event.message.description, fields: fields)
        if form == .journal, Journal.send(line.journalFields) { return }
        var now = timespec()
        // Cannot fail: every Linux has this clock, and the pointer is to a live variable.
        _ = unsafe clock_gettime(CLOCK_REALTIME, &now)
        let bytes = Array((line.text(form, at: now) + "\n").utf8)
        // Nothing can be done about a log that cannot be written.
        _ = unsafe bytes.withUnsafeBytes { unsafe write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}

extension LogForm {
    /// As the configuration wants it, and as this process's standard error is.
    public init(_ format: Settings.Log.Format) {
        self.init(
            format, isJournal: Journal.isStandardError, hasJournal: Journal.isThere,
            isTerminal: isatty(STDERR_FILENO) == 1)
    }
}
