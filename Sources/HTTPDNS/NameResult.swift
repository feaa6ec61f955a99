public import Base
public import DNSWire

/// What the service says about one name.
public struct NameResult: Sendable, Equatable {
    public var name: Name
    public var ipv4: FamilyResult
    public var ipv6: FamilyResult

    public init(name: Name, ipv4: FamilyResult, ipv6: FamilyResult) {
        self.name = name
        self.ipv4 = ipv4
        self.ipv6 = ipv6
    }
}

/// What the service says about the addresses of one family.
public enum FamilyResult: Sendable, Equatable {
    /// At least one address, all of one family, in the service's order; the TTL is in seconds,
    /// 0…``ServiceProtocol/maximumTTL``, as the service gave it.
    case addresses([IPAddress], ttl: UInt32)
    /// The name does not exist, or has no address of the family, or is not one of the account's: the service does not
    /// tell these apart.
    case noRecord
    case notAsked
}
