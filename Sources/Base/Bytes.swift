/// Whether an octet needs no escape anywhere in a URL: a letter, a digit, `-`, `.`, `_` or `~` (RFC 3986 §2.3).
public func isUnreserved(_ octet: UInt8) -> Bool {
    isLowerLetter(lowercased(octet)) || isDigit(octet) || "-._~".utf8.contains(octet)
}

/// Whether an octet may occur in the text of a host with or without a port: a server name, `1.2.3.4:53`, `[::1]:53`.
package func isHostByte(_ byte: UInt8) -> Bool {
    isUnreserved(byte) || byte == UInt8(ascii: ":") || byte == UInt8(ascii: "[") || byte == UInt8(ascii: "]")
}

@inlinable @inline(__always)
package func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }

@inlinable @inline(__always)
package func isLowerLetter(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z") }

/// The octet with an ASCII letter in lower case; each other octet unchanged (RFC 4343).
@inlinable @inline(__always)
package func lowercased(_ byte: UInt8) -> UInt8 { byte &- UInt8(ascii: "A") < 26 ? byte | 0x20 : byte }

/// Whether an octet is a space, tab, line feed or carriage return.
@inlinable @inline(__always)
package func isWhiteSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }

/// The part of `range` that has no white space at its ends.
package func trimmed(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Range<Int> {
    var (start, end) = (range.lowerBound, range.upperBound)
    while start < end, isWhiteSpace(bytes[start]) { start += 1 }
    while end > start, isWhiteSpace(bytes[end - 1]) { end -= 1 }
    return start..<end
}

package func firstIndex(of byte: UInt8, in bytes: Span<UInt8>, _ range: Range<Int>) -> Int? {
    var index = range.lowerBound
    while index + 8 <= range.upperBound {
        let found = octets(equalTo: byte, in: bytes, at: index)
        if found != 0 { return index + found.trailingZeroBitCount / 8 }
        index += 8
    }
    while index < range.upperBound {
        if bytes[index] == byte { return index }
        index += 1
    }
    return nil
}

package func lastIndex(of byte: UInt8, in bytes: Span<UInt8>, _ range: Range<Int>) -> Int? {
    var index = range.upperBound
    while index > range.lowerBound {
        index -= 1
        if bytes[index] == byte { return index }
    }
    return nil
}

/// Compares eight octets from `index` on at once: the high bit of each octet of the result is set if that octet is
/// `byte`. The first octet is the lowest.
@inline(__always)
private func octets(equalTo byte: UInt8, in bytes: Span<UInt8>, at index: Int) -> UInt64 {
    let low = each(0x7F)
    let difference = eightOctets(bytes, at: index) ^ each(byte)
    return ~((difference & low) &+ low | difference | low)
}

/// Eight octets from `index` on as a number, the first octet in the lowest bits.
@inlinable @inline(__always)
package func eightOctets(_ bytes: Span<UInt8>, at index: Int) -> UInt64 {
    // Any eight octets make a UInt64; the load itself is bounds-checked.
    UInt64(littleEndian: unsafe bytes.bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self))
}

extension UInt64 {
    /// Eight octets with `A`–`Z` in lower case, each other octet unchanged. The length of a label in a DNS name is at
    /// most 63, so it is never taken for a letter.
    @inlinable @inline(__always)
    package var asciiLowercased: UInt64 {
        let low7 = self & 0x7F7F_7F7F_7F7F_7F7F
        let fromA = low7 &+ 0x3F3F_3F3F_3F3F_3F3F
        let pastZ = low7 &+ 0x2525_2525_2525_2525
        let upper = fromA & ~pastZ & ~self & 0x8080_8080_8080_8080
        return self | upper >> 2
    }
}

/// A number with `octet` in each of its eight octets.
@inline(__always)
func each(_ octet: UInt8) -> UInt64 { UInt64(octet) &* 0x0101_0101_0101_0101 }

