/// Writes replies to clients. Nothing here allocates.
public enum Reply {
    /// The UDP size in the daemon's OPT records, and the largest datagram to other hosts: such a datagram passes every
    /// path unfragmented, and a fragment can be forged (RFC 9715 §3.1).
    public static let udpSize: UInt16 = 1232
    /// The largest datagram for a client without EDNS, and the least that a client with EDNS accepts (RFC 1035 §4.2.1,
    /// RFC 6891 §6.2.3).
    public static let minimumUDPSize = 512
    /// The largest datagram to any client, whatever size the client offers. Only clients on loopback get such
    /// datagrams, since fragments there cannot be forged from outside.
    public static let maximumUDPSize = 4096

    /// The longest refusal: header, the longest question, OPT with an extended error and all options.
    public static let maximumRefusalLength =
        Header.length + Name.maximumLength + 4 + EDNS.recordLength + ExtendedErrors.headLength
        + ReplyOptions.maximumLength

    public enum Age: Sendable {
        /// TTLs decrease by this many seconds, not below 0.
        case elapsed(UInt32)
        /// Every TTL becomes this many seconds (stale answers, RFC 8767 §4).
        case fixed(UInt32)
    }

    /// The largest datagram for the client: 512 without EDNS, else its size within 512…1232, on loopback within
    /// 512…4096.
    @inline(__always)
    public static func udpLimit(_ question: Question, isLoopback: Bool) -> Int {
        guard let edns = question.edns else { return minimumUDPSize }
        return min(max(Int(edns.udpSize), minimumUDPSize), isLoopback ? maximumUDPSize : Int(udpSize))
    }

    /// Writes a whole reply and returns its length.
    ///
    /// ID, RD and CD are the client's; QR and RA are set, AA and Z clear; AD only if the client understands it (RFC
    /// 6840 §5.8). The question is byte for byte the client's, with the case of its letters. An OPT goes only to a
    /// client that sent one (RFC 6891 §6.1.1), with the question's ``Question/replyOptions``.
    ///
    /// A reply larger than `limit` loses its additional section, then an authority section that the answer does not
    /// need; neither needs TC (RFC 2181 §9). Then it loses the extended errors that do not fit, which must not cause TC
    /// either (RFC 8914 §3), over a stream the ``Question/replyOptions``, and if that is not enough all records, with TC
    /// set. A `body` that does not match its head and the question becomes SERVFAIL.
    ///
    /// - Parameters:
    ///   - body: ``Answer/body``, for the question of the query (in any case of letters).
    ///   - query: The message that `question` was read from.
    ///   - limit: The largest reply in octets, at least 512.
    ///   - out: At least `min(limit, full size)` octets; undefined after the reply.
    public static func write(
        _ head: AnswerHead, body: Span<UInt8>, age: Age, to question: Question, query: Span<UInt8>, limit: Int,
        into out: inout MutableSpan<UInt8>
    ) -> Int {
        precondition(limit >= minimumUDPSize)
        let limit = min(limit, out.count)
        let questionLength = question.end - Header.length
        let optLength = optLength(question)
        var errorLength = question.edns == nil ? 0 : Int(head.extendedErrorLength)
        var bodyEnd = body.count - Int(head.extendedErrorLength)
        guard bodyEnd >= questionLength, query.count >= question.end else {
            return refuse(.servFail, question: question, query: query, into: &out)
        }
        let errorStart = bodyEnd
        var recordCount = head.recordCount
        var (authorityCount, additionalCount) = (head.authorityCount, head.additionalCount)
        if Header.length + bodyEnd + optLength + errorLength > limit {
            additionalCount = 0
            recordCount -= Int(head.additionalCount)
            guard let shorter = end(of: recordCount, in: body, at: questionLength) else {
                return refuse(.servFail, question: question, query: query, into: &out)
            }
            bodyEnd = shorter
            if Header.length + bodyEnd + optLength > limit,
                let answersEnd = endOfAnswers(head, body, questionLength, question)
            {
                (authorityCount, recordCount, bodyEnd) = (0, Int(head.answerCount), answersEnd)
            }
            if Header.length + bodyEnd + optLength > limit {
                // Over a stream the client cannot ask in another way, so the options give way, not the answer.
                if limit == UInt16.max, optLength > EDNS.recordLength {
                    return writeWithoutOptions(head, body, age, question, query, &out)
                }
                let room = question.edns == nil ? 0 : limit - question.end - optLength
                let errors = ExtendedErrors.range(body, from: errorStart, fitting: room)
                return writeWithoutRecords(head.responseCode, Header.truncated, body, errors, question, query, &out)
            }
            if errorLength > 0 {
                let room = limit - Header.length - bodyEnd - optLength
                errorLength = ExtendedErrors.range(body, from: errorStart, fitting: room).count
            }
        }
        out.copy(query, 0..<question.end, to: 0)
        out.copy(body, questionLength..<bodyEnd, to: question.end)
        guard writeTTLs(age, of: recordCount, in: body, questionLength..<bodyEnd, into: &out) else {
            return refuse(.servFail, question: question, query: query, into: &out)
        }
        let isAuthentic = head.authenticData && question.wantsAuthenticData
        writeHeader(
            question, head.responseCode, isAuthentic ? Header.authenticData : 0,
            (head.answerCount, authorityCount, additionalCount), &out)
        let errors = errorStart..<errorStart + errorLength
        return writeOPT(head.responseCode, body, errors, question, at: Header.length + bodyEnd, &out)
    }

