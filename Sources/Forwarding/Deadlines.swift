import Base

/// Subjects by the moment at which they are due, earliest first.
///
/// An entry is not removed when its subject ends early; when the entry is due, the caller finds no work. The caller
/// rebuilds the heap when such entries are the majority (`compact`).
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

    /// Removes the earliest subject that is due at `now`.
    mutating func popDue(at now: Tick) -> Subject? {
        guard let first = heap.first, first.tick <= now else { return nil }
        removeFirst()
        return first.subject
    }

    /// Removes the first entry, of which there must be one.
    mutating func removeFirst() {
        let last = heap.removeLast()
        if !heap.isEmpty { siftDown(last, from: 0) }
    }

    mutating func compact(keeping isLive: (Subject) -> Bool) {
        heap.removeAll { !isLive($0.subject) }
        for start in stride(from: heap.count / 2 - 1, through: 0, by: -1) { siftDown(heap[start], from: start) }
    }

    /// Inserts an element at `start` or below; the element at `start` is replaced.
    private mutating func siftDown(_ element: (tick: Tick, subject: Subject), from start: Int) {
        var index = start
        while true {
            var child = 2 * index + 1
            guard child < heap.count else { break }
            if child + 1 < heap.count, heap[child + 1].tick < heap[child].tick { child += 1 }
            guard heap[child].tick < element.tick else { break }
            heap[index] = heap[child]
            index = child
        }
        heap[index] = element
    }
}
