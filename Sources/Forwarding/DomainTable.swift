import DNSCache
import DNSWire
import Names

/// An immutable table of values by pattern: it finds the values of all patterns that match a name, the longest first.
///
/// A keyed hash finds an entry and the entry's octets decide, so an attacker can neither pass one name off as another
/// nor choose names that are slow to find. The patterns stay in their lists: n names of w octets in wire form take n ×
/// (w + 1) octets in the lists and 10n in the table, two slots of five octets each.
///
/// A few comparisons decide most names: a name is hashed only if the table has a name of the same length and beginning.
struct DomainTable<Value: Sendable>: Sendable {
    private let lists: [DomainList]
    private let values: [Value]
    /// The offset of each list in the concatenation of all.
    private let starts: [Int]
    /// For each slot, 0 if it is empty, else some bits of the hash, which spare most comparisons.
    private var tags: [UInt8]
    /// For each slot, the offset of an entry in the concatenation of all lists.
    private var offsets: [UInt32]
    /// By the length of a name in octets: the set of beginnings of names of that length, as bits.
    private var beginnings = [UInt64](repeating: 0, count: Name.maximumLength + 1)
    /// Bit n is set if a network of the table uses n bits of the label before its name.
    private var networkBits: UInt8 = 0
    /// The first pattern that two lists must not share but do, with both locations.
    private(set) var conflict: (pattern: DomainPattern, first: PatternLocation, second: PatternLocation)?
    private let hash = NameHash(keys: NameKey.processKeys)

    /// The most octets of all lists together.
    static var maximumOctets: Int { Int(UInt32.max) }

    /// A pattern that matches a name.
    struct Match {
        let value: Value
        /// The index of the list, and the offset of the pattern in it.
        let list: Int
        let offset: Int
        /// Orders patterns that match the same name: a longer pattern has the greater value, equal patterns the same.
        let specificity: Int
        /// Whether the pattern is narrower than "every name" and "every single label".
        var namesSomething: Bool { specificity >= 2 << 4 }
    }

    /// - Parameter subtrees: Names that match themselves and all names under them.
    init(subtrees: [(names: [Name], value: Value)]) {
        self.init(subtrees.map { (DomainList($0.names.lazy.map { .subtree($0) }), $0.value) })
    }

    /// - Parameters:
    ///   - lists: The lists, at most ``maximumOctets`` together. A pattern that is twice in one list counts once.
    ///   - areInConflict: Whether two lists with these values must not have the same pattern; the earlier list's value
    ///     comes first.
    init(_ lists: [(DomainList, Value)], areInConflict: (Value, Value) -> Bool = { _, _ in false }) {
        self.lists = lists.map(\.0)
        values = lists.map(\.1)
        var (starts, end, count) = ([Int](), 0, 0)
        for list in self.lists {
            starts.append(end)
            end += list.octets.count
            count += list.count
        }
        self.starts = starts
        precondition(end <= Self.maximumOctets)
        tags = [UInt8](repeating: 0, count: max(8, 2 * count))
        offsets = [UInt32](repeating: 0, count: max(8, 2 * count))
        for number in self.lists.indices {
            var offset = 0
            while let entry = self.lists[number].entry(after: &offset) { insert(entry, number, areInConflict) }
        }
    }

    private mutating func insert(
        _ entry: DomainList.Entry, _ number: Int, _ areInConflict: (Value, Value) -> Bool
    ) {
        let bytes = lists[number].octets
        let octets = bytes.span
        let hash = self.hash(octets, name: entry.name, type: Self.kind(entry.mark.bits, entry.value))
        let tag = Self.tag(hash)
        var slot = firstSlot(hash)
        while tags[slot] != 0 {
            if tags[slot] == tag {
                let (list, other) = listAndOffset(slot)
                if isEntry(list, other, octets, entry.name, entry.mark.bits, entry.value),
                    Self.rank(lists[list].octets[other]) == Self.rank(entry.mark.rawValue)
                {
                    if list == number {
                        if lists[list].octets[other] == entry.mark.rawValue { return }
                    } else if conflict == nil, areInConflict(values[list], values[number]) {
                        conflict = lists[number].pattern(at: entry.offset).map {
                            ($0, location(list, other), location(number, entry.offset))
                        }
                    }
                }
            }
            slot = slot &+ 1 == tags.count ? 0 : slot &+ 1
        }
        tags[slot] = tag
        offsets[slot] = UInt32(starts[number] + entry.offset)
        if entry.mark.bits > 0 { networkBits |= 1 << UInt8(entry.mark.bits) }
        let start = entry.name.lowerBound
        beginnings[entry.name.count] |=
            octets[start] != 0
            ? Self.beginning(octets, start) : entry.mark == .singleLabels ? Self.singleLabelsBit : Self.rootBit
    }

