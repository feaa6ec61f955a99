public import Base

/// A resolver of a network link, and which names it is for. systemd-resolved writes the resolvers of all links into one file,
/// a VPN's among them, which must not be asked for all names.
///
/// | a link says | another link says `~.` | its resolvers are |
/// | --- | --- | --- |
/// | `~.` | either | asked |
/// | it is a default route | no | asked |
/// | it is a default route | yes | left out, as systemd-resolved does |
/// | neither | either | left out |
///
/// A resolver of several links is asked if it is for one of them. One of no known link is asked. A link whose only resolver is
/// this daemon says nothing of the others: that is how systemd-resolved is told to ask the daemon for all names.
public struct LinkServer: Sendable, Hashable {
    public let address: IPAddress
    /// The link's name; empty: it is of the machine as a whole.
    public let link: String
    public let use: Use

    /// Which names a link is for, the least first.
    public enum Use: Int, Sendable {
        /// Some names alone.
        case someNames
        /// Those that no other link is for.
        case otherNames
        /// All names (`~.`).
        case allNames
    }

    /// The parameters are those of the properties.
    public init(_ address: IPAddress, of link: String, for use: Use) {
        (self.address, self.link, self.use) = (address, link, use)
    }

    /// Splits servers by the table above.
    /// - Parameter servers: Without this daemon.
    /// - Returns: Those to be asked, and the others with their links.
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
