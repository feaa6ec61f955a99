import Base
import Log
import Synchronization
import Transport

/// Output for people and scripts, without terminal control characters.
enum StandardOutput {
    /// Why the first text that was lost could not be written.
    private static let loss = Mutex<SystemError?>(nil)

    /// Prints one line whole, for people and programs.
    static func write(_ line: String) { write(Array((line.plain(lines: true) + "\n").utf8)) }

    /// Prints octets as they are.
    /// - Returns: false if they cannot be written.
    @discardableResult
    static func write(_ octets: [UInt8]) -> Bool {
        do throws(SystemError) {
            try StandardStream.output.writeAll(octets)
            return true
        } catch {
            loss.withLock { $0 = $0 ?? error }
            return false
        }
    }

    /// Ends the command if text was lost. A reader that has ended, such as `head`, wants no more.
    static func checkLoss() throws {
        guard let error = loss.withLock({ $0 }), !error.isReset else { return }
        throw Ending.system("standard output: \(error.reason)")
    }

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
