internal import Base
internal import Glibc

/// The routes that lead out of this machine.
public enum Routes {
    /// Whether there is a route to the Internet of each family now. No packet leaves: connecting a UDP socket only
    /// looks the route up. The service's own SDKs look at the same two addresses.
    public static func families() -> (ipv4: Bool, ipv6: Bool) {
        (leads(to: .v4(8, 8, 8, 8)), leads(to: IPAddress(v6: 0x2000 << 48, 0)))
    }

    /// Whether there is a route to the Internet of either family.
    public static var leadOut: Bool { families() != (false, false) }

    private static func leads(to address: IPAddress) -> Bool {
        let socket: Descriptor
        do throws(SystemError) {
            socket = try Descriptor.socket(address.isIPv4 ? AF_INET : AF_INET6, .datagram)
        } catch {
            // For want of descriptors nothing was learnt of the network.
            return error.isShortage
        }
        guard socket.connect(SocketAddress(Endpoint(address, port: 53))) == 0, let local = try? socket.boundEndpoint()
        else { return false }
        // A router that announces itself without a prefix: a server beyond the link could not answer.
        return !local.address.isIPv6LinkLocal
    }
}
