public import Base

/// Reverse names: `4.3.2.1.in-addr.arpa` (RFC 1035 §3.5) and nibbles under `ip6.arpa` (RFC 3596 §2.5).
extension Name {
    package static let ipv4Suffix: [UInt8] = [7] + "in-addr".utf8 + [4] + "arpa".utf8 + [0]
    package static let ipv6Suffix: [UInt8] = [3] + "ip6".utf8 + [4] + "arpa".utf8 + [0]
    private static let hexDigits = Array("0123456789abcdef".utf8)

    /// The name of the PTR records of `address`.
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
}
