/// A record of an answer, for people: logs, `query`, tests.
public struct DecodedRecord: Hashable, Sendable {
    public enum Section: Sendable { case answer, authority, additional }

    public let name: Name
    public let type: RecordType
    public let recordClass: RecordClass
    /// The TTL in seconds.
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
        var records: [DecodedRecord] = []
        for (index, record) in recordHeaders(bytes, from: questionEnd + 4).enumerated() {
            guard let name = try? Name.read(bytes, at: record.ownerOffset).name,
                let data = try? record.uncompressedData(bytes)
            else { break }
            records.append(
                DecodedRecord(
                    name: name, type: record.type, recordClass: record.recordClass, ttl: record.ttl,
                    section: head.section(of: index), rdata: data))
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
