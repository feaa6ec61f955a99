public import Base

extension Answer {
    /// The answer without the records that hold an unwanted address: A and AAAA, and HTTPS and SVCB with such an
    /// address in their hints (RFC 9460 §7.3), since browsers dial those too. An HTTPS or SVCB record that cannot be
    /// parsed is removed as well, because a client's parser might be more lenient.
    ///
    /// The signatures of the altered record sets are removed too, and AD is cleared. Names are written without
    /// compression, since the name a pointer leads to may be removed. If the result is then too long for a message, the
    /// authority and additional sections are dropped, and if need be all records.
    ///
    /// - Returns: nil if there is no such record.
    public func without(_ isUnwanted: (IPAddress) -> Bool) -> Answer? {
        // Nearly all answers hold no such address and end here, without their names being parsed.
        let mayHold = recordHeaders().contains { header in
            header.holdsAddresses && body.span.holds(isUnwanted, in: header)
        }
        guard mayHold else { return nil }
        let all = records()
        var altered: Set<RecordSet> = []
        var kept = all.filter { record in
            guard RecordHeader.holdsAddresses(record.type, record.recordClass),
                record.rdata.span.holds(isUnwanted, of: record.type)
            else { return true }
            altered.insert(RecordSet(name: record.name, type: record.type.rawValue))
            return false
        }
        kept.removeAll { record in
            guard record.type == .rrsig, record.rdata.count >= 2 else { return false }
            // A signature begins with the type it covers (RFC 4034 §3.1).
            return altered.contains(RecordSet(name: record.name, type: record.rdata.span.integer16(at: 0)))
        }
        return rebuilt(of: kept) ?? rebuilt(of: kept.filter { $0.section == .answer }) ?? rebuilt(of: [])
    }

    /// How many records of the answer section have the type that was asked for.
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

    /// The answer with these records in place of its own; nil if they are too long for a message.
    private func rebuilt(of records: [DecodedRecord]) -> Answer? {
        guard let nameEnd = RecordHeader.skipName(body.span, at: 0) else { return nil }
        let asked = Name(wire: body.span, at: 0, length: nameEnd)
        // The extended errors stand behind the records and are kept.
        let extendedErrors = body.suffix(Int(head.extendedErrorLength))
        var answer = self
        answer.body = Array(body[..<(nameEnd + 4)])
        (answer.head.answerCount, answer.head.authorityCount, answer.head.additionalCount) = (0, 0, 0)
        answer.head.authenticData = false
        for record in records {
            if record.name == asked {
                // A compression pointer to the question's name: the name right behind the header.
                answer.body.append16(Answer.questionPointer)
            } else {
                answer.body += record.name.wire
            }
            answer.body.append16(record.type.rawValue)
            answer.body.append16(record.recordClass.rawValue)
            answer.body.append32(record.ttl)
            answer.body.append16(UInt16(truncatingIfNeeded: record.rdata.count))
            answer.body += record.rdata
            guard answer.body.count + extendedErrors.count <= Answer.longestBody, record.rdata.count <= Int(UInt16.max)
            else { return nil }
            switch record.section {
            case .answer: answer.head.answerCount += 1
            case .authority: answer.head.authorityCount += 1
            case .additional: answer.head.additionalCount += 1
            }
        }
        answer.body += extendedErrors
        return answer
    }

    /// The longest body that leaves room in a message for its header and our OPT.
    private static let longestBody = Int(UInt16.max) - Reply.minimumUDPSize
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
        default: hintsHold(isUnwanted)
        }
    }

    /// The same for SVCB: SvcPriority, TargetName without compression, then parameters of key, length and value (RFC
    /// 9460 §2.2).
    private func hintsHold(_ isUnwanted: (IPAddress) -> Bool) -> Bool {
        var offset = 2
        while offset < count, self[offset] != 0 { offset += Int(self[offset]) + 1 }
        offset += 1
        guard offset <= count else { return true }
        while offset < count {
            guard count - offset >= 4 else { return true }
            let (key, length) = (integer16(at: offset), Int(integer16(at: offset + 2)))
            offset += 4
            guard length <= count - offset else { return true }
            let size = key == Self.ipv4Hint ? 4 : key == Self.ipv6Hint ? 16 : 0
            if size > 0 {
                guard length % size == 0 else { return true }
                for start in stride(from: offset, to: offset + length, by: size) {
                    if IPAddress(bytes: extracting(start..<start + size)).map(isUnwanted) ?? true { return true }
                }
            }
            offset += length
        }
        return false
    }

    /// The keys `ipv4hint` and `ipv6hint` (RFC 9460 §14.3.2).
    private static var ipv4Hint: UInt16 { 4 }
    private static var ipv6Hint: UInt16 { 6 }
}
