internal import Base
internal import DNSWire

/// Reads the text of an answer, lines of `NAME.:LIST[-LIST][|CLIENT]`, a list being `0` or `ADDRESS;…[;]` with its
/// `,TTL`.
///
/// The text is read whole or refused: a text that the service did not write in the requested form was written by an
/// attacker, and an attacker on the path can change ciphertext without the key. Such a change also produces random
/// octets, which could hide in text that is skipped.
struct ServiceAnswer {
    private let names: [Name]
    private let family: ServiceFamily
    /// Whether the text came encrypted, in a mode in which an attacker may have changed it.
    private let isEncrypted: Bool

    /// - Returns: The results for those of the `names` that the text mentions; at least one.
    static func read(
        _ text: Span<UInt8>, names: [Name], family: ServiceFamily, isEncrypted: Bool
    ) throws(ServiceFailure) -> [NameResult] {
        let answer = ServiceAnswer(names: names, family: family, isEncrypted: isEncrypted)
        let whole = trimmed(text, 0..<text.count)
        guard !whole.isEmpty else { return names.map(answer.noRecord) }
        var results = [NameResult?](repeating: nil, count: names.count)
        // The service answers in the order of the names, so the name behind the last match is compared first.
        var next = 0
        var start = whole.lowerBound
        while start < whole.upperBound {
            let end = firstIndex(of: UInt8(ascii: "\n"), in: text, start..<whole.upperBound) ?? whole.upperBound
            let hasReturn = end > start && text[end - 1] == UInt8(ascii: "\r")
            let (result, index) = try answer.line(text, start..<end - (hasReturn ? 1 : 0), next: next)
            guard results[index] == nil || results[index] == result else { throw .unparsable }
            results[index] = result
            next = index + 1
            start = end + 1
        }
        return results.compactMap { $0 }
    }

    /// The order of the cuts keeps the separators apart: IPv6 addresses hold `:`, names hold `-`.
    private func line(
        _ text: Span<UInt8>, _ range: Range<Int>, next: Int
    ) throws(ServiceFailure) -> (NameResult, index: Int) {
        var body = range
        if let bar = lastIndex(of: UInt8(ascii: "|"), in: text, range) {
            guard IPAddress(parsing: text.extracting(bar + 1..<range.upperBound)) != nil else { throw .unparsable }
            body = range.lowerBound..<bar
        }
        if let colon = firstIndex(of: UInt8(ascii: ":"), in: text, body), colon > body.lowerBound,
            text[colon - 1] == UInt8(ascii: ".")
        {
            guard let index = index(ofName: text, body.lowerBound..<colon - 1, next: next) else { throw .otherName }
            return (try lists(text, colon + 1..<body.upperBound, of: names[index]), index)
        }
        guard let index = index(ofName: text, body, next: next) else { throw .unparsable }
        return (noRecord(of: names[index]), index)
    }

    private func noRecord(of name: Name) -> NameResult { result(name, AddressList(), AddressList()) }

    /// Reads the lists behind a name.
    private func lists(_ text: Span<UInt8>, _ range: Range<Int>, of name: Name) throws(ServiceFailure) -> NameResult {
        switch family {
        case .ipv4: return result(name, try list(text, range, of: .ipv4), AddressList())
        case .ipv6: return result(name, AddressList(), try list(text, range, of: .ipv6))
        case .both:
            guard let dash = firstIndex(of: UInt8(ascii: "-"), in: text, range) else {
                let list = try list(text, range, of: .both)
                return result(name, list, list)
            }
            return result(
                name, try list(text, range.lowerBound..<dash, of: .ipv4),
                try list(text, dash + 1..<range.upperBound, of: .ipv6))
        }
    }

    private func list(
        _ text: Span<UInt8>, _ range: Range<Int>, of family: ServiceFamily
    ) throws(ServiceFailure) -> AddressList {
        var list = try AddressList(text, range, of: family)
        if isEncrypted {
            // A short text could be one in the single block that an attacker can write at will, so it must have a TTL.
            guard list.hasTTL || list.isEmpty else { throw .unparsable }
            list.ttl = min(list.ttl, ServiceProtocol.maximumEncryptedTTL)
        }
        return list
    }

