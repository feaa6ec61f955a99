extension Answer {
    /// The answer for clients that did not set DO, of one that was got with it: without the records that are there only
    /// for DO (RFC 4035 §3.2.1), unless they were asked for. Nil if it cannot be written.
    /// - Parameter type: the type asked.
    public func withoutSignatures(_ type: RecordType) -> Answer? {
        let records = recordHeaders()
        let kept = records.indices.filter { !records[$0].type.isForValidators || records[$0].type == type }
        return kept.count == records.count ? self : rewritten(kept)
    }
}

extension RecordType {
    /// Whether such records come only with DO, unless they are asked for.
    fileprivate var isForValidators: Bool { self == .rrsig || self == .nsec || self == .nsec3 }
}
