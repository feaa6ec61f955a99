import Foundation
import Testing

@testable import Base

/// Against Foundation and the standard library, which write and read one byte at a time.
@Suite struct HexadecimalTests {
    @Test func everyByteIsWrittenAtEachOffset() {
        for length in 0...17 {
            for byte in UInt8.min ... .max {
                let bytes = (0..<length).map { byte &+ UInt8($0) &* 37 }
                var text = Array("before ".utf8)
                Hexadecimal.append(bytes.span, to: &text)
                #expect(
                    String(decoding: text, as: UTF8.self)
                        == "before " + bytes.map { String(format: "%02x", $0) }.joined())
            }
        }
    }

    @Test(arguments: [0, 2, 8, 9, 14, 15, 16, 23, 24])
    func everyDigitIsReadAtEachOffset(offset: Int) {
        for count in [24, 26, 32] {
            for byte in UInt8.min ... .max {
                var text = Array("0123456789abcdefABCDEFfedcba9876".utf8.prefix(count))
                guard offset < count else { continue }
                text[offset] = byte
                let pairs = stride(from: 0, to: count, by: 2).map { text[$0..<$0 + 2] }
                // The standard library takes a sign for part of a number.
                let expected = pairs.map { pair in
                    pair.contains(UInt8(ascii: "+")) ? nil : UInt8(String(decoding: pair, as: UTF8.self), radix: 16)
                }
                #expect(Hexadecimal.decode(text.span) == (expected.contains(nil) ? nil : expected.map { $0! }))
            }
        }
    }

    @Test func anOddNumberOfDigitsIsNothing() {
        for count in 0...33 {
            #expect((Hexadecimal.decode([UInt8](repeating: 0x66, count: count).span) == nil) == (count % 2 == 1))
        }
    }
}
