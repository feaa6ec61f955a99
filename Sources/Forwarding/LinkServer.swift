public import Base

/// A resolver of a network link, with the names that it is for. systemd-resolved writes the resolvers of all links into
/// one file, even a VPN's, which must not be asked for all names.
///
/// | a link has | another link has `~.` | its resolvers are |
/// | --- | --- | --- |
/// | `~.` | either | asked |
/// | the default route | no | asked |
/// | the default route | yes | left out, as by systemd-resolved |
/// | neither | either | left out |
///
/// A resolver of several links is asked if it is for one of them. A resolver of no known link is asked. A link whose
/// only resolver is this daemon does not affect the others: that is how systemd-resolved is set to ask the daemon for
/// all names.
public struct LinkServer: Sendable, Hashable {
    public let address: IPAddress
    /// The link's name; empty: the resolver is of the machine as a whole.
    public let link: String
    public let use: Use

    /// The names that a link is for, fewest first.
    public enum Use: Int, Sendable {
        /// Some names only.
        case someNames
        /// The names that no other link is for.
        case otherNames
        /// All names (`~.`).
        case allNames
    }

    /// Each parameter sets the property of the same name.
    public init(_ address: IPAddress, of link: String, for use: Use) {
        (self.address, self.link, self.use) = (address, link, use)
    }

    /// Splits servers by the table above.
    /// - Parameter servers: Without this daemon.
    /// - Returns: The servers to ask, and the others with their links.
    public static func split(
        _ servers: [Endpoint], by known: [LinkServer]
    ) -> (usable: [Endpoint], others: [(server: Endpoint, link: String)]) {
        let isTaken = known.contains { one in
            one.use == .allNames && servers.contains { $0.address == one.address }
        }
        let least: Use = isTaken ? .allNames : .otherNames
        var (usable, others): ([Endpoint], [(Endpoint, String)]) = ([], [])
        for server in servers {
            let links = known.filter { $0.address == server.address }
            if let other = links.first, links.allSatisfy({ $0.use.rawValue < least.rawValue }) {
                others.append((server, other.link))
            } else {
                usable.append(server)
            }
        }
        return (usable, others)
    }
}
