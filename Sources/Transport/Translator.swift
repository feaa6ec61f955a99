public import Base
internal import Glibc
internal import Synchronization

/// The way to IPv4 addresses on a network without IPv4: through the network's translator (NAT64, RFC 6146), under its
/// prefix.
///
/// The kernel's routes decide: a socket takes the translator only if there is no route to its IPv4 address. So the
/// translator is tried only after a failure. The opener of the socket still knows the IPv4 address, by which
/// certificates are checked.
public enum Translator {
    private static let prefix = Mutex<NAT64Prefix?>(nil)

    /// Sets the prefix for sockets opened from now on, for the whole process; nil if there is no translator.
    public static func use(_ prefix: NAT64Prefix?) { Self.prefix.withLock { $0 = prefix } }

    /// The other endpoint to connect to, after a failure with this error number; nil if there is none.
    static func detour(to endpoint: Endpoint, after code: Int32) -> Endpoint? {
        guard code == ENETUNREACH || code == EHOSTUNREACH, endpoint.address.isIPv4 else { return nil }
        return prefix.withLock { $0?.address(of: endpoint.address) }.map { Endpoint($0, port: endpoint.port) }
    }
}
