import Base
import Counters

/// The clients that watch answers, and the lines for each. Confined to the control loop.
///
/// The queues that answer know nothing of watchers: their notes are fetched many times a second, sorted by time, and
/// sent to each watcher, as lines, as far as it reads. Unread lines are dropped and counted.
final class Watchers {
    private let notes: [WatchNotes]
    private var watchers: [ObjectIdentifier: Watcher] = [:]
    private(set) var nextDeadline: UInt64?

    /// The most watchers at once.
    static let most = 4
    /// How often notes are fetched, in nanoseconds.
    private static let interval: UInt64 = 50_000_000

    init(_ notes: [WatchNotes]) { self.notes = notes }

    var isFull: Bool { watchers.count >= Self.most }

    /// Sends this connection answers from now on; the head of its response was sent.
    func add(_ connection: ControlConnection, _ filter: WatchFilter, _ form: WatchText.Form, at now: UInt64) {
        if watchers.isEmpty {
            for notes in notes { notes.open() }
        } else {
            // The new watcher gets no earlier answers.
            deliver()
        }
        watchers[ObjectIdentifier(connection)] = Watcher(
            connection: connection, filter: filter, text: WatchText(form))
        nextDeadline = nextDeadline ?? now + Self.interval
    }

    func remove(_ connection: ControlConnection) {
        guard watchers.removeValue(forKey: ObjectIdentifier(connection)) != nil, watchers.isEmpty else { return }
        for notes in notes { notes.close() }
        nextDeadline = nil
    }

    func expire(at now: UInt64) {
        guard let nextDeadline, nextDeadline <= now else { return }
        deliver()
        self.nextDeadline = now + Self.interval
    }

    private func deliver() {
        let taken = notes.map { $0.take() }
        let questions = taken.flatMap(\.questions).sorted { $0.at < $1.at }
        let dropped = taken.reduce(0) { $0 + $1.dropped }
        for (key, watcher) in watchers {
            // Sending may find a connection broken, which removes its watcher.
            let lines = watchers[key]?.lines(of: questions, dropped) ?? []
            if !lines.isEmpty { watcher.connection.sendLines(lines.span) }
        }
    }
}

/// One watcher.
private struct Watcher {
    let connection: ControlConnection
    let filter: WatchFilter
    var text: WatchText
    /// Questions that were dropped since the last line with their number.
    var dropped: UInt64 = 0

    /// The lines of the questions that pass the filter, as far as there is room.
    /// - Parameter lost: The number of questions that are missing.
    mutating func lines(of questions: [Watched], _ lost: UInt64) -> [UInt8] {
        var lines: [UInt8] = []
        let room = connection.room
        dropped += lost
        if dropped > 0, room >= ControlConnection.watchLimit / 2 {
            lines += text.dropped(dropped).utf8
            dropped = 0
        }
        for question in questions where filter.holds(question) {
            // Once one is dropped, all are until the next call: so the count is at the right position.
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
