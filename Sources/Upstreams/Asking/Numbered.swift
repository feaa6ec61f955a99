import Base
import Forwarding

/// Assigns numbers, each greater than all before it. A number reserves an index in tables: the lowest free index.
struct Numbers {
    private var latest: UInt64 = 0
    private var free: [Int] = []
    private var count = 0

    mutating func next() -> UInt64 {
        if free.isEmpty {
            free.append(count)
            count += 1
        }
        latest += 1
        return latest << QueryID.indexBits | UInt64(free.removeLast())
    }

    /// Frees a number's index for another.
    mutating func release(_ number: UInt64) { free.append(Self.index(of: number)) }

    fileprivate static func index(of number: UInt64) -> Int { Int(number & (1 << QueryID.indexBits - 1)) }
}

/// Elements by number, without a search; an ended number finds no element.
struct Numbered<Element>: ~Copyable {
    private var elements: [Element] = []
    /// The number of the element at each index; 0: there is none.
    private var numberByIndex: [UInt64] = []
    /// The value for a missing element. An optional instead would be copied at each access.
    private let none: Element
    private(set) var count = 0

    init(none: Element) { self.none = none }

    var numbers: [UInt64] { numberByIndex.filter { $0 != 0 } }
    var all: [Element] { numbers.map { self[$0] } }

    func contains(_ number: UInt64) -> Bool {
        let index = Numbers.index(of: number)
        return index < numberByIndex.count && numberByIndex[index] == number
    }

    mutating func insert(_ element: consuming Element, as number: UInt64) {
        let index = Numbers.index(of: number)
        while elements.count <= index {
            elements.append(none)
            numberByIndex.append(0)
        }
        if numberByIndex[index] == 0 { count += 1 }
        (elements[index], numberByIndex[index]) = (element, number)
    }

    /// - Returns: The element, or the value for a missing element.
    func find(_ number: UInt64) -> Element { contains(number) ? elements[Numbers.index(of: number)] : none }

    /// The element with a number, which must exist.
    subscript(number: UInt64) -> Element {
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
    @discardableResult
    mutating func remove(_ number: UInt64) -> Element {
        guard contains(number) else { return none }
        let index = Numbers.index(of: number)
        count -= 1
        numberByIndex[index] = 0
        return exchange(&elements[index], with: none)
    }
}
