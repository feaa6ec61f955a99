import Base
import Counters

/// The clients that watch what is answered, and what each of them is sent. Confined to the control loop.
///
/// The queues that answer know nothing of watchers: their notes are fetched many times a second, put in order of time,
/// and given to each watcher as far as it reads. What it does not read is dropped and counted.
final class Watchers {
    private let notes: [WatchNotes]
    private var watchers: [ObjectIdentifier: Watcher] = [:]
    /// For each of the notes the frames that were taken last.
    private var taken: [[UInt8]]
    private(set) var nextDeadline: UInt64?

    /// The most watchers at once.
    static let most = 4
    /// How often notes are fetched, in nanoseconds.
    private static let interval: UInt64 = 50_000_000
    /// How often while they are many: whoever shares a core with this loop, or with those who watch, waits for less work at a time.
    private static let busyInterval: UInt64 = 10_000_000
    /// From so many octets at a time on they are many: some 1000 questions in a second.
    private static let busyOctets = 4096

    init(_ notes: [WatchNotes]) {
        self.notes = notes
        taken = notes.map { _ in [] }
    }

    var isFull: Bool { watchers.count >= Self.most }

    /// From now on this connection is sent what is answered; the head of its response is sent already.
    func add(_ connection: ControlConnection, _ filter: WatchFilter, at now: UInt64) {
        if watchers.isEmpty {
            for notes in notes { notes.open() }
        } else {
            // What was answered before is not sent to the new watcher.
            deliver()
        }
        watchers[ObjectIdentifier(connection)] = Watcher(connection: connection, filter: filter)
        nextDeadline = nextDeadline ?? now + Self.interval
    }

    func remove(_ connection: ControlConnection) {
        guard watchers.removeValue(forKey: ObjectIdentifier(connection)) != nil, watchers.isEmpty else { return }
        for notes in notes { notes.close() }
        taken = notes.map { _ in [] }
        nextDeadline = nil
    }

    func expire(at now: UInt64) {
        guard let nextDeadline, nextDeadline <= now else { return }
        deliver()
        let isBusy = taken.contains { $0.count >= Self.busyOctets }
        self.nextDeadline = now + (isBusy ? Self.busyInterval : Self.interval)
    }

    private func deliver() {
        var dropped: UInt64 = 0
        for index in notes.indices { dropped += notes[index].take(&taken[index]) }
        for (key, watcher) in watchers {
            // Sending may find a connection broken, which removes its watcher.
            let frames = watchers[key]?.frames(of: taken, dropped) ?? []
            if !frames.isEmpty { watcher.connection.sendFrames(frames.span) }
        }
    }
}

/// One watcher.
private struct Watcher {
    let connection: ControlConnection
    let filter: WatchFilter
    /// Questions that were dropped since it was last told how many.
    var dropped: UInt64 = 0

    /// The frames that the filter holds for, in order of time, as far as there is room for them.
    /// - Parameter lost: how many questions are not among those taken.
    mutating func frames(of taken: [[UInt8]], _ lost: UInt64) -> [UInt8] {
        var frames: [UInt8] = []
        let (room, isFiltered) = (connection.room, !filter.isEmpty)
        dropped += lost
        if dropped > 0, room >= ControlConnection.watchLimit / 2 {
            WatchFrame.append(dropped: dropped, to: &frames)
            dropped = 0
        }
        var merged = MergedFrames(taken)
        while let (list, range) = merged.next() {
            let octets = taken[list]
            if isFiltered {
                guard let frame = WatchFrame(octets.span, at: range.lowerBound), filter.holds(frame, of: octets.span)
                else {
                    continue
                }
            }
            // Once one is dropped, all are until the next time: so the count stands where they were.
            guard dropped == 0, frames.count + range.count <= room else {
                dropped += 1
                continue
            }
            frames.append(octets.span.extracting(range))
        }
        return frames
    }
}

/// The frames of several lists, each in order of time, as one in order of time.
struct MergedFrames {
    private let lists: [[UInt8]]
    /// For each list that has more its next frame, and when the question of that was answered.
    private var heads: [(list: Int, range: Range<Int>, time: UInt64)] = []

    init(_ lists: [[UInt8]]) {
        self.lists = lists
        for list in lists.indices {
            if let head = head(of: list, at: 0) { heads.append(head) }
        }
    }

    /// The next frame: its list, and where it is in it; nil at the end.
    mutating func next() -> (list: Int, range: Range<Int>)? {
        guard var first = heads.indices.first else { return nil }
        for index in heads.indices.dropFirst() where heads[index].time < heads[first].time { first = index }
        let found = heads[first]
        if let head = head(of: found.list, at: found.range.upperBound) {
            heads[first] = head
        } else {
            heads.remove(at: first)
        }
        return (found.list, found.range)
    }

    private func head(of list: Int, at offset: Int) -> (list: Int, range: Range<Int>, time: UInt64)? {
        let octets = lists[list]
        guard let length = WatchFrame.length(octets.span, at: offset) else { return nil }
        return (list, offset..<offset + length, WatchFrame.time(octets.span, at: offset))
    }
}
