public import Base

/// The queries that the daemon itself sends to upstream resolvers.
public enum Query {
    /// A query with RD and AD (to get the answer's AD, RFC 6840 §5.7), CD as given, and an OPT record with the daemon's
    /// UDP size and DO as given. A client's options are never passed on (RFC 6891 §6.1.1: OPT is hop by hop).
    ///
    /// - Parameters:
    ///   - hasEDNS: Whether the query has the OPT record. Without the OPT record it has no DO either.
    ///   - subnet: An address whose network the answer is for (ECS, RFC 7871): 24 bits of it are sent, of an IPv6
    ///     address 56 (§11.1). Nil: no such option.
    ///   - keepAlive: Ask how long the server keeps an idle connection open (RFC 7828 §3.2.1).
    ///   - block: The message is padded to a multiple of this many octets, so that its length reveals less of the name
    ///     (RFC 7830, RFC 8467 §4.1); 1: not padded.
    public static func message(
        id: UInt16, _ name: Name, type: RecordType, recordClass: RecordClass = .in, dnssecOK: Bool,
        checkingDisabled: Bool, hasEDNS: Bool = true, subnet: IPAddress? = nil, keepAlive: Bool = false,
        paddedTo block: Int = 1
    ) -> [UInt8] {
        var length = Header.length + name.wire.count + 4
        var optionsLength = 0
        var padding = 0
        if hasEDNS {
            optionsLength = (subnet.map { 8 + sentOctets(of: $0) } ?? 0) + (keepAlive ? 4 : 0)
            length += EDNS.recordLength + optionsLength
            if block > 1 {
                padding = (block - (length + 4) % block) % block
                optionsLength += 4 + padding
                length += 4 + padding
            }
        }
        return [UInt8](ofAtMost: length) { message in
            message.append16(id)
            message.append16(
                Header.recursionDesired | Header.authenticData | (checkingDisabled ? Header.checkingDisabled : 0))
            message.append32(1 << 16)
            message.append32(hasEDNS ? 1 : 0)
            message.append(name.wire.span)
            message.append16(type.rawValue)
            message.append16(recordClass.rawValue)
            guard hasEDNS else { return }
            message.append(0)
            message.append16(RecordType.opt.rawValue)
            message.append16(Reply.udpSize)
            message.append32(dnssecOK ? EDNS.dnssecOKBit : 0)
            message.append16(UInt16(optionsLength))
            if let subnet { append(subnet, to: &message) }
            if keepAlive { message.append32(UInt32(EDNS.keepAliveOption) << 16) }
            guard block > 1 else { return }
            message.append16(EDNS.paddingOption)
            message.append16(UInt16(padding))
            message.append(repeating: 0, count: padding)
        }
    }

    /// The number of octets of an address that are sent.
    private static func sentOctets(of address: IPAddress) -> Int { address.isIPv4 ? 3 : 7 }

    /// Appends the client subnet option (RFC 7871 §6) with a scope of 0.
    private static func append(_ address: IPAddress, to message: inout OutputSpan<UInt8>) {
        let octets = sentOctets(of: address)
        message.append16(EDNS.clientSubnetOption)
        message.append16(UInt16(4 + octets))
        message.append16(address.isIPv4 ? 1 : 2)
        message.append(UInt8(8 * octets))
        message.append(0)
        for octet in address.octets.prefix(octets) { message.append(octet) }
    }

    /// The block of RFC 8467 §4.1 for queries, in octets.
    public static let paddingBlock = 128

    /// Gives each letter of the name a random case: up to 32 more bits for a forger to guess, since a server repeats
    /// the question as it was asked (draft-vixie-dnsext-dns0x20-00).
    ///
    /// - Parameters:
    ///   - message: Made by ``message(id:_:type:recordClass:dnssecOK:checkingDisabled:)``; its letters are in lower
    ///     case.
    ///   - bits: Returns 64 random bits a call; called once for each 64 octets of the name, each of which has a bit of
    ///     its own.
    /// - Returns: False if each letter stayed in lower case, or if the name has no letter. Then an answer that repeats
    ///   the question proves nothing.
    public static func mixCase(of message: inout [UInt8], bits: () -> UInt64) -> Bool {
        var (pool, used): (UInt64, UInt64) = (0, 8)
        var changes: UInt64 = 0
        let end = min(RecordHeader.skipName(message.span, at: Header.length) ?? 0, message.count)
        var octets = message.mutableSpan
        var start = Header.length
        // Eight octets at once; the last eight may begin before `start`. The lengths of labels are below any letter.
        while start < end {
            let at = min(start, end &- 8)
            let word = octets.span.integer64(at: at)
            let letters = word.lowercaseLetters & (.max >> UInt64(8 &* (start &- at)))
            if letters != 0 {
                if used == 8 { (pool, used) = (bits(), 0) }
                let change = (pool << used & letters) >> 2
                octets.write(word ^ change, at: at)
                changes |= change
                used &+= 1
            }
            start &+= 8
        }
        return changes != 0
    }
}

extension UInt64 {
    /// The high bit of each octet that is a letter `a`–`z`.
    fileprivate var lowercaseLetters: UInt64 {
        let low7 = self & 0x7F7F_7F7F_7F7F_7F7F
        let fromA = low7 &+ 0x1F1F_1F1F_1F1F_1F1F
        let pastZ = low7 &+ 0x0505_0505_0505_0505
        return fromA & ~pastZ & ~self & 0x8080_8080_8080_8080
    }
}
