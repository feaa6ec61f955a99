public import Base

/// The data of an HTTPS or SVCB record (RFC 9460 §2.2).
struct ServiceBinding {
    /// The priority; 0 means an alias (§2.4.2).
    let priority: UInt16
    /// The root means the owner itself, in a record that is no alias (§2.5.2).
    let target: Name
    /// The parameters, in ascending order of their keys (§2.2).
    fileprivate(set) var parameters: [(key: UInt16, value: [UInt8])] = []

    /// The keys `mandatory`, `ipv4hint` and `ipv6hint` (§14.3.2).
    private static let (mandatory, ipv4Hint, ipv6Hint): (UInt16, UInt16, UInt16) = (0, 4, 6)
    /// The keys `alpn`, `no-default-alpn`, `port` (§14.3.2) and `dohpath` (RFC 9461 §5).
    private static let (alpn, noDefaultALPN, port, dohPath): (UInt16, UInt16, UInt16, UInt16) = (1, 2, 3, 7)

    var isAlias: Bool { priority == 0 }

    /// - Parameter alpn: Names of protocols, of 1...255 octets each.
    fileprivate init(priority: UInt16, target: Name, alpn: [String], port: UInt16?, dohPath: String?) {
        (self.priority, self.target) = (priority, target)
        parameters.append((Self.alpn, alpn.flatMap { [UInt8(truncatingIfNeeded: $0.utf8.count)] + $0.utf8 }))
        if let port { parameters.append((Self.port, [UInt8(port >> 8), UInt8(port & 0xFF)])) }
        if let dohPath { parameters.append((Self.dohPath, Array(dohPath.utf8))) }
    }

    /// Nil if the data is invalid. Clients must not use such a record (§2.2), but a client may be more lenient.
    init?(_ span: Span<UInt8>) {
        // The name is not compressed (§2.2).
        guard var offset = Name.uncompressedEnd(span, at: 2) else { return nil }
        (priority, target) = (span.integer16(at: 0), Name(wire: span, at: 2, length: offset - 2))
        while offset < span.count {
            // Parameters have the form of options.
            guard let (key, value) = span.option(at: offset, before: span.count),
                parameters.last.map({ $0.key < key }) ?? true
            else { return nil }
            parameters.append((key, span.bytes(in: value)))
            offset = value.upperBound
        }
        // The parameters of an alias are ignored (§2.4.2).
        guard isAlias || parameters.allSatisfy({ isValid($0.value, of: $0.key) }) else { return nil }
    }

    /// Whether the value of a parameter has the form for its key (§7, §8); any value of an unknown key is valid.
    private func isValid(_ value: [UInt8], of key: UInt16) -> Bool {
        switch key {
        case Self.mandatory:
            guard !value.isEmpty, value.count.isMultiple(of: 2) else { return false }
            let keys = stride(from: 0, to: value.count, by: 2).map { value.span.integer16(at: $0) }
            guard zip(keys, keys.dropFirst()).allSatisfy(<) else { return false }
            // Keys and parameters both ascend, so each is walked once: a record may have ten thousand of them.
            var rest = parameters[...]
            return keys.allSatisfy { key in
                rest = rest.drop { $0.key < key }
                return key != Self.mandatory && rest.first?.key == key
            }
        case Self.alpn:
            var offset = 0
            while offset < value.count, value[offset] > 0 { offset += 1 + Int(value[offset]) }
            return offset > 0 && offset == value.count
        case Self.noDefaultALPN: return value.isEmpty
        case Self.port: return value.count == 2
        case Self.ipv4Hint: return !value.isEmpty && value.count.isMultiple(of: 4)
        case Self.ipv6Hint: return !value.isEmpty && value.count.isMultiple(of: 16)
        default: return true
        }
    }

    /// Whether a hint has an unwanted address or, in an alias, is malformed.
    func hintsHold(_ isUnwanted: (IPAddress) -> Bool) -> Bool {
        parameters.contains { key, value in
            guard key == Self.ipv4Hint || key == Self.ipv6Hint else { return false }
            let size = key == Self.ipv4Hint ? 4 : 16
            guard value.count.isMultiple(of: size) else { return true }
            return stride(from: 0, to: value.count, by: size).contains { start in
                IPAddress(bytes: value.span.extracting(start..<start + size)).map(isUnwanted) ?? true
            }
        }
    }

    /// Replaces the hints by these addresses; a family without addresses gets no hint.
    mutating func setHints(_ addresses: [IPAddress]) {
        var hints: [UInt16: [UInt8]] = [:]
        for address in addresses {
            hints[address.isIPv4 ? Self.ipv4Hint : Self.ipv6Hint, default: []] += address.octets
        }
        dropHints(ipv4: true, ipv6: true)
        for (key, value) in hints { parameters.append((key, value)) }
        parameters.sort { $0.key < $1.key }
        makeMandatoryPresent()
    }

    /// - Returns: Whether there were any.
    @discardableResult
    fileprivate mutating func dropHints(ipv4: Bool, ipv6: Bool) -> Bool {
        let count = parameters.count
        parameters.removeAll { ipv4 && $0.key == Self.ipv4Hint || ipv6 && $0.key == Self.ipv6Hint }
        return parameters.count < count
    }

