internal import Base
internal import DNSWire

/// The addresses that an answer gives for one name, as far as the daemon uses them.
struct AddressList {
    // nil: the list was given an address of the family that no machine can have, so none of the family is taken. The
    // owner of a zone can write such an address, so it is not a failure of the service.
    private(set) var ipv4: [IPAddress]? = []
    private(set) var ipv6: [IPAddress]? = []
    /// The TTL in seconds; nil for a list without a TTL.
    var ttl: UInt32?

    var isEmpty: Bool { (ipv4 ?? []).isEmpty && (ipv6 ?? []).isEmpty }

    /// Adds an address unless the list has it already, since an RRset contains no record twice (RFC 2181 §5).
    mutating func add(_ address: IPAddress) {
        if address.isIPv4 { Self.add(address, to: &ipv4) } else { Self.add(address, to: &ipv6) }
    }

    private static func add(_ address: IPAddress, to addresses: inout [IPAddress]?) {
        if !address.isOfOneMachine { addresses = nil }
        let isTaken = addresses.map { $0.count < ServiceProtocol.addressesPerFamily && !$0.contains(address) } ?? false
        if isTaken { addresses?.append(address) }
    }
}

extension NameAddresses {
    /// - Parameters:
    ///   - first: The list of the IPv4 addresses.
    ///   - second: The list of the IPv6 addresses, which is `first` again if one list has both families.
    init(_ name: Name, _ first: AddressList, _ second: AddressList, asked: Families) {
        func family(_ addresses: [IPAddress]?, _ ttl: UInt32?, isAsked: Bool) -> FamilyAddresses {
            guard isAsked else { return .notAsked }
            guard let addresses, !addresses.isEmpty else { return .noRecord }
            return .addresses(addresses, ttl: ttl ?? ServiceProtocol.defaultTTL)
        }
        self.init(
            name: name, ipv4: family(first.ipv4, first.ttl, isAsked: asked.contains(.ipv4)),
            ipv6: family(second.ipv6, second.ttl, isAsked: asked.contains(.ipv6)))
    }
}

/// Reads `ADDRESS;…[;]`, which is at least one address and nothing else, and calls the closure with each address.
func forEachAddress(
    _ text: Span<UInt8>, _ range: Range<Int>, _ use: (IPAddress) throws(ServiceFailure) -> Void
) throws(ServiceFailure) {
    var start = range.lowerBound
    repeat {
        let end = firstIndex(of: UInt8(ascii: ";"), in: text, start..<range.upperBound) ?? range.upperBound
        guard let address = IPAddress(parsing: text.extracting(start..<end)) else { throw .unparsable }
        try use(address)
        start = end + 1
    } while start < range.upperBound
}
