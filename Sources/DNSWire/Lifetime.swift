/// How long an upstream's answer may be kept, and whether at all: only what answers the question (RFC 2181 §5.4.1).
struct Lifetime {
    let asked: Asked
    let code: ResponseCode
    let defaultNegativeTTL: UInt32

    /// The longest chain of aliases that is followed; resolvers stop no later.
    private static let maximumAliases = 16

    /// Where the aliases (CNAME, DNAME) from the name asked lead.
    private enum Destination {
        /// To records of the type asked.
        case found
        /// To a name of which the answer section holds nothing.
        case nothing(of: Name)
        /// Nowhere: the records belong to other names, or the aliases do not end.
        case unrelated
    }

    /// Sets `keep` and `isCacheable`, and corrects the TTLs in the body that must not be passed on as sent.
    func set(on answer: inout Answer, _ records: ResponseRecords, _ message: Span<UInt8>) {
        var shown: UInt32?
        for record in records.all {
            if record.ttl > RecordHeader.maximumTTL { setTTL(0, record, &answer) }
            shown = min(shown ?? .max, record.effectiveTTL)
        }
        switch (destination(records, message), code) {
        case (.found, .noError):
            answer.keep = shown ?? 0
            answer.isCacheable = true
        case (.nothing(let name), .noError), (.nothing(let name), .nxDomain):
            guard let negativeTTL = negativeTTL(for: name, &answer, records, message) else { return }
            answer.keep = min(negativeTTL, shown ?? negativeTTL)
            answer.isCacheable = true
        default: break
        }
    }

    /// Whether a record of the type asked has the name asked as its owner by a pointer to the question, as is usual.
    private func isAnswered(_ records: ResponseRecords, _ message: Span<UInt8>) -> Bool {
        let pointerToQuestion = 0xC000 | UInt16(Header.length)
        return records.answer.contains { record in
            record.recordClass == asked.recordClass && (record.type == asked.type || asked.type == .any)
                && message.integer16(at: record.ownerOffset) == pointerToQuestion
        }
    }

    private func destination(_ records: ResponseRecords, _ message: Span<UInt8>) -> Destination {
        if isAnswered(records, message) { return .found }
        let owners = records.answer.map { (try? Name.read(message, at: $0.ownerOffset).name) ?? .root }
        var name = asked.name
        for aliases in 0...Lifetime.maximumAliases {
            var alias: Name?
            for (record, owner) in zip(records.answer, owners)
            where record.recordClass == asked.recordClass {
                if owner == name {
                    if record.type == asked.type || asked.type == .any { return .found }
                    if record.type == .cname { alias = try? Name.read(message, at: record.dataOffset).name }
                } else if record.type == .dname, alias == nil, name.isWithin(owner) {
                    alias = (try? Name.read(message, at: record.dataOffset).name).flatMap {
                        name.moved(from: owner, to: $0)
                    }
                }
            }
            guard let alias else {
                return aliases > 0 || records.answer.isEmpty ? .nothing(of: name) : .unrelated
            }
            name = alias
        }
        return .unrelated
    }

    /// How long the absence of records at `name` may be cached, in seconds; nil if the answer does not prove absence.
    /// The SOA's TTL is set to it, so that clients count down from there (RFC 2308 §3).
    private func negativeTTL(
        for name: Name, _ answer: inout Answer, _ records: ResponseRecords, _ message: Span<UInt8>
    ) -> UInt32? {
        for record in records.authority where record.type == .soa && record.recordClass == asked.recordClass {
            guard let owner = try? Name.read(message, at: record.ownerOffset).name, name.isWithin(owner) else {
                continue
            }
            let ttl = min(record.effectiveTTL, message.integer32(at: record.end - 4), Response.maximumNegativeTTL)
            setTTL(ttl, record, &answer)
            return ttl
        }
        // NS records without an SOA are a referral (RFC 2308 §2.2): they name other servers and do not prove absence.
        if code == .noError && records.authority.contains(where: { $0.type == .ns }) { return nil }
        return defaultNegativeTTL
    }

    /// Sets the TTL of a record that was read from the whole message; the body begins behind that message's header.
    private func setTTL(_ ttl: UInt32, _ record: RecordHeader, _ answer: inout Answer) {
        var body = answer.body.mutableSpan
        body.write(ttl, at: record.ttlOffset - Header.length)
    }
}

extension RecordHeader {
    /// The TTL in seconds; 0 if its high bit is set (RFC 2181 §8).
    var effectiveTTL: UInt32 { ttl > RecordHeader.maximumTTL ? 0 : ttl }
}

extension Name {
    /// The name with its end `owner` replaced by `target`, as a DNAME says (RFC 6672 §2.2); nil for `owner` itself and
    /// for a result over 255 octets.
    func moved(from owner: Name, to target: Name) -> Name? {
        let prefix = wire.count - owner.wire.count
        guard prefix > 0, prefix + target.wire.count <= Name.maximumLength else { return nil }
        return Name(canonical: wire[..<prefix] + target.wire)
    }
}
