/// The header's fields (RFC 1035 §4.1.1, AD and CD from RFC 4035 §3.2).
enum Header {
    static let length = 12

    static let response: UInt16 = 0x8000
    static let opcode: UInt16 = 0x7800
    static let truncated: UInt16 = 0x0200
    static let recursionDesired: UInt16 = 0x0100
    static let recursionAvailable: UInt16 = 0x0080
    static let authenticData: UInt16 = 0x0020
    static let checkingDisabled: UInt16 = 0x0010
    static let responseCode: UInt16 = 0x000F
}

extension EDNS {
    /// DO in an OPT record's TTL field (RFC 6891 §6.1.3).
    static let dnssecOKBit: UInt32 = 0x8000
    /// An OPT record without options: root, type, class, TTL, RDLENGTH.
    static let recordLength = 11
    /// The length of an option's code and length, before its data.
    static let optionHead = 4
    /// The client subnet option's code (RFC 7871 §6).
    static let clientSubnetOption: UInt16 = 8
    /// The COOKIE option's code (RFC 7873 §4).
    static let cookieOption: UInt16 = 10
    /// The edns-tcp-keepalive option's code (RFC 7828 §3.1).
    static let keepAliveOption: UInt16 = 11
    /// The padding option's code (RFC 7830 §3).
    static let paddingOption: UInt16 = 12
    /// The extended DNS error option's code (RFC 8914 §2).
    static let extendedErrorOption: UInt16 = 15
}

extension Span<UInt8> {
    /// The option of OPT, or of such options elsewhere, at `offset` (RFC 6891 §6.1.2): its code, and the range of its
    /// data; nil if it is not whole before `end`.
    @inline(__always)
    func option(at offset: Int, before end: Int) -> (code: UInt16, data: Range<Int>)? {
        guard end - offset >= EDNS.optionHead else { return nil }
        let start = offset + EDNS.optionHead
        let length = Int(integer16(at: offset + 2))
        return length <= end - start ? (integer16(at: offset), start..<start + length) : nil
    }
}

/// The offsets of a record's parts; trivial.
struct RecordHeader {
    /// The longest valid TTL, in seconds. A larger TTL counts as 0 (RFC 2181 §8).
    static let maximumTTL: UInt32 = 0x7FFF_FFFF
    /// The length of type, class, TTL and RDLENGTH.
    static let fixedLength = 10

    let ownerOffset: Int
    let nameEnd: Int
    let type: RecordType
    let recordClass: RecordClass
    /// The TTL as sent.
    let ttl: UInt32
    let dataLength: Int

    var ttlOffset: Int { nameEnd + 4 }
    var dataOffset: Int { nameEnd + RecordHeader.fixedLength }
    var end: Int { dataOffset + dataLength }

    /// The record at `offset`; nil if the record exceeds the message, or if its owner name has an unknown label type. A
    /// compression pointer ends the name and is not followed.
    @inline(__always)
    static func read(_ message: Span<UInt8>, at offset: Int) -> RecordHeader? {
        guard let nameEnd = skipName(message, at: offset), message.count - nameEnd >= fixedLength else { return nil }
        let record = RecordHeader(
            ownerOffset: offset, nameEnd: nameEnd, type: RecordType(rawValue: message.integer16(at: nameEnd)),
            recordClass: RecordClass(rawValue: message.integer16(at: nameEnd + 2)),
            ttl: message.integer32(at: nameEnd + 4), dataLength: Int(message.integer16(at: nameEnd + 8)))
        return record.end <= message.count ? record : nil
    }

    /// Calls the closure with each record of a message, in order, as long as it returns true.
    /// - Returns: False if the message is malformed after these records.
    static func forEach(_ message: Span<UInt8>, _ goesOn: (RecordHeader) -> Bool) -> Bool {
        guard message.count >= Header.length else { return false }
        var offset = Header.length
        for _ in 0..<message.integer16(at: 4) {
            guard let end = skipName(message, at: offset), message.count - end >= 4 else { return false }
            offset = end + 4
        }
        let count = Int(message.integer16(at: 6)) + Int(message.integer16(at: 8)) + Int(message.integer16(at: 10))
        for _ in 0..<count {
            guard let record = read(message, at: offset) else { return false }
            guard goesOn(record) else { return true }
            offset = record.end
        }
        return true
    }

    /// The offset after the name at `offset`, or after its first pointer.
    @inline(__always)
    static func skipName(_ message: Span<UInt8>, at offset: Int) -> Int? {
        var offset = offset
        while offset < message.count {
            let length = Int(message[offset])
            if length == 0 { return offset + 1 }
            if length >= 0xC0 { return offset + 2 }
            guard length <= Name.maximumLabelLength else { return nil }
            offset += length + 1
        }
        return nil
    }
}
