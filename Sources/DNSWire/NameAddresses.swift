public import Base

/// An account's answer about one name.
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

/// An account's answer about the addresses of one family.
public enum FamilyAddresses: Sendable, Equatable {
    /// At least one address, all addresses of one family, in the service's order. The TTL is in seconds, 0…2³¹−1, as
    /// the service gave it.
    case addresses([IPAddress], ttl: UInt32)
    /// The name does not exist, or has no address of the family, or is not a name of the account: no service
    /// distinguishes these cases.
    case noRecord
    case notAsked
}

/// The service's own reason why an account has no address of one family of a name. It is separate from the results, few
/// of which have one: as a part of them it would make each lookup more expensive.
public struct AbsenceReason: Sendable, Equatable {
    /// The most octets of a code.
    public static let longestCode = 64

    public let name: Name
    /// The family that the reason is about.
    public let family: Families
    /// The service's code, such as `RRNotExist`.
    public let code: String

    /// - Parameter code: Letters, digits, `_`, `-` and `.`. Other characters, no character and too many characters give
    ///   nil, since people read the code.
    public init?(_ name: Name, _ family: Families, code: some Collection<UInt8>) {
        guard (1...Self.longestCode).contains(code.count),
            code.allSatisfy({ isDigit($0) || isLowerLetter(lowercased($0)) || "_-.".utf8.contains($0) })
        else { return nil }
        (self.name, self.family, self.code) = (name, family, String(decoding: code, as: UTF8.self))
    }
}

extension [AbsenceReason] {
    /// The code for a name and the wanted family; without such a code, the code for the other family.
    public func code(of name: Name, _ family: Families? = nil) -> String? {
        if isEmpty { return nil }
        let all = filter { $0.name == name }
        return (all.first { $0.family == family } ?? all.first)?.code
    }
}

/// Address families.
public struct Families: OptionSet, Sendable, Hashable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    public static let ipv4 = Families(rawValue: 1)
    public static let ipv6 = Families(rawValue: 2)
    public static let both: Families = [.ipv4, .ipv6]

    /// The family of a question's type.
    public init?(of type: RecordType) {
        switch type {
        case .a: self = .ipv4
        case .aaaa: self = .ipv6
        default: return nil
        }
    }
}
