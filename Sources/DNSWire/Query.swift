/// What the daemon itself sends to a local resolver.
public enum Query {
    /// A query with RD and AD (the answer's AD is wanted, RFC 6840 §5.7), CD as given, and an OPT record with our UDP
    /// size and DO as given. No option of a client's ever goes along (RFC 6891 §6.1.1: hop by hop).
    public static func message(
        id: UInt16, _ name: Name, type: RecordType, recordClass: RecordClass = .in, dnssecOK: Bool,
        checkingDisabled: Bool
    ) -> [UInt8] {
        var message: [UInt8] = []
        message.reserveCapacity(Header.length + name.wire.count + 4 + EDNS.recordLength)
        message.append16(id)
        message.append16(
            Header.recursionDesired | Header.authenticData | (checkingDisabled ? Header.checkingDisabled : 0))
        for count: UInt16 in [1, 0, 0, 1] { message.append16(count) }
        message.append(contentsOf: name.wire)
        message.append16(type.rawValue)
        message.append16(recordClass.rawValue)
        message.append(0)
        message.append16(RecordType.opt.rawValue)
        message.append16(Reply.udpSize)
        message.append32(dnssecOK ? EDNS.dnssecOKBit : 0)
        message.append16(0)
        return message
    }
}
