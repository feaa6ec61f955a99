/// A list that usually has one element, which needs no memory on the heap.
public struct SmallList<Element>: Sequence {
    /// The first element; nil if there is none.
    public private(set) var first: Element?
    private var others: [Element] = []

    /// - Parameter element: The only element; nil for an empty list.
    public init(_ element: Element? = nil) { first = element }

    /// Whether the list has no element.
    public var isEmpty: Bool { first == nil }
    /// The number of elements.
    public var count: Int { first == nil ? 0 : 1 + others.count }

    /// Adds an element at the end.
    public mutating func append(_ element: Element) {
        if first == nil { first = element } else { others.append(element) }
    }

    /// Removes an element, usually the last; nil if there is none.
    public mutating func popLast() -> Element? { others.isEmpty ? first.take() : others.removeLast() }

    func map<Other>(_ transform: (Element) -> Other) -> SmallList<Other> {
        var all = SmallList<Other>(first.map(transform))
        if !others.isEmpty { all.others = others.map(transform) }
        return all
    }

    /// Removes some elements; the others stay in order.
    public mutating func removeAll(where isUnwanted: (Element) -> Bool) {
        let all = self
        self = SmallList()
        for element in all where !isUnwanted(element) { append(element) }
    }

    /// The elements in their order.
    public struct Iterator: IteratorProtocol {
        fileprivate var first: Element?
        fileprivate var others: IndexingIterator<[Element]>

        /// The next element; nil if there is none.
        public mutating func next() -> Element? { first.take() ?? others.next() }
    }

    /// The elements in their order.
    public func makeIterator() -> Iterator { Iterator(first: first, others: others.makeIterator()) }
}
