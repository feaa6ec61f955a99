public import Base
internal import Glibc

/// The routes that lead out of this machine.
public enum Routes {
    /// Whether there is a route to the Internet of each family now; nil: this machine has no descriptor for the check.
    /// No packet leaves: connecting a UDP socket only looks the route up. The service's own SDKs check the same two
    /// addresses.
    public static func families() -> (ipv4: Bool, ipv6: Bool)? {
        guard let ipv4 = lead(to: Endpoint(.v4(8, 8, 8, 8), port: 53)),
            let ipv6 = lead(to: Endpoint(IPAddress(v6: 0x2000 << 48, 0), port: 53))
        else { return nil }
        return (ipv4, ipv6)
    }

    /// Whether a route leads to an endpoint now; nil: this machine has no descriptor for the check.
    public static func lead(to endpoint: Endpoint) -> Bool? {
        let socket: Descriptor
        do throws(SystemError) {
            socket = try Descriptor.socket(endpoint.address.isIPv4 ? AF_INET : AF_INET6, .datagram)
        } catch {
            return error.isShortage ? nil : false
        }
        guard socket.connect(SocketAddress(endpoint)) == 0, let local = try? socket.boundEndpoint() else {
            return false
        }
        // A router announces itself without a prefix: a server beyond the link could not answer.
        return !local.address.isIPv6LinkLocal || endpoint.address.isIPv6LinkLocal
    }
}
