internal import Base
internal import DNSWire
internal import HTTP

/// What an answer in JSON says of the names that were asked.
struct JSONAnswer {
    private let asked: AskedNames
    private let families: Families
    private let isEncrypted: Bool
    private var found: [NameAddresses?]
    private var next = 0

    init(_ names: [Name], _ families: Families, isEncrypted: Bool = false) {
        asked = AskedNames(names: names, isExact: isEncrypted)
        (self.families, self.isEncrypted) = (families, isEncrypted)
        found = [NameAddresses?](repeating: nil, count: names.count)
    }

    /// The addresses in an object, with its `ttl`.
    /// - Parameters:
    ///   - member: The array of addresses, and of what families those must be.
    ///   - other: A further one, of IPv6 addresses.
    func list(
        _ json: JSONText, _ object: Int, _ member: StaticString, of families: Families, and other: StaticString? = nil
    ) throws(ServiceFailure) -> AddressList {
        var list = AddressList()
        try Self.read(json, object, member, of: families, into: &list)
        if let other { try Self.read(json, object, other, of: .ipv6, into: &list) }
        list.finish()
        let ttl = try json.member("ttl", of: object)
        if !json.isMissing(ttl) {
            let most = isEncrypted ? ServiceProtocol.maximumEncryptedTTL : ServiceProtocol.maximumTTL
            (list.ttl, list.hasTTL) = (UInt32(try json.integer(ttl, maximum: Int(most))), true)
        }
        return list
    }

    private static func read(
        _ json: JSONText, _ object: Int, _ member: StaticString, of families: Families, into list: inout AddressList
    ) throws(ServiceFailure) {
        for element in try json.elements(of: json.member(member, of: object)) {
            guard let address = try json.address(element), families.contains(address.isIPv4 ? .ipv4 : .ipv6) else {
                throw .unparsable
            }
            list.add(address)
        }
    }

    /// Adds what is said of a name.
    /// - Parameters:
    ///   - name: Where it stands in the text.
    ///   - joins: Whether a second object may speak of the other family of the same name; else each name may be there
    ///     once.
    /// - Returns: The index of the name among those asked.
    /// - Throws: ``ServiceFailure/otherName`` if the name was not asked.
    @discardableResult
    mutating func add(
        _ json: JSONText, _ name: Range<Int>, _ ipv4: AddressList, _ ipv6: AddressList, joins: Bool = false
    ) throws(ServiceFailure) -> Int {
        guard let index = asked.index(of: json.octets.span, name, next: next) else {
            throw .otherName
        }
        next = index + 1
        var result = NameAddresses(asked.names[index], ipv4, ipv6, asked: families)
        if let before = found[index] {
            guard joins else { throw .unparsable }
            result = NameAddresses(
                name: before.name, ipv4: try before.ipv4.joined(result.ipv4), ipv6: try before.ipv6.joined(result.ipv6))
        }
        found[index] = result
        return index
    }

    /// - Throws: ``ServiceFailure/unparsable`` if nothing is said of any name.
    func results() throws(ServiceFailure) -> [NameAddresses] {
        let results = found.compactMap(\.self)
        guard !results.isEmpty else { throw .unparsable }
        return results
    }
}

extension FamilyAddresses {
    /// What two objects say of one family, of which only one may give addresses.
    fileprivate func joined(_ other: FamilyAddresses) throws(ServiceFailure) -> FamilyAddresses {
        switch (self, other) {
        case (.addresses, .addresses): throw .unparsable
        case (.addresses, _): self
        default: other
        }
    }
}

extension HTTPResponse {
    /// The answer in JSON.
    /// - Parameter success: The member that says what is wrong, and what it says of an answer; nil: an answer has none.
    /// - Throws: What the service says is wrong, or else the status.
    func json(_ success: (member: StaticString, value: StaticString)? = nil) throws(ServiceFailure) -> JSONText {
        guard isWhole else { throw .cutOff }
        guard status == 200 else { throw (try? JSONText(body).refusal(status)) ?? .status(status) }
        let answer = try JSONText(body)
        if let success, !isSame(body.span, try answer.string(answer.member(success.member)), as: success.value) {
            throw try answer.refusal(status) ?? .unparsable
        }
        return answer
    }
}

extension JSONText {
    /// What the service says is wrong, by `code` or `msg`; nil if it does not say.
    fileprivate func refusal(_ status: Int) throws(ServiceFailure) -> ServiceFailure? {
        for member in ["code", "msg"] as [StaticString] {
            let code = try self.member(member)
            guard isString(code) else { continue }
            let time = try? integer(self.member("timestamp"))
            return .refused(ServiceRefusal(try unescaped(code), status: status, serviceTime: time.map(UInt64.init)))
        }
        return nil
    }
}
