extension Answer {
    /// The answer for clients without DO, made from an answer that was got with DO. Records that exist only for DO are
    /// left out (RFC 4035 §3.2.1), unless they were queried. Nil if the answer cannot be written.
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
