import Base
import Daemon
import Log
import Transport

/// Output for people and scripts, without terminal control characters.
enum StandardOutput {
    /// Prints one line whole, for people and programs.
    static func write(_ line: String) { StandardStream.output.write(line.plain(lines: true)) }

    /// Prints text for people. On a terminal, the text's lines are fitted to the width.
    static func say(_ text: String) { write(StandardStream.output.fit(text)) }
}

enum StandardError {
    /// Writes an error or a warning. In the journal, the line has that priority (sd-daemon(3)).
    static func write(_ line: String, isError: Bool = true) {
        StandardStream.error.write(
            (Journal.isStandardError ? isError ? "<3>" : "<4>" : "") + StandardStream.error.fit(line.plain(lines: true))
        )
    }
}

extension StandardStream {
    /// The text with lines fitted to the terminal; unchanged if this stream is no terminal.
    func fit(_ text: String) -> String {
        guard let columns = columns(Environment.variables) else { return text }
        return TerminalText.wrapped(text, columns: columns)
    }
}
