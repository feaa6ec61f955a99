import Dispatch
import Synchronization
import Transport

/// A command's current work, for a waiting user: one line on standard error, after the first second, rewritten each
/// second and erased at the end. There is no output if standard error is no terminal, or a dumb terminal.
final class Progress: Sendable {
    private let state: Mutex<State>

    private struct State {
        var text: String
        /// The time at which the current work began, in nanoseconds.
        var since = Clock.now()
        var isDrawn = false
        var hasEnded: Bool
    }

    /// - Parameter text: The current work.
    init(_ text: String) {
        let isShown = StandardStream.error.isTerminal && Environment.variables["TERM"] != "dumb"
        state = Mutex(State(text: text, hasEnded: !isShown))
        if isShown { drawLater() }
    }

    /// Shows the text during the work.
    static func during<Result, Failure>(
        _ text: String, _ work: (Progress) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let progress = Progress(text)
        defer { progress.end() }
        return try work(progress)
    }

    /// Sets the current work.
    func say(_ text: String) { state.withLock { ($0.text, $0.since) = (text, Clock.now()) } }

    /// Writes to the terminal after the progress line was erased.
    func aside(_ write: () -> Void) {
        state.withLock { state in
            erase(&state)
            write()
        }
    }

    /// Erases the line and ends.
    func end() {
        state.withLock { state in
            erase(&state)
            state.hasEnded = true
        }
    }

    private func drawLater() {
        DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in
            self?.state.withLock { state in
                guard !state.hasEnded else { return }
                let seconds = (Clock.now() - state.since + 500_000_000) / 1_000_000_000
                // A wrapped line could not be erased.
                let line = "\(state.text.prefix(70)), \(seconds) s"
                StandardStream.error.write(Array("\(Self.erasing)\(line)".utf8))
                state.isDrawn = true
                self?.drawLater()
            }
        }
    }

    private func erase(_ state: inout State) {
        if state.isDrawn { StandardStream.error.write(Array(Self.erasing.utf8)) }
        state.isDrawn = false
    }

    /// Moves to the beginning of the line and erases it (ECMA-48 §8.3.41).
    private static let erasing = "\r\u{1B}[K"
}
