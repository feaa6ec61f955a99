public import Configuration
public import Logging
import Synchronization
import Transport

/// The backend of the logging library: standard error or the journal.
struct StandardErrorLog: LogHandler {
    private let threshold: Threshold
    private let writer: LogWriter
    /// Required by the logging library; no line has any of it.
    var metadata: Logger.Metadata = [:]

    /// The least important level that is written, shared by all copies of a logger; it may change at any time.
    private final class Threshold: Sendable {
        /// In `Logger.Level.allCases`.
        let index = Atomic(0)
    }

    init(_ writer: LogWriter, _ level: Logger.Level) {
        (threshold, self.writer) = (Threshold(), writer)
        logLevel = level
    }

    var logLevel: Logger.Level {
        get { Logger.Level.allCases[threshold.index.load(ordering: .relaxed)] }
        set { threshold.index.store(Logger.Level.allCases.firstIndex(of: newValue) ?? 0, ordering: .relaxed) }
    }

    /// Required by the logging library; see ``metadata``.
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// Writes a line with its metadata as fields, in the order of their names.
    func log(event: LogEvent) {
        let given = event.metadata ?? [:]
        let fields = given.map { (name: $0.key, value: $0.value.description) }.sorted { $0.name < $1.name }
        writer.write(
            LogText(level: event.level, text: event.message.description, fields: fields),
            at: WallClock.unixMilliseconds())
    }
}

extension LogWriter {
    /// A logger that writes here.
    /// - Parameter level: the least important that is written. A new `logLevel` of any copy of the logger counts for all.
    public func logger(_ level: Settings.Log.Level) -> Logger {
        Logger(label: "httpdnsd") { _ in StandardErrorLog(self, Logger.Level(level)) }
    }
}

extension Logger.Level {
    /// The level of this name.
    package init(_ level: Settings.Log.Level) { self = Logger.Level(rawValue: level.rawValue) ?? .info }
}
