internal import Base
internal import DNSWire
internal import HTTPDNS

/// The demo's names: documentation names (RFC 2606) with documentation addresses (RFC 5737, RFC 3849), so that no name
/// of the Internet is imitated.
struct DemoZone {
    private struct Entry {
        let ipv4: [IPAddress]
        let ipv6: [IPAddress]
        let ttl: UInt32
    }

    private var entries: [Name: Entry] = [:]

    /// The names of the HTTPDNS service.
    static let service = DemoZone([
        ("www.example.com", ttl: 120, ipv4: [1, 2], ipv6: [1, 2]),
        ("example.com", ttl: 300, ipv4: [3], ipv6: [3]),
        ("ipv4.example.com", ttl: 120, ipv4: [4], ipv6: []),
        ("ipv6.example.com", ttl: 120, ipv4: [], ipv6: [6]),
        ("short.example.com", ttl: 5, ipv4: [7], ipv6: [7]),
        ("many.example.com", ttl: 600, ipv4: Array(101...108), ipv6: Array(0x101...0x108)),
    ])

    /// The names of the DNS servers only.
    static let resolver = DemoZone([("example.net", ttl: 120, ipv4: [9], ipv6: [9])])

    /// - Parameter names: Each name with its TTL and the ends of its addresses.
    private init(_ names: [(String, ttl: UInt32, ipv4: [UInt8], ipv6: [UInt64])]) {
        for (text, ttl, ipv4, ipv6) in names {
            guard let name = Name(text) else { continue }
            entries[name] = Entry(
                ipv4: ipv4.map { .v4(192, 0, 2, $0) }, ipv6: ipv6.map { IPAddress(v6: 0x2001_0db8 << 32, $0) },
                ttl: ttl)
        }
    }

    /// The service's result for a name, which is "no record" for an unknown name.
    func result(_ name: Name, _ family: Families) -> NameAddresses {
        let entry = entries[name]
        func familyResult(_ addresses: [IPAddress]?, asked: Bool) -> FamilyAddresses {
            guard asked else { return .notAsked }
            guard let entry, let addresses, !addresses.isEmpty else { return .noRecord }
            return .addresses(addresses, ttl: entry.ttl)
        }
        return NameAddresses(
            name: name, ipv4: familyResult(entry?.ipv4, asked: family.contains(.ipv4)),
            ipv6: familyResult(entry?.ipv6, asked: family.contains(.ipv6)))
    }

    /// The DNS answer for a name; nil for an unknown name.
    func answer(_ name: Name, _ type: RecordType) -> Answer? {
        entries[name].map { entry in
            switch type {
            case .a: .addresses(name, type: .a, entry.ipv4, ttl: entry.ttl)
            case .aaaa: .addresses(name, type: .aaaa, entry.ipv6, ttl: entry.ttl)
            default: .noData(name, type: type, negativeTTL: entry.ttl)
            }
        }
    }
}