extension [UInt8] {
    /// Text, with a reserved capacity.
    package init(_ text: StaticString, capacity: Int) {
        self.init()
        reserveCapacity(capacity)
        append(text)
    }

    /// Appends a copy of the bytes.
    package mutating func append(_ bytes: Span<UInt8>) {
        // Sound: the octets are copied during the call.
        unsafe bytes.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
    }

    /// Appends text.
    package mutating func append(_ text: StaticString) {
        // Sound: the text has so many octets and is never freed.
        unsafe append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Appends a number in decimal digits.
    package mutating func appendDecimal(_ value: UInt64) {
        // 2⁶⁴ has 20 digits.
        var digits = InlineArray<20, UInt8>(repeating: 0)
        var (rest, first) = (value, digits.count)
        repeat {
            first -= 1
            digits[first] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        } while rest > 0
        append(digits.span.extracting(first...))
    }

    /// Appends a number, highest octet first.
    @inline(__always)
    package mutating func append16(_ value: UInt16) {
        append(UInt8(truncatingIfNeeded: value >> 8))
        append(UInt8(truncatingIfNeeded: value))
    }

    @inline(__always)
    package mutating func append32(_ value: UInt32) {
        append16(UInt16(truncatingIfNeeded: value >> 16))
        append16(UInt16(truncatingIfNeeded: value))
    }
}

/// Whether the bytes are `text`, which must be ASCII in lower case, in any case of letters.
package func isEqual(_ bytes: Span<UInt8>, _ range: Range<Int>, to text: StaticString) -> Bool {
    guard range.count == text.utf8CodeUnitCount else { return false }
    var offset = 0
    // Sound: the text has so many octets and is never freed.
    while offset &+ 8 <= range.count {
        let octets = unsafe UnsafeRawPointer(text.utf8Start).loadUnaligned(fromByteOffset: offset, as: UInt64.self)
        guard eightOctets(bytes, at: range.lowerBound &+ offset).asciiLowercased == UInt64(littleEndian: octets) else {
            return false
        }
        offset &+= 8
    }
    while offset < range.count {
        guard unsafe text.utf8Start[offset] == lowercased(bytes[range.lowerBound &+ offset]) else { return false }
        offset &+= 1
    }
    return true
}

/// Whether the bytes are `text`, which must be ASCII.
@inlinable @inline(__always)
package func isSame(_ bytes: Span<UInt8>, _ range: Range<Int>, as text: StaticString) -> Bool {
    guard range.count == text.utf8CodeUnitCount else { return false }
    return begins(bytes, at: range.lowerBound, with: text)
}

@usableFromInline
package func begins(_ bytes: Span<UInt8>, at start: Int, with text: StaticString) -> Bool {
    for offset in 0..<text.utf8CodeUnitCount {
        // Sound: the text has so many octets and is never freed.
        guard unsafe text.utf8Start[offset] == bytes[start &+ offset] else { return false }
    }
    return true
}

/// A decimal number without sign and leading zeros; nil for any other text, and for a number above `most`.
package func decimal(_ bytes: Span<UInt8>, _ range: Range<Int>, atMost most: Int) -> Int? {
    guard range.count <= 1 || bytes[range.lowerBound] != UInt8(ascii: "0") else { return nil }
    return decimal(bytes, range, maximum: most + 1).flatMap { $0 <= most ? $0 : nil }
}

/// A decimal number without sign; `maximum` for a greater number, and nil for any other text.
package func decimal(_ bytes: Span<UInt8>, _ range: Range<Int>, maximum: Int) -> Int? {
    guard !range.isEmpty else { return nil }
    var value = 0
    for index in range {
        guard isDigit(bytes[index]) else { return nil }
        let (product, overflows) = value.multipliedReportingOverflow(by: 10)
        let (sum, overflowsToo) = product.addingReportingOverflow(Int(bytes[index] - UInt8(ascii: "0")))
        value = overflows || overflowsToo || sum > maximum ? maximum : sum
    }
    return value
}
