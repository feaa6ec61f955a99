import Testing

@testable import Base

@Suite struct DecimalTests {
    @Test(arguments: [0, 7, 10, 99, 100, 1_700_000_600, UInt64.max])
    func decimalDigits(_ number: UInt64) {
        var text = Array("n".utf8)
        text.appendDecimal(number)
        #expect(String(decoding: text, as: UTF8.self) == "n\(number)")
    }
}
