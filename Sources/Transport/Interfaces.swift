public import Base
internal import Glibc

/// The machine's own addresses.
public enum Interfaces {
    /// Each IPv4 and IPv6 address of each interface, loopback included, with port 0. A link-local address comes three
    /// times: with the interface's name as zone, with its number, and without a zone.
    public static func addresses() throws(SystemError) -> [Endpoint] {
        var list: UnsafeMutablePointer<ifaddrs>?
        // Sound: getifaddrs makes a linked list that lives until freeifaddrs; each address has its family's full size.
        try SystemCall.require("getifaddrs") { unsafe getifaddrs(&list) }
        defer { unsafe freeifaddrs(list) }
        var addresses: [Endpoint] = []
        var next = unsafe list
        while let interface = unsafe next {
            unsafe next = interface.pointee.ifa_next
            guard let name = unsafe interface.pointee.ifa_addr else { continue }
            let isIPv6 = unsafe name.pointee.sa_family == sa_family_t(AF_INET6)
            let length = isIPv6 ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size
            if let address = unsafe SocketAddress(reading: UnsafeRawPointer(name), length: length) {
                guard address.address.isIPv6LinkLocal, let label = unsafe interface.pointee.ifa_name else {
                    addresses.append(Endpoint(address.address, port: 0))
                    continue
                }
                for zone in unsafe [nil, Zone(String(cString: label)), Zone(String(address.scope))] {
                    addresses.append(Endpoint(address.address, port: 0, zone: zone))
                }
            }
        }
        return addresses
    }
}
