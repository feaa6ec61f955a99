import Base
import CSystemd
import Forwarding
import Transport

/// Which of the servers in systemd-resolved's list are for all names.
enum ResolverLinks {
    /// The most entries of a list that are looked at.
    private static let mostEntries = 1024
    private static let service = "org.freedesktop.resolve1"

    /// What the kernel's routes say of servers: a link is for all names if a default route leads over it. Nothing is said where
    /// there is no such link, or the kernel does not tell.
    static func byRoutes(_ servers: [Endpoint]) -> [LinkServer] {
        guard let links = Routes.linksOfDefaultRoutes(), !links.isEmpty else { return [] }
        return servers.compactMap { server in
            guard !server.address.isLoopback, let link = Routes.link(to: server), let name = NetworkLink.name(of: link)
            else { return nil }
            return LinkServer(server.address, of: name, for: links.contains(link) ? .otherNames : .someNames)
        }
    }

    /// What systemd-resolved itself says (org.freedesktop.resolve1(5)); nil if it cannot be asked. It waits for the bus while that
    /// begins, which is not for a thread that others wait for.
    static func asked() -> [LinkServer]? {
        var bus: OpaquePointer?
        // Sound, here and below: what the bus gives is read as the types that its signatures say, and only while it lives.
        guard unsafe sd_bus_open_system(&bus) >= 0, let bus = unsafe bus else { return nil }
        defer { unsafe sd_bus_flush_close_unref(bus) }
        var servers: [(link: Int32, address: IPAddress)] = []
        let hasServers = unsafe read("DNS", "iiay", bus) { entry in
            var (link, family, octets, count) = unsafe (Int32(0), Int32(0), UnsafeRawPointer?.none, 0)
            guard unsafe sd_bus_message_read_basic(entry, integer, &link) > 0,
                unsafe sd_bus_message_read_basic(entry, integer, &family) > 0,
                unsafe sd_bus_message_read_array(entry, octet, &octets, &count) > 0
            else { return }
            let bytes = unsafe Array(UnsafeRawBufferPointer(start: octets, count: count))
            if let address = IPAddress(bytes: bytes.span) { servers.append((link, address)) }
        }
        var forAllNames: Set<Int32> = []
        let hasDomains = unsafe read("Domains", "isb", bus) { entry in
            var (link, name, isRoute) = unsafe (Int32(0), UnsafePointer<CChar>?.none, Int32(0))
            guard unsafe sd_bus_message_read_basic(entry, integer, &link) > 0,
                unsafe sd_bus_message_read_basic(entry, string, &name) > 0,
                unsafe sd_bus_message_read_basic(entry, boolean, &isRoute) > 0, let name = unsafe name
            else { return }
            if isRoute != 0, unsafe String(cString: name) == "." { forAllNames.insert(link) }
        }
        guard hasServers, hasDomains else { return nil }
        var known: [LinkServer] = []
        for (link, address) in servers {
            guard let isDefault = link == 0 ? true : unsafe isDefault(link, bus) else { return nil }
            known.append(
                LinkServer(
                    address, of: NetworkLink.name(of: UInt32(bitPattern: link)) ?? "",
                    for: forAllNames.contains(link) ? .allNames : isDefault ? .otherNames : .someNames))
        }
        return known
    }

    /// Whether systemd-resolved asks the servers of a link for names that no link has for itself.
    private static func isDefault(_ link: Int32, _ bus: OpaquePointer) -> Bool? {
        var (reply, value) = unsafe (OpaquePointer?.none, Int32(0))
        // sd_bus_path_encode(3): a digit at the beginning is written as its code.
        let path = "/org/freedesktop/resolve1/link/_3\(link)"
        guard unsafe csystemd_bus_property(bus, service, path, "\(service).Link", "DefaultRoute", &reply) >= 0,
            let reply = unsafe reply
        else { return nil }
        defer { unsafe sd_bus_message_unref(reply) }
        guard unsafe sd_bus_message_enter_container(reply, variant, "b") > 0,
            unsafe sd_bus_message_read_basic(reply, boolean, &value) > 0
        else { return nil }
        return value != 0
    }

    /// Calls the closure with each structure of a property of systemd-resolved that is a list of them.
    /// - Returns: false if it cannot be had.
    private static func read(
        _ property: String, _ entry: String, _ bus: OpaquePointer, _ take: (OpaquePointer) -> Void
    ) -> Bool {
        var reply: OpaquePointer?
        let path = "/org/freedesktop/resolve1"
        guard unsafe csystemd_bus_property(bus, service, path, "\(service).Manager", property, &reply) >= 0,
            let reply = unsafe reply
        else { return false }
        defer { unsafe sd_bus_message_unref(reply) }
        guard unsafe sd_bus_message_enter_container(reply, variant, "a(\(entry))") > 0,
            unsafe sd_bus_message_enter_container(reply, list, "(\(entry))") > 0
        else { return false }
        for _ in 0..<mostEntries {
            guard unsafe sd_bus_message_enter_container(reply, structure, entry) > 0 else { break }
            unsafe take(reply)
            guard unsafe sd_bus_message_exit_container(reply) >= 0 else { return false }
        }
        return true
    }

    // The types of D-Bus.
    private static let integer = CChar(UInt8(ascii: "i"))
    private static let boolean = CChar(UInt8(ascii: "b"))
    private static let octet = CChar(UInt8(ascii: "y"))
    private static let string = CChar(UInt8(ascii: "s"))
    private static let list = CChar(UInt8(ascii: "a"))
    private static let structure = CChar(UInt8(ascii: "r"))
    private static let variant = CChar(UInt8(ascii: "v"))
}
