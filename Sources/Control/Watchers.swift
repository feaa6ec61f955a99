import Counters
import Transport

/// The clients that watch answers, and the lines for each client. Confined to the control loop.
///
/// The queues that answer know nothing of watchers. Their notes are fetched many times a second, sorted by time, and
/// sent to each watcher, as lines, as far as the watcher reads. Unread lines are dropped and counted.
///
/// The lines of one fetch are made in slices with a pause between them: a core that answers hits as well is never taken
/// for longer than a slice.
final class Watchers {
    private let notes: [WatchNotes]
    private var watchers: [ObjectIdentifier: Watcher] = [:]
    private var slices = WatchSlices([])
    private var nextFetch: UInt64 = 0
    private(set) var nextDeadline: UInt64?

    /// The most watchers at once.
    static let most = 4
    /// How often notes are fetched, in nanoseconds.
    private static let interval: UInt64 = 50_000_000
    /// The time from the end of a slice to the next, in nanoseconds.
    private static let pause: UInt64 = 1_000_000

    init(_ notes: [WatchNotes]) { self.notes = notes }

    var isFull: Bool { watchers.count >= Self.most }

    /// Sends this connection answers from now on. The head of the connection's response was sent.
    func add(_ connection: ControlConnection, _ filter: WatchFilter, _ form: WatchText.Form, at now: UInt64) {
        // The new watcher gets no earlier answers.
        deliver(slices.rest())
        fetch()
        deliver(slices.rest())
        if watchers.isEmpty {
            for notes in notes { notes.open() }
            nextDeadline = now + Self.interval
        }
        watchers[ObjectIdentifier(connection)] = Watcher(
            connection: connection, filter: filter, text: WatchText(form))
    }

    func remove(_ connection: ControlConnection) {
        guard watchers.removeValue(forKey: ObjectIdentifier(connection)) != nil, watchers.isEmpty else { return }
        for notes in notes { notes.close() }
        slices = WatchSlices([])
        nextDeadline = nil
    }

    func expire(at now: UInt64) {
        guard let nextDeadline, nextDeadline <= now else { return }
        if slices.isEmpty {
            fetch()
            nextFetch = now + Self.interval
        }
        deliver(slices.next())
        // The last watcher may be gone.
        if self.nextDeadline != nil { self.nextDeadline = slices.isEmpty ? nextFetch : Clock.now() + Self.pause }
    }

    private func fetch() {
        let taken = notes.map { $0.take() }
        slices = WatchSlices(taken.flatMap(\.questions).sorted { $0.at < $1.at })
        let dropped = taken.reduce(0) { $0 + $1.dropped }
        for key in watchers.keys { watchers[key]?.dropped += dropped }
    }

    /// Sends each watcher the lines of these questions.
    private func deliver(_ questions: ArraySlice<Watched>) {
        for (key, watcher) in watchers {
            // Sending may find a connection broken, which removes its watcher.
            let lines = watchers[key]?.lines(of: questions) ?? []
            if !lines.isEmpty { watcher.connection.sendLines(lines.span) }
        }
    }
}

/// The questions of one fetch that have no lines yet, in order.
struct WatchSlices {
    private var waiting: ArraySlice<Watched>
    private let size: Int

    /// The most slices of one fetch. The pauses between these slices are half of the interval.
    static let most = 25
    /// The number of questions below which there is one slice.
    static let least = 16

    init(_ questions: [Watched]) {
        waiting = questions[...]
        size = max(Self.least, (questions.count + Self.most - 1) / Self.most)
    }

    var isEmpty: Bool { waiting.isEmpty }

    /// Takes the next slice.
    mutating func next() -> ArraySlice<Watched> {
        defer { waiting = waiting.dropFirst(size) }
        return waiting.prefix(size)
    }

    /// Takes all questions that are left.
    mutating func rest() -> ArraySlice<Watched> { exchange(&waiting, with: []) }
}

/// One watcher.
private struct Watcher {
    let connection: ControlConnection
    let filter: WatchFilter
    var text: WatchText
    /// Questions that were dropped since the last line with their number.
    var dropped: UInt64 = 0

    /// The lines of the questions that pass the filter, as far as there is room.
    mutating func lines(of questions: ArraySlice<Watched>) -> [UInt8] {
        var lines: [UInt8] = []
        let room = connection.room
        if dropped > 0, room >= ControlConnection.watchLimit / 2 {
            lines += text.dropped(dropped).utf8
            dropped = 0
        }
        for question in questions where filter.holds(question) {
            // Once a question is dropped, all are dropped until the next call, so the count is at the right position.
            let line = dropped == 0 ? Array(text.line(question).utf8) : []
            if dropped > 0 || lines.count + line.count > room {
                dropped += 1
            } else {
                lines += line
            }
        }
        return lines
    }
}
