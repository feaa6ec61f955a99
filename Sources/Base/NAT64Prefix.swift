/// The prefix under which a network's NAT64 translator (RFC 6146) accepts packets for IPv4 addresses (RFC 6052).
public struct NAT64Prefix: Hashable, Sendable, CustomStringConvertible {
    /// The prefix as a range of addresses.
    public let network: Network

    /// The prefix for translators that have no prefix of their own network, `64:ff9b::/96` (RFC 6052 §2.1).
    public static let wellKnown = NAT64Prefix(Network(IPAddress(v6: 0x0064_FF9B << 32, 0), prefixLength: 96)!)!

    /// The valid lengths of a prefix (RFC 6052 §2.2), the usual one first.
    static let lengths = [96, 64, 56, 48, 40, 32]

    /// The IPv4 addresses of `ipv4only.arpa` (RFC 7050 §2.2).
    public static let ipv4Only: [IPAddress] = [.v4(192, 0, 0, 170), .v4(192, 0, 0, 171)]

    /// Nil for a range that is not of IPv6, for a length other than 32, 40, 48, 56, 64 and 96, for a bit set in octet 8
    /// of the addresses, and for mapped IPv4, loopback, link-local and multicast ranges, whose packets do not leave a
    /// machine.
    public init?(_ network: Network) {
        let first = network.address
        guard !first.isIPv4, Self.lengths.contains(network.prefixLength), first.low >> 56 == 0 else { return nil }
        guard first.high != 0, !first.isIPv6LinkLocal, first.high >> 56 != 0xFF else { return nil }
        self.network = network
    }

    /// The address by which the translator reaches an IPv4 address. Nil for an IPv4 address that must not be
    /// translated: an address that is not of one machine, a loopback or link-local address, an address of
    /// `ipv4only.arpa`, or under the well-known prefix a private address (RFC 6052 §3.1).
    public func address(of address: IPAddress) -> IPAddress? {
        guard let bits = address.ipv4, address.isOfOneMachine, bits >> 24 != 127, bits >> 16 != 169 << 8 | 254,
            !Self.ipv4Only.contains(address), self != .wellKnown || !address.isPrivate
        else { return nil }
        return embedding(address)
    }

    /// The address for an AAAA record of `ipv4only.arpa`, by which other programs find the prefix (RFC 7050 §3, RFC
    /// 8880 §7.1); nil for an IPv4 address that this name does not have.
    public func addressOfIPv4Only(_ address: IPAddress) -> IPAddress? {
        Self.ipv4Only.contains(address) ? embedding(address) : nil
    }

    private func embedding(_ address: IPAddress) -> IPAddress? {
        guard let bits = address.ipv4 else { return nil }
        var (high, low) = (network.address.high, network.address.low)
        for (index, offset) in offsets.enumerated() {
            let octet = UInt64(bits >> UInt32(24 - 8 * index) & 0xFF)
            if offset < 8 { high |= octet << UInt64(56 - 8 * offset) } else { low |= octet << UInt64(120 - 8 * offset) }
        }
        return IPAddress(v6: high, low)
    }

    /// The IPv4 address inside an address under the prefix; nil for an address outside the prefix. The octets after the
    /// IPv4 address are ignored (RFC 6052 §2.2).
    public func ipv4(in address: IPAddress) -> IPAddress? {
        guard network.contains(address) else { return nil }
        let octets = address.octets
        return IPAddress(v4: offsets.reduce(0) { $0 << 8 | UInt32(octets[$1]) })
    }

    /// The prefixes by which a resolver made AAAA records of `ipv4only.arpa` (RFC 7050 §3), each once and in order. An
    /// address shows its prefix if it contains one of the name's two IPv4 addresses. The rest of the address must be
    /// zero, so that no other address seems to show a prefix. An address that contains both IPv4 addresses is ignored,
    /// since either may be a part of a prefix.
    public static func found(in addresses: [IPAddress]) -> [NAT64Prefix] {
        var all: [NAT64Prefix] = []
        for address in addresses where !address.isIPv4 {
            let possible = lengths.compactMap { NAT64Prefix(Network(around: address, prefixLength: $0)) }.filter {
                $0.ipv4(in: address).map(ipv4Only.contains) ?? false
            }
            guard let prefix = possible.first, possible.count == 1,
                prefix.ipv4(in: address).flatMap(prefix.addressOfIPv4Only) == address
            else { continue }
            if !all.contains(prefix) { all.append(prefix) }
        }
        return all
    }

    public var description: String { network.description }

    /// The offsets of the octets that hold the IPv4 address: the octets after the prefix, except octet 8 (RFC 6052
    /// §2.2).
    private var offsets: [Int] {
        let start = network.prefixLength / 8
        return (start..<start + 4).map { $0 >= 8 && start < 12 ? $0 + 1 : $0 }
    }
}
