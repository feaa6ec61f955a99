internal import Addresses
internal import DNSWire

/// Reads the text of an answer, line by line: `[NAME.:]LIST[-LIST][|CLIENT]`, a list being `0` or `ADDRESS;…`, then
/// `,TTL`. Hostile text is normal here: nobody signs it, and in HTTP mode nothing protects it from being changed.
struct ServiceAnswer {
    private let names: [Name]
    private let family: ServiceFamily

    /// - Throws: When the text says something, but nothing about `names`.
    static func read(
        _ text: Span<UInt8>, names: [Name], family: ServiceFamily
    ) throws(ServiceFailure) -> [NameResult] {
        let whole = trimmed(text, 0..<text.count)
        guard !whole.isEmpty else { return noRecords(of: names, family) }
        let answer = ServiceAnswer(names: names, family: family)
        var results = [NameResult?](repeating: nil, count: names.count)
        var namesAnother = false
        // The service answers in the order it was asked: the name behind the last one is looked at first.
        var next = 0
        var start = whole.lowerBound
        while start < whole.upperBound {
            let rest = start..<whole.upperBound
            let end = firstIndex(of: UInt8(ascii: "\n"), in: text, rest) ?? rest.upperBound
            switch answer.line(text, trimmed(text, start..<end), next: next) {
            case .result(let result, let index):
                results[index] = results[index] ?? result
                next = index + 1
            case .anotherName: namesAnother = true
            case .unreadable: break
            }
            start = end + 1
        }
        let found = results.compactMap { $0 }
        guard !found.isEmpty else { throw namesAnother ? .otherName : .unparsable }
        return found
    }

    static func noRecords(of names: [Name], _ family: ServiceFamily) -> [NameResult] {
        let answer = ServiceAnswer(names: names, family: family)
        return names.map { answer.result($0, AddressList(), AddressList()) }
    }

    private enum Line {
        case result(NameResult, index: Int)
        case anotherName
        case unreadable
    }

    /// The order of the cuts is what keeps the separators apart: IPv6 addresses hold `:`, names hold `-`.
    private func line(_ text: Span<UInt8>, _ range: Range<Int>, next: Int) -> Line {
        let client = lastIndex(of: UInt8(ascii: "|"), in: text, range)
        let body = trimmed(text, range.lowerBound..<(client ?? range.upperBound))
        if let colon = firstIndex(of: UInt8(ascii: ":"), in: text, body), colon > body.lowerBound,
            text[colon - 1] == UInt8(ascii: ".")
        {
            guard let index = index(ofName: text, body.lowerBound..<colon - 1, next: next) else { return .anotherName }
            guard let result = lists(text, colon + 1..<body.upperBound, of: names[index], exact: false) else {
                return .unreadable
            }
            return .result(result, index: index)
        }
        if names.count == 1, let result = lists(text, body, of: names[0], exact: true) {
            return .result(result, index: 0)
        }
        let ended = body.last.map { text[$0] == UInt8(ascii: ".") } ?? false
        if let index = index(ofName: text, body.lowerBound..<body.upperBound - (ended ? 1 : 0), next: next) {
            return .result(result(names[index], AddressList(), AddressList()), index: index)
        }
        return .unreadable
    }

    /// Reads what stands behind a name; nil if it says nothing.
    private func lists(_ text: Span<UInt8>, _ range: Range<Int>, of name: Name, exact: Bool) -> NameResult? {
        switch family {
        case .ipv4:
            guard let list = AddressList(text, range, of: .ipv4, exact: exact) else { return nil }
            return result(name, list, AddressList())
        case .ipv6:
            guard let list = AddressList(text, range, of: .ipv6, exact: exact) else { return nil }
            return result(name, AddressList(), list)
        case .both:
            guard let dash = firstIndex(of: UInt8(ascii: "-"), in: text, range) else {
                guard let list = AddressList(text, range, of: .both, exact: exact) else { return nil }
                return result(name, list, list)
            }
            guard let first = AddressList(text, range.lowerBound..<dash, of: .ipv4, exact: exact),
                let second = AddressList(text, dash + 1..<range.upperBound, of: .ipv6, exact: exact)
            else { return nil }
            return result(name, first, second)
        }
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

    /// Which of the names asked the text is, letters' case aside.
    private func index(ofName text: Span<UInt8>, _ range: Range<Int>, next: Int) -> Int? {
        guard !range.isEmpty else { return nil }
        if next < names.count, isName(names[next], text, range) { return next }
        return names.firstIndex { isName($0, text, range) }
    }

    private func isName(_ name: Name, _ text: Span<UInt8>, _ range: Range<Int>) -> Bool {
        // As many octets as the wire form without the first length and the root label.
        guard range.count == name.wire.count - 2 else { return false }
        let wire = name.wire.span
        // Each octet of the text is compared with the next of the wire form; at a length octet a dot must stand.
        var nextLength = 1 + Int(wire[0])
        for offset in 0..<range.count {
            let byte = lowercased(text[range.lowerBound + offset])
            let position = offset + 1
            if position == nextLength {
                guard byte == UInt8(ascii: ".") else { return false }
                nextLength = position + 1 + Int(wire[position])
            } else if byte != wire[position] {
                return false
            }
        }
        return true
    }
}

/// One list of addresses, with its TTL.
private struct AddressList {
    var ipv4: [IPAddress] = []
    var ipv6: [IPAddress] = []
    var ttl = ServiceProtocol.defaultTTL

    /// An empty one: no record.
    init() {}

    /// Reads `ADDRESS;…[;][,TTL]`. Addresses that are bad or of another family are left out.
    /// - Parameter exact: Whether everything must be as it should be.
    /// - Returns: nil for text that is neither empty nor `0` and yet has no address; with `exact`, for any flaw.
    init?(_ text: Span<UInt8>, _ range: Range<Int>, of family: ServiceFamily, exact: Bool) {
        var end = range.upperBound
        if let comma = lastIndex(of: UInt8(ascii: ","), in: text, range) {
            let seconds = decimal(
                text, trimmed(text, comma + 1..<range.upperBound), maximum: Int(ServiceProtocol.maximumTTL))
            if exact, seconds == nil { return nil }
            if let seconds { ttl = UInt32(seconds) }
            end = comma
        }
        var flawed = false
        var start = range.lowerBound
        while start < end {
            let separator = firstIndex(of: UInt8(ascii: ";"), in: text, start..<end) ?? end
            let element = trimmed(text, start..<separator)
            start = separator + 1
            let isZero = element.count == 1 && text[element.lowerBound] == UInt8(ascii: "0")
            if element.isEmpty || isZero { continue }
            if let address = IPAddress(parsing: text.extracting(element)) {
                if address.isIPv4, family.includesIPv4 {
                    Self.append(address, to: &ipv4)
                    continue
                }
                if !address.isIPv4, family.includesIPv6 {
                    Self.append(address, to: &ipv6)
                    continue
                }
            }
            flawed = true
        }
        if flawed, exact || ipv4.isEmpty && ipv6.isEmpty { return nil }
    }

    /// An RRset holds no record twice (RFC 2181 §5).
    private static func append(_ address: IPAddress, to addresses: inout [IPAddress]) {
        guard addresses.count < ServiceProtocol.addressesPerFamily, !addresses.contains(address) else { return }
        addresses.append(address)
    }
}
