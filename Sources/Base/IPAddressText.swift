/// The longest text of an address: RFC 4291 §2.2 form 3, six groups and a dotted quad.
private let longestText = "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255".utf8.count

extension IPAddress {
    /// An address from text: a strict dotted quad (four decimal numbers, no leading zeros, none missing), or any form
    /// of RFC 4291 §2.2. Any other text gives nil, such as a text with a zone, brackets or surrounding space.
    public init?(_ text: some StringProtocol) {
        let octets = text.utf8
        guard octets.count <= longestText else { return nil }
        self.init(parsing: Array(octets).span)
    }

    /// Reads the address from ASCII bytes, without making a String.
    public init?(parsing bytes: Span<UInt8>) {
        guard bytes.count <= longestText else { return nil }
        if let bits = IPAddress.dottedQuad(bytes, from: 0) {
            self.init(v4: bits)
        } else if let (high, low) = IPAddress.groups(bytes) {
            self.init(v6: high, low)
        } else {
            return nil
        }
    }

    /// Reads `a.b.c.d` from `start` to the end of `bytes`: octet by octet, as each answer of HTTPDNS has several.
    private static func dottedQuad(_ bytes: Span<UInt8>, from start: Int) -> UInt32? {
        var bits: UInt32 = 0
        // The current number, and the count of its digits so far.
        var (part, digits): (UInt32, Int) = (0, 0)
        var dots = 0
        for index in start..<bytes.count {
            let digit = bytes[index] &- UInt8(ascii: "0")
            if digit < 10 {
                part = part &* 10 &+ UInt32(digit)
                digits &+= 1
                // A number is at most 255, and has no leading zeros.
                guard part <= 255, digits == 1 || part >= 10 else { return nil }
            } else {
                guard bytes[index] == UInt8(ascii: "."), dots < 3, digits > 0 else { return nil }
                bits = bits << 8 | part
                (part, digits) = (0, 0)
                dots &+= 1
            }
        }
        return dots == 3 && digits > 0 ? bits << 8 | part : nil
    }

    /// Reads eight groups: one `::` may replace one or more of them, and a dotted quad the last two.
    private static func groups(_ bytes: Span<UInt8>) -> (high: UInt64, low: UInt64)? {
        let colon = UInt8(ascii: ":")
        // Groups are shifted in from the right; at `::` the earlier groups are set aside, and moved left at the end.
        var bits: UInt128 = 0
        var head: (bits: UInt128, count: Int)?
        var count = 0
        var index = 0

        while true {
            if index + 1 < bytes.count, bytes[index] == colon, bytes[index + 1] == colon {
                guard head == nil else { return nil }
                (head, bits) = ((bits, count), 0)
                index += 2
                if index == bytes.count { break }
            } else if index > 0 {
                guard bytes[index] == colon else { return nil }
                index += 1
            }
            guard count < 8 else { return nil }
            let start = index
            guard let group = hexadecimal(bytes, at: &index) else { return nil }
            if index < bytes.count, bytes[index] == UInt8(ascii: ".") {
                guard count <= 6, let quad = dottedQuad(bytes, from: start) else { return nil }
                (bits, count) = (bits << 32 | UInt128(quad), count + 2)
                break
            }
            (bits, count) = (bits << 16 | UInt128(group), count + 1)
            if index == bytes.count { break }
        }

        guard head == nil ? count == 8 : count < 8 else { return nil }
        // The groups before `::` move up over the zeros and the groups after it.
        if let head { bits |= head.bits << (16 * (8 - head.count)) }
        return (UInt64(truncatingIfNeeded: bits >> 64), UInt64(truncatingIfNeeded: bits))
    }

    /// One to four hexadecimal digits.
    private static func hexadecimal(_ bytes: Span<UInt8>, at index: inout Int) -> UInt16? {
        var value: UInt16 = 0
        let start = index
        while index < bytes.count, let digit = Hexadecimal.value(bytes[index]) {
            guard index - start < 4 else { return nil }
            value = value << 4 | UInt16(digit)
            index += 1
        }
        return index > start ? value : nil
    }
}
