import Base
import Forwarding

/// Gives numbers, each greater than all before it. A number holds a place in tables, as low as there is one free.
struct Numbers {
    private var latest: UInt64 = 0
    private var free: [Int] = []
    private var places = 0

    mutating func next() -> UInt64 {
        if free.isEmpty {
            free.append(places)
            places += 1
        }
        latest += 1
        return latest << QueryID.placeBits | UInt64(free.removeLast())
    }

    /// Another number may have its place.
    mutating func release(_ number: UInt64) { free.append(Self.place(of: number)) }

    fileprivate static func place(of number: UInt64) -> Int { Int(number & (1 << QueryID.placeBits - 1)) }
}

/// Elements by their numbers: none is searched for, and a number that is used no more finds nothing.
struct Numbered<Element>: ~Copyable {
    private var elements: [Element] = []
    /// The number of the element at each place; 0: there is none.
    private var places: [UInt64] = []
    /// Stands where there is no element. An optional in its place would be copied at each access.
    private let none: Element
    private(set) var count = 0

    init(none: Element) { self.none = none }

    var numbers: [UInt64] { places.filter { $0 != 0 } }
    var all: [Element] { numbers.map { self[$0] } }

    func contains(_ number: UInt64) -> Bool {
        let place = Numbers.place(of: number)
        return place < places.count && places[place] == number
    }

    mutating func insert(_ element: consuming Element, as number: UInt64) {
        let place = Numbers.place(of: number)
        while elements.count <= place {
            elements.append(none)
            places.append(0)
        }
        if places[place] == 0 { count += 1 }
        (elements[place], places[place]) = (element, number)
    }

    /// - Returns: What stands for no element if there is none.
    func find(_ number: UInt64) -> Element { contains(number) ? elements[Numbers.place(of: number)] : none }

    /// The element with a number, which there must be.
    subscript(number: UInt64) -> Element {
        _read {
            assert(contains(number), "nothing has this number")
            yield elements[Numbers.place(of: number)]
        }
        _modify {
            assert(contains(number), "nothing has this number")
            yield &elements[Numbers.place(of: number)]
        }
    }

    /// - Returns: What stands for no element if there is none.
    @discardableResult
    mutating func remove(_ number: UInt64) -> Element {
        guard contains(number) else { return none }
        let place = Numbers.place(of: number)
        count -= 1
        places[place] = 0
        return exchange(&elements[place], with: none)
    }
}
