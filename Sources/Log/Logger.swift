public import Configuration
import Synchronization
import Transport

/// Takes lines for the log, and drops those below a level.
public final class Logger: Sendable {
    /// The severities of syslog(3).
    public enum Level: Int, Sendable, CustomStringConvertible {
        case error = 3
        case warning, notice, info, debug

        /// The default description is found by reflection: 2 million instructions for the first lines of a start.
        public var description: String {
            switch self {
            case .error: "error"
            case .warning: "warning"
            case .notice: "notice"
            case .info: "info"
            case .debug: "debug"
            }
        }

        package init(_ level: Settings.Log.Level) {
            self =
                switch level {
                case .error: .error
                case .warning: .warning
                case .notice: .notice
                case .info: .info
                case .debug: .debug
                }
        }
    }

    /// The least important level that is written.
    private let threshold: Atomic<Int>
    private let write: @Sendable (LogText) -> Void

    package init(_ level: Level, _ write: @escaping @Sendable (LogText) -> Void) {
        threshold = Atomic(level.rawValue)
        self.write = write
    }

    /// Whether lines of a level are written.
    private func takes(_ level: Level) -> Bool { level.rawValue <= threshold.load(ordering: .relaxed) }

    /// Sets the least important level that is written. May be called from any thread.
    package func setLevel(_ level: Level) { threshold.store(level.rawValue, ordering: .relaxed) }

    /// Lowers the threshold to this level if lines of the level are not written yet.
    package func allow(_ level: Level) { if !takes(level) { setLevel(level) } }

    /// - Parameter fields: The fields for programs; written in the order of their names.
    package func log(_ level: Level, _ text: String, _ fields: [String: String] = [:]) {
        guard takes(level) else { return }
        let fields = fields.map { (name: $0.key, value: $0.value) }.sorted { $0.name < $1.name }
        write(LogText(level: level, text: text, fields: fields))
    }

    package func info(_ text: String) { log(.info, text) }
    package func notice(_ text: String) { log(.notice, text) }
    package func warning(_ text: String) { log(.warning, text) }
}

extension LogWriter {
    /// A logger that writes its lines to this writer.
    /// - Parameter level: The least important level that is written.
    public func logger(_ level: Settings.Log.Level) -> Logger {
        Logger(Logger.Level(level)) { [self] in write($0, at: WallClock.unixMilliseconds()) }
    }
}
