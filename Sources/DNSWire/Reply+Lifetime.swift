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
