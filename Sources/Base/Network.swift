/// An address range in CIDR notation, `192.0.2.0/24` or `2001:db8::/32` (RFC 4632 §3.1, RFC 4291 §2.3).
public struct Network: Hashable, Sendable, CustomStringConvertible {
    /// The range's first address.
    public let address: IPAddress
    /// The number of fixed leading bits: 0…32 for IPv4, 0…128 for IPv6.
    public let prefixLength: Int

    /// A range from text; an address alone is a range of one address. Any other text gives nil. So does `10.0.0.1/8`,
    /// in which a bit after the prefix is set: such a text is more likely a mistake.
    public init?(_ text: some StringProtocol) { self.init(parsing: Array(text.utf8).span) }

    /// Reads the range from ASCII bytes, without making a String.
    public init?(parsing bytes: Span<UInt8>) {
        guard let (address, prefixLength) = Self.parts(bytes) else { return nil }
        self.init(address, prefixLength: prefixLength)
    }

    /// The range around an address with a prefix: 10.0.0.0/8 for `10.1.2.3/8`, as a suggestion for a range. Nil if the
    /// text is not an address, or if its prefix is missing or too long.
    public init?(around text: some StringProtocol) {
        guard text.utf8.contains(UInt8(ascii: "/")), let (address, prefixLength) = Self.parts(Array(text.utf8).span)
        else { return nil }
        self.init(around: address, prefixLength: prefixLength)
    }

    /// - Parameter prefixLength: 0…32 or 0…128, by the address's family.
    init(around address: IPAddress, prefixLength: Int) {
        let mask = Self.mask(address, prefixLength)
        self.prefixLength = prefixLength
        self.address =
            address.ipv4.map { IPAddress(v4: $0 & UInt32(truncatingIfNeeded: mask.low)) }
            ?? IPAddress(v6: address.high & mask.high, address.low & mask.low)
    }

    private static func parts(_ bytes: Span<UInt8>) -> (address: IPAddress, prefixLength: Int)? {
        let slash = firstIndex(of: UInt8(ascii: "/"), in: bytes, 0..<bytes.count)
        guard let address = IPAddress(parsing: bytes.extracting(0..<(slash ?? bytes.count))) else { return nil }
        let bits = address.isIPv4 ? 32 : 128
        guard let slash else { return (address, bits) }
        return decimal(bytes, slash + 1..<bytes.count, atMost: bits).map { (address, $0) }
    }

    /// - Parameter prefixLength: 0…32 or 0…128, by the address's family. Nil for more, and for a bit set after it.
    public init?(_ address: IPAddress, prefixLength: Int) {
        guard prefixLength >= 0, prefixLength <= (address.isIPv4 ? 32 : 128) else { return nil }
        self.init(around: address, prefixLength: prefixLength)
        guard self.address == address else { return nil }
    }

    /// The equal range of IPv4 addresses for a range of IPv4-mapped IPv6 addresses; any other range unchanged.
    public var unmapped: Network {
        guard address.mappedIPv4 != nil, prefixLength >= 96 else { return self }
        return Network(address.unmapped, prefixLength: prefixLength - 96) ?? self
    }

    /// Whether `candidate` is in the range. An IPv4-mapped IPv6 address is in an IPv4 range if its IPv4 address is.
    public func contains(_ candidate: IPAddress) -> Bool {
        var candidate = candidate
        if address.isIPv4, let bits = candidate.mappedIPv4 { candidate = IPAddress(v4: bits) }
        let mask = Self.mask(address, prefixLength)
        return candidate.isIPv4 == address.isIPv4
            && candidate.high & mask.high == address.high
            && candidate.low & mask.low == address.low
    }

    public var description: String { "\(address)/\(prefixLength)" }

    /// A mask with ones for the prefix. In Swift, a shift by the full width or more gives 0.
    private static func mask(_ address: IPAddress, _ prefixLength: Int) -> (high: UInt64, low: UInt64) {
        if address.isIPv4 { return (0, UInt64(UInt32.max << UInt32(32 - prefixLength))) }
        return (UInt64.max << UInt64(max(0, 64 - prefixLength)), UInt64.max << UInt64(min(64, 128 - prefixLength)))
    }
}
