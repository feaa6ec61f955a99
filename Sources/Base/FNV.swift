/// FNV-1a with 64 bits. Unlike Swift's own hashes, the value is the same after a restart.
package struct FNV {
    package private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

    package init() {}

    package mutating func add(_ text: String) { for octet in text.utf8 { add(octet) } }
    package mutating func add(_ octets: [UInt8]) { for octet in octets { add(octet) } }
    /// Adds a number in one step, for long inputs.
    package mutating func add(_ number: UInt64) {
        value = (value ^ number) &* 0x100_0000_01B3
        value ^= value >> 32
    }
    private mutating func add(_ octet: UInt8) { value = (value ^ UInt64(octet)) &* 0x100_0000_01B3 }
}
