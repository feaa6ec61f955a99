public import Base

/// DNS64: AAAA records made from A records, for clients in a network whose translator leads to IPv4 addresses (RFC
/// 6147).
extension Answer {
    /// Whether the answer means that the name has no record of the queried type, or is a failure that RFC 6147 §5.1.2
    /// treats alike: it has any code but NXDOMAIN, and no record of that type.
    public var lacksTheType: Bool { head.responseCode != .nxDomain && answersToTheType == 0 }

    /// Whether the answer has signatures, which a client may check.
    public var isSigned: Bool {
        // Each answer of a server is looked through, so no array is made.
        guard var offset = asked.map({ $0.nameEnd + 4 }) else { return false }
        for _ in 0..<head.recordCount {
            guard let record = RecordHeader.read(body.span, at: offset) else { return false }
            if record.type == .rrsig { return true }
            offset = record.end
        }
        return false
    }

    /// The answer for AAAA made from this answer for A, under a NAT64 prefix: its aliases, and each address under the
    /// prefix (RFC 6147 §5.1.6 and §5.1.7), as many as a message has room for.
    /// - Parameters:
    ///   - absence: The answer without an AAAA record: no made record lives longer (RFC 6147 §5.1.7).
    /// - Returns: Nil if there is no address that the translator may be given.
    public func synthesized(under prefix: NAT64Prefix, after absence: Answer) -> Answer? {
        let longest = absence.isCacheable ? absence.keep : Self.longestWithoutSOA
        var made = ComposedMessage(question: body, type: .aaaa)
        var addresses = 0
        for record in records() where record.section == .answer && record.recordClass == .in {
            switch record.type {
            case .cname, .dname: made.append(record, ttl: min(record.ttl, longest))
            case .a where made.hasRoom(for: 16):
                let ipv4 = IPAddress(bytes: record.rdata.span)
                guard let address = ipv4.flatMap(prefix.address(of:)) else { continue }
                made.append(record.name, .aaaa, ttl: min(record.ttl, longest), address.octets)
                addresses += 1
            default: continue
            }
        }
        guard addresses > 0 else { return nil }
        return made.answer(of: self, keep: min(keep, longest))
    }

    /// The answer for another name that is an alias of this answer's name, as the reverse name of an address under a
    /// NAT64 prefix is an alias of that of the IPv4 address (RFC 6147 §5.3.1).
    /// - Returns: Nil if a message has no room for the answer.
    public func aliased(from name: Name) -> Answer? {
        guard let (nameEnd, type) = asked else { return nil }
        var made = ComposedMessage(question: name.wire, type: type)
        if head.responseCode.isAnswer { made.append(name, .cname, ttl: keep, Array(body[..<nameEnd])) }
        for record in records() where record.section != .additional { made.append(record, ttl: record.ttl) }
        return made.answer(of: self, keep: keep)
    }

    /// The longest TTL of a made AAAA record if no SOA limits it (RFC 6147 §5.1.7), in seconds.
    private static var longestWithoutSOA: UInt32 { 600 }
}

extension Name {
    /// The name whose addresses show the prefix of the network's translator (RFC 7050 §8.2).
    public static let ipv4Only = Name("ipv4only.arpa")!
}
