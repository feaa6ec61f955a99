import Base

/// A message that is written record by record with uncompressed names, before they are compressed.
struct ComposedMessage {
    private var body: [UInt8]
    private var head = AnswerHead(responseCode: .noError)
    /// The octets of the records after compression, if only the first use of each owner is written in full.
    private var compressed = 0
    private var owners: Set<Name> = []

    /// - Parameter question: A body that begins with the queried name.
    init(question: [UInt8], type: RecordType) {
        let nameEnd = RecordHeader.skipName(question.span, at: 0) ?? 0
        body = Array(question[..<nameEnd])
        body.append16(type.rawValue)
        body.append16(RecordClass.in.rawValue)
    }

    mutating func append(_ record: DecodedRecord, ttl: UInt32) {
        append(record.name, record.type, ttl: ttl, record.rdata, in: record.section)
    }

    mutating func append(
        _ name: Name, _ type: RecordType, ttl: UInt32, _ data: [UInt8], in section: DecodedRecord.Section = .answer
    ) {
        compressed += 12 + data.count + (owners.insert(name).inserted ? name.wire.count : 0)
        body += name.wire
        body.append16(type.rawValue)
        body.append16(RecordClass.in.rawValue)
        body.append32(ttl)
        body.append16(UInt16(truncatingIfNeeded: data.count))
        body += data
        if section == .answer { head.answerCount += 1 } else { head.authorityCount += 1 }
    }

    /// Whether there is room for one more record with so many octets of data, of an owner that has a record.
    func hasRoom(for octets: Int) -> Bool { Name.maximumLength + 4 + compressed + 12 + octets <= Answer.longestBody }

    /// The message with the code and extended errors of its source answer; nil: the message is too long.
    func answer(of source: Answer, keep: UInt32) -> Answer? {
        var made = Answer(head: head, body: body, keep: keep, isCacheable: source.isCacheable)
        made.head.responseCode = source.head.responseCode
        made.head.extendedErrorLength = source.head.extendedErrorLength
        made.body += source.body.suffix(Int(source.head.extendedErrorLength))
        return made.rewritten()
    }
}
