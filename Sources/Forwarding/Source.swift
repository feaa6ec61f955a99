public import Base

/// A unit that has a share of the resources that all clients share: an IPv4 address; an IPv6 address in a network on a
/// link of this machine; else the first 64 bits of an IPv6 address, since a host can choose the rest.
///
/// A host on a link may invent addresses too, so the sum of a /64 on a link is bounded as well: see ``network`` and
/// ``Shares``.
///
/// All programs of this machine are one source: over loopback neither the port, which a stub resolver changes with each
/// query, nor the address, one of the 16 million of 127.0.0.0/8, identifies a program, and UDP does not carry the user.
public struct Source: Hashable, Sendable {
    /// The first 64 bits of an IPv6 address; or an IPv4 address after bits with which only a multicast address begins.
    private let high: UInt64
    /// The rest of an IPv6 address that is a source of its own, else 0.
    private let low: UInt64

    private init(_ high: UInt64, _ low: UInt64) { (self.high, self.low) = (high, low) }
    private init(v4 address: UInt64) { self.init(0xFFFF_FFFF << 32 | address, 0) }

    /// The daemon's own questions: refreshes, `preResolve`, `keepAliveDomains`. Its value is the value of 0.0.0.0.
    static var daemon: Source { Source(v4: 0) }
    /// The programs of this machine.
    public static var host: Source { Source(v4: 0x7F00_0001) }

    /// Whether the source is a program of this machine, or the daemon itself.
    var isThisHost: Bool { self == .host || self == .daemon }

    /// The first 64 bits of an IPv6 address that is a source of its own; nil if it is the only source of its network.
    public var network: UInt64? { low == 0 ? nil : high }

    /// - Parameter isOnLink: Whether the network of an IPv6 address is on a link of this machine. A network that no
    ///   router of the Internet leads to counts as on a link: link-local (fe80::/10) and unique local addresses
    ///   (fc00::/7, RFC 4193).
    public init(_ address: IPAddress, isOnLink: Bool = false) {
        let address = address.unmapped
        if address.isLoopback {
            self = .host
        } else if address.isIPv4 {
            self.init(v4: address.low)
        } else {
            let isWhole = isOnLink || address.isIPv6LinkLocal || address.high >> 57 == 0xFC >> 1
            self.init(address.high, isWhole ? address.low : 0)
        }
    }

    /// An index below `count`, which cannot be predicted without the salt.
    /// - Parameters:
    ///   - salt: Two numbers, secret and random for this process.
    ///   - count: 1 to 2^32.
    public func index(below count: Int, salt: (UInt64, UInt64)) -> Int {
        // Multiply-shift hashing: an odd factor loses no information, and the product's upper half depends on every
        // bit.
        let product = high &* (salt.0 | 1) &+ low &* (salt.1 | 1)
        return Int(truncatingIfNeeded: ((product >> 32) &* UInt64(count)) >> 32)
    }

    /// An index as by ``index(below:salt:)`` for the ``network`` alone; nil if the source has no network.
    public func networkIndex(below count: Int, salt: (UInt64, UInt64)) -> Int? {
        network.map { Source($0, 0).index(below: count, salt: salt) }
    }
}

/// The IPv6 networks on links of this machine.
public struct Links: Sendable, Equatable {
    private let networks: [Network]

    /// - Parameter networks: see `Routes.networksOnLinks()`.
    public init(_ networks: [Network] = []) { self.networks = networks }

    /// The source of an address.
    public func source(of address: IPAddress) -> Source {
        Source(address, isOnLink: !address.isIPv4 && networks.contains { $0.contains(address) })
    }
}

/// The sender of a question.
public struct Asker: Sendable {
    /// The address of the client, which may be a server; unspecified if it does not matter.
    public let address: IPAddress
    /// The transport of the question.
    public let way: ClientWay
    /// Whether the address is proven: it is a loopback address, has a connection, or has sent this daemon's cookie.
    public let isProven: Bool
    /// The source whose share the question uses.
    public let source: Source

    /// - Parameter source: The result of ``Links/source(of:)``.
    public init(_ address: IPAddress, over way: ClientWay, isProven: Bool, source: Source) {
        (self.address, self.way, self.isProven, self.source) = (address, way, isProven, source)
    }

    init(_ source: Source, isProven: Bool = true) {
        self.init(IPAddress(v6: 0, 0), over: .udp, isProven: isProven, source: source)
    }

    /// A program of this machine.
    public static var host: Asker { Asker(.host) }
    static var daemon: Asker { Asker(.daemon) }
}
