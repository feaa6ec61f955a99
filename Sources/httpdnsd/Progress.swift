import Daemon
import Dispatch
import Synchronization
import Transport

/// What a command is doing, for a person who waits: one line on standard error, from the second second on, rewritten
/// each second and erased at the end. Nothing where standard error is no terminal.
final class Progress: Sendable {
    private let state: Mutex<State>

    private struct State {
        var text: String
        /// When it began to do that, in nanoseconds.
        var since = Clock.now()
        var isDrawn = false
        var hasEnded: Bool
    }

    /// - Parameter text: what is being done.
    init(_ text: String) {
        let isShown = StandardStream.error.isTerminal && Environment.variables["TERM"] != "dumb"
        state = Mutex(State(text: text, hasEnded: !isShown))
        if isShown { drawLater() }
    }

    /// Shows the text while the work is done.
    static func during<Result, Failure>(
        _ text: String, _ work: (Progress) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let progress = Progress(text)
        defer { progress.end() }
        return try work(progress)
    }

    /// Says what is being done from now on.
    func say(_ text: String) { state.withLock { ($0.text, $0.since) = (text, Clock.now()) } }

    /// Writes something to the terminal, in the place of the line.
    func aside(_ write: () -> Void) {
        state.withLock { state in
            erase(&state)
            write()
        }
    }

    /// Ends it: nothing is left on the terminal.
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
                // A line that wraps could not be erased.
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

    /// To the beginning of the line, which is emptied (ECMA-48 §8.3.41).
    private static let erasing = "\r\u{1B}[K"
}
