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
        // Nearly all answers have no such address and end here, without parsing their names.
        let mayHold = recordHeaders().contains { header in
            header.holdsAddresses && body.span.holds(isUnwanted, in: header)
        }
        guard mayHold else { return nil }
        let all = records()
        var altered: Set<RecordSet> = []
        let areUnwanted = all.map { record in
            RecordHeader.holdsAddresses(record.type, record.recordClass)
                && record.rdata.span.holds(isUnwanted, of: record.type)
        }
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
        let message = body.span
        guard let nameEnd = RecordHeader.skipName(message, at: 0), message.count >= nameEnd + 2 else { return 0 }
        let asked = RecordType(rawValue: message.integer16(at: nameEnd))
        return recordHeaders().prefix(Int(head.answerCount)).count { $0.type == asked }
    }

    private struct RecordSet: Hashable {
        let name: Name
        let type: UInt16
    }
}

extension RecordHeader {
    fileprivate var holdsAddresses: Bool { Self.holdsAddresses(type, recordClass) }

    fileprivate static func holdsAddresses(_ type: RecordType, _ recordClass: RecordClass) -> Bool {
        recordClass == .in && (type == .a || type == .aaaa || type == .https || type == .svcb)
    }
}

extension Span where Element == UInt8 {
    fileprivate func holds(_ isUnwanted: (IPAddress) -> Bool, in header: RecordHeader) -> Bool {
        extracting(header.dataOffset..<header.end).holds(isUnwanted, of: header.type)
    }

    /// Whether RDATA of a type that can hold addresses has an unwanted one, or cannot be parsed.
    fileprivate func holds(_ isUnwanted: (IPAddress) -> Bool, of type: RecordType) -> Bool {
        switch type {
        case .a, .aaaa: IPAddress(bytes: self).map(isUnwanted) ?? true
        default: ServiceBinding(self)?.hintsHold(isUnwanted) ?? true
        }
    }
}
