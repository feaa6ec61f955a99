internal import Base
internal import DNSWire

/// Reads the text of an answer, which has lines of `NAME.:LIST[-LIST][|CLIENT]`. A list is `0` or `ADDRESS;…[;]` with
/// its `,TTL`.
///
/// The text is read whole or refused: a text that does not have the requested form was written by an attacker, and an
/// attacker on the path can change ciphertext without the key. Such a change also produces random octets, which could
/// hide in skipped text.
struct TencentAnswer {
    private var asked: AskedNames
    private let family: Families
    /// Whether the text came encrypted, in a mode in which an attacker may have changed it.
    private let isEncrypted: Bool

    /// - Returns: The results for those `names` that the text mentions, at least one.
    static func read(
        _ text: Span<UInt8>, names: [Name], family: Families, isEncrypted: Bool
    ) throws(ServiceFailure) -> [NameAddresses] {
        var answer = TencentAnswer(
            asked: AskedNames(names, isExact: isEncrypted), family: family, isEncrypted: isEncrypted)
        let whole = trimmed(text, 0..<text.count)
        guard !whole.isEmpty else { return names.map(answer.noRecord) }
        var results = [NameAddresses?](repeating: nil, count: names.count)
        var start = whole.lowerBound
        while start < whole.upperBound {
            let end = firstIndex(of: UInt8(ascii: "\n"), in: text, start..<whole.upperBound) ?? whole.upperBound
            let hasReturn = end > start && text[end - 1] == UInt8(ascii: "\r")
            let (result, index) = try answer.line(text, start..<end - (hasReturn ? 1 : 0))
            guard results[index] == nil || results[index] == result else { throw .unparsable }
            results[index] = result
            start = end + 1
        }
        return results.compactMap { $0 }
    }

    /// The cuts are made in this order, since IPv6 addresses contain `:` and names contain `-`.
    private mutating func line(
        _ text: Span<UInt8>, _ range: Range<Int>
    ) throws(ServiceFailure) -> (NameAddresses, index: Int) {
        var body = range
        if let bar = lastIndex(of: UInt8(ascii: "|"), in: text, range) {
            guard IPAddress(parsing: text.extracting(bar + 1..<range.upperBound)) != nil else { throw .unparsable }
            body = range.lowerBound..<bar
        }
        if let colon = firstIndex(of: UInt8(ascii: ":"), in: text, body), colon > body.lowerBound,
            text[colon - 1] == UInt8(ascii: ".")
        {
            guard let index = asked.index(of: text, body.lowerBound..<colon - 1) else { throw .otherName }
            return (try lists(text, colon + 1..<body.upperBound, of: asked.names[index]), index)
        }
        guard let index = asked.index(of: text, body) else { throw .unparsable }
        return (noRecord(of: asked.names[index]), index)
    }

    private func noRecord(of name: Name) -> NameAddresses { result(name, AddressList(), AddressList()) }

    /// Reads the lists after a name.
    private func lists(_ text: Span<UInt8>, _ range: Range<Int>, of name: Name) throws(ServiceFailure) -> NameAddresses
    {
        switch family {
        case .ipv4: return result(name, try list(text, range, of: .ipv4), AddressList())
        case .ipv6: return result(name, AddressList(), try list(text, range, of: .ipv6))
        default:
            guard let dash = firstIndex(of: UInt8(ascii: "-"), in: text, range) else {
                let list = try list(text, range, of: .both)
                return result(name, list, list)
            }
            return result(
                name, try list(text, range.lowerBound..<dash, of: .ipv4),
                try list(text, dash + 1..<range.upperBound, of: .ipv6))
        }
    }

    /// Reads `0[,TTL]` or `ADDRESS;…[;][,TTL]`.
    private func list(
        _ text: Span<UInt8>, _ range: Range<Int>, of family: Families
    ) throws(ServiceFailure) -> AddressList {
        var list = AddressList()
        var end = range.upperBound
        if let comma = lastIndex(of: UInt8(ascii: ","), in: text, range) {
            let seconds = decimal(text, comma + 1..<end, maximum: Int(ServiceProtocol.maximumTTL))
            guard let seconds else { throw .unparsable }
            list.ttl = isEncrypted ? min(UInt32(seconds), ServiceProtocol.maximumEncryptedTTL) : UInt32(seconds)
            end = comma
        }
        if end - range.lowerBound == 1, text[range.lowerBound] == UInt8(ascii: "0") { return list }
        try forEachAddress(text, range.lowerBound..<end) { address throws(ServiceFailure) in
            guard family.contains(address.isIPv4 ? .ipv4 : .ipv6) else { throw .unparsable }
            list.add(address)
        }
        // A short text could fill the single block that an attacker can write at will, so addresses must have a TTL.
        guard !isEncrypted || list.ttl != nil || list.isEmpty else { throw .unparsable }
        return list
    }

    private func result(_ name: Name, _ first: AddressList, _ second: AddressList) -> NameAddresses {
        NameAddresses(name, first, second, asked: family)
    }
}
