/// Patterns in little memory: two octets a name more than its text has, in one block, in their order.
///
/// A list may have been read from a file of many lines; it knows on which of them a pattern stands.
public struct DomainList: Sendable, Hashable {
    /// Entries: a ``Mark``, for some networks the next label's value, and a name in wire form. Other than these there are
    /// marks that say only how many lines without a pattern come next.
    package private(set) var octets: [UInt8] = []
    /// How many patterns there are.
    public private(set) var count = 0

    public init() {}

    public init(_ patterns: some Sequence<DomainPattern>) {
        for pattern in patterns { append(pattern) }
        giveBackMemory()
    }

    /// The pattern comes after those that are there, one line further down.
    public mutating func append(_ pattern: DomainPattern) {
        switch pattern {
        case .subtree(let name): add(.subtree, name)
        case .below(let name): add(.below, name)
        case .singleLabels: add(.singleLabels, .root)
        case .network(let network):
            let reverse = ReverseNetwork(network)
            if reverse.bits == 0 {
                add(.network, reverse.name)
            } else {
                add(.network(bits: reverse.bits), value: reverse.value, reverse.name)
            }
        }
    }

    private mutating func add(_ mark: Mark, value: UInt8? = nil, _ name: Name) {
        octets.append(mark.rawValue)
        if let value { octets.append(value) }
        octets += name.wire
        count += 1
    }

    /// - Parameter name: labels of letters, digits, `-` and `_`, at most 63 octets each and 253 in all, between dots; no dot is
    ///   the last.
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

    /// So many lines have no pattern.
    mutating func skip(lines: Int) {
        var left = lines
        while left > 0 {
            octets += [Mark.linesWithout.rawValue, UInt8(min(left, 255))]
            left -= 255
        }
    }

    /// Lets go of memory that more patterns would have been put into.
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
    /// What an entry begins with.
    package struct Mark: Equatable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) { self.rawValue = rawValue }

        package static let subtree = Mark(rawValue: 0)
        package static let below = Mark(rawValue: 1)
        package static let singleLabels = Mark(rawValue: 2)
        /// A network whose reverse names are those under one name, which is written as a network all the same.
        package static let network = Mark(rawValue: 3)
        /// Followed by an octet: how many lines without a pattern.
        static let linesWithout = Mark(rawValue: 4)

        /// A network of which this many bits lie in the label before the name.
        package static func network(bits: Int) -> Mark { Mark(rawValue: 0x10 | UInt8(bits)) }

        /// See ``network(bits:)``; 0 for all others.
        package var bits: Int { rawValue & 0x10 == 0 ? 0 : Int(rawValue & 0xF) }
    }

    /// One pattern, where it stands in ``octets``.
    package struct Entry {
        /// The place of the mark.
        package let offset: Int
        package let mark: Mark
        /// Of the next label's value; 0 if there is none.
        package let value: UInt8
        package let name: Range<Int>
    }

    /// The entry at or behind `offset`, which then is behind it; nil if there is none.
    package func entry(after offset: inout Int) -> Entry? {
        let octets = octets.span
        while offset < octets.count {
            let start = offset
            let mark = Mark(rawValue: octets[start])
            if mark == .linesWithout {
                offset += 2
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

    /// - Parameter offset: of an entry's mark.
    package func pattern(at offset: Int) -> DomainPattern? {
        var offset = offset
        guard let entry = entry(after: &offset) else { return nil }
        let name = Name(canonical: Array(octets[entry.name]))
        switch entry.mark {
        case .subtree: return .subtree(name)
        case .below: return .below(name)
        case .singleLabels: return .singleLabels
        default:
            return ReverseNetwork(name: name, bits: entry.mark.bits, value: entry.value).network.map { .network($0) }
        }
    }

    /// On which line the entry at `offset` stands, counted from 1. Walks through what comes before.
    package func line(at offset: Int) -> Int {
        var (line, next) = (1, 0)
        while next < offset {
            if octets[next] == Mark.linesWithout.rawValue {
                line += Int(octets[next + 1])
                next += 2
            } else {
                _ = entry(after: &next)
                line += 1
            }
        }
        return line
    }

    /// The patterns in their order.
    public var patterns: [DomainPattern] {
        var found: [DomainPattern] = []
        var offset = 0
        while let entry = entry(after: &offset) {
            if let pattern = pattern(at: entry.offset) { found.append(pattern) }
        }
        return found
    }

    var first: DomainPattern? { pattern(at: 0) }
}
