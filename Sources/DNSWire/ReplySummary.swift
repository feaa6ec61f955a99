/// The question and result of a reply, read from its octets.
public struct ReplySummary: Sendable, Equatable {
    /// The range of the queried name; empty: the reply repeats no question. Type and class are then undefined.
    public let name: Range<Int>
    public let type: RecordType
    public let code: ResponseCode

    /// Whether it answers the question, instead of reporting a failure or refusal of the daemon.
    public var isAnswer: Bool { !name.isEmpty && code.isAnswer }

    /// - Parameter reply: Written by ``Reply``; nil: it is not.
    public init?(_ reply: Span<UInt8>) {
        guard reply.count >= Header.length, let nameEnd = Question.questionNameEnd(reply) else { return nil }
        name = Question.nameOffset..<nameEnd
        type = RecordType(rawValue: name.isEmpty ? 0 : reply.integer16(at: nameEnd))
        let questionEnd = name.isEmpty ? nameEnd : nameEnd + 4
        var code = reply.integer16(at: 2) & Header.responseCode
        // Only replies without records have a code with upper bits in OPT, which then follows the question.
        if reply.integer32(at: 6) == 0, reply.count - questionEnd >= EDNS.recordLength {
            code |= UInt16(reply[questionEnd + 5]) << 4
        }
        self.code = ResponseCode(rawValue: code)
    }
}

extension ResponseCode {
    /// Whether this code answers the question, instead of reporting a failure or refusal of the resolver.
    public var isAnswer: Bool { self == .noError || self == .nxDomain }
}
