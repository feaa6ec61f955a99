/// A record of an answer, for people: logs, `query`, tests.
public struct DecodedRecord: Hashable, Sendable {
    public enum Section: Sendable { case answer, authority, additional }

    public let name: Name
    public let type: RecordType
    public let recordClass: RecordClass
    /// In seconds.
    public let ttl: UInt32
    public let section: Section
    /// RDATA with its names uncompressed, in the types that RFC 1035 and RFC 3597 §4 allow to be compressed.
    public let rdata: [UInt8]
}

extension Answer {
    /// The records in order, up to the first that cannot be read (an answer that was read or made here has none).
    public func records() -> [DecodedRecord] {
        // Compression pointers count from the header on.
        let message = [UInt8](repeating: 0, count: Header.length) + body
        let bytes = message.span
        guard let questionEnd = RecordHeader.skipName(bytes, at: Header.length) else { return [] }
        var offset = questionEnd + 4
        var records: [DecodedRecord] = []
        let sections: [(DecodedRecord.Section, UInt16)] = [
            (.answer, head.answerCount), (.authority, head.authorityCount), (.additional, head.additionalCount),
        ]
        for (section, count) in sections {
            for _ in 0..<count {
                guard let record = RecordHeader.read(bytes, at: offset),
                    let name = try? Name.read(bytes, at: offset).name, let data = try? record.uncompressedData(bytes)
                else { return records }
                records.append(
                    DecodedRecord(
                        name: name, type: record.type, recordClass: record.recordClass, ttl: record.ttl,
                        section: section, rdata: data))
                offset = record.end
            }
        }
        return records
    }
}

extension RecordHeader {
    fileprivate func uncompressedData(_ message: Span<UInt8>) throws(WireError) -> [UInt8] {
        guard let layout = DataLayout(type) else { return message.bytes(in: dataOffset..<end) }
        try checkData(message)
        var offset = firstName(layout, message) ?? end
        var data = message.bytes(in: dataOffset..<offset)
        for _ in 0..<layout.names {
            let (name, next) = try Name.read(message, at: offset)
            data += name.wire
            offset = next
        }
        return data + message.bytes(in: offset..<end)
    }
}
