public import Base

/// A group's own answer, without asking a server.
public enum GroupAnswer: Sendable, Hashable, CustomStringConvertible {
    /// The name does not exist.
    case nxdomain
    /// The name exists, and has no record of the type.
    case nodata
    /// The question is refused.
    case refused
    /// The name has these addresses and no other records. There are 1 to ``maximumAddresses`` addresses.
    case addresses([IPAddress])
    /// The name is an alias of this target for addresses and service bindings, and has no other records.
    case alias(Name)

    /// The most addresses of an answer. With all of them, the answer fits into a datagram.
    public static let maximumAddresses = 16

    /// The answers without addresses.
    public static let withoutAddresses: [GroupAnswer] = [.nxdomain, .nodata, .refused]

    /// The addresses; empty for other answers.
    public var addresses: [IPAddress] { if case .addresses(let addresses) = self { addresses } else { [] } }

    /// The target of the group's names as aliases; nil: the names are no aliases.
    public var target: Name? { if case .alias(let target) = self { target } else { nil } }

    /// The text without quotes and brackets: `nxdomain`, `alias of NAME`, or the addresses with commas between them.
    public var description: String {
        switch self {
        case .nxdomain: "nxdomain"
        case .nodata: "nodata"
        case .refused: "refused"
        case .alias(let target): "alias of \(target)"
        case .addresses(let addresses): addresses.map(\.description).joined(separator: ", ")
        }
    }
}
