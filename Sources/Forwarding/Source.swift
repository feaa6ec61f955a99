public import Base

/// Who asks, as far as hosts are told apart, so that none takes what all share: an IPv4 address, or the first 64 bits
/// of an IPv6 address, of which one host has as many as it likes.
///
/// All programs of this host are one source: over loopback neither a port, which a stub resolver changes with each
/// query, nor an address, of which 127.0.0.0/8 gives everybody 16 million, says which program it is, and UDP tells no
/// user.
public struct Source: Hashable, Sendable {
    /// An IPv6 address's first 64 bits; an IPv4 address behind bits that only a multicast address begins with.
    private let bits: UInt64

    private init(bits: UInt64) { self.bits = bits }
    private init(v4 address: UInt64) { self.init(bits: 0xFFFF_FFFF << 32 | address) }

    /// What the daemon asks for itself: refreshes, `preResolve`, `keepAliveDomains`. It stands where 0.0.0.0 would.
    static var daemon: Source { Source(v4: 0) }
    /// This host.
    public static var host: Source { Source(v4: 0x7F00_0001) }

    public init(_ address: IPAddress) {
        let address = address.unmapped
        if address.isLoopback {
            self = .host
        } else if address.isIPv4 {
            self.init(v4: address.low)
        } else {
            self.init(bits: address.high)
        }
    }

    /// One of `count` places: which, only who knows the salt can say.
    /// - Parameters:
    ///   - salt: secret and random for this process.
    ///   - count: 1 to 2^32.
    public func place(of count: Int, salt: UInt64) -> Int {
        // Multiply-shift hashing: an odd factor loses nothing, and the product's upper half depends on every bit.
        Int(truncatingIfNeeded: (((bits &* (salt | 1)) >> 32) &* UInt64(count)) >> 32)
    }

    /// Whether a source that has `own` of something may have one more: not more than seven times what is left of it. So
    /// one source alone may have seven eighths, and however many there are and whatever they do, some is left for the
    /// next.
    ///
    /// - Parameters:
    ///   - all: what all sources have.
    ///   - most: what there is.
    public static func mayHaveMore(own: Int, all: Int, most: Int) -> Bool { own < 7 * (most - all) }
}
