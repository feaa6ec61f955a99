/// SipHash-2-4: a short keyed hash that cannot be predicted without the key (Aumasson and Bernstein, 2012).
///
/// The hash takes whole words of eight octets, little-endian; ``finish`` takes the rest.
package struct SipHash {
    private var v0, v1, v2, v3: UInt64

    /// - Parameter key: Sixteen octets as two little-endian words.
    package init(key: (UInt64, UInt64)) {
        v0 = key.0 ^ 0x736F_6D65_7073_6575
        v1 = key.1 ^ 0x646F_7261_6E64_6F6D
        v2 = key.0 ^ 0x6C79_6765_6E65_7261
        v3 = key.1 ^ 0x7465_6462_7974_6573
    }

    package mutating func add(_ word: UInt64) {
        v3 ^= word
        round()
        round()
        v0 ^= word
    }

    /// - Parameters:
    ///   - rest: The octets after the last whole word, 0 to 7, the first in the lowest bits.
    ///   - count: The number of all octets.
    package consuming func finish(_ rest: UInt64 = 0, count: Int) -> UInt64 {
        add(rest | UInt64(truncatingIfNeeded: count) << 56)
        v2 ^= 0xFF
        for _ in 0..<4 { round() }
        return v0 ^ v1 ^ v2 ^ v3
    }

    @inline(__always)
    private mutating func round() {
        v0 &+= v1
        v1 = (v1 << 13 | v1 >> 51) ^ v0
        v0 = v0 << 32 | v0 >> 32
        v2 &+= v3
        v3 = (v3 << 16 | v3 >> 48) ^ v2
        v0 &+= v3
        v3 = (v3 << 21 | v3 >> 43) ^ v0
        v2 &+= v1
        v1 = (v1 << 17 | v1 >> 47) ^ v2
        v2 = v2 << 32 | v2 >> 32
    }
}
