internal import Base
internal import DNSWire

/// The names of a request, by which the names in the answer are identified.
struct AskedNames {
    let names: [Name]
    /// Whether the case of letters counts. Otherwise an attacker who flips one bit of a hidden name could learn from
    /// the answer's acceptance that the octet is a letter.
    let isExact: Bool
    /// The index of the name to compare first: services answer in the order of the names.
    private var next = 0

    init(_ names: [Name], isExact: Bool) { (self.names, self.isExact) = (names, isExact) }

    /// The index of the name that equals the text; nil: the request does not have this name.
    mutating func index(of text: Span<UInt8>, _ range: Range<Int>) -> Int? {
        guard !range.isEmpty else { return nil }
        let isNext = next < names.count && isName(names[next], text, range)
        guard let index = isNext ? next : names.firstIndex(where: { isName($0, text, range) }) else { return nil }
        next = index + 1
        return index
    }

    private func isName(_ name: Name, _ text: Span<UInt8>, _ range: Range<Int>) -> Bool {
        // The text has as many octets as the wire form without the first length and the root label.
        guard range.count == name.wire.count - 2 else { return false }
        let wire = name.wire.span
        // An octet at an index of the wire form after the first length is in the text at that index plus `shift`; where
        // the wire form has a further length, the text must have a dot.
        let shift = range.lowerBound - 1
        var position = 1
        while true {
            let end = position + Int(wire[position - 1])
            while position < end {
                let octet = text[shift &+ position]
                if octet != wire[position] {
                    guard !isExact, lowercased(octet) == wire[position] else { return false }
                }
                position &+= 1
            }
            guard wire[end] > 0 else { return true }
            guard text[shift + end] == UInt8(ascii: ".") else { return false }
            position = end + 1
        }
    }
}
