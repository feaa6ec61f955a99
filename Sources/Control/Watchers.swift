import Base
import Counters

/// The clients that watch what is answered, and what each of them is sent. Confined to the control loop.
///
/// The queues that answer know nothing of watchers: their notes are fetched many times a second, put in order of time,
/// and given to each watcher, as lines, as far as it reads. What it does not read is dropped and counted.
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

    /// From now on this connection is sent what is answered; the head of its response is sent already.
    func add(_ connection: ControlConnection, _ filter: WatchFilter, _ form: WatchText.Form, at now: UInt64) {
        if watchers.isEmpty {
            for notes in notes { notes.open() }
        } else {
            // What was answered before is not sent to the new watcher.
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
    /// Questions that were dropped since it was last told how many.
    var dropped: UInt64 = 0

    /// The lines of those questions for which the filter holds, as far as there is room for them.
    /// - Parameter lost: how many questions are not among them.
    mutating func lines(of questions: [Watched], _ lost: UInt64) -> [UInt8] {
        var lines: [UInt8] = []
        let room = connection.room
        dropped += lost
        if dropped > 0, room >= ControlConnection.watchLimit / 2 {
            lines += text.dropped(dropped).utf8
            dropped = 0
        }
        for question in questions where filter.holds(question) {
            // Once one is dropped, all are until the next time: so the count stands where they were.
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