    func location(_ list: Int, _ offset: Int) -> PatternLocation {
        PatternLocation(list: list, line: lists[list].line(at: offset))
    }
    func pattern(_ match: Match) -> DomainPattern? { lists[match.list].pattern(at: match.offset) }

    /// Whether a list with such a value has a pattern that may match a name or one under it. Networks do not count.
    func hasPattern(under parent: Name, where isMeant: (Value) -> Bool) -> Bool {
        for (list, value) in zip(lists, values) where isMeant(value) {
            for pattern in list.patterns {
                switch pattern {
                case .subtree(let name), .below(let name):
                    if name.isWithin(parent) || parent.isWithin(name) { return true }
                case .only(let name): if name.isWithin(parent) { return true }
                case .singleLabels: if parent.labelCount <= 1 { return true }
                case .network: continue
                }
            }
        }
        return false
    }

    /// The memory of the table and its lists, in octets.
    var residentOctets: Int {
        lists.reduce(0) { $0 + $1.octets.capacity } + tags.capacity + 4 * offsets.capacity + 8 * beginnings.capacity
    }
}

// MARK: Looking up

extension DomainTable {
    /// The offsets of a label in a name and of the label before it; the latter is −1 if there is none to consider.
    typealias Label = (offset: Int, before: Int)

    /// The first label, from `label` on, at which a name of the table may begin; nil for most names.
    @inline(__always)
    func candidate(_ wire: Span<UInt8>, from label: Label) -> Label? {
        var (offset, before) = label
        while wire[offset] != 0 {
            if beginnings[wire.count &- offset] & Self.beginning(wire, offset) != 0 { return (offset, before) }
            before = offset
            offset &+= Int(wire[offset]) &+ 1
        }
        let bits = before == 0 ? Self.rootBit | Self.singleLabelsBit : Self.rootBit
        return beginnings[1] & bits != 0 ? (offset, before) : nil
    }

    /// Calls `visit` with each pattern that matches a name, the longest first.
    /// - Parameter first: the result of ``candidate(_:from:)``.
    func forEach(holding name: Name, from first: Label, _ visit: (Match) -> Void) {
        let wire = name.wire.span
        var label = first
        while true {
            look(wire, label.offset, label.before, visit)
            guard wire[label.offset] != 0,
                let next = candidate(wire, from: (label.offset + Int(wire[label.offset]) + 1, label.offset))
            else { return }
            label = next
        }
    }

    /// The longest pattern that matches a name; nil if no pattern does.
    func longest(_ name: Name) -> Match? {
        guard let first = candidate(name.wire.span, from: (0, -1)) else { return nil }
        var longest: Match?
        forEach(holding: name, from: first) { if longest == nil { longest = $0 } }
        return longest
    }

    private static var rootBit: UInt64 { 1 }
    private static var singleLabelsBit: UInt64 { 2 }

    /// One of 64 bits, chosen by the first label's length and first letter.
    @inline(__always)
    private static func beginning(_ wire: Span<UInt8>, _ offset: Int) -> UInt64 {
        1 << UInt64((wire[offset] &* 7 &+ wire[offset &+ 1]) % 64)
    }

    /// Visits the patterns for the end of a name at `offset`, whose preceding label is at `before`.
    private func look(_ wire: Span<UInt8>, _ offset: Int, _ before: Int, _ visit: (Match) -> Void) {
        if networkBits != 0, before >= 0 { lookForNetworks(wire, offset, before, visit) }
        var ranks: UInt8 = 0
        probe(wire, offset, bits: 0, value: 0) { list, entry in
            if holdsHere(list, entry, offset) { ranks |= 1 << Self.rank(lists[list].octets[entry]) }
        }
        // `*.x` needs a label before x; the pattern of single labels needs none before or after.
        if before < 0 { ranks &= ~(1 << Self.belowRank) }
        if before != 0 { ranks &= ~(1 << Self.singleLabelsRank) }
        let octets = (wire.count - offset) << 4
        for rank in (0...Self.belowRank).reversed() where ranks & 1 << rank != 0 {
            probe(wire, offset, bits: 0, value: 0) { list, entry in
                guard Self.rank(lists[list].octets[entry]) == rank, holdsHere(list, entry, offset) else { return }
                visit(match(list, entry, octets | Int(rank)))
            }
        }
    }