    /// Writes a reply with a cached answer; the parameters are as above.
    public static func write(
        _ answer: Answer, age: Age, to question: Question, query: Span<UInt8>, limit: Int,
        into out: inout MutableSpan<UInt8>
    ) -> Int {
        write(answer.head, body: answer.body.span, age: age, to: question, query: query, limit: limit, into: &out)
    }

    /// Removes all records and extended errors from a written reply, sets TC, and returns the new length: the client is
    /// to ask again over TCP.
    ///
    /// - Parameter out: The reply to `question`, which was read from `query`.
    public static func truncate(_ out: inout MutableSpan<UInt8>, _ question: Question, query: Span<UInt8>) -> Int {
        let code = ResponseCode(rawValue: UInt16(out[3]) & Header.responseCode)
        return writeWithoutRecords(code, Header.truncated, query, 0..<0, question, query, &out)
    }

    /// Writes a reply without records and returns its length.
    ///
    /// Without a `question` the reply is only a header: ID and opcode from the query's first octets, RD and CD too if
    /// the opcode is QUERY; the other opcodes define no flags (the tests of RFC 8906 §8 want them clear).
    ///
    /// - Parameter out: At least ``maximumRefusalLength`` octets. If it cannot hold the reply, or `query` is shorter
    ///   than a header, nothing is written and 0 returned.
    public static func refuse(
        _ code: ResponseCode, extendedError: ExtendedError? = nil, question: Question?, query: Span<UInt8>,
        into out: inout MutableSpan<UInt8>
    ) -> Int {
        if let question {
            let error = ExtendedErrors.option(extendedError)
            let length = extendedError == nil || question.edns == nil ? 0 : error.count
            return writeWithoutRecords(code, 0, error.span, 0..<length, question, query, &out)
        }
        guard query.count >= Header.length, out.count >= Header.length else { return 0 }
        let asked = query.integer16(at: 2)
        var flags = Header.response | asked & Header.opcode | code.inHeaderAlone.rawValue
        if asked & Header.opcode == 0 {
            flags |= Header.recursionAvailable | asked & (Header.recursionDesired | Header.checkingDisabled)
        }
        out.write(query.integer16(at: 0), at: 0)
        out.write(flags, at: 2)
        for offset in 4..<Header.length { out[offset] = 0 }
        return Header.length
    }
}

extension Reply {
    /// Not inlined, so that other replies do not pay for the copied question.
    @inline(never)
    private static func writeWithoutOptions(
        _ head: AnswerHead, _ body: Span<UInt8>, _ age: Age, _ question: Question, _ query: Span<UInt8>,
        _ out: inout MutableSpan<UInt8>
    ) -> Int {
        var bare = question
        bare.replyOptions = ReplyOptions()
        return write(head, body: body, age: age, to: bare, query: query, limit: out.count, into: &out)
    }

    /// Writes the header, the question and the OPT.
    private static func writeWithoutRecords(
        _ code: ResponseCode, _ flags: UInt16, _ options: Span<UInt8>, _ errors: Range<Int>, _ question: Question,
        _ query: Span<UInt8>, _ out: inout MutableSpan<UInt8>
    ) -> Int {
        let length = question.end + optLength(question) + errors.count
        guard query.count >= question.end, out.count >= length else { return 0 }
        out.copy(query, 0..<question.end, to: 0)
        writeHeader(question, code, flags, (0, 0, 0), &out)
        return writeOPT(code, options, errors, question, at: question.end, &out)
    }

