import Base
import Daemon
import Log
import Transport

/// Output for people and scripts, without characters that command a terminal.
enum StandardOutput {
    /// For programs too: each line stays whole.
    static func write(_ line: String) { StandardStream.output.write(line.plain(lines: true)) }

    /// For people: where it is a terminal, lines fit it.
    static func say(_ text: String) { write(StandardStream.output.fit(text)) }
}

enum StandardError {
    /// Writes an error or a warning; in the journal it has that priority (sd-daemon(3)).
    static func write(_ line: String, isError: Bool = true) {
        StandardStream.error.write(
            (Journal.isStandardError ? isError ? "<3>" : "<4>" : "") + StandardStream.error.fit(line.plain(lines: true))
        )
    }
}

extension StandardStream {
    /// A text whose lines fit the terminal, if this is one.
    func fit(_ text: String) -> String {
        guard let columns = columns(Environment.variables) else { return text }
        return TerminalText.wrapped(text, columns: columns)
    }
}
