/// A whole answer to one question, which is cached and given to any client that asks the same question.
public struct Answer: Sendable, Equatable {
    public var head: AnswerHead
    /// The message from offset 12 on: question (name in lower case), answer, authority, additional without OPT; then
    /// the extended errors as options for the OPT of a reply. Compression pointers are as in the message, so offset 12
    /// is `body[0]`.
    public var body: [UInt8]
    /// Seconds for which the answer may be cached; 0: the answer may not be cached.
    public var keep: UInt32
    /// Whether the answer answers the question and so may be cached at all. A TTL of 0 can still leave ``keep`` at 0.
    public var isCacheable: Bool

    public init(head: AnswerHead, body: [UInt8], keep: UInt32, isCacheable: Bool) {
        self.head = head
        self.body = body
        self.keep = keep
        self.isCacheable = isCacheable
    }

    /// Limits each record's TTL, and ``keep`` of a cacheable answer, to `minimum...maximum` seconds.
    ///
    /// - Precondition: `minimum <= maximum`.
    public mutating func clampTTLs(minimum: UInt32, maximum: UInt32) {
        precondition(minimum <= maximum)
        if isCacheable { keep = min(max(keep, minimum), maximum) }
        changeTTLs { min(max($0, minimum), maximum) }
    }

    /// Ages an answer that was this many seconds old when it came: the TTLs of its records, and ``keep``, decrease by
    /// this number, but not below 1.
    public mutating func spend(seconds: Int) {
        guard seconds > 0 else { return }
        let spent = UInt32(clamping: seconds)
        func left(_ ttl: UInt32) -> UInt32 { ttl > spent ? ttl - spent : min(ttl, 1) }
        keep = left(keep)
        changeTTLs(left)
    }

    private mutating func changeTTLs(_ change: (UInt32) -> UInt32) {
        guard var offset = asked.map({ $0.nameEnd + 4 }) else { return }
        for _ in 0..<head.recordCount {
            guard let record = RecordHeader.read(body.span, at: offset) else { return }
            let ttl = change(record.ttl)
            if ttl != record.ttl { setTTL(of: record, to: ttl) }
            offset = record.end
        }
    }

    /// The end of the queried name in ``body``, and the queried type; nil: a body built by hand without a question.
    var asked: (nameEnd: Int, type: RecordType)? {
        guard let nameEnd = RecordHeader.skipName(body.span, at: 0), body.count >= nameEnd + 4 else { return nil }
        return (nameEnd, RecordType(rawValue: body.span.integer16(at: nameEnd)))
    }

    /// The records after the question, in order; for a body built by hand, up to the first that cannot be parsed.
    func recordHeaders() -> [RecordHeader] { asked.map { recordHeaders(body.span, from: $0.nameEnd + 4) } ?? [] }

    /// - Parameter message: ``body``, or a message that ends with it.
    func recordHeaders(_ message: Span<UInt8>, from start: Int) -> [RecordHeader] {
        var records: [RecordHeader] = []
        while records.count < head.recordCount,
            let record = RecordHeader.read(message, at: records.last?.end ?? start)
        {
            records.append(record)
        }
        return records
    }

    /// Whether the authority section has an SOA, which proves that a record does not exist (RFC 2308 §2).
    public var hasStartOfAuthority: Bool {
        let (first, count) = (Int(head.answerCount), Int(head.authorityCount))
        return count > 0 && recordHeaders().dropFirst(first).prefix(count).contains { $0.type == .soa }
    }

    /// - Precondition: `record` was read from ``body``.
    mutating func setTTL(of record: RecordHeader, to ttl: UInt32) {
        var bytes = body.mutableSpan
        bytes.write(ttl, at: record.ttlOffset)
    }
}

/// The parts of an answer other than its body; trivial.
public struct AnswerHead: Sendable, Equatable {
    /// The code of the header, below 16.
    public var responseCode: ResponseCode
    /// Whether the resolver that answered has validated the answer (RFC 4035 §3.2.3).
    public var authenticData: Bool
    public var answerCount: UInt16
    public var authorityCount: UInt16
    /// Records of the additional section, without OPT.
    public var additionalCount: UInt16
    /// Octets of extended errors at the end of the body, for clients that understand EDNS.
    public var extendedErrorLength: UInt16

    public init(
        responseCode: ResponseCode, authenticData: Bool = false, answerCount: UInt16 = 0, authorityCount: UInt16 = 0,
        additionalCount: UInt16 = 0, extendedErrorLength: UInt16 = 0
    ) {
        self.responseCode = responseCode
        self.authenticData = authenticData
        self.answerCount = answerCount
        self.authorityCount = authorityCount
        self.additionalCount = additionalCount
        self.extendedErrorLength = extendedErrorLength
    }

    /// The number of records in all sections.
    var recordCount: Int { Int(answerCount) + Int(authorityCount) + Int(additionalCount) }

    /// The section of a record, by the index of the record among all records.
    func section(of index: Int) -> DecodedRecord.Section {
        if index < answerCount { return .answer }
        return index < Int(answerCount) + Int(authorityCount) ? .authority : .additional
    }
}
