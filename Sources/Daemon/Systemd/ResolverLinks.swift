import Base
import Forwarding
import Transport

/// Decides which of the servers in systemd-resolved's list are for all names.
enum ResolverLinks {
    private static let service = "org.freedesktop.resolve1"
    private static let path = "/org/freedesktop/resolve1"

    /// The decision by the kernel's routes: a link is for all names if a default route leads over it. Empty if there is
    /// no such link, or the kernel does not list them.
    static func byRoutes(_ servers: [Endpoint]) -> [LinkServer] {
        guard let links = Routes.linksOfDefaultRoutes(), !links.isEmpty else { return [] }
        return servers.compactMap { server in
            guard !server.address.isLoopback, let link = Routes.link(to: server), let name = NetworkLink.name(of: link)
            else { return nil }
            return LinkServer(server, of: name, for: links.contains(link) ? .otherNames : .someNames)
        }
    }

    private static let manager = SystemBus.Object(service: service, path: path, interface: "\(service).Manager")

    /// The servers that systemd-resolved asks for names that no link has for itself; none if it cannot be asked.
    static func globalServers() -> [IPAddress] {
        guard let bus = SystemBus(), let servers = servers(bus) else { return [] }
        return servers.filter { $0.link == 0 }.map(\.address)
    }

    /// The servers that systemd-resolved asks, with the number of their link; 0 for the machine as a whole.
    private static func servers(_ bus: borrowing SystemBus) -> [(link: Int32, address: IPAddress)]? {
        bus.list("DNS", of: manager, "iiay")?.compactMap { server in
            guard case .number(let link) = server[0], case .octets(let octets) = server[2] else { return nil }
            return IPAddress(bytes: octets.span).map { (link, $0) }
        }
    }

    /// The decision of systemd-resolved itself (org.freedesktop.resolve1(5)); nil if it cannot be asked. It may take
    /// long.
    /// - Parameter listed: The servers of the file.
    static func asked(_ listed: [Endpoint]) -> [LinkServer]? {
        guard let bus = SystemBus(), let servers = servers(bus), let domains = bus.list("Domains", of: manager, "isb")
        else { return nil }
        var known: [LinkServer] = []
        for (link, address) in servers {
            let isForAll = domains.contains([.number(link), .text("."), .flag(true)])
            guard let isDefault = link == 0 ? true : isDefault(link, bus) else { return nil }
            let number = UInt32(bitPattern: link)
            known += listed.filter { $0.address == address && ($0.zone == nil || Routes.link(to: $0) == number) }.map {
                LinkServer(
                    $0, of: NetworkLink.name(of: number) ?? "",
                    for: isForAll ? .allNames : isDefault ? .otherNames : .someNames)
            }
        }
        return known
    }

    /// Whether systemd-resolved asks the servers of a link for names that no link has for itself.
    private static func isDefault(_ link: Int32, _ bus: borrowing SystemBus) -> Bool? {
        // sd_bus_path_encode(3): a leading digit is written as its code.
        let object = SystemBus.Object(service: service, path: "\(path)/link/_3\(link)", interface: "\(service).Link")
        guard case .flag(let isDefault)? = bus.value("DefaultRoute", of: object, "b") else { return nil }
        return isDefault
    }
}
