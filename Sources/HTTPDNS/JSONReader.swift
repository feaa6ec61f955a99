internal import Base

/// Reads a JSON text (RFC 8259) from front to back, without making values of it: the caller says what it expects next.
///
/// It is strict, since a text that two readers could read differently is no answer: a member may stand in an object
/// once; names of members, and strings that are used, have no escapes (but `\/`); numbers that are used are whole and
/// not negative. Where an object or array is expected, `null` stands for an empty one, as services written in Go have
/// it. What is not used is checked for its form alone.
///
/// Depth and members are limited by the constants, the length by that of a body of HTTP.
struct JSONReader {
    /// How deep objects and arrays may stand in each other; the services need six.
    static let maximumDepth = 8
    /// The most members of all objects that are open at a time: ten names are asked at once at most.
    static let maximumMembers = 64

    private(set) var place: Int
    private var depth = 0
    /// Whether strings may have octets beyond ASCII. Not in a text that came encrypted: whoever changes it on the way
    /// makes 16 random octets of a block, which could hide in a string that is not used.
    private let isInAnyScript: Bool
    /// The names of the members read so far, of all objects that are open: where each begins and its length, 32 bits
    /// each. Without memory from the heap.
    private var members = InlineArray<64, UInt64>(repeating: 0)
    private var memberCount = 0

    /// A member's value, or an array's element, which has to be read whole.
    typealias Read = (inout JSONReader, Span<UInt8>, Range<Int>) throws(ServiceFailure) -> Void

    init(at place: Int = 0, isInAnyScript: Bool = true) { (self.place, self.isInAnyScript) = (place, isInAnyScript) }

    /// Reads an object.
    /// - Parameter member: Called with the place of each member's name.
    @inline(__always)
    mutating func object(_ text: Span<UInt8>, _ member: Read) throws(ServiceFailure) {
        guard try open(text, UInt8(ascii: "{")) else { return }
        let first = memberCount
        if !take(text, UInt8(ascii: "}")) {
            repeat { try member(&self, text, try nextMember(text, since: first)) } while take(text, UInt8(ascii: ","))
            guard take(text, UInt8(ascii: "}")) else { throw .unparsable }
        }
        memberCount = first
        depth -= 1
    }

    /// Reads the name of a member and the colon behind it.
    /// - Parameter first: The place in `members` of the object's first.
    private mutating func nextMember(_ text: Span<UInt8>, since first: Int) throws(ServiceFailure) -> Range<Int> {
        let name = try string(text)
        guard memberCount < Self.maximumMembers else { throw .unparsable }
        let length = UInt64(name.count)
        for place in first..<memberCount where members[place] & 0xFFFF_FFFF == length {
            let start = Int(members[place] >> 32)
            guard !Self.areEqual(text, start, name) else { throw .unparsable }
        }
        members[memberCount] = UInt64(name.lowerBound) << 32 | length
        memberCount += 1
        guard take(text, UInt8(ascii: ":")) else { throw .unparsable }
        return name
    }

    /// Reads an array.
    /// - Parameter element: Called for each element, with a range that means nothing.
    @inline(__always)
    mutating func array(_ text: Span<UInt8>, _ element: Read) throws(ServiceFailure) {
        guard try open(text, UInt8(ascii: "[")) else { return }
        if !take(text, UInt8(ascii: "]")) {
            repeat { try element(&self, text, place..<place) } while take(text, UInt8(ascii: ","))
            guard take(text, UInt8(ascii: "]")) else { throw .unparsable }
        }
        depth -= 1
    }

    /// Reads a string without escapes but `\/`, and returns its place without the quotes.
    mutating func string(_ text: Span<UInt8>) throws(ServiceFailure) -> Range<Int> {
        let (range, hasEscapes) = try quoted(text)
        if hasEscapes {
            for index in range where text[index] == UInt8(ascii: "\\") {
                guard text[index + 1] == UInt8(ascii: "/") else { throw .unparsable }
            }
        }
        return range
    }

    /// Reads a whole number, 0 or more; what exceeds `maximum` is `maximum`.
    mutating func integer(_ text: Span<UInt8>, maximum: Int) throws(ServiceFailure) -> Int {
        skipWhiteSpace(text)
        let start = place
        try number(text)
        guard let value = decimal(text, start..<place, maximum: maximum) else { throw .unparsable }
        return value
    }

