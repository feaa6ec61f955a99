public import Base

/// The queries that the daemon itself sends to upstream resolvers.
public enum Query {
    /// A query with RD and AD (the answer's AD is wanted, RFC 6840 §5.7), CD as given, and an OPT record with our UDP
    /// size and DO as given. A client's options are never passed on (RFC 6891 §6.1.1: OPT is hop by hop).
    ///
    /// - Parameters:
    ///   - hasEDNS: False: without the OPT record, and so without DO.
    ///   - subnet: An address for whose network the answer is wanted (ECS, RFC 7871): 24 bits of it are sent, of an
    ///     IPv6 address 56 (§11.1). Nil: no such option.
    ///   - block: The message is padded to a multiple of this many octets, so that its length reveals less of the name
    ///     (RFC 7830, RFC 8467 §4.1); 1: not padded.
    public static func message(
        id: UInt16, _ name: Name, type: RecordType, recordClass: RecordClass = .in, dnssecOK: Bool,
        checkingDisabled: Bool, hasEDNS: Bool = true, subnet: IPAddress? = nil, paddedTo block: Int = 1
    ) -> [UInt8] {
        var message: [UInt8] = []
        message.reserveCapacity(Header.length + name.wire.count + 4 + EDNS.recordLength)
        message.append16(id)
        message.append16(
            Header.recursionDesired | Header.authenticData | (checkingDisabled ? Header.checkingDisabled : 0))
        for count: UInt16 in [1, 0, 0, hasEDNS ? 1 : 0] { message.append16(count) }
        message.append(contentsOf: name.wire)
        message.append16(type.rawValue)
        message.append16(recordClass.rawValue)
        guard hasEDNS else { return message }
        message.append(0)
        message.append16(RecordType.opt.rawValue)
        message.append16(Reply.udpSize)
        message.append32(dnssecOK ? EDNS.dnssecOKBit : 0)
        let lengthOffset = message.count
        message.append16(0)
        if let subnet { appendSubnet(subnet, to: &message) }
        if block > 1 {
            let padding = (block - (message.count + 4) % block) % block
            message.append16(EDNS.paddingOption)
            message.append16(UInt16(padding))
            message.append(contentsOf: repeatElement(0, count: padding))
        }
        let length = UInt16(message.count - lengthOffset - 2)
        message[lengthOffset] = UInt8(length >> 8)
        message[lengthOffset + 1] = UInt8(length & 0xFF)
        return message
    }

    /// Appends the client subnet option (RFC 7871 §6), its scope 0.
    private static func appendSubnet(_ address: IPAddress, to message: inout [UInt8]) {
        let (family, octets): (UInt16, Int) = address.isIPv4 ? (1, 3) : (2, 7)
        message.append16(EDNS.clientSubnetOption)
        message.append16(UInt16(4 + octets))
        message.append16(family)
        message.append(UInt8(8 * octets))
        message.append(0)
        message.append(contentsOf: address.octets.prefix(octets))
    }

    /// The block of RFC 8467 §4.1 for queries, in octets.
    public static let paddingBlock = 128

    /// Gives each letter of the name a random case: up to 32 bits more that a forger must guess, since a server repeats
    /// the question as it was asked (draft-vixie-dnsext-dns0x20-00).
    ///
    /// - Parameters:
    ///   - message: made by ``message(id:_:type:recordClass:dnssecOK:checkingDisabled:)``; its letters are in lower
    ///     case.
    ///   - bits: gives 64 random bits a call; called once for each 64 letters.
    /// - Returns: false if every letter stayed in lower case, or there is none: then an answer that repeats the
    ///   question proves nothing.
    public static func mixCase(of message: inout [UInt8], bits: () -> UInt64) -> Bool {
        var offset = Header.length
        var pool: UInt64 = 0
        var left = 0
        var hasChanged = false
        while offset < message.count, message[offset] != 0 {
            let end = offset + 1 + Int(message[offset])
            for index in offset + 1..<min(end, message.count) {
                guard message[index] &- UInt8(ascii: "a") < 26 else { continue }
                if left == 0 { (pool, left) = (bits(), 64) }
                if pool & 1 != 0 {
                    message[index] ^= 0x20
                    hasChanged = true
                }
                pool >>= 1
                left -= 1
            }
            offset = end
        }
        return hasChanged
    }
}
