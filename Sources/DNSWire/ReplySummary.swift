/// What a reply is to and how it went, read from its octets.
public struct ReplySummary: Sendable, Equatable {
    /// Where the name is that was asked; empty if the reply repeats no question. Type and class mean nothing then.
    public let name: Range<Int>
    public let type: RecordType
    public let code: ResponseCode

    /// Whether it answers the question, rather than say that the daemon could not or would not.
    public var isAnswer: Bool { !name.isEmpty && code.isAnswer }

    /// - Parameter reply: written by ``Reply``; nil if it is not.
    public init?(_ reply: Span<UInt8>) {
        guard reply.count >= Header.length, let nameEnd = Question.questionNameEnd(reply) else { return nil }
        name = Question.nameOffset..<nameEnd
        type = RecordType(rawValue: name.isEmpty ? 0 : reply.integer16(at: nameEnd))
        let questionEnd = name.isEmpty ? nameEnd : nameEnd + 4
        var code = reply.integer16(at: 2) & Header.responseCode
        // Only replies without records have a code that needs the upper bits of OPT, which then follows the question.
        if reply.integer32(at: 6) == 0, reply.count - questionEnd >= EDNS.recordLength {
            code |= UInt16(reply[questionEnd + 5]) << 4
        }
        self.code = ResponseCode(rawValue: code)
    }
}

extension ResponseCode {
    /// Whether this code answers the question, rather than say that the resolver could not or would not.
    public var isAnswer: Bool { self == .noError || self == .nxDomain }
}
