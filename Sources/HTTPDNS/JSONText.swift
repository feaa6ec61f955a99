internal import Base

/// A JSON text (RFC 8259), read whole. Its values are nodes, identified by index, in the order of the text.
///
/// The reader is strict, since a text that two readers could read differently is no answer. The text must be UTF-8; a
/// member may occur once in an object; names of members, and strings that are used, have no escapes (except `\/`, see
/// ``unescaped(_:)``); numbers that are used are integers and not negative. A missing value, and `null`, counts as an
/// empty object or array, as in services written in Go. Unused values are checked only for their form.
///
/// Constants limit depth, members and values; the limit of an HTTP body limits the length.
struct JSONText {
    /// The deepest nesting of objects and arrays; the services need six.
    static let maximumDepth = 8
    /// The most members of an object. A request has ten names at most.
    static let maximumMembers = 64
    /// The most values, including names of members: enough for ten names with 90 addresses of each family.
    static let maximumValues = 2048

    fileprivate enum Kind: UInt8 { case object, array, string, escaped, number, bool, null }

    fileprivate struct Node {
        let kind: Kind
        /// The range of the member's name in the text; empty for a node that is no member.
        let name: Range<Int>
        /// The range of the value in the text. A string is without its quotes.
        let range: Range<Int>
        /// The index of the next node after this one and its contents.
        var next: Int
    }

    let octets: [UInt8]
    /// The first node is a null, for missing values; the second is the whole text.
    private var nodes: [Node] = []
    /// The offset up to which the text is read.
    private var position = 0

    private static let missing = 0
    static let root = 1

    /// - Parameter isInAnyScript: Whether strings may have characters beyond ASCII. In an encrypted text they may not:
    ///   an attacker who changes it on the way makes 16 random octets of a block, which could hide in an unused string.
    init(_ octets: [UInt8], isInAnyScript: Bool = true) throws(ServiceFailure) {
        guard isInAnyScript ? (try? UTF8Span(validating: octets.span)) != nil : octets.allSatisfy({ $0 < 0x80 }) else {
            throw .unparsable
        }
        self.octets = octets
        nodes.reserveCapacity(octets.count / 16 + 2)
        try add(.null, 0..<0, 0..<0)
        try readValue(octets.span, 0..<0, depth: 0)
        guard next(octets.span) == nil else { throw .unparsable }
    }

    // MARK: Values

    func isMissing(_ index: Int) -> Bool { nodes[index].kind == .null }

    func isString(_ index: Int) -> Bool { nodes[index].kind == .string || nodes[index].kind == .escaped }

    /// The node of the value of an object's member.
    func member(_ wanted: StaticString, of object: Int = root) throws(ServiceFailure) -> Int {
        let content = try content(of: object, .object)
        var index = content.lowerBound
        while index < content.upperBound {
            if isSame(octets.span, nodes[index].name, as: wanted) { return index }
            index = nodes[index].next
        }
        return Self.missing
    }

    /// The range of a member's name in ``octets``, without its quotes.
    func name(_ index: Int) -> Range<Int> { nodes[index].name }

    /// The nodes of an object's values.
    func members(of object: Int) throws(ServiceFailure) -> Children {
        Children(nodes: nodes, rest: try content(of: object, .object))
    }

    /// The nodes of an array's elements.
    func elements(of array: Int) throws(ServiceFailure) -> Children {
        Children(nodes: nodes, rest: try content(of: array, .array))
    }

    @inline(__always)
    private func content(of index: Int, _ kind: Kind) throws(ServiceFailure) -> Range<Int> {
        guard nodes[index].kind == kind || nodes[index].kind == .null else { throw .unparsable }
        return index + 1..<nodes[index].next
    }

    /// The nodes in an object or array.
    struct Children: Sequence, IteratorProtocol {
        fileprivate let nodes: [Node]
        fileprivate var rest: Range<Int>

        mutating func next() -> Int? {
            guard let index = rest.first else { return nil }
            rest = nodes[index].next..<rest.upperBound
            return index
        }
    }

    /// The range of a string without escapes in ``octets``, without its quotes.
    func string(_ index: Int) throws(ServiceFailure) -> Range<Int> {
        guard nodes[index].kind == .string else { throw .unparsable }
        return nodes[index].range
    }

    /// The octets of a string. The string may have a `\` before each `/`, as some writers put there.
    func unescaped(_ index: Int) throws(ServiceFailure) -> [UInt8] {
        guard isString(index) else { throw .unparsable }
        let pieces = octets[nodes[index].range]
            .split(separator: UInt8(ascii: "\\"), omittingEmptySubsequences: false)
        guard pieces.dropFirst().allSatisfy({ $0.first == UInt8(ascii: "/") }) else { throw .unparsable }
        return Array(pieces.joined())
    }

    /// An integer of 0 or more, limited to `maximum`.
    func integer(_ index: Int, maximum: Int = .max) throws(ServiceFailure) -> Int {
        guard nodes[index].kind == .number, let value = decimal(octets.span, nodes[index].range, maximum: maximum)
        else { throw .unparsable }
        return value
    }

    /// A string as an address; nil: the string is no address.
    func address(_ index: Int) throws(ServiceFailure) -> IPAddress? {
        IPAddress(parsing: octets.span.extracting(try string(index)))
    }
}

// MARK: Reading

extension JSONText {
    /// Skips white space, and returns the next octet; nil at the end.
    @inline(__always)
    private mutating func next(_ text: Span<UInt8>) -> UInt8? {
        while position < text.count {
            // Nearly all octets between values are above the space, which is compared first.
            let octet = text[position]
            if octet > 0x20 || !isWhiteSpace(octet) { return octet }
            position &+= 1
        }
        return nil
    }

