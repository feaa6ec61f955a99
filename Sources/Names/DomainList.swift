import Base
import DNSWire

/// Patterns in little memory, in order. Each pattern takes two octets more than its text, all in one block.
///
/// A list that was read from a file knows the line of each pattern.
public struct DomainList: Sendable, Hashable {
    /// Consecutive entries: a ``Mark``, the next label's value for some networks, and a name in wire form. Other marks
    /// only count lines without a pattern, or mean that the next pattern is on the same line as the last pattern.
    package private(set) var octets: [UInt8] = []
    /// The number of patterns.
    public private(set) var count = 0

    public init() {}

    public init(_ patterns: some Sequence<DomainPattern>) {
        for pattern in patterns { append(pattern) }
        giveBackMemory()
    }

    /// Appends a pattern, one line below the last pattern.
    public mutating func append(_ pattern: DomainPattern) {
        switch pattern {
        case .subtree(let name): add(.subtree, name)
        case .below(let name): add(.below, name)
        case .only(let name): add(.only, name)
        case .singleLabels: add(.singleLabels, .root)
        case .network(let network):
            let reverse = ReverseNetwork(network)
            let mark: Mark = reverse.bits == 0 ? .network : .network(bits: reverse.bits)
            add(mark, value: reverse.value, reverse.name)
        }
    }

    /// - Parameter value: The next label's value, for a network with bits in that label.
    private mutating func add(_ mark: Mark, value: UInt8 = 0, _ name: Name) {
        octets.append(mark.rawValue)
        if mark.bits > 0 { octets.append(value) }
        octets += name.wire
        count += 1
    }

    /// - Parameter name: Labels of letters, digits, `-` and `_`, at most 63 octets each and 253 in all, between dots,
    ///   without a final dot.
    mutating func add(_ mark: Mark, hostname text: Span<UInt8>, _ name: Range<Int>) {
        let needed = octets.count + name.count + 3
        if needed > octets.capacity { octets.reserveCapacity(max(needed, 2 * octets.capacity)) }
        octets.append(addingCapacity: name.count + 3) { entry in
            entry.append(mark.rawValue)
            var length = entry.count
            entry.append(0)
            for index in name {
                let octet = text[index]
                if octet == UInt8(ascii: ".") {
                    entry[length] = UInt8(entry.count - length - 1)
                    length = entry.count
                }
                entry.append(lowercased(octet))
            }
            entry[length] = UInt8(entry.count - length - 1)
            entry.append(0)
        }
        count += 1
    }

    /// Counts this many lines without a pattern.
    mutating func skip(lines: Int) {
        var left = lines
        while left > 0 {
            octets += [Mark.linesWithout.rawValue, UInt8(min(left, 255))]
            left -= 255
        }
    }

    /// Notes that the next pattern is on the same line as the last pattern.
    mutating func stayOnLine() { octets.append(Mark.sameLine.rawValue) }

    /// The patterns that another list lacks, one a line.
    public func subtracting(_ other: DomainList) -> DomainList {
        var others: Set<ArraySlice<UInt8>> = []
        var (rest, offset) = (DomainList(), 0)
        while let entry = other.entry(after: &offset) { others.insert(other.octets[entry.offset..<offset]) }
        offset = 0
        while let entry = entry(after: &offset) {
            let octets = octets[entry.offset..<offset]
            if !others.contains(octets) { rest.append(octets, count: 1) }
        }
        return rest
    }

    /// Appends entries.
    mutating func append(_ entries: some Sequence<UInt8>, count: Int) {
        octets += entries
        self.count += count
    }

    /// Frees the memory reserved for further patterns.
    mutating func giveBackMemory() {
        guard octets.capacity > octets.count + octets.count / 16 else { return }
        var exact: [UInt8] = []
        exact.reserveCapacity(octets.count)
        exact += octets
        octets = exact
    }
}

// MARK: Entries

extension DomainList {
    /// The first octet of an entry: the kind of its pattern.
    package struct Mark: Equatable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) { self.rawValue = rawValue }

        package static let subtree = Mark(rawValue: 0)
        package static let below = Mark(rawValue: 1)
        package static let singleLabels = Mark(rawValue: 2)
        /// A network that is exactly all reverse names under one name. The text of the entry is the network's text.
        package static let network = Mark(rawValue: 3)
        /// A mark before an octet with the number of lines without a pattern.
        static let linesWithout = Mark(rawValue: 4)
        package static let only = Mark(rawValue: 5)
        /// A mark without further octets; see ``DomainList/stayOnLine()``.
        static let sameLine = Mark(rawValue: 6)

        /// A network with this many bits in the label before the name.
        package static func network(bits: Int) -> Mark { Mark(rawValue: 0x10 | UInt8(bits)) }

        /// The number of bits, see ``network(bits:)``; 0 for all other marks.
        package var bits: Int { rawValue & 0x10 == 0 ? 0 : Int(rawValue & 0xF) }
    }

    /// One pattern, with its position in ``octets``.
    package struct Entry {
        /// The offset of the mark.
        package let offset: Int
        package let mark: Mark
        /// The value of the next label; 0: the network needs none.
        package let value: UInt8
        package let name: Range<Int>
    }

    /// The entry at `offset`, or after marks about lines there; nil at the end. Moves `offset` past the entry.
    package func entry(after offset: inout Int) -> Entry? {
        let octets = octets.span
        while offset < octets.count {
            let start = offset
            let mark = Mark(rawValue: octets[start])
            if mark == .linesWithout || mark == .sameLine {
                offset += mark == .sameLine ? 1 : 2
                continue
            }
            let nameStart = start + (mark.bits == 0 ? 1 : 2)
            var end = nameStart
            while octets[end] != 0 { end += Int(octets[end]) + 1 }
            offset = end + 1
            return Entry(
                offset: start, mark: mark, value: mark.bits == 0 ? 0 : octets[start + 1], name: nameStart..<offset)
        }
        return nil
    }

    /// - Parameter offset: The offset of an entry's mark.
    package func pattern(at offset: Int) -> DomainPattern? {
        var offset = offset
        guard let entry = entry(after: &offset) else { return nil }
        let name = Name(canonical: Array(octets[entry.name]))
        switch entry.mark {
        case .subtree: return .subtree(name)
        case .below: return .below(name)
        case .only: return .only(name)
        case .singleLabels: return .singleLabels
        default:
            return ReverseNetwork(name: name, bits: entry.mark.bits, value: entry.value).network.map { .network($0) }
        }
    }

    /// The line of the entry at `offset`, counted from 1. Walks over all entries before it.
    package func line(at offset: Int) -> Int {
        var (line, next) = (1, 0)
        while next < offset {
            if octets[next] == Mark.linesWithout.rawValue {
                line += Int(octets[next + 1])
                next += 2
            } else if octets[next] == Mark.sameLine.rawValue {
                line -= 1
                next += 1
            } else {
                _ = entry(after: &next)
                line += 1
            }
        }
        return line
    }

    /// All patterns, in order.
    public var patterns: [DomainPattern] {
        var found: [DomainPattern] = []
        var offset = 0
        while let entry = entry(after: &offset) {
            if let pattern = pattern(at: entry.offset) { found.append(pattern) }
        }
        return found
    }
}
