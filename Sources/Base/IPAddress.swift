/// An IPv4 or IPv6 address as a plain value without heap, reference count and zone (see ``Endpoint``).
///
/// An IPv4-mapped IPv6 address (`::ffff:1.2.3.4`, RFC 4291 §2.5.5.2) stays an IPv6 address and differs from `1.2.3.4`;
/// only ``isLoopback``, ``isUnspecified`` and ``Network/contains(_:)`` treat it as the IPv4 address, because a
/// dual-stack socket reports its IPv4 peers that way.
public struct IPAddress: Hashable, Sendable {
    /// The first 64 bits of an IPv6 address; 0 for IPv4.
    public let high: UInt64
    /// The last 64 bits of an IPv6 address, or the 32 bits of an IPv4 address.
    public let low: UInt64
    public let isIPv4: Bool

    /// The IPv4 address `a.b.c.d`.
    public static func v4(_ a: UInt8, _ b: UInt8, _ c: UInt8, _ d: UInt8) -> IPAddress {
        IPAddress(v4: UInt32(a) << 24 | UInt32(b) << 16 | UInt32(c) << 8 | UInt32(d))
    }

    /// An IPv4 address from its 32 bits, first octet highest: `0x7F00_0001` is 127.0.0.1.
    public init(v4 bits: UInt32) {
        high = 0
        low = UInt64(bits)
        isIPv4 = true
    }

    /// An IPv6 address from its first and last 64 bits: `(0, 1)` is `::1`.
    public init(v6 high: UInt64, _ low: UInt64) {
        self.high = high
        self.low = low
        isIPv4 = false
    }

    /// An address from its raw octets in network byte order: 4 for IPv4, 16 for IPv6; nil for any other count.
    public init?(bytes: Span<UInt8>) {
        func bits(_ range: Range<Int>) -> UInt64 {
            var value: UInt64 = 0
            for index in range { value = value << 8 | UInt64(bytes[index]) }
            return value
        }
        switch bytes.count {
        case 4: self.init(v4: UInt32(bits(0..<4)))
        case 16: self.init(v6: bits(0..<8), bits(8..<16))
        default: return nil
        }
    }
}

extension IPAddress {
    /// 127.0.0.0/8 (RFC 1122 §3.2.1.3) or `::1` (RFC 4291 §2.5.3), IPv4-mapped too.
    public var isLoopback: Bool {
        if let bits = mappedIPv4 ?? ipv4 { return bits >> 24 == 127 }
        return high == 0 && low == 1
    }

    /// 0.0.0.0 or `::`, IPv4-mapped too.
    public var isUnspecified: Bool {
        if let bits = mappedIPv4 ?? ipv4 { return bits == 0 }
        return high == 0 && low == 0
    }

    /// fe80::/10 (RFC 4291 §2.5.6).
    public var isIPv6LinkLocal: Bool { !isIPv4 && high >> 54 == 0x3FA }

    /// Whether a single machine can have this address. Unspecified addresses, addresses of "this network", multicast,
    /// reserved and broadcast addresses give false (RFC 6890, RFC 4291 §2.4). IPv4-mapped IPv6 addresses (RFC 4291
    /// §2.5.5.2) give false as well, since a check for the IPv4 address would miss them.
    package var isOfOneMachine: Bool {
        if isIPv4 { return low >> 24 > 0 && low >> 24 < 224 }
        return !isUnspecified && high >> 56 != 0xFF && unmapped == self
    }

    /// The IPv4 address inside an IPv4-mapped address (RFC 4291 §2.5.5.2); any other address unchanged.
    public var unmapped: IPAddress { mappedIPv4.map { IPAddress(v4: $0) } ?? self }

    /// The raw octets in network byte order: 4 for IPv4, 16 for IPv6.
    public var octets: [UInt8] { (0..<octetCount).map(octet) }

    /// Appends the 4 or 16 raw octets, in network byte order.
    public func append(to bytes: inout [UInt8]) {
        bytes.append(addingCapacity: octetCount) { octets in
            for index in 0..<octetCount { octets.append(octet(index)) }
        }
    }

    /// Writes the 4 or 16 raw octets at `offset`, in network byte order, and returns their number.
    ///
    /// - Precondition: `out` has that many octets from `offset` on.
    public func write(into out: inout MutableSpan<UInt8>, at offset: Int) -> Int {
        for index in 0..<octetCount { out[offset + index] = octet(index) }
        return octetCount
    }

    /// The bits of an IPv4 address, nil for IPv6.
    var ipv4: UInt32? { isIPv4 ? UInt32(truncatingIfNeeded: low) : nil }

    /// The IPv4 bits inside `::ffff:0:0/96`, nil for any other address.
    var mappedIPv4: UInt32? {
        !isIPv4 && high == 0 && low >> 32 == 0xFFFF ? UInt32(truncatingIfNeeded: low) : nil
    }

    private var octetCount: Int { isIPv4 ? 4 : 16 }

    private func octet(_ index: Int) -> UInt8 {
        let fromEnd = octetCount - 1 - index
        return UInt8(truncatingIfNeeded: (fromEnd < 8 ? low : high) >> UInt64(fromEnd % 8 * 8))
    }
}

extension IPAddress: CustomStringConvertible {
    /// A dotted quad, or the canonical IPv6 text of RFC 5952. Only `::ffff:0:0/96` is shown with a dotted quad (§5).
    public var description: String {
        if let bits = ipv4 { return IPAddress.dottedQuad(bits) }
        if let bits = mappedIPv4 { return "::ffff:" + IPAddress.dottedQuad(bits) }
        let zeros = longestZeroRun
        var text = ""
        for index in 0..<8 {
            if zeros.contains(index) {
                if index == zeros.lowerBound { text += "::" }
                continue
            }
            if index != 0 && index != zeros.upperBound { text += ":" }
            text += String(group(index), radix: 16)
        }
        return text
    }

    /// The groups that `::` replaces: the first of the longest runs of two or more zero groups (RFC 5952 §4.2). Without
    /// such a run, an empty range outside the groups.
    private var longestZeroRun: Range<Int> {
        var longest = 8..<8
        var start = 0
        for index in 0..<8 {
            if group(index) != 0 {
                start = index + 1
            } else if index - start >= max(1, longest.count) {
                longest = start..<index + 1
            }
        }
        return longest
    }

    private func group(_ index: Int) -> UInt16 {
        UInt16(truncatingIfNeeded: (index < 4 ? high : low) >> UInt64((3 - index % 4) * 16))
    }

    private static func dottedQuad(_ bits: UInt32) -> String {
        "\(bits >> 24).\(bits >> 16 & 0xFF).\(bits >> 8 & 0xFF).\(bits & 0xFF)"
    }
}
