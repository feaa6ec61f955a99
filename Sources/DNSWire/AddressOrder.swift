public import Base

/// The addresses of an answer, and their order.
extension Answer {
    /// The addresses that answer a question for A or AAAA, in order. None for other types, for an uncacheable answer,
    /// and if the records have several owners, of which only one is the intended name.
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
        for (field, place) in zip(fields, order) { body.replaceSubrange(field, with: before[fields[place]]) }
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
