/// What the daemon itself sends to a local resolver.
public enum Query {
    /// A query with RD and AD (the answer's AD is wanted, RFC 6840 §5.7), CD as given, and an OPT record with our UDP
    /// size and DO as given. No option of a client's ever goes along (RFC 6891 §6.1.1: hop by hop).
    ///
    /// - Parameter hasEDNS: False: without the OPT record, and so without DO.
    public static func message(
        id: UInt16, _ name: Name, type: RecordType, recordClass: RecordClass = .in, dnssecOK: Bool,
        checkingDisabled: Bool, hasEDNS: Bool = true
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
        message.append16(0)
        return message
    }

    /// Gives each letter of the name a case by chance: up to 32 bits more that a forger must guess, since a server repeats
    /// the question as it was asked (draft-vixie-dnsext-dns0x20-00).
    ///
    /// - Parameters:
    ///   - message: made by ``message(id:_:type:recordClass:dnssecOK:checkingDisabled:)``; its letters are in lower case.
    ///   - bits: gives 64 random bits a call; called once for each 64 letters.
    /// - Returns: false if every letter, if there is one, stayed as it was: then an answer that repeats the question says
    ///   nothing of its server.
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
