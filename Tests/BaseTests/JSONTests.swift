import Testing

@testable import Base

@Suite struct JSONTests {
    /// Octet by octet it is found where eight at a time find it, from each place on.
    @Test func plainTextEndsAtTheFirstOctetThatIsNone() {
        var random = SystemRandomNumberGenerator()
        let special: [UInt8] = [0x00, 0x1F, 0x22, 0x5C, 0x7F, 0x80, 0xA2, 0xDC, 0xFF, 0x20, 0x21, 0x23, 0x5B, 0x5D]
        for round in 0..<2000 {
            let text = (0..<round % 40).map { _ in
                UInt8.random(in: 0..<10, using: &random) == 0
                    ? special.randomElement(using: &random)! : UInt8.random(in: 0x20...0x7F, using: &random)
            }
            for start in 0...text.count {
                let end = text[start...].firstIndex { $0 < 0x20 || $0 >= 0x80 || $0 == 0x22 || $0 == 0x5C }
                #expect(JSON.endOfPlainText(text.span, from: start) == end ?? text.count, "\(text) from \(start)")
            }
        }
    }

    @Test(arguments: [0, 7, 10, 99, 100, 1_700_000_600, UInt64.max])
    func decimalDigits(_ number: UInt64) {
        var text = Array("n".utf8)
        text.appendDecimal(number)
        #expect(String(decoding: text, as: UTF8.self) == "n\(number)")
    }
}
