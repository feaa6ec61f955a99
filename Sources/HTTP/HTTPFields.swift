import Base

/// Reads the lines of an HTTP/1.x head one after another, of requests and responses.
///
/// A folded field (RFC 9112 §5.2) is accepted, as the RFC requires of a user agent. Its value is one range over all its
/// lines, and the inner line ends count as white space. A single LF ends a line, too (§2.2). A CR elsewhere is refused.
package struct HTTPFields {
    private var position = 0

    package init() {}

    /// The next line without its end; nil: no further line is complete.
    package mutating func line(_ bytes: Span<UInt8>) -> Range<Int>? {
        guard let feed = firstIndex(of: UInt8(ascii: "\n"), in: bytes, position..<bytes.count) else { return nil }
        let hasReturn = feed > position && bytes[feed - 1] == UInt8(ascii: "\r")
        let line = position..<(hasReturn ? feed - 1 : feed)
        position = feed + 1
        return line
    }

    /// The next field's name, and its value without white space around it; nil at the empty line or the end.
    package mutating func next(_ bytes: Span<UInt8>) throws(HTTPError) -> (name: Range<Int>, value: Range<Int>)? {
        guard let line = line(bytes), !line.isEmpty else { return nil }
        guard let colon = firstIndex(of: UInt8(ascii: ":"), in: bytes, line), colon > line.lowerBound else {
            throw .badHeader
        }
        let name = line.lowerBound..<colon
        for index in name where !Self.isToken(bytes[index]) { throw .badHeader }
        try Self.check(bytes, colon + 1..<line.upperBound)
        var end = line.upperBound
        while position < bytes.count, bytes[position] == 0x20 || bytes[position] == 0x09 {
            guard let more = self.line(bytes) else { throw .badHeader }
            try Self.check(bytes, more)
            end = more.upperBound
        }
        return (name, trimmed(bytes, colon + 1..<end))
    }

    /// Refuses control characters in a value, most of all CR (RFC 9110 §5.5).
    private static func check(_ bytes: Span<UInt8>, _ range: Range<Int>) throws(HTTPError) {
        for index in range where bytes[index] < 0x20 && bytes[index] != 0x09 || bytes[index] == 0x7F {
            throw .badHeader
        }
    }

    /// Whether an octet may occur in a token (RFC 9110 §5.6.2).
    static func isToken(_ byte: UInt8) -> Bool { isUnreserved(byte) || "!#$%&'*+^`|".utf8.contains(byte) }
}

/// Finds the empty line that ends a head (RFC 9112 §2.1). Each octet is examined once, whatever the pieces in which the
/// head comes.
struct HeadEnd {
    /// Octets of the head that were examined.
    private(set) var looked = 0
    private var lineStart = 0

    /// - Parameter octets: All octets so far, which are the head and perhaps octets after the head.
    /// - Returns: The length of the head with the empty line; nil if the empty line has not come.
    mutating func find(in octets: [UInt8]) -> Int? {
        let head = octets.span
        while let feed = firstIndex(of: UInt8(ascii: "\n"), in: head, looked..<head.count) {
            looked = feed + 1
            let length = feed - lineStart
            if length == 0 || length == 1 && head[lineStart] == UInt8(ascii: "\r") { return looked }
            lineStart = looked
        }
        looked = head.count
        return nil
    }
}