    /// Whether an entry matches at this offset of a name: the mark `only` matches at offset 0 alone.
    private func holdsHere(_ list: Int, _ entry: Int, _ offset: Int) -> Bool {
        offset == 0 || lists[list].octets[entry] != DomainList.Mark.only.rawValue
    }

    private func match(_ list: Int, _ offset: Int, _ specificity: Int) -> Match {
        Match(value: values[list], list: list, offset: offset, specificity: specificity)
    }

    /// Visits the networks whose prefix ends inside the label at `before`.
    private func lookForNetworks(_ wire: Span<UInt8>, _ offset: Int, _ before: Int, _ visit: (Match) -> Void) {
        guard let isIPv4 = ReverseNetwork.isIPv4(wire),
            let value = ReverseNetwork.labelValue(wire, at: before, isIPv4: isIPv4)
        else { return }
        let octets = (wire.count - offset) << 4
        let width = ReverseNetwork.bitsPerLabel(isIPv4: isIPv4)
        for bits in (1..<width).reversed() where networkBits & 1 << UInt8(bits) != 0 {
            let prefix = value & ~((1 << UInt8(width - bits)) - 1)
            probe(wire, offset, bits: bits, value: prefix) { list, entry in
                visit(match(list, entry, octets | Int(Self.belowRank) + bits))
            }
        }
    }

    /// Visits each entry whose name is the end of `wire`, by the entry's list and its offset in the list.
    @inline(__always)
    private func probe(
        _ wire: Span<UInt8>, _ offset: Int, bits: Int, value: UInt8, _ found: (Int, Int) -> Void
    ) {
        let hash = hash(wire, name: offset..<wire.count, type: Self.kind(bits, value))
        let tag = Self.tag(hash)
        let tags = tags.span
        var slot = firstSlot(hash)
        while tags[slot] != 0 {
            if tags[slot] == tag {
                let (list, entry) = listAndOffset(slot)
                if isEntry(list, entry, wire, offset..<wire.count, bits, value) { found(list, entry) }
            }
            slot = slot &+ 1 == tags.count ? 0 : slot &+ 1
        }
    }

    /// Whether the entry at `offset` of a list has this name, compared octet by octet.
    private func isEntry(
        _ list: Int, _ offset: Int, _ wire: Span<UInt8>, _ name: Range<Int>, _ bits: Int, _ value: UInt8
    ) -> Bool {
        let bytes = lists[list].octets
        let octets = bytes.span
        let mark = DomainList.Mark(rawValue: octets[offset])
        guard mark.bits == bits, bits == 0 || octets[offset + 1] == value else { return false }
        let start = offset + (bits == 0 ? 1 : 2)
        guard octets.count - start >= name.count else { return false }
        for index in 0..<name.count where octets[start &+ index] != wire[name.lowerBound &+ index] { return false }
        return true
    }

    private func listAndOffset(_ slot: Int) -> (list: Int, offset: Int) {
        let offset = Int(offsets[slot])
        var lists = 0..<starts.count
        while lists.count > 1 {
            let middle = lists.lowerBound + lists.count / 2
            lists = starts[middle] <= offset ? middle..<lists.upperBound : lists.lowerBound..<middle
        }
        return (lists.lowerBound, offset - starts[lists.lowerBound])
    }

    /// The number of slots is no power of two, so the hash is scaled to it.
    @inline(__always)
    private func firstSlot(_ hash: UInt64) -> Int { Int(hash.multipliedFullWidth(by: UInt64(tags.count)).high) }

    @inline(__always)
    private static func tag(_ hash: UInt64) -> UInt8 { UInt8(hash % 255) &+ 1 }

    /// The octets that are hashed with the name.
    @inline(__always)
    private static func kind(_ bits: Int, _ value: UInt8) -> UInt16 { UInt16(bits) << 8 | UInt16(value) }

    private static var belowRank: UInt8 { 2 }
    private static var singleLabelsRank: UInt8 { 1 }

    /// Orders patterns with the same name by length; "only x" is as long as "x". Ranks above ``belowRank`` are bits of
    /// networks.
    @inline(__always)
    private static func rank(_ mark: UInt8) -> UInt8 {
        switch DomainList.Mark(rawValue: mark) {
        case .below: belowRank
        case .singleLabels: singleLabelsRank
        default: 0
        }
    }
}

extension NameKey {
    /// Two keys, random for this process: `Hasher` makes them from any two numbers.
    static var processKeys: (UInt64, UInt64) {
        (UInt64(bitPattern: Int64(digest([0], from: 0))), UInt64(bitPattern: Int64(digest([1], from: 0))))
    }
}
