/// Bytes as hexadecimal text, as the service carries what is encrypted.
package enum Hexadecimal {
    /// Appends two lower-case digits a byte.
    package static func append(_ bytes: Span<UInt8>, to text: inout [UInt8]) {
        text.append(addingCapacity: 2 * bytes.count) { digits in
            for index in bytes.indices {
                digits.append(digit(bytes[index] >> 4))
                digits.append(digit(bytes[index] & 0x0F))
            }
        }
    }

    /// The bytes that `text` stands for, in either case; nil if it is not an even number of digits.
    package static func decode(_ text: Span<UInt8>) -> [UInt8]? {
        guard text.count.isMultiple(of: 2) else { return nil }
        // Whether all were digits is looked at once, at the end.
        var seen: UInt8 = 0
        let bytes = [UInt8](capacity: text.count / 2) { bytes in
            var index = 0
            while index < text.count {
                let (high, low) = (digitValue(text[index]), digitValue(text[index + 1]))
                seen |= high | low
                bytes.append(high << 4 | low & 0x0F)
                index += 2
            }
        }
        return seen < 16 ? bytes : nil
    }

    /// What a digit stands for, 0…15; nil for anything else.
    static func value(_ digit: UInt8) -> UInt8? {
        let value = digitValue(digit)
        return value < 16 ? value : nil
    }

    /// The same with 255 for nil.
    @inline(__always)
    private static func digitValue(_ digit: UInt8) -> UInt8 {
        let decimal = digit &- UInt8(ascii: "0")
        let letter = (digit | 0x20) &- UInt8(ascii: "a")
        return decimal < 10 ? decimal : letter < 6 ? letter + 10 : 255
    }

    @inline(__always)
    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}
