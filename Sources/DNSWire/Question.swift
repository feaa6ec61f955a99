/// A client's question, read from its message. It has only offsets and numbers, so that reading it touches no heap.
public struct Question: Sendable {
    public let id: UInt16
    /// The header's second 16 bits as sent.
    public let flags: UInt16
    /// The offset after the name's root label.
    public let nameEnd: Int
    public let type: RecordType
    public let recordClass: RecordClass
    /// The client's OPT record; nil: the client sent none.
    public let edns: EDNS?
    /// The options of the OPT in the reply; none until the listener, which knows the client's address and transport,
    /// sets them.
    public var replyOptions = ReplyOptions()

    /// The offset of the name: the end of the header.
    public static let nameOffset = Header.length

    /// The offset after the question section.
    public var end: Int { isEmpty ? nameEnd : nameEnd + 4 }
    /// Whether the message has no question, only a header and an OPT (RFC 7873 §5.4). Type and class are then
    /// undefined.
    public var isEmpty: Bool { nameEnd == Question.nameOffset }
    public var recursionDesired: Bool { flags & Header.recursionDesired != 0 }
    public var checkingDisabled: Bool { flags & Header.checkingDisabled != 0 }
    public var authenticData: Bool { flags & Header.authenticData != 0 }
    public var dnssecOK: Bool { edns?.dnssecOK ?? false }
    /// Whether the client understands AD in a reply: it set AD or DO (RFC 6840 §5.7).
    public var wantsAuthenticData: Bool { authenticData || dnssecOK }

    /// The queried name, as a copy on the heap.
    ///
    /// - Precondition: `message` is the one that this question was read from.
    public func name(in message: Span<UInt8>) -> Name {
        Name(wire: message, at: Question.nameOffset, length: nameEnd - Question.nameOffset)
    }
}

/// A client's OPT record (RFC 6891 §6.1.2), with offsets into its message.
public struct EDNS: Sendable {
    /// The largest datagram that the client accepts, as sent.
    public var udpSize: UInt16
    public var version: UInt8
    /// The DO flag of the client (RFC 3225).
    public var dnssecOK: Bool
    /// The offset of the data of the COOKIE option, and its octets: 8, or 16 to 40 with a server cookie (RFC 7873 §4);
    /// 0: none.
    public var cookieOffset: UInt16 = 0
    public var cookieLength: UInt8 = 0
    /// Whether the client asks for the idle timeout of its connection (RFC 7828). Without meaning over UDP.
    public var asksForKeepAlive = false
}

extension Question {
    /// The result of reading a client's message.
    public enum Reading: Sendable {
        case question(Question)
        /// The message has no question but a COOKIE: the client wants its cookie checked, or a new cookie (RFC 7873
        /// §5.4). `isEmpty` is true.
        case cookieQuery(Question)
        /// Reply with this code, and with the question if it could be parsed.
        case refuse(ResponseCode, Question?)
        /// Send nothing: the message is not a query, and a reply could start a loop between two servers.
        case silence
    }

    /// Reads a client's message, for UDP and TCP alike. Allocates nothing.
    ///
    /// - Shorter than a header, or a response: silence.
    /// - Opcode other than QUERY: NOTIMP.
    /// - Other than one question (RFC 9619), records in the answer section, or in the authority section of anything but
    ///   an IXFR (RFC 1995 §3), a bad or compressed name, a second or misplaced OPT, broken options, a COOKIE of an
    ///   impossible length (RFC 7873 §5.2.2), octets behind the end: FORMERR. A message without any question is
    ///   accepted if it has a COOKIE.
    /// - EDNS version over 0: BADVERS (RFC 6891 §6.1.3), without looking at its options.
    ///
    /// Other additional records (TSIG, SIG(0)) are skipped; class and type are the caller's to judge.
    public static func read(_ message: Span<UInt8>) -> Reading {
        guard message.count >= Header.length else { return .silence }
        let flags = message.integer16(at: 2)
        guard flags & Header.response == 0 else { return .silence }
        guard flags & Header.opcode == 0 else { return .refuse(.notImp, nil) }
        guard let nameEnd = questionNameEnd(message) else { return .refuse(.formErr, nil) }
        let isEmpty = nameEnd == nameOffset
        let type = RecordType(rawValue: isEmpty ? 0 : message.integer16(at: nameEnd))
        var records = QueryRecords(offset: isEmpty ? nameEnd : nameEnd + 4)
        let isWellFormed = records.read(message, isIXFR: type == .ixfr)
        let question = Question(
            id: message.integer16(at: 0), flags: flags, nameEnd: nameEnd, type: type,
            recordClass: RecordClass(rawValue: isEmpty ? 0 : message.integer16(at: nameEnd + 2)), edns: records.edns)
        guard isWellFormed else { return .refuse(.formErr, question) }
        if let edns = records.edns, edns.version > 0 { return .refuse(.badVers, question) }
        guard isEmpty else { return .question(question) }
        return records.edns?.cookieLength ?? 0 > 0 ? .cookieQuery(question) : .refuse(.formErr, question)
    }

