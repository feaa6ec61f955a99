import DNSWire

/// Records and answers in wire form, put together by hand.
enum Wire {
    /// The name that is asked.
    static let asked = Name("www.example.com")!
    /// A pointer to it, at octet 12.
    static let pointer: [UInt8] = [0xC0, 0x0C]

    static func record(_ owner: [UInt8], _ type: RecordType, _ data: [UInt8], ttl: UInt8 = 60) -> [UInt8] {
        owner + [UInt8(type.rawValue >> 8), UInt8(type.rawValue & 0xFF), 0, 1, 0, 0, 0, ttl]
            + [UInt8(data.count >> 8), UInt8(data.count & 0xFF)] + data
    }

    /// An answer that may be cached, and that the resolver has validated.
    static func answer(
        _ type: RecordType, _ answers: [[UInt8]], authority: [[UInt8]] = [], additional: [[UInt8]] = []
    ) -> Answer {
        let head = AnswerHead(
            responseCode: .noError, authenticData: true, answerCount: UInt16(answers.count),
            authorityCount: UInt16(authority.count), additionalCount: UInt16(additional.count))
        let question = asked.wire + [UInt8(type.rawValue >> 8), UInt8(type.rawValue & 0xFF), 0, 1]
        return Answer(
            head: head, body: question + (answers + authority + additional).flatMap { $0 }, keep: 60, isCacheable: true)
    }

    static func texts(_ answer: Answer) -> [String] { answer.records().map { "\($0.section) \($0)" } }
}
