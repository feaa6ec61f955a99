/// Bytes as hexadecimal text, the form of encrypted data in HTTPDNS.
///
/// Eight digits, which are four bytes, are handled at a time in one 64-bit number: digit by digit, the conversion would
/// be a tenth of the cost of an encrypted lookup.
package enum Hexadecimal {
    /// Appends two lower-case digits a byte.
    package static func append(_ bytes: Span<UInt8>, to text: inout [UInt8]) {
        let start = text.count
        text.append(addingCapacity: 2 * bytes.count) { $0.append(repeating: 0, count: 2 * bytes.count) }
        var span = text.mutableSpan
        // Sound, here and below: any octets make a number, all of them are initialized, each access is bounds-checked.
        var room = unsafe span.mutableBytes
        var index = 0
        while index + 4 <= bytes.count {
            let four = unsafe bytes.bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt32.self)
            let eight = digits(UInt32(littleEndian: four)).littleEndian
            room.storeBytes(of: eight, toByteOffset: start + 2 * index, as: UInt64.self)
            index += 4
        }
        while index < bytes.count {
            let pair = UInt16(truncatingIfNeeded: digits(UInt32(bytes[index]))).littleEndian
            room.storeBytes(of: pair, toByteOffset: start + 2 * index, as: UInt16.self)
            index += 1
        }
    }

    /// The bytes that `text` encodes, in either case; nil: the text is not an even number of digits.
    package static func decode(_ text: Span<UInt8>) -> [UInt8]? {
        guard text.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        // An initializer with a size would look the array's type up, for 450 instructions.
        bytes.append(addingCapacity: text.count / 2) { $0.append(repeating: 0, count: text.count / 2) }
        var span = bytes.mutableSpan
        var room = unsafe span.mutableBytes
        var index = 0
        while index + 8 <= text.count {
            guard let four = octets(eightOctets(text, at: index)) else { return nil }
            room.storeBytes(of: four.littleEndian, toByteOffset: index / 2, as: UInt32.self)
            index += 8
        }
        while index < text.count {
            guard let high = value(text[index]), let low = value(text[index + 1]) else { return nil }
            room.storeBytes(of: high << 4 | low, toByteOffset: index / 2, as: UInt8.self)
            index += 2
        }
        return bytes
    }

    /// The value of a digit, 0…15; nil for any other octet.
    @inline(__always)
    package static func value(_ digit: UInt8) -> UInt8? {
        let decimal = digit &- UInt8(ascii: "0")
        if decimal < 10 { return decimal }
        let letter = (digit | 0x20) &- UInt8(ascii: "a")
        return letter < 6 ? letter + 10 : nil
    }

    /// The eight digits of four octets, the first digit in the lowest octet.
    @inline(__always)
    private static func digits(_ octets: UInt32) -> UInt64 {
        var spread = UInt64(octets)
        spread = (spread | spread << 16) & 0x0000_FFFF_0000_FFFF
        spread = (spread | spread << 8) & 0x00FF_00FF_00FF_00FF
        return text((spread >> 4 | spread << 8) & each(0x0F))
    }

    /// The digits for eight values of 0…15, one in each octet.
    @inline(__always)
    private static func text(_ values: UInt64) -> UInt64 {
        // For a value of ten or more the sum carries into the octet's high bit.
        let letters = (values &+ each(0x76)) >> 7 & each(1)
        return values &+ each(0x30) &+ letters &* 0x27
    }

    /// The four octets of eight digits, the first in the lowest octet; nil: an octet is not a digit.
    @inline(__always)
    private static func octets(_ digits: UInt64) -> UInt32? {
        // Letters have bit 6 and count from 1 in their low four bits. An octet that is not a digit either exceeds 15 or
        // would be written otherwise than it was.
        let letters = digits >> 6 & each(1)
        let values = (digits & each(0x0F)) &+ letters &* 9
        guard values & each(0xF0) == 0, text(values) == digits | letters << 5 else { return nil }
        var packed = (values << 4 | values >> 8) & 0x00FF_00FF_00FF_00FF
        packed = (packed | packed >> 8) & 0x0000_FFFF_0000_FFFF
        return UInt32(truncatingIfNeeded: packed | packed >> 16)
    }
}
