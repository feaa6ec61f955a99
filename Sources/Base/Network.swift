/// An address range in CIDR notation, `192.0.2.0/24` or `2001:db8::/32` (RFC 4632 §3.1, RFC 4291 §2.3).
public struct Network: Hashable, Sendable, CustomStringConvertible {
    /// The range's first address.
    public let address: IPAddress
    /// How many leading bits are fixed: 0…32 for IPv4, 0…128 for IPv6.
    public let prefixLength: Int

    /// A range from text; an address alone is the range of that one address. Nil if it is anything else, also if a bit
    /// behind the prefix is set: `10.0.0.1/8` is more likely a slip than meant.
    public init?(_ text: some StringProtocol) {
        self.init(parsing: Array(text.utf8).span)
    }

    /// The same from ASCII bytes, without making a String.
    public init?(parsing bytes: Span<UInt8>) {
        let slash = firstIndex(of: UInt8(ascii: "/"), in: bytes, 0..<bytes.count)
        guard let address = IPAddress(parsing: bytes.extracting(0..<(slash ?? bytes.count))) else { return nil }
        let bits = address.isIPv4 ? 32 : 128
        var prefixLength = bits
        if var index = slash {
            index += 1
            guard let length = decimal(bytes, at: &index, maximum: bits), index == bytes.count else { return nil }
            prefixLength = length
        }
        self.init(address, prefixLength: prefixLength)
    }

    /// - Parameter prefixLength: 0…32 or 0…128, as the address has it; nil if it is more, or a bit behind it is set.
    public init?(_ address: IPAddress, prefixLength: Int) {
        guard prefixLength >= 0, prefixLength <= (address.isIPv4 ? 32 : 128) else { return nil }
        self.address = address
        self.prefixLength = prefixLength
        let mask = self.mask
        guard address.high & ~mask.high == 0, address.low & ~mask.low == 0 else { return nil }
    }

    /// Whether `candidate` lies in the range. An IPv4-mapped IPv6 address lies in an IPv4 range if its IPv4 address
    /// does.
    public func contains(_ candidate: IPAddress) -> Bool {
        var candidate = candidate
        if address.isIPv4, let bits = candidate.mappedIPv4 { candidate = IPAddress(v4: bits) }
        let mask = self.mask
        return candidate.isIPv4 == address.isIPv4
            && candidate.high & mask.high == address.high
            && candidate.low & mask.low == address.low
    }

    public var description: String { "\(address)/\(prefixLength)" }

    /// Ones where the prefix is. Swift's shifts are smart: by the full width or more they leave 0.
    private var mask: (high: UInt64, low: UInt64) {
        if address.isIPv4 { return (0, UInt64(UInt32.max << UInt32(32 - prefixLength))) }
        return (UInt64.max << UInt64(max(0, 64 - prefixLength)), UInt64.max << UInt64(min(64, 128 - prefixLength)))
    }
}
