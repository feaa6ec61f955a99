import Base

/// Parses the response of an upstream resolver, which is hostile until validated.
public enum Response {
    /// The longest time for which a negative answer is cached, in seconds (RFC 2308 §5: one to three hours work well).
    public static let maximumNegativeTTL: UInt32 = 10800

    public struct Reply: Sendable, Equatable {
        public var answer: Answer
        /// TC: the question must be repeated over TCP. The answer then has no records, since a part of an RRset must
        /// not be used (RFC 2181 §9).
        public var truncated = false
        /// The whole code, with the upper bits from the OPT record.
        public var responseCode: ResponseCode
        /// How long the server keeps an idle connection open, in tenths of a second (RFC 7828 §3.1); nil: the response
        /// has no such option.
        public var keepAlive: UInt16?
    }

    /// The ID of a message; nil: the message has no whole header.
    public static func id(of message: Span<UInt8>) -> UInt16? {
        message.count < Header.length ? nil : message.integer16(at: 0)
    }

    /// Whether a parsed response repeats the question of `query` octet for octet, with the case of its letters; nil if
    /// the response has no question.
    public static func repeatsQuestion(_ message: Span<UInt8>, of query: Span<UInt8>) -> Bool? {
        guard message.count > Header.length, message.integer16(at: 4) == 1 else { return nil }
        guard let end = RecordHeader.skipName(query, at: Header.length), end <= message.count else { return false }
        return isSame(message, query, Header.length..<end)
    }

    /// Validates a whole message and turns it into an answer.
    ///
    /// - Removed: the additional section, except extended errors (RFC 8914), up to ``ExtendedErrors/maximumCount``;
    ///   records of other names, see ``AliasChain``, which also sorts aliases; octets after the last record, which
    ///   other resolvers ignore as well.
    /// - More than ``AliasChain/maximumAliases`` aliases become SERVFAIL with an extended error.
    /// - An answer too long for the smallest datagram has its names compressed, if its server has not done so.
    /// - Letters that could repeat a query's random spelling are put in lower case, see ``RepeatedLabels``.
    /// - A TTL with its high bit set counts as 0 (RFC 2181 §8). A CNAME made of a DNAME has its TTL instead of 0.
    /// - `keep` is the least TTL. For NXDOMAIN and NODATA it is at most the SOA's TTL and MINIMUM and
    ///   ``maximumNegativeTTL`` (RFC 2308 §5), or `defaultNegativeTTL` without an SOA.
    /// - A response that does not answer the question is not cached: other response codes, records of unrelated names,
    ///   referrals, alias loops.
    /// - FORMERR, SERVFAIL, NOTIMP and REFUSED may come as a bare header. Servers without EDNS may leave the query's
    ///   record counts in this header.
    public static func read(
        _ message: Span<UInt8>, id: UInt16, to name: Name, type: RecordType, recordClass: RecordClass = .in,
        defaultNegativeTTL: UInt32
    ) throws(WireError) -> Reply {
        guard message.count >= Header.length else { throw .truncated(at: message.count) }
        let flags = message.integer16(at: 2)
        guard flags & Header.response != 0, flags & Header.opcode == 0, message.integer16(at: 0) == id else {
            throw .mismatch
        }
        let code = ResponseCode(rawValue: flags & Header.responseCode)
        let asked = Asked(name: name, type: type, recordClass: recordClass)
        if isBareRefusal(message, code) {
            return Reply(answer: asked.failure(code), responseCode: code)
        }
        try asked.check(message)
        if flags & Header.truncated != 0 {
            return Reply(answer: asked.failure(code), truncated: true, responseCode: code)
        }
        let lifetime = Lifetime(asked: asked, code: code, defaultNegativeTTL: defaultNegativeTTL)
        let records = try ResponseRecords(message, to: name)
        guard !records.repeatedLabels.isEmpty else { return try reply(message, records, lifetime) }
        // Parsed again, since pointers into a changed label may now lead elsewhere. Only an attacker's message has such
        // pointers, and one more parse is enough.
        let lowerCase = records.repeatedLabels.inLowerCase(message)
        let reread = try ResponseRecords(lowerCase.span, to: name)
        guard reread.repeatedLabels.isEmpty else { throw .badPointer(at: Header.length) }
        return try reply(lowerCase.span, reread, lifetime)
    }

