public import Addresses

/// What the service says of itself: where it is to be asked, and for how long that holds (`/conf`).
public struct ServiceConfiguration: Sendable, Equatable {
    /// Where the service is to be asked, in this order, each once; at most ``ServiceProtocol/addressesPerService``. May
    /// be empty. They speak the scheme that the list came by.
    public var addresses: [IPAddress]
    /// Minutes after which to ask anew, 1…1440.
    public var ttlMinutes: Int

    /// Minutes, for a missing or senseless one.
    public static let defaultTTLMinutes = 60
    /// The documentation's limit: a day.
    public static let maximumTTLMinutes = 1440

    public init(addresses: [IPAddress], ttlMinutes: Int) {
        self.addresses = addresses
        self.ttlMinutes = ttlMinutes
    }

    /// Reads `log:0|domain:0|ip:ADDRESS;…[;]|ttl:MINUTES`, fields in any order; unknown ones are skipped, of two alike
    /// the first counts.
    /// - Throws: ``ServiceFailure/unparsable`` when it has none of these fields, or `ip` holds something but not one
    ///   address.
    init(parsing text: Span<UInt8>) throws(ServiceFailure) {
        var (list, minutes): (Range<Int>?, Int?) = (nil, nil)
        var isConfiguration = false
        var start = 0
        while start < text.count {
            let end = firstIndex(of: UInt8(ascii: "|"), in: text, start..<text.count) ?? text.count
            let field = start..<end
            start = end + 1
            // The first: IPv6 addresses hold more.
            guard let colon = firstIndex(of: UInt8(ascii: ":"), in: text, field) else { continue }
            let name = trimmed(text, field.lowerBound..<colon)
            let value = trimmed(text, colon + 1..<end)
            if isEqual(text, name, to: "ip") {
                list = list ?? value
            } else if isEqual(text, name, to: "ttl") {
                minutes = minutes ?? decimal(text, value, maximum: .max)
            } else if !isEqual(text, name, to: "log"), !isEqual(text, name, to: "domain") {
                continue
            }
            isConfiguration = true
        }
        guard isConfiguration else { throw .unparsable }
        addresses = try list.map { range throws(ServiceFailure) in try Self.addresses(text, range) } ?? []
        let isSensible = minutes.map { $0 >= 1 && $0 <= Self.maximumTTLMinutes } ?? false
        ttlMinutes = isSensible ? minutes ?? Self.defaultTTLMinutes : Self.defaultTTLMinutes
    }

    /// What is no address of one machine is left out.
    private static func addresses(_ text: Span<UInt8>, _ range: Range<Int>) throws(ServiceFailure) -> [IPAddress] {
        var addresses: [IPAddress] = []
        var isFlawed = false
        var start = range.lowerBound
        while start < range.upperBound, addresses.count < ServiceProtocol.addressesPerService {
            let end = firstIndex(of: UInt8(ascii: ";"), in: text, start..<range.upperBound) ?? range.upperBound
            let element = trimmed(text, start..<end)
            start = end + 1
            if element.isEmpty || element.count == 1 && text[element.lowerBound] == UInt8(ascii: "0") { continue }
            if let address = IPAddress(parsing: text.extracting(element)), address.isOfOneMachine {
                if !addresses.contains(address) { addresses.append(address) }
            } else {
                isFlawed = true
            }
        }
        if isFlawed, addresses.isEmpty { throw .unparsable }
        return addresses
    }
}

extension IPAddress {
    /// Neither unspecified nor multicast nor reserved, broadcast included (RFC 6890, RFC 4291 §2.4).
    fileprivate var isOfOneMachine: Bool {
        !isUnspecified && (isIPv4 ? low >> 24 > 0 && low >> 24 < 224 : high >> 56 != 0xFF)
    }
}
