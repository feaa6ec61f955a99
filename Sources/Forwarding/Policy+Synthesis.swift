import Base
import DNSCache
import DNSWire
import Names

/// The effect of a network's NAT64 prefix on questions.
extension Policy {
    /// The prefix of the answers that are made for a client; nil: none are made.
    func synthesis(for audience: Audience) -> NAT64Prefix? {
        audience == .those(dnssecOK: true, checkingDisabled: true) ? nil : synthesis
    }

    /// The reverse name of the IPv4 address in a reverse name under the prefix; nil for any other name.
    func translatedReverse(_ name: Name) -> Name? {
        guard let prefix = synthesis, let network = ReverseNetwork(name: name, bits: 0, value: 0).network,
            network.prefixLength == 128, let inside = prefix.ipv4(in: network.address)
        else { return nil }
        return prefix.address(of: inside).map { _ in Name.reverse(of: inside) }
    }

    func isTranslated(_ address: IPAddress) -> Bool { synthesis?.ipv4(in: address) != nil }

    /// Whether an address is private, or the translation of a private one.
    func isPrivate(_ address: IPAddress) -> Bool {
        address.isPrivate || synthesis?.ipv4(in: address)?.isPrivate ?? false
    }
}
