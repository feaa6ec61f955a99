/// Validates answers that were stored outside the process: they are as hostile as a resolver's response.
public enum StoredAnswer {
    /// The question at the beginning of a stored body.
    public struct Question: Sendable, Equatable {
        /// Octets of its name, the root label included.
        public let nameLength: Int
        public let type: RecordType
    }

    /// Checks that a body is one that ``Response/read(_:id:to:type:recordClass:defaultNegativeTTL:)`` or a factory of
    /// ``Answer`` could have made: the question in class IN with its name in lower case, exactly the records that
    /// `head` counts, all of them whole, no OPT or TSIG among them, and the extended errors.
    ///
    /// - Parameter message: The body from octet 12 on; the octets before, a message's header, are ignored.
    /// - Returns: The question that it answers.
    public static func check(_ message: Span<UInt8>, _ head: AnswerHead) throws(WireError) -> Question {
        let whole = message
        guard whole.count >= Int(head.extendedErrorLength) else { throw .truncated(at: whole.count) }
        let errors = whole.count - Int(head.extendedErrorLength)..<whole.count
        guard ExtendedErrors.areValid(whole, errors) else { throw .badOption(at: errors.lowerBound) }
        let message = whole.extracting(first: errors.lowerBound)
        let nameEnd = try WireName.end(message, at: Header.length).end
        // The name is the first of the message, hence uncompressed. Its length octets, at most 63, are not letters.
        for index in Header.length..<nameEnd where message[index] &- UInt8(ascii: "A") < 26 { throw .mismatch }
        guard message.count - nameEnd >= 4 else { throw .truncated(at: nameEnd) }
        guard RecordClass(rawValue: message.integer16(at: nameEnd + 2)) == .in else { throw .mismatch }
        var offset = nameEnd + 4
        var rewritten = RewrittenFields(questionEnd: nameEnd)
        for _ in 0..<head.recordCount {
            _ = try WireName.end(message, at: offset, avoiding: rewritten)
            guard let record = RecordHeader.read(message, at: offset) else { throw .truncated(at: offset) }
            guard record.type != .opt, record.type != .tsig else { throw .badOption(at: offset) }
            guard record.ttl <= RecordHeader.maximumTTL else { throw .badData(at: record.ttlOffset) }
            rewritten.records.append(record)
            try record.checkData(message, avoiding: rewritten)
            offset = record.end
        }
        guard offset == message.count else { throw .trailingBytes(at: offset) }
        return Question(
            nameLength: nameEnd - Header.length, type: RecordType(rawValue: message.integer16(at: nameEnd)))
    }
}
