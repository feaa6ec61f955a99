public import Base

/// The service's own configuration (`/conf`), which has the service's addresses and their lifetime.
public struct ServiceConfiguration: Sendable, Equatable {
    /// The addresses to ask, in order, each once; at most ``ServiceProtocol/addressesPerService``. The list may be
    /// empty. The addresses serve the scheme by which the list was fetched.
    public var addresses: [IPAddress]
    /// Minutes after which to fetch the configuration again, 1…1440.
    public var ttlMinutes: Int

    /// The lifetime in minutes if the value is missing or out of range.
    public static let defaultTTLMinutes = 60
    /// The documentation's limit: a day.
    public static let maximumTTLMinutes = 1440

    public init(addresses: [IPAddress], ttlMinutes: Int) {
        self.addresses = addresses
        self.ttlMinutes = ttlMinutes
    }

    /// Reads `log:0|domain:0|ip:ADDRESS;…[;]|ttl:MINUTES`, with fields in any order and each once. `ip` may be empty.
    /// `ip` and `ttl` may be missing. Other fields, with a number each, may occur between these fields.
    ///
    /// The text is read whole or refused, like an answer: an attacker on the path could otherwise choose the servers
    /// that are asked, for as long as a day and in any later network. With `log` and `domain` the text is longer than
    /// the single block of AES that an attacker without the key can write.
    /// - Throws: ``ServiceFailure/unparsable``
    init(parsing text: Span<UInt8>) throws(ServiceFailure) {
        let whole = trimmed(text, 0..<text.count)
        self.init(addresses: [], ttlMinutes: Self.defaultTTLMinutes)
        var fields: [String: Range<Int>] = [:]
        var start = whole.lowerBound
        repeat {
            let end = firstIndex(of: UInt8(ascii: "|"), in: text, start..<whole.upperBound) ?? whole.upperBound
            // The first colon counts, since IPv6 addresses contain more colons.
            guard let colon = firstIndex(of: UInt8(ascii: ":"), in: text, start..<end) else { throw .unparsable }
            let (name, value) = ((start..<colon).map { text[$0] }, colon + 1..<end)
            let field = String(decoding: name, as: UTF8.self)
            let isOther = !["log", "domain", "ip", "ttl"].contains(field)
            guard !name.isEmpty, name.allSatisfy(isLowerLetter),
                fields.updateValue(value, forKey: field) == nil || isOther,
                field == "ip" || decimal(text, value, maximum: .max) != nil
            else { throw .unparsable }
            start = end + 1
        } while start <= whole.upperBound
        guard fields["log"] != nil, fields["domain"] != nil else { throw .unparsable }
        if let ip = fields["ip"], !ip.isEmpty {
            try forEachAddress(text, ip) { address throws(ServiceFailure) in try add(address) }
        }
        if let ttl = fields["ttl"], let minutes = decimal(text, ttl, maximum: .max),
            (1...Self.maximumTTLMinutes).contains(minutes)
        {
            ttlMinutes = minutes
        }
    }

    /// Takes the addresses of several arrays in an object. There must be at least one address.
    init(
        _ json: JSONText, _ members: [StaticString], of object: Int = JSONText.root, ttlMinutes: Int
    ) throws(ServiceFailure) {
        self.init(addresses: [], ttlMinutes: ttlMinutes)
        for member in members {
            for element in try json.elements(of: json.member(member, of: object)) { try add(json.address(element)) }
        }
        guard !addresses.isEmpty else { throw .unparsable }
    }

    /// Adds an address once. Nil means that the value was not an address.
    mutating func add(_ address: IPAddress?) throws(ServiceFailure) {
        guard let address, address.isOfOneMachine else { throw .unparsable }
        guard addresses.count < ServiceProtocol.addressesPerService, !addresses.contains(address) else { return }
        addresses.append(address)
    }
}
