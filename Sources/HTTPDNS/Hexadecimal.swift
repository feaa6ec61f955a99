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
        var bytes = [UInt8](repeating: 0, count: text.count / 2)
        var octets = bytes.mutableSpan
        for index in octets.indices {
            guard let high = value(text[2 * index]), let low = value(text[2 * index + 1]) else { return nil }
            octets[index] = high << 4 | low
        }
        return bytes
    }

    /// What a digit stands for, 0…15; nil for anything else.
    @inline(__always)
    static func value(_ digit: UInt8) -> UInt8? {
        let decimal = digit &- UInt8(ascii: "0")
        if decimal < 10 { return decimal }
        let letter = (digit | 0x20) &- UInt8(ascii: "a")
        return letter < 6 ? letter + 10 : nil
    }

    @inline(__always)
    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}
