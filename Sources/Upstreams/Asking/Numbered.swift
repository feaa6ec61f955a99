/// Gives numbers, each greater than all before it. A number holds a place in tables, as low as there is one free.
struct Numbers {
    private var latest: UInt64 = 0
    private var free: [Int] = []
    private var places = 0

    private static let placeBits = 16

    mutating func next() -> UInt64 {
        if free.isEmpty {
            free.append(places)
            places += 1
        }
        latest += 1
        return latest << Self.placeBits | UInt64(free.removeLast())
    }

    /// Another number may have its place.
    mutating func release(_ number: UInt64) { free.append(Self.place(of: number)) }

    fileprivate static func place(of number: UInt64) -> Int { Int(number & (1 << placeBits - 1)) }
}

/// Elements by their numbers: none is searched for, and a number that is used no more finds nothing.
struct Numbered<Element> {
    private var elements: [Element?] = []
    /// The number of the element at each place; 0: there is none.
    private var places: [UInt64] = []
    private(set) var count = 0

    var numbers: [UInt64] { places.filter { $0 != 0 } }
    var all: [Element] { elements.compactMap(\.self) }

    func contains(_ number: UInt64) -> Bool {
        let place = Numbers.place(of: number)
        return place < places.count && places[place] == number
    }

    mutating func insert(_ element: Element, as number: UInt64) {
        let place = Numbers.place(of: number)
        while elements.count <= place {
            elements.append(nil)
            places.append(0)
        }
        if elements[place] == nil { count += 1 }
        (elements[place], places[place]) = (element, number)
    }

    func find(_ number: UInt64) -> Element? { contains(number) ? elements[Numbers.place(of: number)] : nil }

    /// The element with a number, which there must be.
    subscript(number: UInt64) -> Element {
        _read { yield elements[Numbers.place(of: number)]! }
        _modify { yield &elements[Numbers.place(of: number)]! }
    }

    @discardableResult
    mutating func remove(_ number: UInt64) -> Element? {
        guard contains(number) else { return nil }
        let place = Numbers.place(of: number)
        count -= 1
        places[place] = 0
        return elements[place].take()
    }
}
