internal import Base
internal import CLinux
internal import Glibc

/// The known links, addresses and routes of this machine: enough to distinguish a change from a repetition.
///
/// If an entry is missing, its next repetition counts as a change, which is harmless; but a route that is gone must not
/// stay, or its return would be missed. The kernel removes IPv4 routes without a message when their link or address
/// goes, so all routes are forgotten whenever either changes.
///
/// A link matters if it has an address, since it shows the state of the links below, or a default route, as a tunnel may
/// have without an address.
struct NetworkState {
    private struct InterfaceAddress: Hashable {
        let interface: UInt32
        let address: IPAddress
    }

    /// Whether each link is up and running, by interface index.
    private var links: [UInt32: UInt32] = [:]
    /// The usable addresses, except IPv6 link-local ones: no connection beyond the link depends on these, and each
    /// container that starts or stops has one.
    private var addresses: Set<InterfaceAddress> = []
    /// The links that have, or had, a default route.
    private var defaultLinks: Set<UInt32> = []
    /// Routes in the kernel's form.
    private var routes: Set<[UInt8]> = []

    /// The most routes remembered, which is fewer than the Internet's whole routing table.
    static let routeLimit = 1024

    /// - Parameter defaultLinks: The links with a default route.
    init(defaultLinks: Set<UInt32> = []) { self.defaultLinks = defaultLinks }

    /// Takes the messages of one datagram of rtnetlink(7).
    /// - Returns: Whether they report a change that matters to a connection.
    mutating func apply(_ datagram: Span<UInt8>) -> Bool {
        var isChanged = false
        let isWhole = Netlink.forEachMessage(datagram) { type, flags, body in
            if apply(type, replaces: flags & NLM_F_REPLACE != 0, body) { isChanged = true }
        }
        // A cut message counts as a change, since its end is unknown.
        return isChanged || !isWhole
    }

    /// Takes one message.
    mutating func apply(_ type: Int, replaces: Bool, _ body: Span<UInt8>) -> Bool {
        switch type {
        case RTM_NEWLINK, RTM_DELLINK: link(body, isGone: type == RTM_DELLINK)
        case RTM_NEWADDR, RTM_DELADDR: address(body, isGone: type == RTM_DELADDR)
        case RTM_NEWROUTE, RTM_DELROUTE: route(body, isGone: type == RTM_DELROUTE, replaces: replaces)
        // A rule leads to a table of routes; it has no lifetime that would be renewed. wg-quick(8) adds it after the route.
        case RTM_NEWRULE, RTM_DELRULE: true
        // NLMSG_DONE, and kinds without a subscription.
        default: false
        }
    }

    /// Reads a `struct ifinfomsg`.
    private mutating func link(_ body: Span<UInt8>, isGone: Bool) -> Bool {
        // A message of another family has another subject, for instance a bridge's port.
        guard body.count >= MemoryLayout<ifinfomsg>.size, body[0] == UInt8(AF_UNSPEC) else { return false }
        let interface = body.word(4)
        let state = isGone ? nil : body.word(8) & UInt32(IFF_UP | IFF_RUNNING)
        guard links[interface] != state else { return false }
        links[interface] = state
        routes = []
        let matters = defaultLinks.contains(interface) || addresses.contains { $0.interface == interface }
        if isGone {
            addresses = addresses.filter { $0.interface != interface }
            defaultLinks.remove(interface)
        }
        return matters
    }

    /// Reads a `struct ifaddrmsg`. An address that is still being checked for duplicates, or is a duplicate, cannot be
    /// used.
    private mutating func address(_ body: Span<UInt8>, isGone: Bool) -> Bool {
        let size = MemoryLayout<ifaddrmsg>.size
        guard body.count >= size else { return false }
        var flags = UInt32(body[2])
        var (own, other): (IPAddress?, IPAddress?) = (nil, nil)
        Netlink.forEachAttribute(body, from: size) { type, value in
            switch type {
            case IFA_LOCAL: own = IPAddress(bytes: value)
            // The peer's address, if there is one, else the link's own.
            case IFA_ADDRESS: other = IPAddress(bytes: value)
            case IFA_FLAGS: if value.count == 4 { flags = value.word(0) }
            default: break
            }
        }
        guard let address = own ?? other, !address.isIPv6LinkLocal else { return false }
        let isProbed = flags & UInt32(IFA_F_TENTATIVE) != 0 && flags & UInt32(IFA_F_OPTIMISTIC) == 0
        let isUsable = !isGone && !isProbed && flags & UInt32(IFA_F_DADFAILED) == 0
        let entry = InterfaceAddress(interface: body.word(4), address: address)
        let isNews = isUsable ? addresses.insert(entry).inserted : addresses.remove(entry) != nil
        if isNews { routes = [] }
        return isNews
    }

    /// Reads a `struct rtmsg`.
    private mutating func route(_ body: Span<UInt8>, isGone: Bool, replaces: Bool) -> Bool {
        guard let route = Self.description(ofRoute: body) else { return false }
        if isGone {
            routes = []
            return true
        }
        if body[1] == 0 { defaultLinks.formUnion(Routes.links(of: body)) }
        if routes.contains(route) { return false }
        // The message does not identify the replaced route.
        if replaces || routes.count >= Self.routeLimit { routes = [] }
        routes.insert(route)
        return true
    }

    /// A route's head and attributes, without its lifetime and use counts; nil for a route that does not lead to other
    /// machines: of the machine's own addresses, of multicast, of one IPv6 link, or a path's MTU.
    private static func description(ofRoute body: Span<UInt8>) -> [UInt8]? {
        let size = MemoryLayout<rtmsg>.size
        guard body.count >= size else { return nil }
        let flags = body.word(8)
        let ways = [RTN_UNICAST, RTN_UNREACHABLE, RTN_BLACKHOLE, RTN_PROHIBIT, RTN_THROW].map { UInt8($0) }
        guard flags & UInt32(RTM_F_CLONED) == 0, UInt32(body[4]) != RT_TABLE_LOCAL.rawValue, ways.contains(body[7])
        else {
            return nil
        }
        var route: [UInt8] = []
        route.append(body.extracting(first: 8))
        route.append(UInt8(truncatingIfNeeded: flags) & UInt8(RTNH_F_DEAD | RTNH_F_ONLINK | RTNH_F_LINKDOWN))
        var isOfOneLink = false
        Netlink.forEachAttribute(body, from: size) { type, value in
            switch UInt32(type) {
            case RTA_CACHEINFO.rawValue, RTA_EXPIRES.rawValue: return
            case RTA_DST.rawValue: isOfOneLink = IPAddress(bytes: value)?.isIPv6LinkLocal ?? false
            default: break
            }
            route += [UInt8(truncatingIfNeeded: type), UInt8(truncatingIfNeeded: value.count)]
            route.append(value)
        }
        return isOfOneLink ? nil : route
    }
}
