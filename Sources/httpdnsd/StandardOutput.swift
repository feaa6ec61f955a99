import Daemon
import Log
import Transport

/// Output for people and scripts.
enum StandardOutput {
    static func write(_ line: String) { StandardStream.output.write(line) }
}

enum StandardError {
    /// Writes an error or a warning; in the journal it has that priority (sd-daemon(3)).
    static func write(_ line: String, isError: Bool = true) {
        StandardStream.error.write((Journal.isStandardError ? isError ? "<3>" : "<4>" : "") + line)
    }
}
