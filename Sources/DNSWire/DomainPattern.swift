public import Base

/// Which names a group of upstreams takes, as one entry of `domains` says it.
public enum DomainPattern: Hashable, Sendable {
    /// `x`: the name and all under it; `.`: every name.
    case subtree(Name)
    /// `*.x`: all under the name, not itself.
    case below(Name)
    /// `""`: names of a single label.
    case singleLabels
    /// `10.0.0.0/8`: the reverse names of the addresses of a network.
    case network(Network)

    /// Nil if the text is none of these. A bit set behind a network's prefix is a slip, as is a `*` that is not the whole
    /// first label.
    public init?(_ text: some StringProtocol) {
        if text.isEmpty {
            self = .singleLabels
        } else if text.contains("/") {
            guard let network = Network(text) else { return nil }
            self = .network(network)
        } else if text.hasPrefix("*.") {
            guard let name = Name(String(text.dropFirst(2))), !text.dropFirst(2).contains("*") else { return nil }
            self = .below(name)
        } else {
            guard !text.contains("*"), let name = Name(String(text)) else { return nil }
            self = .subtree(name)
        }
    }
}
