/// The question and result of a reply, read from its octets.
public struct ReplySummary: Sendable, Equatable {
    /// The range of the queried name; empty if the reply repeats no question. Then type and class are undefined.
    public let name: Range<Int>
    public let type: RecordType
    public let code: ResponseCode

    /// Whether the reply answers the question, instead of reporting a failure or refusal of the daemon.
    public var isAnswer: Bool { !name.isEmpty && code.isAnswer }

    /// - Parameter reply: A reply written by ``Reply``. Other octets give nil.
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
    public var isAnswer: Bool { self == .noError || self == .nxDomain || self == .yxDomain }
}

extension Reply {
    /// The seconds for which an HTTP cache may store a reply (RFC 8484 §5.1): the least TTL of its records, or an SOA
    /// record's MINIMUM if that is less. 0 for a reply without records, which only reports a failure, and for a
    /// malformed one.
    public static func lifetime(_ reply: Span<UInt8>) -> UInt32 {
        var least: UInt32?
        let isWhole = RecordHeader.forEach(reply) { record in
            guard record.type != .opt else { return true }
            let isSOA = record.type == .soa && record.dataLength >= 4
            let ttl = isSOA ? min(record.ttl, reply.integer32(at: record.end - 4)) : record.ttl
            least = min(least ?? ttl, ttl)
            return true
        }
        return isWhole ? least ?? 0 : 0
    }
}
