import Dispatch
import Logging
import Synchronization
import Transport

/// Writes the log's lines in their order on a queue of its own, so that whoever reads the log slowly, or not at all,
/// keeps nobody from an answer: a pipe that is full and a journal that stands still hold this queue alone.
///
/// What waits is bounded. Lines beyond are lost, counted, and said once those before them are taken.
public final class LogWriter: Sendable {
    /// Writes a line, for as long as that takes; its time in milliseconds since 1970. False: it could not be written.
    typealias Sink = @Sendable (LogText, _ time: UInt64) -> Bool

    /// Lines that wait at most, and octets of them; as many again may be on their way to the reader.
    static let mostLines = 4096
    static let mostOctets = 1 << 20
    private let sink: Sink
    private let queue = DispatchQueue(label: "httpdnsd.log", qos: .utility)
    private let state = Mutex(State())

    private struct Line {
        let text: LogText
        let time: UInt64
    }

    private struct State {
        var waiting: [Line] = []
        var octets = 0
        /// Lost behind those that wait.
        var lost: UInt64 = 0
        /// Lost or not written, since the start.
        var allLost: UInt64 = 0
        var isWriting = false
    }

    init(_ sink: @escaping Sink) { self.sink = sink }

    /// To standard error or the journal.
    public convenience init(_ form: LogForm) {
        self.init { line, time in
            if form == .journal, Journal.send(line.journalFields) { return true }
            return StandardStream.error.write(line.text(form, at: time))
        }
    }

    /// Never waits.
    /// - Parameter time: Milliseconds since 1970.
    func write(_ text: LogText, at time: UInt64) {
        let begins = state.withLock { state in
            // Behind one that was lost all are, so that what is said of them stands in their place.
            if state.lost == 0, state.waiting.count < Self.mostLines, state.octets + text.octets <= Self.mostOctets {
                state.waiting.append(Line(text: text, time: time))
                state.octets += text.octets
            } else {
                state.lost += 1
                state.allLost += 1
            }
            defer { state.isWriting = true }
            return !state.isWriting
        }
        if begins { queue.async { self.writeAll() } }
    }

    /// Waits until all lines are written, but not for ever: the program must end although nobody reads.
    public func flush(milliseconds: Int = 1000) {
        let isWritten = DispatchSemaphore(value: 0)
        queue.async { isWritten.signal() }
        _ = isWritten.wait(timeout: .now() + .milliseconds(milliseconds))
    }

    /// Lines that were lost since the start; from any thread.
    public var linesLost: UInt64 { state.withLock { $0.allLost } }

    private func writeAll() {
        while let lines = next() {
            let failed = lines.reduce(UInt64(0)) { sink($1.text, $1.time) ? $0 : $0 + 1 }
            if failed > 0 { state.withLock { $0.allLost += failed } }
        }
    }

    /// What waits, and behind it what is to be said of lines that were lost; nil: nothing waits.
    private func next() -> [Line]? {
        state.withLock { state in
            var lines = state.waiting
            if state.lost > 0 { lines.append(Line(text: .lost(state.lost), time: WallClock.unixMilliseconds())) }
            (state.waiting, state.octets, state.lost) = ([], 0, 0)
            state.isWriting = !lines.isEmpty
            return lines.isEmpty ? nil : lines
        }
    }
}

extension LogText {
    fileprivate static func lost(_ count: UInt64) -> LogText {
        LogText(level: .warning, text: "\(count) log line\(count == 1 ? " was" : "s were") lost: nobody read the log")
    }

    /// What the line takes, about.
    fileprivate var octets: Int { fields.reduce(text.utf8.count) { $0 + $1.name.utf8.count + $1.value.utf8.count } }
}
