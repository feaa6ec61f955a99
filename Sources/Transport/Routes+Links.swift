public import Base
internal import CLinux
internal import Glibc

/// Network links, as the kernel numbers and names them.
public enum NetworkLink {
    /// The number of the loopback link, over which the machine reaches all its own addresses.
    public static let loopback: UInt32 = 1

    /// The name of a link; nil if no link has this number now.
    public static func name(of number: UInt32) -> String? {
        var name = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
        // Sound: if_indextoname(3) writes at most IF_NAMESIZE octets, the terminating zero among them.
        guard unsafe if_indextoname(number, &name) != nil else { return nil }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// When the oldest address of a family was added to a link, except link-local ones, in hundredths of a second since
    /// the machine's start; nil if the link has none. A link that was gone, or has joined another network, has a
    /// different value.
    public static func joined(_ link: UInt32, isIPv4: Bool) -> UInt32? {
        var oldest: UInt32?
        Routes.dump(RTM_GETADDR) { type, body in
            let (family, size) = (isIPv4 ? AF_INET : AF_INET6, MemoryLayout<ifaddrmsg>.size)
            guard type == RTM_NEWADDR, body.count >= size, body[0] == UInt8(family), body.word(4) == link,
                body[3] != UInt8(RT_SCOPE_LINK.rawValue)
            else { return }
            Netlink.forEachAttribute(body, from: size) { type, value in
                // `struct ifa_cacheinfo`: two lifetimes, the times of its creation and last change.
                if type == IFA_CACHEINFO, value.count >= 16 { oldest = min(oldest ?? .max, value.word(8)) }
            }
        }
        return oldest
    }

    /// The number of the link that a zone names; nil if there is none. As in glibc, a zone is first looked up as a
    /// name, and then read as a number.
    static func number(of zone: Zone) -> UInt32? {
        let text = zone.description
        let number = unsafe if_nametoindex(text)
        return number > 0 ? number : UInt32(text).flatMap { $0 > 0 ? $0 : nil }
    }
}

extension Routes {
    /// The most objects of one kind that are read: links, addresses or routes.
    private static let mostObjects = 100_000

    /// The numbers of the links with a default route of either family, in any routing table; nil if the kernel does not
    /// list them, or has too many routes.
    public static func linksOfDefaultRoutes() -> Set<UInt32>? {
        var links: Set<UInt32> = []
        let isWhole = dump(RTM_GETROUTE) { type, body in
            guard type == RTM_NEWROUTE, body.count >= MemoryLayout<rtmsg>.size, body[1] == 0,
                body[7] == UInt8(RTN_UNICAST)
            else { return }
            links.formUnion(self.links(of: body))
        }
        return isWhole ? links : nil
    }

    /// The IPv6 networks whose hosts are reached over a link without a router, by the kernel's own routes and by routes
    /// that a router has announced (RFC 4861 §6.3.4); nil if the kernel does not list them. Prefixes of less than 48
    /// bits, as of tunnels, are left out.
    public static func networksOnLinks() -> [Network]? {
        var networks: [Network] = []
        let isWhole = dump(RTM_GETROUTE) { type, body in
            let size = MemoryLayout<rtmsg>.size
            guard type == RTM_NEWROUTE, body.count >= size, body[0] == UInt8(AF_INET6), body[1] >= 48,
                [UInt8(RTPROT_KERNEL), UInt8(RTPROT_RA)].contains(body[5]), body[7] == UInt8(RTN_UNICAST)
            else { return }
            var (network, isOnLink) = (IPAddress?.none, true)
            Netlink.forEachAttribute(body, from: size) { type, value in
                switch UInt32(type) {
                case RTA_DST.rawValue: network = IPAddress(bytes: value)
                case RTA_GATEWAY.rawValue, RTA_MULTIPATH.rawValue: isOnLink = false
                default: break
                }
            }
            if isOnLink, let network = network.flatMap({ Network($0, prefixLength: Int(body[1])) }) {
                networks.append(network)
            }
        }
        return isWhole ? networks : nil
    }

    /// Asks the kernel for all objects of a type.
    /// - Returns: false if the kernel does not list them all, or there are too many.
    @discardableResult
    static func dump(_ request: Int, _ take: (_ type: Int, _ body: Span<UInt8>) -> Void) -> Bool {
        var (count, isAtEnd) = (0, false)
        guard let socket = try? Descriptor.socket(AF_NETLINK, .raw),
            (try? socket.send(Netlink.dumpRequest(type: request).span)) != nil
        else { return false }
        // The kernel fills in the next part of a dump when a part is read.
        while !isAtEnd, count < mostObjects {
            let isWhole = receive(from: socket) { type, body in
                count += 1
                if type == NLMSG_DONE || type == NLMSG_ERROR { isAtEnd = true }
                take(type, body)
            }
            guard isWhole else { return false }
        }
        return isAtEnd
    }

    /// The number of the link over which datagrams to an address leave; nil if there is no route.
    public static func link(to server: Endpoint) -> UInt32? {
        if let zone = server.zone { return NetworkLink.number(of: zone) }
        let address = server.address
        var octets: [UInt8] = []
        address.append(to: &octets)
        var body = [UInt8](repeating: 0, count: MemoryLayout<rtmsg>.size)
        body[0] = UInt8(address.isIPv4 ? AF_INET : AF_INET6)
        body[1] = UInt8(octets.count * 8)
        // `struct rtattr`, with numbers in the machine's byte order.
        for number in [UInt16(4 + octets.count), UInt16(RTA_DST.rawValue)] {
            body += unsafe withUnsafeBytes(of: number) { unsafe Array($0) }
        }
        let request = Netlink.message(type: RTM_GETROUTE, flags: NLM_F_REQUEST, body + octets)
        guard let socket = try? Descriptor.socket(AF_NETLINK, .raw), (try? socket.send(request.span)) != nil
        else { return nil }
        var link: UInt32?
        _ = receive(from: socket) { type, body in
            if type == RTM_NEWROUTE { link = self.links(of: body).first }
        }
        return link
    }

    /// - Returns: false if no message came, or a part was lost.
    private static func receive(
        from socket: borrowing Descriptor, _ take: (_ type: Int, _ body: Span<UInt8>) -> Void
    ) -> Bool {
        var buffer = [UInt8](repeating: 0, count: Netlink.messageLimit)
        var room = buffer.mutableSpan
        guard case .bytes(let count)? = try? socket.receive(into: &room) else { return false }
        return Netlink.forEachMessage(buffer.span.extracting(0..<count)) { type, _, body in take(type, body) }
    }

    /// The links of a route (`struct rtmsg`).
    static func links(of route: Span<UInt8>) -> [UInt32] {
        var links: [UInt32] = []
        Netlink.forEachAttribute(route, from: MemoryLayout<rtmsg>.size) { type, value in
            switch UInt32(type) {
            case RTA_OIF.rawValue where value.count == 4: links.append(value.word(0))
            case RTA_MULTIPATH.rawValue:
                // Several `struct rtnexthop`: length, flags, hops, the link; attributes of their own.
                var offset = 0
                while offset + 8 <= value.count {
                    links.append(value.word(offset + 4))
                    offset += max(8, (Int(value.half(offset)) + 3) & ~3)
                }
            default: break
            }
        }
        return links
    }
}