    fileprivate mutating func makeMandatoryPresent() {
        // An absent key cannot be mandatory: a client would not use the record (§8).
        guard let mandatory = parameters.firstIndex(where: { $0.key == Self.mandatory }) else { return }
        let keys = parameters[mandatory].value
        let there = Set(parameters.map(\.key))
        parameters[mandatory].value = stride(from: 0, to: keys.count - 1, by: 2).flatMap { index in
            let key = UInt16(keys[index]) << 8 | UInt16(keys[index + 1])
            let isHint = key == Self.ipv4Hint || key == Self.ipv6Hint
            return isHint && !there.contains(key) ? [] : [keys[index], keys[index + 1]]
        }
        if parameters[mandatory].value.isEmpty { parameters.remove(at: mandatory) }
    }

    var data: [UInt8] {
        var data: [UInt8] = []
        data.append16(priority)
        data += target.wire
        for (key, value) in parameters {
            data.append16(key)
            data.append16(UInt16(truncatingIfNeeded: value.count))
            data += value
        }
        return data
    }
}

extension Answer {
    /// The data of an SVCB record for a DNS server (RFC 9461).
    /// - Parameters:
    ///   - alpn: Names of protocols, of 1...255 octets each.
    ///   - port: The port; nil for the protocol's default.
    ///   - hints: Addresses of the target.
    public static func serviceData(
        priority: UInt16, target: Name, alpn: [String], port: UInt16?, dohPath: String?, hints: [IPAddress]
    ) -> [UInt8] {
        var binding = ServiceBinding(priority: priority, target: target, alpn: alpn, port: port, dohPath: dohPath)
        binding.setHints(hints)
        return binding.data
    }

    /// The answer to a question for HTTPS or SVCB with other address hints (RFC 9460 §7.3): records whose target is the
    /// queried name, or the target of one of its aliases, get `addresses`, sorted by family; other records get none.
    /// The rest of each record stays.
    ///
    /// Only these records and the aliases stay in the answer section, and in the authority section only the proof that
    /// there is no such record: a client might use any address that the resolver adds. Signatures, which would not be
    /// valid any more, and invalid records are left out.
    /// - Parameters:
    ///   - addresses: The addresses of the queried name; ``mostHints`` of each family are used.
    ///   - ttl: The lifetime of the addresses. Records with hints live no longer.
    /// - Returns: nil: the answer cannot be read.
    public func bound(to addresses: [IPAddress], for ttl: UInt32) -> Answer? {
        guard let (nameEnd, type) = asked, let question = Name.whole(Array(body[..<nameEnd])) else { return nil }
        let hints = [true, false].flatMap { isIPv4 in
            addresses.filter { $0.isIPv4 == isIPv4 }.prefix(Self.mostHints)
        }
        var made = ComposedMessage(question: body, type: type)
        // The queried name, and the targets of its aliases.
        var owners: Set<Name> = [question]
        var left = keep
        for record in records() where record.section != .additional && record.recordClass == .in {
            let isInAnswer = record.section == .answer
            switch record.type {
            case .dname where isInAnswer, .soa where !isInAnswer, .nsec where !isInAnswer, .nsec3 where !isInAnswer:
                made.append(record, ttl: record.ttl)
            case .cname where isInAnswer:
                if let target = Name.whole(record.rdata), owners.contains(record.name) { owners.insert(target) }
                made.append(record, ttl: record.ttl)
            case type where isInAnswer:
                guard var binding = ServiceBinding(record.rdata.span) else { continue }
                if binding.isAlias {
                    // An alias leads to another name, and has no other meaning (§2.4.2).
                    binding.parameters = []
                } else {
                    let target = binding.target == .root ? record.name : binding.target
                    binding.setHints(owners.contains(target) ? hints : [])
                }
                let hasHints = !binding.isAlias && !hints.isEmpty
                if hasHints { left = min(left, ttl) }
                made.append(
                    record.name, record.type, ttl: hasHints ? min(record.ttl, ttl) : record.ttl, binding.data)
            default: continue
            }
        }
        return made.answer(of: self, keep: left)
    }

    /// The answer to a question for HTTPS or SVCB without the hints of these families. Invalid records are left out: a
    /// client may be more lenient. So are the signatures of the records, and AD is cleared. If the rest cannot be
    /// written, all records are dropped.
    /// - Returns: Nil if no record has such a hint, and all are valid.
    public func withoutHints(ipv4: Bool, ipv6: Bool) -> Answer? {
        guard ipv4 || ipv6, let (_, type) = asked else { return nil }
        var made = ComposedMessage(question: body, type: type)
        var isChanged = false
        for record in records() where record.section != .additional && record.recordClass == .in {
            if record.type == .rrsig, record.rdata.count >= 2, record.rdata.span.integer16(at: 0) == type.rawValue {
                continue
            }
            guard record.type == type else {
                made.append(record, ttl: record.ttl)
                continue
            }
            guard var binding = ServiceBinding(record.rdata.span) else {
                isChanged = true
                continue
            }
            if binding.dropHints(ipv4: ipv4, ipv6: ipv6) {
                isChanged = true
                binding.makeMandatoryPresent()
            }
            made.append(record.name, record.type, ttl: record.ttl, binding.data, in: record.section)
        }
        guard isChanged else { return nil }
        var rest = made.answer(of: self, keep: keep) ?? rewritten([])
        rest?.head.authenticData = false
        return rest
    }

    /// The most hints of a family.
    private static var mostHints: Int { 8 }
}

extension Name {
    /// The uncompressed name that fills these octets exactly; nil: the octets are no such name.
    fileprivate static func whole(_ octets: [UInt8]) -> Name? {
        uncompressedEnd(octets.span, at: 0) == octets.count
            ? Name(wire: octets.span, at: 0, length: octets.count) : nil
    }
}
