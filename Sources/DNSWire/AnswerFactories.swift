public import Base

/// Answers made by the daemon itself, all in class IN, with records owned by the queried name.
extension Answer {
    /// A compression pointer to the question's name, which is right after the header.
    static let questionPointer: UInt16 = 0xC00C

    /// A synthetic SOA's MNAME.
    private static let authorityServer = Name("httpdnsd.invalid")!

    /// A synthetic SOA's RDATA before MINIMUM: MNAME `httpdnsd.invalid.`, RNAME `nobody.invalid.` (RFC 2606 §2: no
    /// zone can have these), serial 1, refresh 3600, retry 600, expire 86400.
    private static let authorityData: [UInt8] = {
        var data = Answer.authorityServer.wire + Name("nobody.invalid")!.wire
        for field: UInt32 in [1, 3600, 600, 86400] { data.append32(field) }
        return data
    }()

    /// The addresses of `type`'s family in the given order, without those of the other family.
    public static func addresses(_ name: Name, type: RecordType, _ addresses: [IPAddress], ttl: UInt32) -> Answer {
        let ttl = min(ttl, RecordHeader.maximumTTL)
        let dataLength = type == .a ? 4 : 16
        var answer = Answer(
            name, type: type, .noError, keep: ttl, isCacheable: true,
            room: addresses.count * (recordHeaderLength + dataLength))
        for address in addresses where address.isIPv4 == (type == .a) && answer.head.answerCount < UInt16.max {
            answer.appendRecordHeader(type, ttl: ttl, dataLength: dataLength)
            address.append(to: &answer.body)
            answer.head.answerCount += 1
        }
        return answer
    }

    /// SVCB records with the given data.
    public static func services(_ name: Name, _ records: [[UInt8]], ttl: UInt32) -> Answer {
        Answer(name, type: .svcb, .svcb, records, ttl: ttl)
    }

    /// The targets of a reverse name (RFC 1035 §3.5), or of an alias.
    /// - Parameter type: PTR or CNAME.
    public static func pointers(
        _ name: Name, type: RecordType = .ptr, _ targets: [Name], ttl: UInt32
    ) -> Answer {
        Answer(name, type: type, type, targets.map(\.wire), ttl: ttl)
    }

    /// The name exists and has no such record (RFC 2308 §2.2): NOERROR with a synthetic SOA.
    public static func noData(
        _ name: Name, type: RecordType, negativeTTL: UInt32, extendedError: ExtendedError? = nil
    ) -> Answer {
        negative(name, type: type, .noError, negativeTTL: negativeTTL, extendedError: extendedError)
    }

    /// The name does not exist (RFC 2308 §2.1): NXDOMAIN with a synthetic SOA.
    public static func nxDomain(_ name: Name, type: RecordType, negativeTTL: UInt32) -> Answer {
        negative(name, type: type, .nxDomain, negativeTTL: negativeTTL)
    }

    private static func negative(
        _ name: Name, type: RecordType, _ code: ResponseCode, negativeTTL: UInt32, extendedError: ExtendedError? = nil
    ) -> Answer {
        let ttl = min(negativeTTL, RecordHeader.maximumTTL)
        let dataLength = authorityData.count + 4
        var answer = Answer(
            name, type: type, code, keep: ttl, isCacheable: true, room: recordHeaderLength + dataLength)
        answer.appendRecordHeader(.soa, ttl: ttl, dataLength: dataLength)
        answer.body.append(contentsOf: authorityData)
        answer.body.append32(ttl)
        answer.head.authorityCount = 1
        if let extendedError { answer.add(extendedError) }
        return answer
    }

    /// Whether the answer has a synthetic SOA. Only this program makes such an SOA, so a daemon has answered by itself.
    public var hasSyntheticAuthority: Bool {
        records().contains { record in
            record.section == .authority && record.type == .soa
                && record.rdata.starts(with: Self.authorityServer.wire)
        }
    }

    /// No records, and not cacheable.
    public static func failure(
        _ name: Name, type: RecordType, recordClass: RecordClass = .in, _ code: ResponseCode,
        extendedError: ExtendedError? = nil
    ) -> Answer {
        var answer = Answer(name, type: type, recordClass: recordClass, code, keep: 0, isCacheable: false)
        if let extendedError { answer.add(extendedError) }
        return answer
    }

    /// The minimal answer to type ANY: one HINFO that names the RFC that allows it (RFC 8482 §4.2).
    public static func hinfo(_ name: Name, ttl: UInt32) -> Answer {
        Answer(name, type: .any, .hinfo, [[7] + "RFC8482".utf8 + [0]], ttl: ttl)
    }

    /// - Parameter room: The octets of its records, if known.
    private init(
        _ name: Name, type: RecordType, recordClass: RecordClass = .in, _ code: ResponseCode, keep: UInt32,
        isCacheable: Bool, room: Int = 0
    ) {
        var body: [UInt8] = []
        body.reserveCapacity(name.wire.count + 4 + room)
        body.append(contentsOf: name.wire)
        body.append16(type.rawValue)
        body.append16(recordClass.rawValue)
        self.init(
            head: AnswerHead(responseCode: code.inHeaderAlone), body: body, keep: keep, isCacheable: isCacheable)
    }

    /// An answer with records of one type, with the given data; 255 at most.
    private init(_ name: Name, type: RecordType, _ answerType: RecordType, _ records: [[UInt8]], ttl: UInt32) {
        let ttl = min(ttl, RecordHeader.maximumTTL)
        self.init(name, type: type, .noError, keep: ttl, isCacheable: true)
        for data in records.prefix(Int(UInt8.max)) {
            appendRecordHeader(answerType, ttl: ttl, dataLength: data.count)
            body.append(contentsOf: data)
            head.answerCount += 1
        }
    }

    /// Octets of a record before its data, with a pointer as owner.
    private static let recordHeaderLength = 12

    private mutating func appendRecordHeader(_ type: RecordType, ttl: UInt32, dataLength: Int) {
        body.append(addingCapacity: Answer.recordHeaderLength) { header in
            header.append16(Answer.questionPointer)
            header.append16(type.rawValue)
            header.append16(RecordClass.in.rawValue)
            header.append32(ttl)
            header.append16(UInt16(dataLength))
        }
    }
}
