internal import Base
internal import DNSWire
internal import HTTP

/// The results of a JSON answer for the names of the request.
struct JSONAnswer {
    private var asked: AskedNames
    private let families: Families
    private let isEncrypted: Bool
    private var found: [NameAddresses?]

    init(_ names: [Name], _ families: Families, isEncrypted: Bool = false) {
        asked = AskedNames(names, isExact: isEncrypted)
        (self.families, self.isEncrypted) = (families, isEncrypted)
        found = [NameAddresses?](repeating: nil, count: names.count)
    }

    /// The addresses in an object, with its `ttl`.
    /// - Parameters:
    ///   - member: The member with the array of addresses, and the address families that the array may have.
    ///   - other: A further member, with an array of IPv6 addresses.
    func list(
        _ json: JSONText, _ object: Int, _ member: StaticString, of families: Families, and other: StaticString? = nil
    ) throws(ServiceFailure) -> AddressList {
        var list = AddressList()
        try Self.read(json, object, member, of: families, into: &list)
        if let other { try Self.read(json, object, other, of: .ipv6, into: &list) }
        let ttl = try json.member("ttl", of: object)
        if !json.isMissing(ttl) {
            let most = isEncrypted ? ServiceProtocol.maximumEncryptedTTL : ServiceProtocol.maximumTTL
            list.ttl = UInt32(try json.integer(ttl, maximum: Int(most)))
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

    /// Adds the result for a name.
    /// - Parameters:
    ///   - name: The range of the name in the text.
    ///   - joins: Whether a second object may have the other family of the same name. If not, each name may occur once.
    /// - Returns: The index of the name in the request.
    /// - Throws: ``ServiceFailure/otherName`` if the request does not have the name.
    @discardableResult
    mutating func add(
        _ json: JSONText, _ name: Range<Int>, _ ipv4: AddressList, _ ipv6: AddressList, joins: Bool = false
    ) throws(ServiceFailure) -> Int {
        guard let index = asked.index(of: json.octets.span, name) else { throw .otherName }
        var result = NameAddresses(asked.names[index], ipv4, ipv6, asked: families)
        if let before = found[index] {
            guard joins else { throw .unparsable }
            result = NameAddresses(
                name: before.name, ipv4: try before.ipv4.joined(result.ipv4), ipv6: try before.ipv6.joined(result.ipv6))
        }
        found[index] = result
        return index
    }

    /// - Throws: ``ServiceFailure/unparsable`` if there is no result for any name.
    func results() throws(ServiceFailure) -> [NameAddresses] {
        let results = found.compactMap(\.self)
        guard !results.isEmpty else { throw .unparsable }
        return results
    }
}

extension FamilyAddresses {
    /// The union of the results of two objects for one family, of which only one may have addresses.
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
    /// - Parameter success: The member with the service's error, and its value in an answer; nil: an answer has no such
    ///   member.
    /// - Throws: The service's error. Without such an error, the failure of the status.
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
    /// The service's error, by `code` or `msg`; nil: the answer gives no error.
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
