import Base

/// The moments at which something is due, earliest first.
///
/// Entries are not removed when their subject ends early: when they are due, the caller finds that there is nothing to
/// do. The caller rebuilds the heap when such entries outnumber the others (`compact`).
struct Deadlines<Subject> {
    private var heap: [(tick: Tick, subject: Subject)] = []

    var count: Int { heap.count }
    var next: Tick? { heap.first?.tick }
    var first: Subject? { heap.first?.subject }

    mutating func insert(_ subject: Subject, at tick: Tick) {
        heap.append((tick, subject))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].tick < heap[parent].tick else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    /// The earliest subject whose moment is `now` or before.
    mutating func popDue(at now: Tick) -> Subject? {
        guard let first = heap.first, first.tick <= now else { return nil }
        removeFirst()
        return first.subject
    }

    /// Removes the first entry, of which there must be one.
    mutating func removeFirst() {
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        siftDown(from: 0)
    }

    mutating func compact(keeping isLive: (Subject) -> Bool) {
        heap.removeAll { !isLive($0.subject) }
        for start in stride(from: heap.count / 2 - 1, through: 0, by: -1) { siftDown(from: start) }
    }

    private mutating func siftDown(from start: Int) {
        var parent = start
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count {
                if heap[child].tick < heap[least].tick { least = child }
            }
            guard least != parent else { return }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}
