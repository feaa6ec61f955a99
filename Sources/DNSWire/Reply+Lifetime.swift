internal import Base

extension Reply {
    /// For how many seconds an HTTP cache may keep a reply (RFC 8484 §5.1): the least TTL of its records, and in place of a SOA
    /// record's its last number if that is less. 0 for a reply without records, which says only what failed, and for one that is
    /// malformed.
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
