package import Base
package import DNSWire

/// A network as reverse names: all names under `name`, or only those whose next label begins with some bits.
///
/// A prefix that ends inside a label, an octet of IPv4 or four bits of IPv6, is not a name of its own: 172.16.0.0/12 is
/// the names under `172.in-addr.arpa` whose next label is 16 to 31.
package struct ReverseNetwork {
    package let name: Name
    /// The number of prefix bits in the next label: 1…7 for IPv4, 1…3 for IPv6; 0 if `name` is the whole prefix.
    package let bits: Int
    /// The next label's value; 0 in the bits after the prefix.
    package let value: UInt8

    package init(_ network: Network) {
        let isIPv4 = network.address.isIPv4
        let perLabel = Self.bitsPerLabel(isIPv4: isIPv4)
        let whole = network.prefixLength / perLabel
        bits = network.prefixLength % perLabel
        let wire = Name.reverse(of: network.address).wire
        // Where the name begins, and the label before it.
        var (start, label) = (0, 0)
        for _ in whole..<(isIPv4 ? 4 : 32) { (start, label) = (start + Int(wire[start]) + 1, start) }
        value = bits == 0 ? 0 : Self.labelValue(wire.span, at: label, isIPv4: isIPv4) ?? 0
        name = Name(canonical: Array(wire[start...]))
    }

    package init(name: Name, bits: Int, value: UInt8) { (self.name, self.bits, self.value) = (name, bits, value) }

    /// Nil: the name is neither a reverse name nor the end of one.
    package var network: Network? {
        guard let isIPv4 = Self.isIPv4(name.wire.span) else { return nil }
        let perLabel = Self.bitsPerLabel(isIPv4: isIPv4)
        var (high, low): (UInt64, UInt64) = (0, 0)
        var (offset, position) = (0, name.labelCount - 2)
        let prefixLength = position * perLabel + bits
        func add(_ value: UInt8, at position: Int) {
            let shift = UInt64((isIPv4 ? 32 : 128) - (position + 1) * perLabel)
            if shift >= 64 { high |= UInt64(value) << (shift - 64) } else { low |= UInt64(value) << shift }
        }
        guard position <= (isIPv4 ? 4 : 32) else { return nil }
        if bits > 0 {
            guard position < (isIPv4 ? 4 : 32) else { return nil }
            add(value, at: position)
        }
        while position > 0 {
            guard let value = Self.labelValue(name.wire.span, at: offset, isIPv4: isIPv4) else { return nil }
            position -= 1
            add(value, at: position)
            offset += Int(name.wire[offset]) + 1
        }
        return Network(
            isIPv4 ? IPAddress(v4: UInt32(truncatingIfNeeded: low)) : IPAddress(v6: high, low),
            prefixLength: prefixLength)
    }

    package static func bitsPerLabel(isIPv4: Bool) -> Int { isIPv4 ? 8 : 4 }

    /// Whether a name is in `in-addr.arpa`; false for a name in `ip6.arpa`, nil for any other name.
    package static func isIPv4(_ wire: Span<UInt8>) -> Bool? {
        func ends(with suffix: [UInt8]) -> Bool {
            guard wire.count >= suffix.count else { return false }
            let start = wire.count - suffix.count
            return suffix.indices.allSatisfy { wire[start + $0] == suffix[$0] }
        }
        if ends(with: Name.ipv4Suffix) { return true }
        return ends(with: Name.ipv6Suffix) ? false : nil
    }

    /// The number that a label of a reverse name means: 0…255 for IPv4, 0…15 for IPv6; nil for any other label, such as
    /// one with leading zeros: `01.0.0.127.in-addr.arpa` is not the name of 127.0.0.1.
    /// - Parameter wire: The name in wire form, in lower case.
    package static func labelValue(_ wire: Span<UInt8>, at offset: Int, isIPv4: Bool) -> UInt8? {
        let label = offset + 1..<offset + 1 + Int(wire[offset])
        guard let first = label.first, label.count == 1 || isIPv4 else { return nil }
        return isIPv4 ? decimal(wire, label, atMost: 255).map { UInt8($0) } : Hexadecimal.value(wire[first])
    }
}