    private static func reply(
        _ message: Span<UInt8>, _ records: borrowing ResponseRecords, _ lifetime: Lifetime
    ) throws(WireError) -> Reply {
        let (asked, code) = (lifetime.asked, lifetime.code)
        let wholeCode = ResponseCode(rawValue: records.upperCodeBits << 4 | code.rawValue)
        guard code == wholeCode else {
            var failure = asked.failure(wholeCode)
            failure.append(records.extendedErrors)
            return Reply(answer: failure, responseCode: wholeCode, keepAlive: records.keepAlive)
        }
        let isAuthentic = message.integer16(at: 2) & Header.authenticData != 0
        let chain = AliasChain(asked, records, message)
        if case .tooFar = chain.destination {
            var failure = asked.failure(.servFail)
            failure.add(.other, text: "more than \(AliasChain.maximumAliases) aliases, one behind the other")
            return Reply(answer: failure, responseCode: .servFail, keepAlive: records.keepAlive)
        }
        var answer = records.answer(message, asked, code, authenticData: isAuthentic)
        let order = chain.order(records, message)
        lifetime.set(on: &answer, records, message, chain, order)
        if let order {
            guard let rewritten = answer.rewritten(order) else { throw .badPointer(at: Header.length) }
            answer = rewritten
        } else if answer.body.count > longestUnseen, records.haveNamesInFull(message),
            let rewritten = answer.rewritten(), rewritten.body.count < answer.body.count
        {
            answer = rewritten
        }
        answer.append(records.extendedErrors)
        return Reply(answer: answer, responseCode: code, keepAlive: records.keepAlive)
    }

    /// The longest body that fits the smallest datagram; longer bodies are compressed again.
    private static let longestUnseen = DNSWire.Reply.minimumUDPSize - Header.length

    private static func isBareRefusal(_ message: Span<UInt8>, _ code: ResponseCode) -> Bool {
        let isEmpty = message.integer16(at: 4) == 0 && message.integer16(at: 6) == 0 && message.integer16(at: 8) == 0
        return switch code {
        case .formErr, .notImp: isEmpty || message.count == Header.length
        case .servFail, .refused: isEmpty
        default: false
        }
    }
}

/// The question that a response must repeat.
struct Asked {
    let name: Name
    let type: RecordType
    let recordClass: RecordClass

    /// Throws unless the question section is the asked one, in any case of letters. The question is the first name of a
    /// message, so a compressed one cannot match either.
    func check(_ message: Span<UInt8>) throws(WireError) {
        guard message.integer16(at: 4) == 1 else { throw .mismatch }
        let end = Header.length + name.wire.count
        guard message.count >= end + 4 else { throw .truncated(at: message.count) }
        guard name.contains(message.extracting(Header.length..<end)) else { throw .mismatch }
        guard message.integer16(at: end) == type.rawValue, message.integer16(at: end + 2) == recordClass.rawValue else {
            throw .mismatch
        }
    }

    func failure(_ code: ResponseCode) -> Answer { .failure(name, type: type, recordClass: recordClass, code) }
}

/// The records of a response, all validated; without those of the additional section.
struct ResponseRecords: ~Copyable {
    private(set) var answerCount = 0
    private(set) var extendedErrors = ExtendedErrors()
    private(set) var repeatedLabels = RepeatedLabels()
    private(set) var upperCodeBits: UInt16 = 0
    private(set) var keepAlive: UInt16?
    /// The end of the last record of the authority section.
    private var retainedEnd: Int
    private var rewritten: RewrittenFields
    /// The first two octets of the last owner name.
    private var pointer: UInt16 = 0
    /// The number of labels and pointers read so far.
    private var steps = 0

    /// The most labels and pointers that are read of a message. The longest messages of servers have some ten thousand;
    /// a message of nothing else has two million.
    static let maximumSteps = 32_768

    /// The shortest record: the root as its owner name, and no data.
    private static let shortestRecord = 1 + RecordHeader.fixedLength

