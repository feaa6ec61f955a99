/// Values under numbers that are never used twice: a number kept too long finds nothing instead of somebody else.
struct Table<Element> {
    private var slots: [(generation: UInt32, element: Element?)] = []
    private var free: [UInt32] = []

    var count: Int { slots.count - free.count }

    mutating func insert(_ element: Element) -> TableID {
        if let index = free.popLast() {
            slots[Int(index)].element = element
            return TableID(index: index, generation: slots[Int(index)].generation)
        }
        slots.append((0, element))
        return TableID(index: UInt32(slots.count - 1), generation: 0)
    }

    /// The element under a number; nil once it was removed. Setting changes an element that is there, and no other.
    subscript(id: TableID) -> Element? {
        get { isPresent(id) ? slots[Int(id.index)].element : nil }
        _modify {
            var none: Element?
            if isPresent(id) {
                yield &slots[Int(id.index)].element
            } else {
                yield &none
            }
        }
    }

    @discardableResult
    mutating func remove(_ id: TableID) -> Element? {
        guard isPresent(id) else { return nil }
        defer {
            slots[Int(id.index)].element = nil
            slots[Int(id.index)].generation &+= 1
            free.append(id.index)
        }
        return slots[Int(id.index)].element
    }

    private func isPresent(_ id: TableID) -> Bool {
        Int(id.index) < slots.count && slots[Int(id.index)].generation == id.generation
    }
}

/// A number in a `Table`.
struct TableID: Hashable, Sendable {
    fileprivate let index: UInt32
    fileprivate let generation: UInt32

    fileprivate init(index: UInt32, generation: UInt32) {
        (self.index, self.generation) = (index, generation)
    }

    /// A number of no table.
    init(standalone number: UInt32) { self.init(index: number, generation: .max) }
}
