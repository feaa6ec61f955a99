import Base
import Dispatch
import Synchronization
import Transport

/// Writes the log's lines in order on a queue of its own, so that a slow reader of the log delays no answer: a full
/// pipe or a stopped journal blocks only this queue.
///
/// The waiting lines are bounded. Lines beyond the bound are lost and counted, and one line with their number is
/// written instead.
public final class LogWriter: Sendable {
    /// Writes a line, however long that takes; `time` is in milliseconds since 1970. False if the line was not written.
    typealias Sink = @Sendable (LogText, _ time: UInt64) -> Bool

    /// The most waiting lines, and their most octets; as many again may be on their way to the reader.
    static let mostLines = 4096
    static let mostOctets = 1 << 20
    private let sink: Sink
    private let queue = DispatchQueue(label: "httpdnsd.log", qos: .utility)
    private let state = Mutex(State())

    private typealias Line = (text: LogText, time: UInt64)

    private struct State {
        var waiting: [Line] = []
        var octets = 0
        /// Lines lost after the waiting lines.
        var lost: UInt64 = 0
        /// Lines lost or not written since the start.
        var allLost: UInt64 = 0
        var isWriting = false
    }

    init(_ sink: @escaping Sink) { self.sink = sink }

    /// A writer to standard error or the journal.
    public convenience init(_ form: LogForm) {
        self.init { line, time in
            if form == .journal, Journal.send(line.journalFields) { return true }
            return StandardStream.error.write(line.text(form, at: time))
        }
    }

    /// Queues a line; never blocks.
    /// - Parameter time: Milliseconds since 1970.
    func write(_ text: LogText, at time: UInt64) {
        let begins = state.withLock { state in
            // Once a line was lost, further lines are lost as well until the waiting lines are written, so that the
            // note about lost lines is in the right order.
            if state.lost == 0, state.waiting.count < Self.mostLines, state.octets + text.octets <= Self.mostOctets {
                state.waiting.append((text, time))
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

    /// Waits until all lines are written, within a limit: the program must end even if the log is not read.
    public func flush(milliseconds: Int = 1000) {
        let isWritten = DispatchSemaphore(value: 0)
        queue.async { isWritten.signal() }
        _ = isWritten.wait(timeout: .now() + .milliseconds(milliseconds))
    }

    /// Lines lost since the start. May be called from any thread.
    public var linesLost: UInt64 { state.withLock { $0.allLost } }

    private func writeAll() {
        while let lines = next() {
            let failed = lines.reduce(UInt64(0)) { sink($1.text, $1.time) ? $0 : $0 + 1 }
            if failed > 0 { state.withLock { $0.allLost += failed } }
        }
    }

    /// The waiting lines, followed by the note about lost lines; nil: no lines wait.
    private func next() -> [Line]? {
        state.withLock { state in
            var lines = state.waiting
            if state.lost > 0 { lines.append((LogText.lost(state.lost), WallClock.unixMilliseconds())) }
            (state.waiting, state.octets, state.lost) = ([], 0, 0)
            state.isWriting = !lines.isEmpty
            return lines.isEmpty ? nil : lines
        }
    }
}

extension LogText {
    fileprivate static func lost(_ count: UInt64) -> LogText {
        LogText(level: .warning, text: "\(count) log line\(count == 1 ? " was" : "s were") lost: the log was not read")
    }

    /// The approximate number of octets of the line.
    fileprivate var octets: Int { fields.reduce(text.utf8.count) { $0 + $1.name.utf8.count + $1.value.utf8.count } }
}
