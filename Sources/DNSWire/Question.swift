/// What a client asks, read from its message: offsets and numbers only, so that reading one touches no heap.
public struct Question: Sendable {
    public let id: UInt16
    /// The header's second 16 bits as sent.
    public let flags: UInt16
    /// The offset behind the name's root label.
    public let nameEnd: Int
    public let type: RecordType
    public let recordClass: RecordClass
    /// The client's OPT record; nil if it sent none.
    public let edns: EDNS?

    /// The offset of the name: behind the header.
    public static let nameOffset = Header.length

    /// The offset behind the question section.
    public var end: Int { nameEnd + 4 }
    public var recursionDesired: Bool { flags & Header.recursionDesired != 0 }
    public var checkingDisabled: Bool { flags & Header.checkingDisabled != 0 }
    public var authenticData: Bool { flags & Header.authenticData != 0 }
    public var dnssecOK: Bool { edns?.dnssecOK ?? false }
    /// Whether the client understands AD in a reply: it set AD or DO (RFC 6840 §5.7).
    public var wantsAuthenticData: Bool { authenticData || dnssecOK }

    /// The name asked. This makes a copy on the heap.
    ///
    /// - Precondition: `message` is the one this question was read from.
    public func name(in message: Span<UInt8>) -> Name {
        Name(wire: message, at: Question.nameOffset, length: nameEnd - Question.nameOffset)
    }
}

/// A client's OPT record (RFC 6891 §6.1.2), with offsets into its message.
public struct EDNS: Sendable {
    /// The largest datagram the client takes, as sent.
    public var udpSize: UInt16
    public var version: UInt8
    /// The DO flag (RFC 3225).
    public var dnssecOK: Bool
    /// Where the options begin; they are well-formed.
    public var optionsOffset: Int
    /// Octets of options, 0 for none.
    public var optionsLength: Int
}

extension Question {
    /// What to do with a client's message.
    public enum Reading: Sendable {
        case question(Question)
        /// Answer with this code; the question if it could be read.
        case refuse(ResponseCode, Question?)
        /// Not a query at all: answering could start a loop between two servers.
        case silence
    }

    /// Reads a client's message, for UDP and TCP alike. Allocates nothing.
    ///
    /// - Shorter than a header, or a response: silence.
    /// - Opcode other than QUERY: NOTIMP.
    /// - Other than one question (RFC 9619), records in the answer section, or in the authority section of anything but
    ///   an IXFR (RFC 1995 §3), a bad or compressed name, a second or misplaced OPT, octets behind the end: FORMERR.
    /// - EDNS version over 0: BADVERS (RFC 6891 §6.1.3).
    ///
    /// Other additional records (TSIG, SIG(0)) are skipped; class and type are the caller's to judge.
    public static func read(_ message: Span<UInt8>) -> Reading {
        guard message.count >= Header.length else { return .silence }
        let flags = message.integer16(at: 2)
        guard flags & Header.response == 0 else { return .silence }
        guard flags & Header.opcode == 0 else { return .refuse(.notImp, nil) }
        guard message.integer16(at: 4) == 1, let nameEnd = uncompressedNameEnd(message, at: nameOffset),
            message.count - nameEnd >= 4
        else { return .refuse(.formErr, nil) }
        let type = RecordType(rawValue: message.integer16(at: nameEnd))
        var records = QueryRecords(offset: nameEnd + 4)
        let isWellFormed = records.read(message, isIXFR: type == .ixfr)
        let question = Question(
            id: message.integer16(at: 0), flags: flags, nameEnd: nameEnd, type: type,
            recordClass: RecordClass(rawValue: message.integer16(at: nameEnd + 2)), edns: records.edns)
        guard isWellFormed else { return .refuse(.formErr, question) }
        if let edns = records.edns, edns.version > 0 { return .refuse(.badVers, question) }
        return .question(question)
    }

    /// The offset behind the root label of a name without compression; nil if it is none or too long. A question is the
    /// first name of its message, so there is nothing that a pointer could mean.
    private static func uncompressedNameEnd(_ message: Span<UInt8>, at start: Int) -> Int? {
        let limit = min(message.count, start + Name.maximumLength)
        var offset = start
        while offset < limit {
            let length = Int(message[offset])
            offset += 1
            if length == 0 { return offset }
            guard length <= Name.maximumLabelLength else { return nil }
            offset += length
        }
        return nil
    }
}

/// The records behind a query's question: only OPT means something here.
private struct QueryRecords {
    var offset: Int
    var edns: EDNS?

    init(offset: Int) { self.offset = offset }

    /// Goes through all records to the end of the message; false if something is wrong with them. What was read of an
    /// OPT stays, since a reply must carry one if the query did (RFC 6891 §6.1.1).
    mutating func read(_ message: Span<UInt8>, isIXFR: Bool) -> Bool {
        let authority = Int(message.integer16(at: 8))
        guard message.integer16(at: 6) == 0, authority == 0 || isIXFR else { return false }
        for _ in 0..<authority {
            guard let record = RecordHeader.read(message, at: offset), record.type != .opt else { return false }
            offset = record.end
        }
        // No cap on their number is needed: each takes at least 11 octets of a message of at most 65535.
        for _ in 0..<Int(message.integer16(at: 10)) {
            guard let record = RecordHeader.read(message, at: offset) else { return false }
            if record.type == .opt {
                guard edns == nil, record.nameEnd == offset + 1, optionsAreWellFormed(message, record) else {
                    return false
                }
                edns = EDNS(
                    udpSize: record.recordClass.rawValue, version: UInt8(truncatingIfNeeded: record.ttl >> 16),
                    dnssecOK: record.ttl & EDNS.dnssecOKBit != 0, optionsOffset: record.dataOffset,
                    optionsLength: record.dataLength)
            }
            offset = record.end
        }
        return offset == message.count
    }

    private func optionsAreWellFormed(_ message: Span<UInt8>, _ record: RecordHeader) -> Bool {
        var option = record.dataOffset
        while option < record.end {
            guard record.end - option >= 4 else { return false }
            option += 4 + Int(message.integer16(at: option + 2))
        }
        return option == record.end
    }
}
