public import Base

extension Answer {
    /// The answer without the records that hold an unwanted address: A and AAAA, and HTTPS and SVCB with such an
    /// address in their hints (RFC 9460 §7.3), since browsers dial those too. An HTTPS or SVCB record that cannot be
    /// parsed is removed as well: a client's parser might be more lenient.
    ///
    /// The signatures of the altered RRsets are removed too, and AD is cleared. If the rest cannot be written, all
    /// records are dropped.
    ///
    /// - Returns: nil: there is no such record.
    public func without(_ isUnwanted: (IPAddress) -> Bool) -> Answer? {
        let areUnwanted = recordHeaders().map { $0.holds(isUnwanted, body.span) }
        // Nearly all answers have no such address and end here, without parsing their names.
        guard areUnwanted.contains(true) else { return nil }
        let all = records()
        var altered: Set<RecordSet> = []
        for (record, isUnwanted) in zip(all, areUnwanted) where isUnwanted {
            altered.insert(RecordSet(name: record.name, type: record.type.rawValue))
        }
        let kept = all.indices.filter { index in
            let record = all[index]
            // A signature begins with the type it covers (RFC 4034 §3.1).
            return !areUnwanted[index]
                && !(record.type == .rrsig && record.rdata.count >= 2
                    && altered.contains(RecordSet(name: record.name, type: record.rdata.span.integer16(at: 0))))
        }
        var answer = rewritten(kept) ?? rewritten([])
        answer?.head.authenticData = false
        return answer
    }

    /// The first address in the answer section for which the condition holds; nil: there is none.
    public func firstAddress(where isMeant: (IPAddress) -> Bool) -> IPAddress? {
        for header in recordHeaders().prefix(Int(head.answerCount)) where header.recordClass == .in {
            guard header.type == .a || header.type == .aaaa,
                let address = IPAddress(bytes: body.span.extracting(header.dataOffset..<header.end)), isMeant(address)
            else { continue }
            return address
        }
        return nil
    }

    /// The number of records in the answer section with the queried type.
    public var answersToTheType: Int {
        guard let asked else { return 0 }
        return recordHeaders().prefix(Int(head.answerCount)).count { $0.type == asked.type }
    }

    private struct RecordSet: Hashable {
        let name: Name
        let type: UInt16
    }
}

extension RecordHeader {
    /// Whether it is of a type that can hold addresses, and has an unwanted one or cannot be parsed.
    fileprivate func holds(_ isUnwanted: (IPAddress) -> Bool, _ message: Span<UInt8>) -> Bool {
        guard recordClass == .in else { return false }
        let data = message.extracting(dataOffset..<end)
        switch type {
        case .a, .aaaa: return IPAddress(bytes: data).map(isUnwanted) ?? true
        case .https, .svcb: return ServiceBinding(data)?.hintsHold(isUnwanted) ?? true
        default: return false
        }
    }
}
