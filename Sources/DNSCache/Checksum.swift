import Base

/// A checksum of 32 bits: a changed file has the same one once in four thousand million times.
///
/// Eight octets a step, by the folded multiplication of ``NameHash``: 60 instructions for each eight octets less than a
/// CRC by tables. Its keys are public, so it does not prevent forgery.
enum Checksum {
    /// Digits of π.
    private static let keys: (UInt64, UInt64) = (0x243F_6A88_85A3_08D3, 0x1319_8A2E_0370_7344)

    /// - Parameter earlier: The checksum of the octets before these.
    static func of(_ bytes: Span<UInt8>, _ range: Range<Int>, after earlier: UInt32 = 0) -> UInt32 {
        var sum = UInt64(earlier) << 32 | UInt64(range.count)
        var at = range.lowerBound
        while range.upperBound &- at >= 8 {
            sum = folded(eightOctets(bytes, at: at) ^ keys.0, sum ^ keys.1)
            at &+= 8
        }
        sum = folded(fewOctets(bytes, at..<range.upperBound) ^ keys.0, sum ^ keys.1)
        return UInt32(truncatingIfNeeded: sum)
    }
}