    private func result(_ name: Name, _ first: AddressList, _ second: AddressList) -> NameResult {
        func familyResult(_ addresses: [IPAddress], _ ttl: UInt32, asked: Bool) -> FamilyResult {
            guard asked else { return .notAsked }
            return addresses.isEmpty ? .noRecord : .addresses(addresses, ttl: ttl)
        }
        return NameResult(
            name: name,
            ipv4: familyResult(first.ipv4, first.ttl, asked: family.includesIPv4),
            ipv6: familyResult(second.ipv6, second.ttl, asked: family.includesIPv6))
    }

    /// The index of the name that the text is; nil if it is none of those asked.
    private func index(ofName text: Span<UInt8>, _ range: Range<Int>, next: Int) -> Int? {
        guard !range.isEmpty else { return nil }
        if next < names.count, isName(names[next], text, range) { return next }
        return names.firstIndex { isName($0, text, range) }
    }

    /// Whether the text is this name: case aside if it came in clear, exactly if encrypted. An attacker who flips one
    /// bit of a hidden name would otherwise learn from the answer's acceptance that there is a letter.
    private func isName(_ name: Name, _ text: Span<UInt8>, _ range: Range<Int>) -> Bool {
        // The text has as many octets as the wire form without the first length and the root label.
        guard range.count == name.wire.count - 2 else { return false }
        let wire = name.wire.span
        // An octet at a place of the wire form behind the first length stands in the text at that place plus `shift`;
        // where the wire form has a further length, the text must have a dot.
        let shift = range.lowerBound - 1
        var position = 1
        while true {
            let end = position + Int(wire[position - 1])
            while position < end {
                let octet = text[shift &+ position]
                if octet != wire[position] {
                    guard !isEncrypted, lowercased(octet) == wire[position] else { return false }
                }
                position &+= 1
            }
            guard wire[end] > 0 else { return true }
            guard text[shift + end] == UInt8(ascii: ".") else { return false }
            position = end + 1
        }
    }
}

/// One list of addresses, with its TTL.
private struct AddressList {
    var ipv4: [IPAddress] = []
    var ipv6: [IPAddress] = []
    var ttl = ServiceProtocol.defaultTTL
    var hasTTL = false

    var isEmpty: Bool { ipv4.isEmpty && ipv6.isEmpty }

    /// An empty list: no record.
    init() {}

    /// Reads `0[,TTL]` or `ADDRESS;…[;][,TTL]`. A list with an address that no machine can have counts as empty: the
    /// owner of a zone can write such an address, so it does not mean that the service failed.
    init(_ text: Span<UInt8>, _ range: Range<Int>, of family: ServiceFamily) throws(ServiceFailure) {
        var end = range.upperBound
        if let comma = lastIndex(of: UInt8(ascii: ","), in: text, range) {
            let maximum = Int(ServiceProtocol.maximumTTL)
            guard let seconds = decimal(text, comma + 1..<end, maximum: maximum) else { throw .unparsable }
            (ttl, hasTTL) = (UInt32(seconds), true)
            end = comma
        }
        if end - range.lowerBound == 1, text[range.lowerBound] == UInt8(ascii: "0") { return }
        var isTaken = true
        try forEachAddress(text, range.lowerBound..<end) { address throws(ServiceFailure) in
            guard address.isIPv4 ? family.includesIPv4 : family.includesIPv6 else { throw .unparsable }
            isTaken = isTaken && address.isOfOneMachine
            if address.isIPv4 { Self.append(address, to: &ipv4) } else { Self.append(address, to: &ipv6) }
        }
        if !isTaken { (ipv4, ipv6) = ([], []) }
    }

    /// Appends an address once: a record set holds no record twice (RFC 2181 §5).
    private static func append(_ address: IPAddress, to addresses: inout [IPAddress]) {
        guard addresses.count < ServiceProtocol.addressesPerFamily, !addresses.contains(address) else { return }
        addresses.append(address)
    }
}
