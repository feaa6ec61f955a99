extension IPAddress {
    /// Whether it is an address of this host or of a network such as a home's or an office's, to which a public name
    /// must not lead: 0/8, 10/8, 127/8, 172.16/12, 192.168/16 (RFC 1122, RFC 1918), 100.64/10 (RFC 6598), 169.254/16
    /// (RFC 3927), `::`, `::1`, fc00::/7 (RFC 4193) and fe80::/10 (RFC 4291 §2.5.6).
    ///
    /// The same IPv4 addresses inside an IPv6 address count too: mapped (`::ffff:10.0.0.1`), which a socket treats as
    /// the IPv4 address, and under 64:ff9b::/96, which a NAT64 translator may translate although RFC 6052 §3.1 forbids
    /// it. A network's own translation prefix cannot be told from other addresses.
    public var isPrivate: Bool {
        guard let bits = ipv4 ?? mappedIPv4 ?? translatedIPv4 else {
            return high == 0 && low <= 1 || high >> 57 == 0xFC >> 1 || high >> 54 == 0xFE80 >> 6
        }
        switch bits >> 24 {
        case 0, 10, 127: return true
        case 100: return bits >> 22 == 100 << 2 | 1
        case 169: return bits >> 16 == 169 << 8 | 254
        case 172: return bits >> 20 == 172 << 4 | 1
        case 192: return bits >> 16 == 192 << 8 | 168
        default: return false
        }
    }

    /// The IPv4 bits inside `64:ff9b::/96` (RFC 6052 §2.1), nil for any other address.
    private var translatedIPv4: UInt32? {
        !isIPv4 && high == 0x0064_FF9B_0000_0000 && low >> 32 == 0 ? UInt32(truncatingIfNeeded: low) : nil
    }
}
