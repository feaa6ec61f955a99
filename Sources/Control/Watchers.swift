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
        self.nextDeadline = now + Self.interval
        deliver()
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
        var sources = MergedFrames(taken)
        while let (source, range) = sources.next() {
            let all = taken[source]
            let frame = all.span.extracting(range)
            if isFiltered {
                guard case .answered(let watched) = WatchFrame(frame), filter.holds(watched) else { continue }
            }
            // Once one is dropped, all are until the next time: so the count stands where they were.
            guard dropped == 0, frames.count + frame.count <= room else {
                dropped += 1
                continue
            }
            frames.append(frame)
        }
        return frames
    }
}

/// The frames of several lists, each in order of time, as one in order of time.
struct MergedFrames {
    private let lists: [[UInt8]]
    private var offsets: [Int]

    init(_ lists: [[UInt8]]) {
        self.lists = lists
        offsets = lists.map { _ in 0 }
    }

    /// The next frame: its list, and where it is in it; nil at the end.
    mutating func next() -> (list: Int, range: Range<Int>)? {
        var first: (list: Int, time: UInt64, length: Int)?
        for list in lists.indices {
            let frames = lists[list]
            guard let length = WatchFrame.length(frames.span, at: offsets[list]) else { continue }
            let time = WatchFrame.time(frames.span, at: offsets[list])
            if first.map({ time < $0.time }) ?? true { first = (list, time, length) }
        }
        guard let first else { return nil }
        let start = offsets[first.list]
        offsets[first.list] += first.length
        return (first.list, start..<start + first.length)
    }
}
