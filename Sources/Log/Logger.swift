public import Base
import Synchronization
import Transport

/// Takes lines for the log, and drops those below a level.
public final class Logger: Sendable {
    /// The severity of the least important level that is written.
    private let threshold: Atomic<Int>
    private let write: @Sendable (LogText) -> Void

    package init(_ level: LogLevel, _ write: @escaping @Sendable (LogText) -> Void) {
        threshold = Atomic(level.severity)
        self.write = write
    }

    /// Whether lines of a level are written.
    private func takes(_ level: LogLevel) -> Bool { level.severity <= threshold.load(ordering: .relaxed) }

    /// Sets the least important level that is written. May be called from any thread.
    package func setLevel(_ level: LogLevel) { threshold.store(level.severity, ordering: .relaxed) }

    /// Lowers the threshold to this level if lines of the level are not written yet.
    package func allow(_ level: LogLevel) { if !takes(level) { setLevel(level) } }

    /// - Parameter fields: The fields for programs; written in the order of their names.
    package func log(_ level: LogLevel, _ text: String, _ fields: [String: String] = [:]) {
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
    public func logger(_ level: LogLevel) -> Logger {
        Logger(level) { [self] in write($0, at: WallClock.unixMilliseconds()) }
    }
}