    /// - Parameter name: The queried name, with which the question begins.
    init(_ message: Span<UInt8>, to name: Name) throws(WireError) {
        let questionNameEnd = Header.length + name.wire.count
        var offset = questionNameEnd + 4
        retainedEnd = offset
        let (answers, authorities) = (Int(message.integer16(at: 6)), Int(message.integer16(at: 8)))
        let additionals = Int(message.integer16(at: 10))
        let most = min(answers + authorities + additionals, (message.count - offset) / Self.shortestRecord)
        rewritten = RewrittenFields(questionEnd: questionNameEnd, room: most)
        for _ in 0..<answers { _ = try record(message, &offset) }
        for _ in 0..<authorities { _ = try record(message, &offset) }
        answerCount = answers
        retainedEnd = offset
        var hasOPT = false
        for _ in 0..<additionals {
            let owner = offset
            let record = try record(message, &offset, isAdditional: true)
            if record.type == .opt {
                guard !hasOPT, record.nameEnd == owner + 1 else { throw .badOption(at: owner) }
                hasOPT = true
                upperCodeBits = UInt16(truncatingIfNeeded: record.ttl >> 24)
                try readOptions(message, record)
            }
            // The additional section is not passed on.
            rewritten.records.removeLast()
        }
    }

    /// Whether there are uncompressed names that could be pointers.
    func haveNamesInFull(_ message: Span<UInt8>) -> Bool {
        all.contains { record in
            1...Name.maximumLabelLength ~= Int(message[record.ownerOffset])
                || DataLayout(record.type)?.isCompressed ?? false
        }
    }

    /// Whether the owner of each record in the answer section is a pointer to the question, as is usual.
    func belongToTheQuestion(_ message: Span<UInt8>) -> Bool {
        for index in 0..<answerCount where message.integer16(at: self[index].ownerOffset) != Answer.questionPointer {
            return false
        }
        return true
    }

    /// The records of answer and authority section, in order.
    var all: [RecordHeader] { rewritten.records }
    var count: Int { rewritten.records.count }
    /// One of the records of ``all``. Access to the whole array would retain a reference.
    subscript(index: Int) -> RecordHeader { rewritten.records[index] }
    var authority: ArraySlice<RecordHeader> { all[answerCount...] }

    private mutating func record(
        _ message: Span<UInt8>, _ offset: inout Int, isAdditional: Bool = false
    ) throws(WireError) -> RecordHeader {
        try readOwner(message, offset)
        guard let record = RecordHeader.read(message, at: offset) else { throw .truncated(at: offset) }
        guard isAdditional || record.type != .opt && record.type != .tsig else { throw .badOption(at: offset) }
        rewritten.records.append(record)
        steps += try record.checkData(message, avoiding: rewritten)
        guard steps <= Self.maximumSteps else { throw .tooManyLabels }
        repeatedLabels.look(at: record, message)
        offset = record.end
        return record
    }

    private mutating func readOwner(_ message: Span<UInt8>, _ offset: Int) throws(WireError) {
        let octets = message.count - offset < 2 ? 0 : message.integer16(at: offset)
        // The owner is the question's name, or the owner of the record before, which has been read.
        if octets == Answer.questionPointer || octets >= 0xC000 && octets == pointer { return }
        steps += try WireName.end(message, at: offset, avoiding: rewritten).steps
        pointer = octets
    }

    private mutating func readOptions(_ message: Span<UInt8>, _ record: RecordHeader) throws(WireError) {
        var offset = record.dataOffset
        while offset < record.end {
            guard let (code, data) = message.option(at: offset, before: record.end) else {
                throw .badOption(at: offset)
            }
            switch code {
            case EDNS.extendedErrorOption: extendedErrors.append(message, data, question: Header.length)
            case EDNS.keepAliveOption where data.count == 2: keepAlive = message.integer16(at: data.lowerBound)
            default: break
            }
            offset = data.upperBound
        }
    }

    /// The answer, whose lifetime is not set yet.
    func answer(_ message: Span<UInt8>, _ asked: Asked, _ code: ResponseCode, authenticData: Bool) -> Answer {
        var body = message.bytes(in: Header.length..<retainedEnd)
        var octets = body.mutableSpan
        octets.copy(asked.name.wire.span, asked.name.wire.indices, to: 0)
        let head = AnswerHead(
            responseCode: code, authenticData: authenticData, answerCount: UInt16(answerCount),
            authorityCount: UInt16(count - answerCount))
        return Answer(head: head, body: body, keep: 0, isCacheable: false)
    }
}
