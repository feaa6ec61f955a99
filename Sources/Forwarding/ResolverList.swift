public import Base
import DNSWire

/// The `nameserver` lines of a resolv.conf(5) file.
public enum ResolverList {
    /// The most servers that are used; glibc uses three.
    public static let maximumServers = 8

    /// The servers in their order, each with port 53.
    public static func parse(_ text: Span<UInt8>) -> [Endpoint] {
        var servers: [Endpoint] = []
        var lines = TextLines()
        while servers.count < maximumServers, let whole = lines.next(in: text) {
            let comment = whole.first { text[$0] == UInt8(ascii: "#") || text[$0] == UInt8(ascii: ";") }
            var line = whole.lowerBound..<(comment ?? whole.upperBound)
            if let key = takeWord(text, &line), isSame(text, key, as: "nameserver"), let server = takeWord(text, &line),
                let endpoint = Endpoint(
                    address: String(decoding: text.bytes(in: server), as: UTF8.self), port: 53, allowsZone: true),
                !servers.contains(endpoint)
            {
                servers.append(endpoint)
            }
        }
        return servers
    }

    /// The addresses at which systemd-resolved answers (systemd-resolved.service(8)).
    private static let resolvedStubs = [
        Endpoint(.v4(127, 0, 0, 53), port: 53), Endpoint(.v4(127, 0, 0, 54), port: 53),
    ]

    /// Docker's name server in a container: NAT leads there, even from a daemon that listens on all addresses.
    private static let dockersServer = IPAddress.v4(127, 0, 0, 11)

    /// Splits servers into usable servers and servers that lead back to this daemon: its own addresses, and
    /// systemd-resolved if it asks this daemon. A question forwarded to such a server would come back without end.
    /// - Parameters:
    ///   - listening: The endpoints of the daemon's listeners.
    ///   - own: This machine's addresses, with port 0; any loopback address is the machine's own as well.
    ///   - resolvedAsks: The servers of systemd-resolved; empty if it does not run.
    public static func withoutLoops(
        _ servers: [Endpoint], listening: [Endpoint], own: [Endpoint], resolvedAsks: [Endpoint] = []
    ) -> (usable: [Endpoint], loops: [Endpoint]) {
        func isOwn(_ server: Endpoint) -> Bool {
            // ::ffff:192.0.2.1 leads to 192.0.2.1.
            let server = Endpoint(server.address.unmapped, port: server.port, zone: server.zone)
            return listening.contains { listener in
                guard listener.port == server.port else { return false }
                if listener.address == server.address, listener.zone == server.zone { return true }
                guard listener.address.isUnspecified, listener.address.isIPv4 == server.address.isIPv4 else {
                    return server.address.isUnspecified && listener.address.isLoopback
                }
                return server.address.isLoopback && server.address != dockersServer || server.address.isUnspecified
                    || own.contains(Endpoint(server.address, port: 0, zone: server.zone))
            }
        }
        let resolvedAsksUs = resolvedAsks.contains(where: isOwn)
        func isLoop(_ server: Endpoint) -> Bool {
            isOwn(server) || resolvedAsksUs && resolvedStubs.contains(server)
        }
        return (servers.filter { !isLoop($0) }, servers.filter(isLoop))
    }
}

/// A resolver of a network link, with the names that the link is for. systemd-resolved writes the resolvers of all
/// links into one file, even a VPN's, which must not be asked for all names. A link-local address names another
/// resolver on each link.
///
/// | a link has | another link has `~.` | its resolvers are |
/// | --- | --- | --- |
/// | `~.` | either | asked |
/// | the default route | no | asked |
/// | the default route | yes | left out, as by systemd-resolved |
/// | neither | either | left out |
///
/// A resolver of several links is asked if it is for one of them. A resolver of no known link is asked. A link whose
/// only resolver is this daemon does not affect the other links: with such a link, systemd-resolved asks the daemon for
/// all names.
public struct LinkServer: Sendable, Hashable {
    /// The resolver as the file names it.
    public let server: Endpoint
    /// The link's name; empty if the resolver is of the machine as a whole.
    public let link: String
    public let use: Use

    /// The names that a link is for, fewest first.
    public enum Use: Int, Sendable {
        /// The link is for some names only.
        case someNames
        /// The names that no other link is for.
        case otherNames
        /// All names (`~.`).
        case allNames
    }

    /// Each parameter sets the property of the same name.
    public init(_ server: Endpoint, of link: String, for use: Use) {
        (self.server, self.link, self.use) = (server, link, use)
    }

    /// Splits servers by the table above.
    /// - Parameter servers: The servers without this daemon.
    /// - Returns: The servers to ask, and the others with their links.
    public static func split(
        _ servers: [Endpoint], by known: [LinkServer]
    ) -> (usable: [Endpoint], others: [(server: Endpoint, link: String)]) {
        let isTaken = known.contains { $0.use == .allNames && servers.contains($0.server) }
        let least: Use = isTaken ? .allNames : .otherNames
        var (usable, others): ([Endpoint], [(Endpoint, String)]) = ([], [])
        for server in servers {
            let links = known.filter { $0.server == server }
            if let other = links.first, links.allSatisfy({ $0.use.rawValue < least.rawValue }) {
                others.append((server, other.link))
            } else {
                usable.append(server)
            }
        }
        return (usable, others)
    }
}

/// A server of a file or key that is not asked.
public struct LeftOutServer: Sendable, Hashable {
    public let server: Endpoint
    /// The file or key that names the server.
    public let source: String
    public let reason: Reason

    public enum Reason: Sendable, Hashable {
        /// The server is this daemon itself, or asks it.
        case loop
        /// The server is of a network link with this name, which is not for all names.
        case link(String)
    }

    /// Each parameter sets the property of the same name.
    public init(_ server: Endpoint, in source: String, _ reason: Reason) {
        (self.server, self.source, self.reason) = (server, source, reason)
    }

    /// The reason, to follow the server.
    public var brief: String {
        switch reason {
        case .loop: "is left out: it is this daemon itself or asks it"
        case .link(let name): "is left out: it is of \(name), which is not for all names"
        }
    }

    /// The server and the reason, as a sentence without its end.
    public var words: String {
        switch reason {
        case .loop:
            "\(source) names \(server), which is this daemon itself or asks it: left out, since it would ask itself without end"
        case .link(let name):
            "\(source) names \(server) of \(name), which is not for all names: left out; for the names of that network, a group in [upstreams] can name it"
        }
    }
}
