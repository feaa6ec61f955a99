public import Base

/// The service's own configuration (`/conf`): the addresses at which to ask it, and how long they hold.
public struct ServiceConfiguration: Sendable, Equatable {
    /// The addresses to ask, in this order, each once; at most ``ServiceProtocol/addressesPerService``. May be empty.
    /// They serve the scheme by which the list was fetched.
    public var addresses: [IPAddress]
    /// Minutes after which to ask anew, 1…1440.
    public var ttlMinutes: Int

    /// The value in minutes when it is missing or out of range.
    public static let defaultTTLMinutes = 60
    /// The documentation's limit: a day.
    public static let maximumTTLMinutes = 1440

    public init(addresses: [IPAddress], ttlMinutes: Int) {
        self.addresses = addresses
        self.ttlMinutes = ttlMinutes
    }

    /// Reads `log:0|domain:0|ip:ADDRESS;…[;]|ttl:MINUTES`, fields in any order and each once; `ip` may be empty and,
    /// like `ttl`, missing. Other fields may stand between them, with a number each.
    ///
    /// The text is read whole or refused, as an answer is: an attacker on the path could otherwise choose the servers
    /// that are asked, for as long as a day and wherever this machine goes meanwhile. With `log` and `domain` the text
    /// is longer than the single block of AES that an attacker without the key can write.
    /// - Throws: ``ServiceFailure/unparsable``
    init(parsing text: Span<UInt8>) throws(ServiceFailure) {
        let whole = trimmed(text, 0..<text.count)
        var known: Set<Field> = []
        self.init(addresses: [], ttlMinutes: Self.defaultTTLMinutes)
        var start = whole.lowerBound
        repeat {
            let end = firstIndex(of: UInt8(ascii: "|"), in: text, start..<whole.upperBound) ?? whole.upperBound
            // The first colon: IPv6 addresses hold more of them.
            guard let colon = firstIndex(of: UInt8(ascii: ":"), in: text, start..<end) else { throw .unparsable }
            let value = colon + 1..<end
            let field = try Field(text, start..<colon)
            start = end + 1
            guard field == .other || known.insert(field).inserted else { throw .unparsable }
            if field == .ip {
                if !value.isEmpty { addresses = try Self.addresses(text, value) }
                continue
            }
            guard let number = decimal(text, value, maximum: .max) else { throw .unparsable }
            if field == .ttl, number >= 1, number <= Self.maximumTTLMinutes { ttlMinutes = number }
        } while start <= whole.upperBound
        guard known.isSuperset(of: [.log, .domain]) else { throw .unparsable }
    }

    private enum Field {
        case log, domain, ip, ttl, other

        init(_ text: Span<UInt8>, _ name: Range<Int>) throws(ServiceFailure) {
            guard !name.isEmpty, name.allSatisfy({ isLowerLetter(text[$0]) }) else { throw .unparsable }
            if isEqual(text, name, to: "log") {
                self = .log
            } else if isEqual(text, name, to: "domain") {
                self = .domain
            } else if isEqual(text, name, to: "ip") {
                self = .ip
            } else if isEqual(text, name, to: "ttl") {
                self = .ttl
            } else {
                self = .other
            }
        }
    }

    private static func addresses(_ text: Span<UInt8>, _ range: Range<Int>) throws(ServiceFailure) -> [IPAddress] {
        var list = ServiceConfiguration(addresses: [], ttlMinutes: defaultTTLMinutes)
        try forEachAddress(text, range) { address throws(ServiceFailure) in try list.add(address) }
        return list.addresses
    }

    /// Adds an address once; nil: what should have been one is none.
    mutating func add(_ address: IPAddress?) throws(ServiceFailure) {
        guard let address, address.isOfOneMachine else { throw .unparsable }
        guard addresses.count < ServiceProtocol.addressesPerService, !addresses.contains(address) else { return }
        addresses.append(address)
    }
}
