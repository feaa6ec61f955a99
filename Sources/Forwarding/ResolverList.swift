public import Addresses

/// The `nameserver` lines of a resolv.conf(5) file.
public enum ResolverList {
    /// As many as anybody would wait for; glibc takes three.
    public static let maximumServers = 8

    /// The servers in their order; port 53 each. A zone (`fe80::1%eth0`) is not supported and the line passed over.
    public static func parse(_ text: Span<UInt8>) -> [Endpoint] {
        var servers: [Endpoint] = []
        for words in TextLines(text, comment: [UInt8(ascii: "#"), UInt8(ascii: ";")]) {
            guard words.count >= 2, words[0] == "nameserver", let address = IPAddress(words[1]) else { continue }
            let endpoint = Endpoint(address, port: 53)
            if !servers.contains(endpoint) { servers.append(endpoint) }
            if servers.count == maximumServers { break }
        }
        return servers
    }

    /// Splits servers into those that can be asked and those that are this daemon itself: forwarding to them would ask
    /// the same question again for ever.
    /// - Parameters:
    ///   - listening: the endpoints the daemon answers on.
    ///   - own: this machine's addresses; any loopback address is its own as well.
    public static func withoutLoops(
        _ servers: [Endpoint], listening: [Endpoint], own: [IPAddress]
    ) -> (usable: [Endpoint], loops: [Endpoint]) {
        func isOwn(_ server: Endpoint) -> Bool {
            // ::ffff:192.0.2.1 leads to 192.0.2.1.
            let server = Endpoint(server.address.unmapped, port: server.port)
            return listening.contains { listener in
                guard listener.port == server.port else { return false }
                if listener.address == server.address { return true }
                guard listener.address.isUnspecified, listener.address.isIPv4 == server.address.isIPv4 else {
                    return server.address.isUnspecified && listener.address.isLoopback
                }
                return server.address.isLoopback || server.address.isUnspecified || own.contains(server.address)
            }
        }
        return (servers.filter { !isOwn($0) }, servers.filter(isOwn))
    }
}
