/// Assigns numbers, each greater than all before it. Its lowest ``indexBits`` bits are an index of tables, which no other
/// number has until it is released: the index that was released last, else the next one.
package struct Numbers {
    private var latest: UInt64 = 0
    private var free: [Int] = []
    private var count = 0

    @usableFromInline static let indexBits: UInt64 = 20

    package init() {}

    /// The number that ``next()`` returns.
    var following: UInt64 { (latest + 1) &<< Self.indexBits | UInt64(free.last ?? count) }

    package mutating func next() -> UInt64 {
        let number = following
        if free.popLast() == nil { count += 1 }
        latest += 1
        return number
    }

    /// Frees a number's index for another.
    package mutating func release(_ number: UInt64) { free.append(Self.index(of: number)) }

    @inlinable static func index(of number: UInt64) -> Int { Int(number & (1 &<< indexBits - 1)) }
}

/// Elements by number, without a search; an ended number finds no element. The owner assigns the numbers.
///
/// Other modules inline the functions: a generic call would cost more than the access.
package struct Numbered<Element> {
    @usableFromInline var elements: [Element] = []
    /// The number of the element at each index; 0: there is none.
    @usableFromInline var numberByIndex: [UInt64] = []
    /// The value for a missing element. An optional instead would be copied at each access.
    @usableFromInline let none: Element
    @usableFromInline var size = 0

    @inlinable package init(none: Element) { self.none = none }

    @inlinable package var count: Int { size }
    @inlinable package var numbers: [UInt64] { numberByIndex.filter { $0 != 0 } }
    @inlinable package var all: [Element] { numbers.map { self[$0] } }

    @inlinable
    package func contains(_ number: UInt64) -> Bool {
        let index = Numbers.index(of: number)
        return index < numberByIndex.count && numberByIndex[index] == number
    }

    @inlinable
    package mutating func insert(_ element: consuming Element, as number: UInt64) {
        let index = Numbers.index(of: number)
        while elements.count <= index {
            elements.append(none)
            numberByIndex.append(0)
        }
        if numberByIndex[index] == 0 { size += 1 }
        (elements[index], numberByIndex[index]) = (element, number)
    }

    /// - Returns: The element, or the value for a missing element.
    @inlinable
    package func find(_ number: UInt64) -> Element { contains(number) ? elements[Numbers.index(of: number)] : none }

    /// The element with a number, which must exist.
    @inlinable package subscript(number: UInt64) -> Element {
        _read {
            assert(contains(number), "nothing has this number")
            yield elements[Numbers.index(of: number)]
        }
        _modify {
            assert(contains(number), "nothing has this number")
            yield &elements[Numbers.index(of: number)]
        }
    }

    /// - Returns: The element, or the value for a missing element.
    @inlinable @discardableResult
    package mutating func remove(_ number: UInt64) -> Element {
        guard contains(number) else { return none }
        let index = Numbers.index(of: number)
        size -= 1
        numberByIndex[index] = 0
        return exchange(&elements[index], with: none)
    }
}

/// Elements with numbers of the table's own.
struct Table<Element> {
    private var numbers = Numbers()
    private var elements = Numbered<Element?>(none: nil)

    var count: Int { elements.count }

    @discardableResult
    mutating func insert(_ element: Element) -> TableID {
        let id = TableID(number: numbers.next())
        elements.insert(element, as: id.number)
        return id
    }

    /// The number that the next inserted element gets.
    var nextID: TableID { TableID(number: numbers.following) }

    /// The numbers of all elements, by index.
    var ids: [TableID] { elements.numbers.map { TableID(number: $0) } }

    /// The element under a number; nil if it was removed. Only an existing element can be replaced.
    subscript(id: TableID) -> Element? {
        get { elements.find(id.number) }
        set { if contains(id), let newValue { elements[id.number] = newValue } }
    }

    /// Changes the element under a number in place; the subscript would copy it twice.
    /// - Returns: nil if there is none.
    @inline(__always)
    mutating func change<Result>(_ id: TableID, _ change: (inout Element) -> Result) -> Result? {
        contains(id) ? change(&elements[id.number]!) : nil
    }

    @discardableResult
    mutating func remove(_ id: TableID) -> Element? {
        guard let element = elements.remove(id.number) else { return nil }
        numbers.release(id.number)
        return element
    }

    /// The latest inserted element for which `isMeant` is true. The call walks over all elements.
    func newest(where isMeant: (Element) -> Bool) -> Element? {
        elements.numbers.sorted(by: >).lazy.compactMap { elements[$0] }.first(where: isMeant)
    }

    /// Whether there is an element under a number.
    func contains(_ id: TableID) -> Bool { elements.contains(id.number) }
}

/// A number in a `Table`.
struct TableID: Hashable, Sendable {
    /// See ``Numbers``.
    let number: UInt64

    fileprivate init(number: UInt64) { self.number = number }

    /// An index that no other element of the table has at the same time.
    var index: Int { Numbers.index(of: number) }

    /// A number that belongs to no table.
    init(standalone number: UInt32) { self.number = .max &<< Numbers.indexBits | UInt64(number) }
}
