/// Bytes as hexadecimal text, as the service carries what is encrypted.
package enum Hexadecimal {
    /// Appends two lower-case digits a byte.
    package static func append(_ bytes: Span<UInt8>, to text: inout [UInt8]) {
        for index in bytes.indices {
            text.append(digit(bytes[index] >> 4))
            text.append(digit(bytes[index] & 0x0F))
        }
    }

    /// The bytes that `text` stands for, in either case; nil if it is not an even number of digits.
    package static func decode(_ text: Span<UInt8>) -> [UInt8]? {
        guard text.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 2)
        var index = 0
        while index < text.count {
            guard let high = value(text[index]), let low = value(text[index + 1]) else { return nil }
            bytes.append(high << 4 | low)
            index += 2
        }
        return bytes
    }

    /// What a digit stands for, 0…15.
    static func value(_ digit: UInt8) -> UInt8? {
        if isDigit(digit) { return digit - UInt8(ascii: "0") }
        let letter = lowercased(digit)
        guard letter >= UInt8(ascii: "a"), letter <= UInt8(ascii: "f") else { return nil }
        return letter - UInt8(ascii: "a") + 10
    }

    @inline(__always)
    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}