    @inline(__always)
    private mutating func take(_ octet: UInt8, _ text: Span<UInt8>) -> Bool {
        guard next(text) == octet else { return false }
        position &+= 1
        return true
    }

    private mutating func add(_ kind: Kind, _ name: Range<Int>, _ range: Range<Int>) throws(ServiceFailure) {
        guard nodes.count < Self.maximumValues else { throw .unparsable }
        nodes.append(Node(kind: kind, name: name, range: range, next: nodes.count + 1))
    }

    private mutating func readValue(
        _ text: Span<UInt8>, _ name: Range<Int>, depth: Int
    ) throws(ServiceFailure) {
        switch next(text) {
        case UInt8(ascii: "\""):
            let (range, hasEscapes) = try readString(text)
            try add(hasEscapes ? .escaped : .string, name, range)
        case UInt8(ascii: "{"): try readContent(text, name, .object, until: UInt8(ascii: "}"), depth)
        case UInt8(ascii: "["): try readContent(text, name, .array, until: UInt8(ascii: "]"), depth)
        case UInt8(ascii: "t"): try readWord(text, name, "true", .bool)
        case UInt8(ascii: "f"): try readWord(text, name, "false", .bool)
        case UInt8(ascii: "n"): try readWord(text, name, "null", .null)
        default: try readNumber(text, name)
        }
    }

    private mutating func readContent(
        _ text: Span<UInt8>, _ name: Range<Int>, _ kind: Kind, until end: UInt8, _ depth: Int
    ) throws(ServiceFailure) {
        guard depth < Self.maximumDepth else { throw .unparsable }
        let index = nodes.count
        try add(kind, name, position..<position)
        position += 1
        if !take(end, text) {
            repeat {
                try readValue(text, kind == .object ? try readName(text, in: index) : 0..<0, depth: depth + 1)
            } while take(UInt8(ascii: ","), text)
            guard take(end, text) else { throw .unparsable }
        }
        nodes[index].next = nodes.count
    }

    /// Reads the name of a member, which must be unique in its object, and the colon after it.
    private mutating func readName(_ text: Span<UInt8>, in object: Int) throws(ServiceFailure) -> Range<Int> {
        guard next(text) == UInt8(ascii: "\"") else { throw .unparsable }
        let (name, hasEscapes) = try readString(text)
        guard !hasEscapes, take(UInt8(ascii: ":"), text) else { throw .unparsable }
        var (other, count) = (object + 1, 1)
        while other < nodes.count {
            let range = nodes[other].name
            if range.count == name.count {
                var offset = 0
                while offset < name.count, text[name.lowerBound + offset] == text[range.lowerBound + offset] {
                    offset += 1
                }
                guard offset < name.count else { throw .unparsable }
            }
            other = nodes[other].next
            count += 1
        }
        guard count <= Self.maximumMembers else { throw .unparsable }
        return name
    }

    /// Reads a string (§7), and returns its range without the quotes.
    private mutating func readString(_ text: Span<UInt8>) throws(ServiceFailure) -> (Range<Int>, hasEscapes: Bool) {
        let start = position + 1
        var (index, hasEscapes) = (start, false)
        while index < text.count {
            let octet = text[index]
            index &+= 1
            // Nearly all octets are above the quote.
            if octet > UInt8(ascii: "\""), octet != UInt8(ascii: "\\") { continue }
            if octet == UInt8(ascii: "\"") {
                position = index
                return (start..<index - 1, hasEscapes)
            }
            guard octet >= 0x20 else { break }
            if octet == UInt8(ascii: "\\") {
                hasEscapes = true
                index = try Self.endOfEscape(text, index)
            }
        }
        throw .unparsable
    }

    /// - Parameter index: The index after the backslash.
    private static func endOfEscape(_ text: Span<UInt8>, _ index: Int) throws(ServiceFailure) -> Int {
        guard index < text.count else { throw .unparsable }
        switch text[index] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            return index + 1
        case UInt8(ascii: "u"):
            guard index + 5 <= text.count else { throw .unparsable }
            for digit in index + 1...index + 4 where Hexadecimal.value(text[digit]) == nil { throw .unparsable }
            return index + 5
        default: throw .unparsable
        }
    }

    /// Reads a number (§6).
    private mutating func readNumber(_ text: Span<UInt8>, _ name: Range<Int>) throws(ServiceFailure) {
        let start = position
        _ = take(UInt8(ascii: "-"), or: UInt8(ascii: "-"), text)
        let first = position
        try readDigits(text)
        guard text[first] != UInt8(ascii: "0") || position == first + 1 else { throw .unparsable }
        if take(UInt8(ascii: "."), or: UInt8(ascii: "."), text) { try readDigits(text) }
        if take(UInt8(ascii: "e"), or: UInt8(ascii: "E"), text) {
            _ = take(UInt8(ascii: "+"), or: UInt8(ascii: "-"), text)
            try readDigits(text)
        }
        try add(.number, name, start..<position)
    }

    /// Takes one of two octets, if it is next.
    private mutating func take(_ first: UInt8, or second: UInt8, _ text: Span<UInt8>) -> Bool {
        guard position < text.count, text[position] == first || text[position] == second else { return false }
        position += 1
        return true
    }

    private mutating func readDigits(_ text: Span<UInt8>) throws(ServiceFailure) {
        let start = position
        while position < text.count, isDigit(text[position]) { position &+= 1 }
        guard position > start else { throw .unparsable }
    }

    private mutating func readWord(
        _ text: Span<UInt8>, _ name: Range<Int>, _ word: StaticString, _ kind: Kind
    ) throws(ServiceFailure) {
        let start = position
        position += word.utf8CodeUnitCount
        guard position <= text.count, isSame(text, start..<position, as: word) else { throw .unparsable }
        try add(kind, name, start..<position)
    }
}
