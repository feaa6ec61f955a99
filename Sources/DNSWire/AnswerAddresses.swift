public import Base

extension Answer {
    /// The answer without the records that hold an unwanted address: A and AAAA, and HTTPS and SVCB with such an
    /// address in their hints (RFC 9460 §7.3), since browsers dial those too. An HTTPS or SVCB record that cannot be
    /// parsed is removed as well: a client's parser might be more lenient.
    ///
    /// The signatures of the altered RRsets are removed too, and AD is cleared. If the rest cannot be written, all
    /// records are dropped.
    ///
    /// - Returns: Nil if no record is removed.
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

    /// The first address in the answer section for which the condition holds; nil: it holds for no address.
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
    /// Whether the record is of a type that can hold addresses, and has an unwanted address or cannot be parsed.
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

/// The addresses of an answer, and their order.
extension Answer {
    /// The addresses that answer a question for A or AAAA, in order. Empty for other types, for an uncacheable answer,
    /// and if the records have several owners, since only one owner is the intended name.
    public var addresses: [IPAddress] {
        addressFields().compactMap { IPAddress(bytes: body.span.extracting($0)) }
    }

    /// Sorts the addresses by rank, the least first; equal ranks retain their order. Only the addresses move, so the
    /// length stays; signatures stay valid, as they do not cover the order inside an RRset (RFC 4034 §6.3).
    /// - Returns: Whether the order has changed.
    public mutating func sortAddresses(by rank: (IPAddress) -> Int) -> Bool {
        let fields = addressFields()
        let ranks = fields.map { IPAddress(bytes: body.span.extracting($0)).map(rank) ?? .max }
        let order = fields.indices.sorted { (ranks[$0], $0) < (ranks[$1], $1) }
        guard !order.elementsEqual(fields.indices) else { return false }
        let before = body
        for (field, index) in zip(fields, order) { body.replaceSubrange(field, with: before[fields[index]]) }
        // A hostile answer may have pointers of names into its addresses, which could lead anywhere now.
        let message = [UInt8](repeating: 0, count: Header.length) + body
        guard (try? StoredAnswer.check(message.span, head)) == nil else { return true }
        body = before
        return false
    }

    /// The ranges of the addresses in the body.
    private func addressFields() -> [Range<Int>] {
        guard isCacheable, let type = asked?.type, type == .a || type == .aaaa else { return [] }
        let records = recordHeaders().prefix(Int(head.answerCount)).filter { $0.type == type && $0.recordClass == .in }
        // Compression pointers count from the header on.
        let message = [UInt8](repeating: 0, count: Header.length) + body
        let owners = Set(records.map { try? Name.read(message.span, at: Header.length + $0.ownerOffset).name })
        return owners.count == 1 ? records.map { $0.dataOffset..<$0.end } : []
    }
}
