/// Whether and how long an upstream's answer may be cached. It may only if it answers the question (RFC 2181 §5.4.1).
struct Lifetime {
    let asked: Asked
    let code: ResponseCode
    let defaultNegativeTTL: UInt32

    /// Sets `keep` and `isCacheable`, and corrects the TTLs in the body that must not be passed on as sent. Clients get
    /// no TTL by which they would cache the absence of a record longer than the daemon does.
    /// - Parameter order: The indices of the records that are passed on; nil: all are.
    func set(
        on answer: inout Answer, _ records: borrowing ResponseRecords, _ message: Span<UInt8>, _ chain: AliasChain,
        _ order: [Int]?
    ) {
        var shown: UInt32?
        for number in 0..<(order?.count ?? records.count) {
            let index = order?[number] ?? number
            let ttl = chain.ttl(of: index, records)
            if ttl != records[index].ttl { setTTL(ttl, records[index], &answer) }
            shown = min(shown ?? .max, ttl)
        }
        switch (chain.destination, code) {
        case (.found, .noError):
            answer.keep = shown ?? 0
            answer.isCacheable = true
        case (.nothing(let name), .noError), (.nothing(let name), .nxDomain):
            guard let (ttl, isProven) = negativeTTL(for: name, &answer, records, message) else { return }
            answer.keep = min(ttl, shown ?? ttl)
            answer.isCacheable = true
            guard !isProven else { return }
            for index in 0..<records.count where chain.ttl(of: index, records) > answer.keep {
                setTTL(answer.keep, records[index], &answer)
            }
        default: break
        }
    }

    /// How long the absence of records at `name` may be cached, in seconds, and whether an SOA defines it; nil: the
    /// answer does not mean absence. The SOA's TTL becomes this time, from which clients count down (RFC 2308 §3).
    private func negativeTTL(
        for name: Name, _ answer: inout Answer, _ records: borrowing ResponseRecords, _ message: Span<UInt8>
    ) -> (ttl: UInt32, isProven: Bool)? {
        for record in records.authority where record.type == .soa && record.recordClass == asked.recordClass {
            guard let owner = try? Name.read(message, at: record.ownerOffset).name, name.isWithin(owner) else {
                continue
            }
            let ttl = min(record.effectiveTTL, message.integer32(at: record.end - 4), Response.maximumNegativeTTL)
            setTTL(ttl, record, &answer)
            return (ttl, true)
        }
        // NS records without an SOA are a referral (RFC 2308 §2.2): they name other servers and do not prove absence.
        if code == .noError && records.authority.contains(where: { $0.type == .ns }) { return nil }
        return (defaultNegativeTTL, false)
    }

    /// Sets the TTL of a record that was read from the whole message, whose header the body lacks.
    private func setTTL(_ ttl: UInt32, _ record: RecordHeader, _ answer: inout Answer) {
        var body = answer.body.mutableSpan
        body.write(ttl, at: record.ttlOffset - Header.length)
    }
}

extension RecordHeader {
    /// The TTL in seconds; 0 if its high bit is set (RFC 2181 §8).
    var effectiveTTL: UInt32 { ttl > RecordHeader.maximumTTL ? 0 : ttl }
}
