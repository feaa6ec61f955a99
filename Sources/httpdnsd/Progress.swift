import Daemon
import Dispatch
import Synchronization
import Transport

/// What a command is doing, for a person who waits: one line on standard error, from the second second on, rewritten as
/// it goes on and erased at the end. Nothing where standard error is no terminal.
final class Progress: Sendable {
    private let state = Mutex(State())
    private let isShown: Bool

    private struct State {
        var text = ""
        /// Since the beginning, and since the text became what it is.
        var (seconds, secondsOfText) = (0, 0)
        var hasEnded = false
    }

    /// The longest line, in characters: one that wraps could not be erased.
    private static let longest = 76

    /// - Parameter text: what is being done.
    init(_ text: String) {
        isShown = StandardStream.error.isTerminal && Environment.variables["TERM"] != "dumb"
        state.withLock { $0.text = text }
        if isShown { tickLater() }
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
    func say(_ text: String) {
        state.withLock { state in
            (state.text, state.secondsOfText) = (text, 0)
            draw(state)
        }
    }

    /// Writes something to the terminal, above the line.
    func aside(_ write: () -> Void) {
        state.withLock { state in
            erase(state)
            write()
            draw(state)
        }
    }

    /// Ends it: nothing is left on the terminal.
    func end() {
        state.withLock { state in
            erase(state)
            state.hasEnded = true
        }
    }

    private func tickLater() {
        DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in self?.tick() }
    }

    private func tick() {
        let goesOn = state.withLock { state in
            guard !state.hasEnded else { return false }
            state.seconds += 1
            state.secondsOfText += 1
            draw(state)
            return true
        }
        if goesOn { tickLater() }
    }

    private func draw(_ state: borrowing State) {
        guard isShown, state.seconds > 0, !state.hasEnded else { return }
        let time = state.secondsOfText > 0 ? ", \(state.secondsOfText) s" : ""
        write("\(Self.erasing)\(state.text.prefix(Self.longest - time.count))\(time)")
    }

    private func erase(_ state: borrowing State) {
        if isShown, state.seconds > 0, !state.hasEnded { write(Self.erasing) }
    }

    /// To the beginning of the line, which is emptied (ECMA-48 §8.3.41).
    private static let erasing = "\r\u{1B}[K"

    private func write(_ text: String) { StandardStream.error.write(Array(text.utf8)) }
}
