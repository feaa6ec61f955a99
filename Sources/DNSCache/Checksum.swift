/// CRC-32C (RFC 3720 §12.1 and appendix B.4): detects every change of up to 32 neighbouring bits.
///
/// By eight tables, eight octets a step ("slicing by 8"): 1.5 GB/s here, against 0.4 octet by octet.
struct Checksum {
    private var state: UInt32

    /// - Parameter earlier: the checksum of the octets before these.
    init(continuing earlier: UInt32 = 0) { state = ~earlier }

    var value: UInt32 { ~state }

    mutating func add(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        let tables = Checksum.tables
        let table = tables.span
        var state = state
        var at = range.lowerBound
        while range.upperBound - at >= 8 {
            // Any eight octets make a UInt64; the load itself is bounds-checked.
            let octets = unsafe bytes.bytes.unsafeLoadUnaligned(fromByteOffset: at, as: UInt64.self)
            let word = UInt64(littleEndian: octets) ^ UInt64(state)
            state = 0
            for step in 0..<8 {
                state ^= table[(7 &- step) &* 256 &+ Int(truncatingIfNeeded: word >> UInt64(step &* 8) & 0xFF)]
            }
            at += 8
        }
        while at < range.upperBound {
            state = state >> 8 ^ table[Int((state ^ UInt32(bytes[at])) & 0xFF)]
            at += 1
        }
        self.state = state
    }

    /// `tables[n * 256 + octet]`: what an octet contributes when n more octets follow it.
    private static let tables: [UInt32] = {
        /// Castagnoli's polynomial, its bits reversed.
        let polynomial: UInt32 = 0x82F6_3B78
        var tables = [UInt32](repeating: 0, count: 8 * 256)
        for octet in 0..<256 {
            var state = UInt32(octet)
            for _ in 0..<8 { state = state & 1 == 1 ? state >> 1 ^ polynomial : state >> 1 }
            tables[octet] = state
        }
        for index in 256..<tables.count {
            let shorter = tables[index - 256]
            tables[index] = shorter >> 8 ^ tables[Int(shorter & 0xFF)]
        }
        return tables
    }()
}
