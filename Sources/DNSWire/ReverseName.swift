public import Base

/// Reverse names: `4.3.2.1.in-addr.arpa` (RFC 1035 §3.5) and nibbles under `ip6.arpa` (RFC 3596 §2.5).
extension Name {
    static let ipv4Suffix: [UInt8] = [7] + "in-addr".utf8 + [4] + "arpa".utf8 + [0]
    static let ipv6Suffix: [UInt8] = [3] + "ip6".utf8 + [4] + "arpa".utf8 + [0]
    private static let hexDigits = Array("0123456789abcdef".utf8)

    /// The name at which the PTR records of `address` are found.
    public static func reverse(of address: IPAddress) -> Name {
        var wire: [UInt8] = []
        for octet in address.octets.reversed() {
            if address.isIPv4 {
                let digits = String(octet).utf8
                wire.append(UInt8(digits.count))
                wire.append(contentsOf: digits)
            } else {
                wire += [1, hexDigits[Int(octet & 0xF)], 1, hexDigits[Int(octet >> 4)]]
            }
        }
        return Name(canonical: wire + (address.isIPv4 ? ipv4Suffix : ipv6Suffix))
    }

    /// 0…255 without leading zeros: `01.0.0.127.in-addr.arpa` is another name than that of 127.0.0.1.
    static func decimal(_ label: ArraySlice<UInt8>) -> UInt8? {
        guard label.count == 1 || label.first != 0x30 else { return nil }
        var value = 0
        for octet in label {
            guard octet >= 0x30, octet <= 0x39, label.count <= 3 else { return nil }
            value = value * 10 + Int(octet) - 0x30
        }
        return UInt8(exactly: value)
    }

    static func nibble(_ label: ArraySlice<UInt8>) -> UInt8? {
        guard label.count == 1, let digit = label.first, let value = hexDigits.firstIndex(of: digit) else { return nil }
        return UInt8(value)
    }
}
