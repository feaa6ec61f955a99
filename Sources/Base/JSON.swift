/// A value of JSON (RFC 8259) and its text.
package indirect enum JSON {
    case null
    case bool(Bool)
    case integer(UInt64)
    /// Must be finite: JSON has no text for infinity or NaN.
    case number(Double)
    case string(String)
    case array([JSON])
    case object([(String, JSON)])

    package var text: String {
        switch self {
        case .null: "null"
        case .bool(let value): "\(value)"
        case .integer(let value): "\(value)"
        case .number(let value): "\(value)"
        case .string(let value): JSON.quoted(value)
        case .array(let items): "[" + items.map(\.text).joined(separator: ",") + "]"
        case .object(let members):
            "{" + members.map { JSON.quoted($0.0) + ":" + $0.1.text }.joined(separator: ",") + "}"
        }
    }

    /// Where, from an octet of a string on, the next one stands that is not plain text: a quote, a backslash, a control
    /// character or one beyond ASCII. The end of `bytes` if there is none.
    package static func endOfPlainText(_ bytes: Span<UInt8>, from start: Int) -> Int {
        var index = start
        while index + 8 <= bytes.count {
            let octets = eightOctets(bytes, at: index)
            let low = octets & each(0x7F)
            // The high bit of each octet: clear where the low bits are 0 (equal), or below 0x20.
            let isOtherThanQuote = (low ^ each(UInt8(ascii: "\""))) &+ each(0x7F)
            let isOtherThanBackslash = (low ^ each(UInt8(ascii: "\\"))) &+ each(0x7F)
            let isPlain = isOtherThanQuote & isOtherThanBackslash & (low &+ each(0x60)) & ~octets & each(0x80)
            guard isPlain == each(0x80) else { return index + (isPlain ^ each(0x80)).trailingZeroBitCount / 8 }
            index += 8
        }
        while index < bytes.count {
            let octet = bytes[index]
            guard octet >= 0x20, octet < 0x80, octet != UInt8(ascii: "\""), octet != UInt8(ascii: "\\") else { break }
            index += 1
        }
        return index
    }

    /// A string with its quotes (§7).
    package static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case "\u{0}"..<" ", "\u{7F}":
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