    /// The offset after the name of the only question; `nameOffset` if there is no question; nil if there are two
    /// questions, or a bad question.
    static func questionNameEnd(_ message: Span<UInt8>) -> Int? {
        switch message.integer16(at: 4) {
        case 0: return nameOffset
        case 1:
            guard let end = Name.uncompressedEnd(message, at: nameOffset), message.count - end >= 4 else { return nil }
            return end
        default: return nil
        }
    }
}

extension Name {
    /// The offset after the root label of an uncompressed name; nil if the name is compressed, broken or too long. A
    /// question is the first name of its message, so a pointer has no earlier name to lead to.
    @inline(__always)
    static func uncompressedEnd(_ octets: Span<UInt8>, at start: Int) -> Int? {
        let limit = min(octets.count, start + maximumLength)
        var offset = start
        while offset < limit {
            let length = Int(octets[offset])
            offset += 1
            if length == 0 { return offset }
            guard length <= maximumLabelLength else { return nil }
            offset += length
        }
        return nil
    }
}

/// The records after a query's question, of which only OPT matters here.
private struct QueryRecords {
    var offset: Int
    var edns: EDNS?

    /// Reads all records to the end of the message; false if a record is broken. An OPT read before that record stays,
    /// since a reply to a query with OPT must have an OPT too (RFC 6891 §6.1.1).
    mutating func read(_ message: Span<UInt8>, isIXFR: Bool) -> Bool {
        let authority = Int(message.integer16(at: 8))
        guard message.integer16(at: 6) == 0, authority == 0 || isIXFR else { return false }
        for _ in 0..<authority {
            guard let record = RecordHeader.read(message, at: offset), record.type != .opt else { return false }
            offset = record.end
        }
        // Their number needs no cap: each takes at least 11 octets of a message of at most 65535.
        for _ in 0..<Int(message.integer16(at: 10)) {
            guard let record = RecordHeader.read(message, at: offset) else { return false }
            if record.type == .opt {
                guard edns == nil, record.nameEnd == offset + 1, readOPT(message, record) else { return false }
            }
            offset = record.end
        }
        return offset == message.count
    }

    /// False if the options are broken. Options of EDNS versions other than 0 may have another form and are not read.
    private mutating func readOPT(_ message: Span<UInt8>, _ record: RecordHeader) -> Bool {
        var edns = EDNS(
            udpSize: record.recordClass.rawValue, version: UInt8(truncatingIfNeeded: record.ttl >> 16),
            dnssecOK: record.ttl & EDNS.dnssecOKBit != 0)
        let isWellFormed = edns.version > 0 || edns.readOptions(message, record.dataOffset..<record.end)
        self.edns = edns
        return isWellFormed
    }
}

extension EDNS {
    /// The first of two COOKIE options counts (RFC 7873 §5.2). Unknown options are skipped (RFC 6891 §6.1.2).
    fileprivate mutating func readOptions(_ message: Span<UInt8>, _ range: Range<Int>) -> Bool {
        var offset = range.lowerBound
        while offset < range.upperBound {
            guard let (code, data) = message.option(at: offset, before: range.upperBound) else { return false }
            if code == EDNS.cookieOption, cookieLength == 0 {
                guard data.count == 8 || (16...40).contains(data.count) else { return false }
                // The offset fits: a message has at most 65535 octets.
                cookieOffset = UInt16(truncatingIfNeeded: data.lowerBound)
                cookieLength = UInt8(truncatingIfNeeded: data.count)
            } else if code == EDNS.keepAliveOption, data.isEmpty {
                asksForKeepAlive = true
            }
            offset = data.upperBound
        }
        return true
    }
}
