public import Base
import DNSWire

/// The `nameserver` lines of a resolv.conf(5) file.
public enum ResolverList {
    /// The most servers that are used; glibc uses three.
    public static let maximumServers = 8

    /// The servers in their order; port 53 each.
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

    /// Splits servers into usable ones and those that lead back to this daemon: its own addresses, and systemd-resolved
    /// if that asks it. To forward to the latter would repeat the same question without end.
    /// - Parameters:
    ///   - listening: The endpoints of the daemon's listeners.
    ///   - own: This machine's addresses, with port 0; any loopback address is its own as well.
    ///   - resolvedAsks: The servers of systemd-resolved; empty: it does not run.
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
                return server.address.isLoopback || server.address.isUnspecified
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
