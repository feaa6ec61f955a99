public import Base
public import DNSWire

/// The names that an entry of `domains` gives to a group of upstreams.
public enum DomainPattern: Hashable, Sendable {
    /// `x`: the name and all names under it; `.`: every name.
    case subtree(Name)
    /// `*.x`: all names under the name, not the name itself.
    case below(Name)
    /// Only the name, as in a hosts file. No text of a single pattern means this.
    case only(Name)
    /// The empty text: names of a single label.
    case singleLabels
    /// `10.0.0.0/8`: the reverse names of a network's addresses, and all names under them.
    case network(Network)

    /// Nil if the text has none of these forms. Names have only letters, digits, `-` and `_`, and may have a final dot.
    /// Likely mistakes give nil, too: a network with a bit set after its prefix, an address without a prefix length,
    /// and a `*` that is not the whole first label.
    public init?(_ text: some StringProtocol) {
        var list = DomainList()
        let octets = Array(text.utf8)
        guard octets.isEmpty || list.append(parsing: octets.span, 0..<octets.count) else { return nil }
        self = list.pattern(at: 0) ?? .singleLabels
    }
}

extension DomainPattern: CustomStringConvertible {
    /// The text of the pattern in lower case, without a final dot; empty for single labels.
    public var description: String {
        switch self {
        case .subtree(let name), .only(let name): name.description
        case .below(let name): "*.\(name)"
        case .singleLabels: ""
        case .network(let network): network.description
        }
    }
}