    /// Reads any value and returns its place.
    @discardableResult
    mutating func skip(_ text: Span<UInt8>) throws(ServiceFailure) -> Range<Int> {
        skipWhiteSpace(text)
        let start = place
        guard start < text.count else { throw .unparsable }
        switch text[start] {
        case UInt8(ascii: "{"): try object(text) { reader, text, _ throws(ServiceFailure) in try reader.skip(text) }
        case UInt8(ascii: "["): try array(text) { reader, text, _ throws(ServiceFailure) in try reader.skip(text) }
        case UInt8(ascii: "\""): _ = try quoted(text)
        case UInt8(ascii: "t"): try word("true", text)
        case UInt8(ascii: "f"): try word("false", text)
        case UInt8(ascii: "n"): try word("null", text)
        default: try number(text)
        }
        return start..<place
    }

    /// Checks that nothing follows.
    mutating func end(_ text: Span<UInt8>) throws(ServiceFailure) {
        skipWhiteSpace(text)
        guard place == text.count else { throw .unparsable }
    }

    /// Whether a string comes next.
    mutating func isString(_ text: Span<UInt8>) -> Bool {
        skipWhiteSpace(text)
        return place < text.count && text[place] == UInt8(ascii: "\"")
    }

    /// Whether the text has the same octets from `start` on as in a range.
    private static func areEqual(_ text: Span<UInt8>, _ start: Int, _ range: Range<Int>) -> Bool {
        var offset = 0
        while offset < range.count {
            guard text[start + offset] == text[range.lowerBound + offset] else { return false }
            offset += 1
        }
        return true
    }

    /// Begins an object or array; false: `null` stands there.
    private mutating func open(_ text: Span<UInt8>, _ bracket: UInt8) throws(ServiceFailure) -> Bool {
        if !take(text, bracket) {
            try word("null", text)
            return false
        }
        depth += 1
        guard depth <= Self.maximumDepth else { throw .unparsable }
        return true
    }

    /// Reads a string, and returns its place and whether it has escapes (§7).
    private mutating func quoted(_ text: Span<UInt8>) throws(ServiceFailure) -> (Range<Int>, hasEscapes: Bool) {
        guard take(text, UInt8(ascii: "\"")) else { throw .unparsable }
        let start = place
        var hasEscapes = false
        while true {
            place = JSON.endOfPlainText(text, from: place)
            guard place < text.count else { throw .unparsable }
            let octet = text[place]
            place &+= 1
            if octet == UInt8(ascii: "\"") { return (start..<place - 1, hasEscapes) }
            if octet == UInt8(ascii: "\\") {
                hasEscapes = true
                try escape(text)
            } else {
                guard octet >= 0x80, isInAnyScript else { throw .unparsable }
            }
        }
    }

    private mutating func escape(_ text: Span<UInt8>) throws(ServiceFailure) {
        guard place < text.count else { throw .unparsable }
        let kind = text[place]
        place += 1
        switch kind {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            return
        case UInt8(ascii: "u"):
            for _ in 0..<4 {
                guard place < text.count, Hexadecimal.value(text[place]) != nil else { throw .unparsable }
                place += 1
            }
        default: throw .unparsable
        }
    }

    /// Reads a number (§6).
    private mutating func number(_ text: Span<UInt8>) throws(ServiceFailure) {
        if place < text.count, text[place] == UInt8(ascii: "-") { place += 1 }
        let start = place
        try digits(text)
        guard text[start] != UInt8(ascii: "0") || place == start + 1 else { throw .unparsable }
        if place < text.count, text[place] == UInt8(ascii: ".") {
            place += 1
            try digits(text)
        }
        if place < text.count, text[place] | 0x20 == UInt8(ascii: "e") {
            place += 1
            if place < text.count, text[place] == UInt8(ascii: "+") || text[place] == UInt8(ascii: "-") { place += 1 }
            try digits(text)
        }
    }

    private mutating func digits(_ text: Span<UInt8>) throws(ServiceFailure) {
        let start = place
        while place < text.count, isDigit(text[place]) { place &+= 1 }
        guard place > start else { throw .unparsable }
    }

    private mutating func word(_ word: StaticString, _ text: Span<UInt8>) throws(ServiceFailure) {
        let end = place + word.utf8CodeUnitCount
        guard end <= text.count, isSame(text, place..<end, as: word) else { throw .unparsable }
        place = end
    }

    /// Takes this octet, and white space in front of it, if it comes next.
    @inline(__always)
    private mutating func take(_ text: Span<UInt8>, _ octet: UInt8) -> Bool {
        skipWhiteSpace(text)
        guard place < text.count, text[place] == octet else { return false }
        place &+= 1
        return true
    }

    @inline(__always)
    private mutating func skipWhiteSpace(_ text: Span<UInt8>) {
        // Nearly all octets between values are above the space, which is looked at first.
        while place < text.count, text[place] <= 0x20, isWhiteSpace(text[place]) { place &+= 1 }
    }
}
