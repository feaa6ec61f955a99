public import Addresses

/// Who asks, as far as hosts are told apart, so that none takes what all share: an IPv4 address, or the first 64 bits of an
/// IPv6 address, of which one host has as many as it likes.
///
/// All programs of this host are one source: over loopback neither a port, which a stub resolver changes with each query,
/// nor an address, of which 127.0.0.0/8 gives everybody 16 million, says which program it is, and UDP tells no user.
public struct Source: Hashable, Sendable {
    /// Which kind it is, and its address.
    private let kind: UInt8
    private let bits: UInt64

    private init(kind: UInt8, bits: UInt64) { (self.kind, self.bits) = (kind, bits) }

    /// What the daemon asks for itself: refreshes, `preResolve`, `keepAliveDomains`.
    static var daemon: Source { Source(kind: 0, bits: 0) }
    /// This host.
    public static var host: Source { Source(kind: 1, bits: 0) }

    public init(_ address: IPAddress) {
        let address = address.unmapped
        if address.isLoopback {
            self = .host
        } else {
            self.init(kind: address.isIPv4 ? 4 : 6, bits: address.isIPv4 ? address.low : address.high)
        }
    }

    /// Whether a source that has `own` of something may have one more: not more than seven times what is left of it. So
    /// one source alone may have seven eighths, and however many there are and whatever they do, some is left for the next.
    ///
    /// - Parameters:
    ///   - all: what all sources have.
    ///   - most: what there is.
    public static func mayHaveMore(own: Int, all: Int, most: Int) -> Bool { own < 7 * (most - all) }
}
