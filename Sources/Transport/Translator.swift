public import Base
internal import Glibc
internal import Synchronization

/// The way to IPv4 addresses on a network without IPv4: the network's translator (NAT64, RFC 6146), under its prefix.
///
/// The kernel's routes decide: only where there is none to an IPv4 address, a socket goes by the translator. So this is looked at
/// after a failure alone. Whoever has opened the socket knows the IPv4 address as before, by which certificates are judged.
public enum Translator {
    private static let prefix = Mutex<NAT64Prefix?>(nil)

    /// Sets the prefix for sockets that are opened from now on, of the whole process; nil: there is no translator.
    public static func use(_ prefix: NAT64Prefix?) { Self.prefix.withLock { $0 = prefix } }

    /// Where a socket goes instead, when connecting to an endpoint has failed with this error number; nil: nowhere.
    static func detour(to endpoint: Endpoint, after code: Int32) -> Endpoint? {
        guard code == ENETUNREACH || code == EHOSTUNREACH, endpoint.address.isIPv4 else { return nil }
        return prefix.withLock { $0?.address(of: endpoint.address) }.map { Endpoint($0, port: endpoint.port) }
    }
}
