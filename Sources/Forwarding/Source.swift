public import Base

/// The host that asks, so that none can take everything that all share: an IPv4 address, or the first 64 bits of an
/// IPv6 address, since one host has as many of the rest as it likes.
///
/// All programs of this machine are one source: over loopback neither the port, which a stub resolver changes with each
/// query, nor the address, of which each program has the 16 million of 127.0.0.0/8, identifies a program, and UDP does
/// not tell the user.
public struct Source: Hashable, Sendable {
    /// The first 64 bits of an IPv6 address; an IPv4 address behind bits with which only a multicast address begins.
    private let bits: UInt64

    private init(bits: UInt64) { self.bits = bits }
    private init(v4 address: UInt64) { self.init(bits: 0xFFFF_FFFF << 32 | address) }

    /// The daemon's own questions: refreshes, `preResolve`, `keepAliveDomains`. It has the value of 0.0.0.0.
    static var daemon: Source { Source(v4: 0) }
    /// The programs of this machine.
    public static var host: Source { Source(v4: 0x7F00_0001) }

    /// Whether it is a program of this machine, or the daemon itself.
    var isThisHost: Bool { self == .host || self == .daemon }

    /// An IPv4 address is a source of its own; of IPv6 all that share a /64 are one.
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

    /// One of `count` places, which cannot be predicted without the salt.
    /// - Parameters:
    ///   - salt: secret and random for this process.
    ///   - count: 1 to 2^32.
    public func place(of count: Int, salt: UInt64) -> Int {
        // Multiply-shift hashing: an odd factor loses no information, and the product's upper half depends on every
        // bit.
        Int(truncatingIfNeeded: (((bits &* (salt | 1)) >> 32) &* UInt64(count)) >> 32)
    }

    /// Whether a source that has `own` of something may have one more: at most seven times what is left of it. So a
    /// single source may have seven eighths, and however many sources there are, some is left for the next.
    ///
    /// - Parameters:
    ///   - all: how many all sources have together.
    ///   - most: how many there are to share.
    public static func mayHaveMore(own: Int, all: Int, most: Int) -> Bool { own < 7 * (most - all) }
}
