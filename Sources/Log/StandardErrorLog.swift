public import Configuration
public import Logging
import Transport

/// The backend of the logging library: standard error or the journal.
public struct StandardErrorLog: LogHandler {
    private let threshold: LogThreshold
    private let writer: LogWriter
    /// Required by the logging library; no line has any of it.
    public var metadata: Logger.Metadata = [:]

    /// - Parameters:
    ///   - threshold: the least important level that is written.
    ///   - writer: writes the lines.
    public init(_ threshold: LogThreshold, _ writer: LogWriter) {
        self.threshold = threshold
        self.writer = writer
    }

    /// The level of the shared threshold.
    public var logLevel: Logger.Level {
        get { threshold.level }
        set { threshold.level = newValue }
    }

    /// Required by the logging library; see ``metadata``.
    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// Writes a line with its metadata as fields, in the order of their names.
    public func log(event: LogEvent) {
        var fields: [(name: String, value: String)] = []
        if let given = event.metadata {
            fields = given.map { ($0.key, $0.value.description) }.sorted { $0.name < $1.name }
        }
        writer.write(
            LogText(level: event.level, text: event.message.description, fields: fields),
            at: WallClock.unixMilliseconds())
    }
}

extension LogForm {
    /// The form for the configured format and for this process's standard error.
    public init(_ format: Settings.Log.Format) {
        self.init(
            format, isJournal: Journal.isStandardError, hasJournal: Journal.isThere,
            isTerminal: StandardStream.error.isTerminal)
    }
}
