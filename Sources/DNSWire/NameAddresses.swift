public import Base

/// What an HTTPDNS account says about one name.
public struct NameAddresses: Sendable, Equatable {
    public var name: Name
    public var ipv4: FamilyAddresses
    public var ipv6: FamilyAddresses

    public init(name: Name, ipv4: FamilyAddresses, ipv6: FamilyAddresses) {
        self.name = name
        self.ipv4 = ipv4
        self.ipv6 = ipv6
    }

    /// Whether there is an address of either family.
    public var hasAddresses: Bool {
        if case .addresses = ipv4 { return true }
        if case .addresses = ipv6 { return true }
        return false
    }
}

/// What an HTTPDNS account says about the addresses of one family.
public enum FamilyAddresses: Sendable, Equatable {
    /// At least one address, all of one family, in the service's order; the TTL is in seconds, 0…2³¹−1, as the service
    /// gave it.
    case addresses([IPAddress], ttl: UInt32)
    /// The name does not exist, or has no address of the family, or is not one of the account's: no service tells these
    /// apart.
    case noRecord
    case notAsked
}

/// Address families.
public struct Families: OptionSet, Sendable, Hashable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    public static let ipv4 = Families(rawValue: 1)
    public static let ipv6 = Families(rawValue: 2)
    public static let both: Families = [.ipv4, .ipv6]

    /// The family that questions of a type are for.
    public init?(of type: RecordType) {
        switch type {
        case .a: self = .ipv4
        case .aaaa: self = .ipv6
        default: return nil
        }
    }
}