    private static func writeHeader(
        _ question: Question, _ code: ResponseCode, _ flags: UInt16, _ counts: (UInt16, UInt16, UInt16),
        _ out: inout MutableSpan<UInt8>
    ) {
        let hasOPT = question.edns != nil
        let code = hasOPT ? code.rawValue & Header.responseCode : code.inHeaderAlone.rawValue
        let copied = question.flags & (Header.recursionDesired | Header.checkingDisabled)
        out.write(question.id, at: 0)
        out.write(Header.response | Header.recursionAvailable | copied | flags | code, at: 2)
        out.write(question.isEmpty ? UInt16(0) : 1, at: 4)
        out.write(counts.0, at: 6)
        out.write(counts.1, at: 8)
        // The body has no more than 65535 octets, so too few records to overflow this.
        out.write(counts.2 &+ (hasOPT ? 1 : 0), at: 10)
    }

    /// Octets of the reply's OPT without extended errors.
    private static func optLength(_ question: Question) -> Int {
        question.edns == nil ? 0 : EDNS.recordLength + question.replyOptions.length
    }

    /// Writes the reply's OPT if the client sent one; returns the reply's length. DO is copied (RFC 3225 §3).
    /// - Parameter errors: The range of extended errors in `options`.
    private static func writeOPT(
        _ code: ResponseCode, _ options: Span<UInt8>, _ errors: Range<Int>, _ question: Question, at offset: Int,
        _ out: inout MutableSpan<UInt8>
    ) -> Int {
        guard let edns = question.edns else { return offset }
        out[offset] = 0
        out.write(RecordType.opt.rawValue, at: offset + 1)
        out.write(udpSize, at: offset + 3)
        out.write(UInt32(code.rawValue >> 4) << 24 | (edns.dnssecOK ? EDNS.dnssecOKBit : 0), at: offset + 5)
        var end = offset + EDNS.recordLength
        if question.replyOptions.length > 0 { end = question.replyOptions.write(into: &out, at: end) }
        if !errors.isEmpty {
            out.copy(options, errors, to: end)
            end += errors.count
        }
        out.write(UInt16(end - offset - EDNS.recordLength), at: offset + 9)
        return end
    }

    /// The offset after `count` records from `start` on; nil: the records exceed the body.
    private static func end(of count: Int, in body: Span<UInt8>, at start: Int) -> Int? {
        var offset = start
        for _ in 0..<count {
            guard let record = RecordHeader.read(body, at: offset) else { return nil }
            offset = record.end
        }
        return offset
    }

    /// The end of the answer section, if the answer is complete without its authority section: an SOA proves that there
    /// is no record, and NSEC or NSEC3 are part of the proof for a validating client (RFC 4035 §3.1.1).
    private static func endOfAnswers(
        _ head: AnswerHead, _ body: Span<UInt8>, _ start: Int, _ question: Question
    ) -> Int? {
        guard head.answerCount > 0, let answersEnd = end(of: Int(head.answerCount), in: body, at: start) else {
            return nil
        }
        var offset = answersEnd
        for _ in 0..<head.authorityCount {
            guard let record = RecordHeader.read(body, at: offset), record.type != .soa else { return nil }
            if question.dnssecOK, record.type == .nsec || record.type == .nsec3 { return nil }
            offset = record.end
        }
        return answersEnd
    }

    /// Writes the aged TTLs over the TTLs copied from `body`; false: the records do not fill `range` exactly.
    private static func writeTTLs(
        _ age: Age, of count: Int, in body: Span<UInt8>, _ range: Range<Int>, into out: inout MutableSpan<UInt8>
    ) -> Bool {
        var offset = range.lowerBound
        for _ in 0..<count {
            guard let record = RecordHeader.read(body, at: offset), record.end <= range.upperBound else { return false }
            let ttl =
                switch age {
                case .elapsed(let seconds): record.ttl > seconds ? record.ttl - seconds : 0
                case .fixed(let seconds): seconds
                }
            out.write(ttl, at: record.ttlOffset + Header.length)
            offset = record.end
        }
        return offset == range.upperBound
    }
}
