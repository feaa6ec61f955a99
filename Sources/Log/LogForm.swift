public import Configuration
import Transport

/// The form of a log line.
public enum LogForm: Sendable, Equatable {
    /// Fields, which this process sends to the journal (systemd's native protocol).
    case journal
    /// A line for a stream that the journal reads. The priority comes first (sd-daemon(3)). The journal adds the time.
    case prefixed
    /// A line with the local time of day, for a terminal.
    case terminal
    /// A line with date and time in UTC.
    case dated
    /// One JSON object a line.
    case json

    /// - Parameters:
    ///   - isJournal: Standard error is connected to the journal.
    ///   - hasJournal: The journal's socket exists.
    public init(_ format: Settings.Log.Format, isJournal: Bool, hasJournal: Bool, isTerminal: Bool) {
        let text: LogForm = isJournal ? .prefixed : isTerminal ? .terminal : .dated
        self =
            switch format {
            case .auto: isJournal && hasJournal ? .journal : text
            case .journal: hasJournal ? .journal : text
            case .text: text
            case .json: .json
            }
    }

    /// The form for the configured format and for this process's standard error.
    public init(_ format: Settings.Log.Format) {
        self.init(
            format, isJournal: Journal.isStandardError, hasJournal: Journal.isThere,
            isTerminal: StandardStream.error.isTerminal)
    }
}
