public import Base

/// DNS64: AAAA records made of A records, for clients on a network whose translator leads to IPv4 addresses (RFC 6147).
extension Answer {
    /// Whether it says that the name has no record of the type asked, in words or by a failure that says as little of other types
    /// (RFC 6147 §5.1.2): anything but NXDOMAIN, and no record of that type.
    public var lacksTheType: Bool { head.responseCode != .nxDomain && answersToTheType == 0 }

    /// Whether there are signatures in it, which a client may check.
    public var isSigned: Bool { recordHeaders().contains { $0.type == .rrsig } }

    /// The answer to a question for AAAA that a translator's prefix makes of this answer to the same question for A: its aliases,
    /// and each address under the prefix (RFC 6147 §5.1.6 and §5.1.7).
    /// - Parameters:
    ///   - absence: the answer by which there is no AAAA record: nothing lives longer than that (RFC 6147 §5.1.7).
    /// - Returns: nil if there is no address that the translator may be told of.
    public func synthesized(under prefix: NAT64Prefix, after absence: Answer) -> Answer? {
        let longest = absence.isCacheable ? absence.keep : Self.longestWithoutSOA
        var made = Made(question: body, type: .aaaa)
        for record in records() where record.section == .answer && record.recordClass == .in {
            switch record.type {
            case .cname, .dname: made.append(record, ttl: min(record.ttl, longest))
            case .a:
                guard let address = IPAddress(bytes: record.rdata.span).flatMap({ prefix.address(of: $0) }) else { continue }
                made.append(record.name, .aaaa, ttl: min(record.ttl, longest), address.octets)
                made.addresses += 1
            default: continue
            }
        }
        guard made.addresses > 0 else { return nil }
        return made.answer(of: self, keep: min(keep, longest))
    }

    /// The answer to a question for the PTR records of an address under a translator's prefix: an alias to the reverse name of the
    /// IPv4 address, and this answer, which is about that name (RFC 6147 §5.3.1).
    /// - Parameter name: the reverse name of the IPv6 address.
    public func pointing(from name: Name) -> Answer? {
        guard let nameEnd = RecordHeader.skipName(body.span, at: 0) else { return nil }
        let target = Array(body[..<nameEnd])
        var made = Made(question: name.wire + body[nameEnd...], type: .ptr)
        made.append(name, .cname, ttl: keep, target)
        for record in records() where record.section != .additional { made.append(record, ttl: record.ttl) }
        return made.answer(of: self, keep: keep)
    }

    /// What an AAAA record lives at most where no SOA says how long there is none (RFC 6147 §5.1.7), in seconds.
    private static var longestWithoutSOA: UInt32 { 600 }

    /// A message that is written record by record, with whole names, before they are compressed.
    private struct Made {
        private var body: [UInt8]
        private var head = AnswerHead(responseCode: .noError)
        var addresses = 0

        /// - Parameter question: a body that begins with the name asked.
        init(question: [UInt8], type: RecordType) {
            let nameEnd = RecordHeader.skipName(question.span, at: 0) ?? 0
            body = Array(question[..<nameEnd])
            body.append16(type.rawValue)
            body.append16(RecordClass.in.rawValue)
        }

        mutating func append(_ record: DecodedRecord, ttl: UInt32) {
            append(record.name, record.type, ttl: ttl, record.rdata, in: record.section)
        }

        mutating func append(
            _ name: Name, _ type: RecordType, ttl: UInt32, _ data: [UInt8], in section: DecodedRecord.Section = .answer
        ) {
            body += name.wire
            body.append16(type.rawValue)
            body.append16(RecordClass.in.rawValue)
            body.append32(ttl)
            body.append16(UInt16(truncatingIfNeeded: data.count))
            body += data
            if section == .answer { head.answerCount += 1 } else { head.authorityCount += 1 }
        }

        /// With the code and the extended errors of the answer that it was made of; nil if there is no room in a message.
        func answer(of source: Answer, keep: UInt32) -> Answer? {
            var made = Answer(head: head, body: body, keep: keep, isCacheable: source.isCacheable)
            made.head.responseCode = source.head.responseCode
            made.head.extendedErrorLength = source.head.extendedErrorLength
            made.body += source.body.suffix(Int(source.head.extendedErrorLength))
            return made.rewritten { _, _ in true }
        }
    }
}
