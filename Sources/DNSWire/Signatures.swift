extension Answer {
    /// The answer for clients without DO, from one that was got with DO: without the records that exist only for DO
    /// (RFC 4035 §3.2.1), unless they were queried. Nil: it cannot be written.
    /// - Parameter type: The queried type.
    public func withoutSignatures(_ type: RecordType) -> Answer? {
        let records = recordHeaders()
        let kept = records.indices.filter { !records[$0].type.isForValidators || records[$0].type == type }
        return kept.count == records.count ? self : rewritten(kept)
    }
}

extension RecordType {
    /// Whether such records come only with DO, unless they are queried.
    fileprivate var isForValidators: Bool { self == .rrsig || self == .nsec || self == .nsec3 }
}
