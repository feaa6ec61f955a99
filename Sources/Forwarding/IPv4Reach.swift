public import Base

/// How this machine reaches IPv4 addresses.
public struct IPv4Reach: Sendable, Equatable {
    /// Whether there is a route to the Internet of each family.
    public var hasIPv4 = true
    public var hasIPv6 = true
    /// The prefix of the network's translator (NAT64); nil: none is known or wanted.
    public var prefix: NAT64Prefix?
    /// Whether clients get addresses under it (DNS64).
    public var isSynthesizing = false

    /// Whether IPv4 addresses can be reached through the translator.
    public var leadsToIPv4: Bool { prefix != nil && (!hasIPv4 || isSynthesizing) }

    /// IPv4 is reached directly.
    public init() {}

    /// The difference from most networks, as a sentence without its end; nil: none.
    public var words: String? {
        switch (hasIPv4, prefix) {
        case (false, let prefix?):
            "this network has no IPv4: servers with IPv4 addresses are asked by way of its translator under \(prefix)"
                + (isSynthesizing ? ", and clients get AAAA records made of A records" : "")
        case (false, nil) where hasIPv6:
            "this network has no IPv4, and no translator to it is known: servers that have IPv4 addresses alone cannot be asked"
        case (true, let prefix?) where isSynthesizing: "clients get AAAA records under \(prefix) made of A records"
        default: nil
        }
    }
}
