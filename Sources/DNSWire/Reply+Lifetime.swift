internal import Base

extension Reply {
    /// For how many seconds an HTTP cache may keep a reply (RFC 8484 §5.1): the least TTL of its records, and in place of a SOA
    /// record's its last number if that is less. 0 for a reply without records, which says only what failed, and for one that is
    /// malformed.
    public static func lifetime(_ reply: Span<UInt8>) -> UInt32 {
        guard reply.count >= Header.length else { return 0 }
        var offset = Header.length
        for _ in 0..<reply.integer16(at: 4) {
            guard let end = RecordHeader.skipName(reply, at: offset), reply.count - end >= 4 else { return 0 }
            offset = end + 4
        }
        var least: UInt32?
        let count = Int(reply.integer16(at: 6)) + Int(reply.integer16(at: 8)) + Int(reply.integer16(at: 10))
        for _ in 0..<count {
            guard let record = RecordHeader.read(reply, at: offset) else { return 0 }
            offset = record.end
            guard record.type != .opt else { continue }
            let isSOA = record.type == .soa && record.dataLength >= 4
            let ttl = isSOA ? min(record.ttl, reply.integer32(at: record.end - 4)) : record.ttl
            least = min(least ?? ttl, ttl)
        }
        return least ?? 0
    }
}
