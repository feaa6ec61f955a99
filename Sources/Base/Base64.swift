/// Octets as text, six bits a character (RFC 4648).
package struct Base64: Sendable {
    /// The alphabet of RFC 4648 §4, with padding.
    package static let standard = Base64(last: "+/", isPadded: true)
    /// The URL-safe alphabet of RFC 4648 §5, without padding.
    package static let url = Base64(last: "-_", isPadded: false)

    private let alphabet: [UInt8]
    /// The value of each octet, or 64 for an octet without a value.
    private let values: [UInt8]
    private let isPadded: Bool
    private static let padding = UInt8(ascii: "=")

    /// - Parameter last: The two characters for 62 and 63.
    private init(last: String, isPadded: Bool) {
        alphabet = Array(("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" + last).utf8)
        var values = [UInt8](repeating: 64, count: 256)
        for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
        self.values = values
        self.isPadded = isPadded
    }

    package func encode(_ octets: [UInt8]) -> String {
        var text: [UInt8] = []
        for start in stride(from: 0, to: octets.count, by: 3) {
            let group = octets[start..<min(start + 3, octets.count)]
            let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for index in 0..<4 where isPadded || index <= group.count {
                text.append(index <= group.count ? alphabet[bits >> (18 - 6 * index) & 0x3F] : Self.padding)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The octets that ``encode(_:)`` turns into this text. Nil for any other text: padding against the alphabet's
    /// rule, line breaks, or unused bits that are set (RFC 4648 §3.1 to §3.5).
    package func decode(_ text: some Collection<UInt8>) -> [UInt8]? { decode(Array(text).span) }

    package func decode(_ text: Span<UInt8>) -> [UInt8]? {
        var end = text.count
        while isPadded, end > 0, text.count - end < 2, text[end - 1] == Self.padding { end -= 1 }
        guard end % 4 != 1, !isPadded || text.count == (end + 3) / 4 * 4 else { return nil }
        let whole = end & ~3
        var octets: [UInt8] = []
        var (bits, all): (UInt32, UInt32) = (0, 0)
        octets.append(addingCapacity: end * 3 / 4) { [values] octets in
            let values = values.span
            for index in stride(from: 0, to: whole, by: 4) {
                let (first, second) = (UInt32(values[Int(text[index])]), UInt32(values[Int(text[index &+ 1])]))
                let (third, fourth) = (UInt32(values[Int(text[index &+ 2])]), UInt32(values[Int(text[index &+ 3])]))
                all |= first | second | third | fourth
                octets.append(UInt8(truncatingIfNeeded: first << 2 | second >> 4))
                octets.append(UInt8(truncatingIfNeeded: second << 4 | third >> 2))
                octets.append(UInt8(truncatingIfNeeded: third << 6 | fourth))
            }
            // Of the remaining characters, two are one octet and three are two.
            for index in whole..<end {
                let value = UInt32(values[Int(text[index])])
                (bits, all) = (bits << 6 | value, all | value)
                if index > whole { octets.append(UInt8(truncatingIfNeeded: bits >> (6 - 2 * (index - whole)))) }
            }
        }
        // Unused bits that are set would decode to the same octets.
        let unused = UInt32(end % 4 == 0 ? 0 : 8 - 2 * (end % 4))
        return all < 64 && bits & (1 << unused - 1) == 0 ? octets : nil
    }
}
