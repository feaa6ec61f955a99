import TestSupport
import Testing

@testable import Base

@Suite struct BytesTests {
    /// Against the standard library's search, for octets that differ in single bits.
    @Test func indices() {
        var chance = Chance.announced("indices")
        let octets: [UInt8] = [0x00, 0x01, 0x0A, 0x0B, 0x8A, 0x7F, 0x80, 0x81, 0xFF]
        for _ in 0..<20_000 {
            let bytes = (0..<chance.below(40)).map { _ in octets[chance.below(octets.count)] }
            let start = chance.below(bytes.count + 1)
            let range = start..<(start + chance.below(bytes.count - start + 1))
            let wanted = octets[chance.below(octets.count)]
            #expect(firstIndex(of: wanted, in: bytes.span, range) == bytes[range].firstIndex(of: wanted))
            #expect(lastIndex(of: wanted, in: bytes.span, range) == bytes[range].lastIndex(of: wanted))
        }
    }
}
