internal import Base
internal import DNSWire
internal import HTTPDNS

/// The names that the demo service knows by itself: documentation names (RFC 2606) with documentation addresses
/// (RFC 5737, RFC 3849), so that nothing on the Internet is imitated.
struct DemoZone {
    private struct Entry {
        let ipv4: [IPAddress]
        let ipv6: [IPAddress]
        let ttl: UInt32
    }

    private let entries: [Name: Entry]

    init() {
        var entries: [Name: Entry] = [:]
        func add(_ text: String, ttl: UInt32, ipv4: [UInt8], ipv6: [UInt64]) {
            guard let name = Name(text) else { return }
            entries[name] = Entry(
                ipv4: ipv4.map { .v4(192, 0, 2, $0) }, ipv6: ipv6.map { IPAddress(v6: 0x2001_0db8 << 32, $0) }, ttl: ttl
            )
        }
        add("www.example.com", ttl: 120, ipv4: [1, 2], ipv6: [1, 2])
        add("example.com", ttl: 300, ipv4: [3], ipv6: [3])
        add("ipv4.example.com", ttl: 120, ipv4: [4], ipv6: [])
        add("ipv6.example.com", ttl: 120, ipv4: [], ipv6: [6])
        add("short.example.com", ttl: 5, ipv4: [7], ipv6: [7])
        add("many.example.com", ttl: 600, ipv4: Array(101...108), ipv6: Array(0x101...0x108))
        self.entries = entries
    }

    /// The result for a name; nil if the zone does not have it.
    func result(_ name: Name, _ family: ServiceFamily) -> NameResult? {
        guard let entry = entries[name] else { return nil }
        func familyResult(_ addresses: [IPAddress], asked: Bool) -> FamilyResult {
            guard asked else { return .notAsked }
            return addresses.isEmpty ? .noRecord : .addresses(addresses, ttl: entry.ttl)
        }
        return NameResult(
            name: name, ipv4: familyResult(entry.ipv4, asked: family.includesIPv4),
            ipv6: familyResult(entry.ipv6, asked: family.includesIPv6))
    }
}
