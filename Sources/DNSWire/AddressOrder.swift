public import Base

/// The addresses of an answer, and the order in which it gives them.
extension Answer {
    /// The addresses with which a question for A or AAAA is answered, in order. None for other types, for an answer that
    /// is not cacheable, and where the records have several owners, of which only one is the name that was meant.
    public var addresses: [IPAddress] {
        addressFields().compactMap { IPAddress(bytes: body.span.extracting($0)) }
    }

    /// Puts the addresses in the order of their ranks, the least first; where ranks are equal they stay in order. Only the
    /// addresses change places, so the length stays; signatures stay valid, as the order inside a record set means
    /// nothing to them (RFC 4034 §6.3).
    /// - Returns: whether anything has changed.
    public mutating func sortAddresses(by rank: (IPAddress) -> Int) -> Bool {
        let fields = addressFields()
        let ranks = fields.map { IPAddress(bytes: body.span.extracting($0)).map(rank) ?? .max }
        let order = fields.indices.sorted { (ranks[$0], $0) < (ranks[$1], $1) }
        guard !order.elementsEqual(fields.indices) else { return false }
        let before = body
        for (field, place) in zip(fields, order) { body.replaceSubrange(field, with: before[fields[place]]) }
        // A hostile answer may have pointers of names into its addresses, which could lead anywhere now.
        let message = [UInt8](repeating: 0, count: Header.length) + body
        guard (try? StoredAnswer.check(message.span, head)) == nil else { return true }
        body = before
        return false
    }

    /// Where the addresses are in the body.
    private func addressFields() -> [Range<Int>] {
        guard isCacheable, let nameEnd = RecordHeader.skipName(body.span, at: 0), body.count >= nameEnd + 2 else {
            return []
        }
        let type = RecordType(rawValue: body.span.integer16(at: nameEnd))
        guard type == .a || type == .aaaa else { return [] }
        let records = recordHeaders().prefix(Int(head.answerCount)).filter { $0.type == type && $0.recordClass == .in }
        // Compression pointers count from the header on.
        let message = [UInt8](repeating: 0, count: Header.length) + body
        let owners = Set(records.map { try? Name.read(message.span, at: Header.length + $0.ownerOffset).name })
        return owners.count == 1 ? records.map { $0.dataOffset..<$0.end } : []
    }
}
