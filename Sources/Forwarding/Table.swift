/// Values under numbers that are never used twice: an outdated number finds no element rather than a wrong one.
struct Table<Element> {
    private var elements: [Element?] = []
    /// How often each place was used before.
    private var generations: [UInt32] = []
    private var free: [UInt32] = []

    var count: Int { generations.count - free.count }

    @discardableResult
    mutating func insert(_ element: Element) -> TableID {
        let id = nextID
        if free.popLast() != nil {
            elements[Int(id.index)] = element
        } else {
            elements.append(element)
            generations.append(0)
        }
        return id
    }

    /// The number that the next inserted element gets.
    var nextID: TableID {
        guard let index = free.last else { return TableID(index: UInt32(generations.count), generation: 0) }
        return TableID(index: index, generation: generations[Int(index)])
    }

    /// The numbers of all elements, by place.
    var ids: [TableID] {
        elements.indices.filter { elements[$0] != nil }.map {
            TableID(index: UInt32($0), generation: generations[$0])
        }
    }

    /// The element under a number; nil once it was removed. Only an existing element can be replaced.
    subscript(id: TableID) -> Element? {
        get { contains(id) ? elements[Int(id.index)] : nil }
        set { if contains(id), let newValue { elements[Int(id.index)] = newValue } }
    }

    @discardableResult
    mutating func remove(_ id: TableID) -> Element? {
        guard contains(id) else { return nil }
        var element: Element?
        swap(&element, &elements[Int(id.index)])
        generations[Int(id.index)] &+= 1
        free.append(id.index)
        return element
    }

    /// The greatest of the elements for which `isMeant` is true. Walks over all.
    func max(by isLess: (Element, Element) -> Bool, where isMeant: (Element) -> Bool) -> Element? {
        elements.lazy.compactMap { $0 }.filter(isMeant).max(by: isLess)
    }

    /// Whether there is an element under a number: a free place has another generation than any number given out.
    func contains(_ id: TableID) -> Bool {
        Int(id.index) < generations.count && generations[Int(id.index)] == id.generation
    }
}

/// A number in a `Table`.
struct TableID: Hashable, Sendable {
    fileprivate let index: UInt32
    fileprivate let generation: UInt32

    fileprivate init(index: UInt32, generation: UInt32) {
        (self.index, self.generation) = (index, generation)
    }

    /// A number that no other element of the table has while this one is in it; as low as there was one free.
    var number: Int { Int(index) }

    /// A number that belongs to no table.
    init(standalone number: UInt32) { self.init(index: number, generation: .max) }
}
