/// The link of a link-local address (RFC 4007 §11): an interface's name or number, as in `fe80::1%eth0`.
///
/// The zone is a plain value with the text, since an interface may go and return with another number.
public struct Zone: Hashable, Sendable, CustomStringConvertible {
    /// The text's octets, highest first, then zeros.
    private var high: UInt64 = 0
    private var low: UInt64 = 0

    /// The longest interface name of Linux (IFNAMSIZ without the terminating zero).
    public static let maximumLength = 15

    /// Nil for a text that is not an interface name: the text is empty or too long, or has an octet that is not
    /// printable ASCII or is one of `/ : % [ ]`.
    public init?(_ text: some StringProtocol) {
        let octets = text.utf8
        guard (1...Zone.maximumLength).contains(octets.count) else { return nil }
        for (index, octet) in octets.enumerated() {
            guard octet > 0x20, octet < 0x7F, !"/:%[]".utf8.contains(octet) else { return nil }
            let bits = UInt64(octet) << UInt64(56 - index % 8 * 8)
            if index < 8 { high |= bits } else { low |= bits }
        }
    }

    public var description: String {
        let octets = (0..<16).map { UInt8(truncatingIfNeeded: ($0 < 8 ? high : low) >> UInt64(56 - $0 % 8 * 8)) }
        return String(decoding: octets.prefix { $0 != 0 }, as: UTF8.self)
    }
}
