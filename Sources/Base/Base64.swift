/// Octets as text, six bits a character (RFC 4648).
package struct Base64: Sendable {
    /// The alphabet of RFC 4648 §4, with padding.
    package static let standard = Base64(last: "+/", isPadded: true)
    /// The URL-safe alphabet of RFC 4648 §5, without padding.
    package static let url = Base64(last: "-_", isPadded: false)

    private let alphabet: [UInt8]
    private let isPadded: Bool
    private static let padding = UInt8(ascii: "=")

    /// - Parameter last: The two characters that stand for 62 and 63.
    private init(last: String, isPadded: Bool) {
        alphabet = Array(("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" + last).utf8)
        self.isPadded = isPadded
    }

    package func encode(_ octets: [UInt8]) -> String {
        var text: [UInt8] = []
        for start in stride(from: 0, to: octets.count, by: 3) {
            let group = octets[start..<min(start + 3, octets.count)]
            let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for place in 0..<4 where isPadded || place <= group.count {
                text.append(place <= group.count ? alphabet[bits >> (18 - 6 * place) & 0x3F] : Self.padding)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The octets that ``encode(_:)`` makes this text of; nil for any other text: one with padding against the
    /// alphabet's rule or without it, with line breaks, or with unused bits set (RFC 4648 §3.1 to §3.5).
    package func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        var octets: [UInt8] = []
        var bits = 0
        var bitCount = 0
        for character in text.prefix(while: { $0 != Self.padding }) {
            guard let value = alphabet.firstIndex(of: character) else { return nil }
            bits = (bits << 6 | value) & 0xFFF
            bitCount += 6
            if bitCount >= 8 {
                bitCount -= 8
                octets.append(UInt8(truncatingIfNeeded: bits >> bitCount))
            }
        }
        // Unused bits that are set, or padding in the wrong place, would decode to the same octets: encoding again
        // finds them.
        return encode(octets).utf8.elementsEqual(text) ? octets : nil
    }
}
