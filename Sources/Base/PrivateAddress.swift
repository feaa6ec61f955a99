extension IPAddress {
    /// Whether a public name must not lead to this address. It is of this host, of a network such as a home's or an
    /// office's, or of no single host: 0/8, 10/8, 127/8, 172.16/12, 192.168/16 (RFC 1122, RFC 1918), 100.64/10 (RFC
    /// 6598), 169.254/16 (RFC 3927), 198.18/15 (RFC 2544), multicast, reserved and broadcast from 224/4 on, `::`,
    /// `::1`, fc00::/7 (RFC 4193), fe80::/10 and the former fec0::/10 (RFC 4291 §2.5.6 and 7), ff00::/8, and
    /// 64:ff9b:1::/48, which each network uses for translators of its own (RFC 8215).
    ///
    /// The same IPv4 addresses inside an IPv6 address count too: mapped (`::ffff:10.0.0.1`), which a socket treats as
    /// the IPv4 address; under 64:ff9b::/96, which a NAT64 translator may translate although RFC 6052 §3.1 forbids it;
    /// compatible (`::10.0.0.1`, RFC 4291 §2.5.5.1) and 6to4 (2002::/16, RFC 3056), which a tunnel may unpack. Any
    /// other prefix of a translator cannot be distinguished from other addresses.
    public var isPrivate: Bool {
        guard let bits = ipv4 ?? mappedIPv4 ?? translatedIPv4 ?? tunnelledIPv4 else {
            return high >> 57 == 0xFC >> 1 || high >> 55 == 0xFE80 >> 7 || high >> 56 == 0xFF
                || high >> 16 == 0x0064_FF9B_0001
        }
        switch bits >> 24 {
        case 0, 10, 127: return true
        case 100: return bits >> 22 == 100 << 2 | 1
        case 169: return bits >> 16 == 169 << 8 | 254
        case 172: return bits >> 20 == 172 << 4 | 1
        case 192: return bits >> 16 == 192 << 8 | 168
        case 198: return bits >> 17 == (198 << 8 | 18) >> 1
        case 224...: return true
        default: return false
        }
    }

    /// The IPv4 bits inside `64:ff9b::/96` (RFC 6052 §2.1); nil for any other address.
    private var translatedIPv4: UInt32? {
        !isIPv4 && high == 0x0064_FF9B_0000_0000 && low >> 32 == 0 ? UInt32(truncatingIfNeeded: low) : nil
    }

    /// The IPv4 bits inside `::/96` and after `2002::/16`; nil for any other address.
    private var tunnelledIPv4: UInt32? {
        guard !isIPv4 else { return nil }
        if high == 0, low >> 32 == 0 { return UInt32(truncatingIfNeeded: low) }
        return high >> 48 == 0x2002 ? UInt32(truncatingIfNeeded: high >> 16) : nil
    }
}
