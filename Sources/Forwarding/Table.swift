/// Values under numbers that are never reused: an outdated number finds no element instead of a wrong one.
struct Table<Element> {
    private var elements: [Element?] = []
    /// The serial number of the element at each index; 0 if there is none.
    private var serials: [UInt64] = []
    private var free: [UInt32] = []
    private var nextSerial: UInt64 = 1

    var count: Int { serials.count - free.count }

    @discardableResult
    mutating func insert(_ element: Element) -> TableID {
        let id = nextID
        if free.popLast() != nil {
            elements[Int(id.index)] = element
            serials[Int(id.index)] = id.serial
        } else {
            elements.append(element)
            serials.append(id.serial)
        }
        nextSerial += 1
        return id
    }

    /// The number that the next inserted element gets.
    var nextID: TableID { TableID(index: free.last ?? UInt32(serials.count), serial: nextSerial) }

    /// The numbers of all elements, by index.
    var ids: [TableID] {
        serials.indices.filter { serials[$0] != 0 }.map { TableID(index: UInt32($0), serial: serials[$0]) }
    }

    /// The element under a number; nil if it was removed. Only an existing element can be replaced.
    subscript(id: TableID) -> Element? {
        get { contains(id) ? elements[Int(id.index)] : nil }
        set { if contains(id), let newValue { elements[Int(id.index)] = newValue } }
    }

    /// Changes the element under a number in place; the subscript would copy it twice.
    /// - Returns: nil if there is none.
    @inline(__always)
    mutating func change<Result>(_ id: TableID, _ change: (inout Element) -> Result) -> Result? {
        contains(id) ? change(&elements[Int(id.index)]!) : nil
    }

    @discardableResult
    mutating func remove(_ id: TableID) -> Element? {
        guard contains(id) else { return nil }
        var element: Element?
        swap(&element, &elements[Int(id.index)])
        serials[Int(id.index)] = 0
        free.append(id.index)
        return element
    }

    /// The latest inserted element for which `isMeant` is true. The call walks over all elements.
    func newest(where isMeant: (Element) -> Bool) -> Element? {
        serials.indices.filter { elements[$0].map(isMeant) ?? false }.max { serials[$0] < serials[$1] }
            .flatMap { elements[$0] }
    }

    /// Whether there is an element under a number.
    func contains(_ id: TableID) -> Bool { Int(id.index) < serials.count && serials[Int(id.index)] == id.serial }
}

/// A number in a `Table`.
struct TableID: Hashable, Sendable {
    fileprivate let index: UInt32
    /// The number of elements inserted up to and including this element.
    let serial: UInt64

    fileprivate init(index: UInt32, serial: UInt64) { (self.index, self.serial) = (index, serial) }

    /// The index of the element, which no other element of the table has at the same time: the lowest free index.
    var number: Int { Int(index) }

    /// A number that belongs to no table.
    init(standalone number: UInt32) { self.init(index: number, serial: .max) }
}
