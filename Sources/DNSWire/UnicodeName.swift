import Base

/// Converts host names in Unicode to the DNS's form.
package enum UnicodeName {
    /// The longest text that is read, in octets.
    private static let maximumOctets = 1024

    /// The text of a host name in ASCII: each label with a character beyond ASCII becomes `xn--` and its Punycode (RFC
    /// 5890 §2.3.2.1). Letters become lower case, and the three other full stops become dots (UTS 46); the text is not
    /// normalized.
    /// - Returns: nil: the text is not UTF-8, is too long, or has a character that no host name has. The lengths of
    ///   labels are not checked.
    package static func ascii(_ text: Span<UInt8>, _ range: Range<Int>) -> [UInt8]? {
        guard range.count <= maximumOctets,
            let name = String(validating: text.bytes(in: range), as: UTF8.self)
        else { return nil }
        var ascii: [UInt8] = []
        var label: [UInt32] = []
        for scalar in name.unicodeScalars {
            if isFullStop(scalar) {
                append(label, to: &ascii)
                ascii.append(UInt8(ascii: "."))
                label.removeAll(keepingCapacity: true)
            } else {
                guard isOfHostName(scalar) else { return nil }
                label += scalar.properties.lowercaseMapping.unicodeScalars.map(\.value)
            }
        }
        append(label, to: &ascii)
        return ascii
    }

    private static func isFullStop(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "." || scalar == "\u{3002}" || scalar == "\u{FF0E}" || scalar == "\u{FF61}"
    }

    private static func isOfHostName(_ scalar: Unicode.Scalar) -> Bool {
        if let octet = UInt8(exactly: scalar.value), scalar.isASCII { return Name.isHostnameOctet(lowercased(octet)) }
        return switch scalar.properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter, .nonspacingMark,
            .spacingMark, .decimalNumber, .otherSymbol:
            // The replacement for octets that are no text.
            scalar != "\u{FFFD}"
        default: false
        }
    }

    private static func append(_ label: [UInt32], to ascii: inout [UInt8]) {
        if label.allSatisfy({ $0 < 0x80 }) {
            ascii += label.map { UInt8($0) }
        } else {
            ascii += Array("xn--".utf8)
            appendPunycode(of: label, to: &ascii)
        }
    }

    // The parameters of Punycode (RFC 3492 §5).
    private static let (base, tMin, tMax) = (36, 1, 26)
    private static let (skew, damp, initialBias, initialPoint) = (38, 700, 72, 0x80)

    /// Appends a label by RFC 3492 §6.3.
    private static func appendPunycode(of label: [UInt32], to ascii: inout [UInt8]) {
        let basic = label.filter { $0 < 0x80 }
        ascii += basic.map { UInt8($0) }
        if !basic.isEmpty { ascii.append(UInt8(ascii: "-")) }
        var (point, delta, bias, handled) = (initialPoint, 0, initialBias, basic.count)
        while handled < label.count {
            let next = label.reduce(Int.max) { $1 >= point && $1 < $0 ? Int($1) : $0 }
            // The sum does not overflow: a label has fewer than 1100 characters.
            delta += (next - point) * (handled + 1)
            point = next
            for character in label {
                if character < point { delta += 1 }
                guard character == point else { continue }
                appendInteger(delta, bias, to: &ascii)
                bias = adapted(delta, handled + 1, isFirst: handled == basic.count)
                (delta, handled) = (0, handled + 1)
            }
            (delta, point) = (delta + 1, point + 1)
        }
    }

    private static func appendInteger(_ value: Int, _ bias: Int, to ascii: inout [UInt8]) {
        var (rest, k) = (value, base)
        while true {
            let threshold = min(max(k - bias, tMin), tMax)
            if rest < threshold { break }
            ascii.append(digit(threshold + (rest - threshold) % (base - threshold)))
            rest = (rest - threshold) / (base - threshold)
            k += base
        }
        ascii.append(digit(rest))
    }

    private static func digit(_ value: Int) -> UInt8 {
        UInt8(value) + (value < 26 ? UInt8(ascii: "a") : UInt8(ascii: "0") - 26)
    }

    /// The next bias (RFC 3492 §6.1).
    private static func adapted(_ delta: Int, _ points: Int, isFirst: Bool) -> Int {
        var delta = delta / (isFirst ? damp : 2)
        delta += delta / points
        var k = 0
        while delta > (base - tMin) * tMax / 2 {
            delta /= base - tMin
            k += base
        }
        return k + (base - tMin + 1) * delta / (delta + skew)
    }
}
