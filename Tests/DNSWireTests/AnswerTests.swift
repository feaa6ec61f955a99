import Base
import DNSWire
import Testing

struct AnswerTests {
    private let name = Name("www.example.com")!
    // The question: www.example.com IN A.
    private let question = "03777777076578616d706c6503636f6d00 0001 0001"

    @Test func addressesAreOwnedByTheQuestion() {
        let answer = Answer.addresses(name, type: .a, [.v4(192, 0, 2, 1), .v4(192, 0, 2, 2)], ttl: 60)
        #expect(
            answer.body
                == hex(
                    question + "c00c 0001 0001 0000003c 0004 c0000201 c00c 0001 0001 0000003c 0004 c0000202"))
        #expect(answer.head == AnswerHead(responseCode: .noError, answerCount: 2))
        #expect(answer.keep == 60 && answer.isCacheable)
    }

    @Test func addressesOfTheOtherFamilyAreLeftOut() throws {
        let both = [IPAddress.v4(192, 0, 2, 1), try #require(IPAddress("2001:db8::1"))]
        let answer = Answer.addresses(name, type: .aaaa, both, ttl: 0xFFFF_FFFF)
        #expect(answer.records().map(\.description) == ["www.example.com. 2147483647 IN AAAA 2001:db8::1"])
        #expect(answer.keep == 0x7FFF_FFFF)
    }

    @Test func negativeAnswersCarryASyntheticSOA() {
        let noData = Answer.noData(name, type: .https, negativeTTL: 30, extendedError: .notSupported)
        #expect(
            noData.records().map(\.description) == [
                "www.example.com. 30 IN SOA httpdnsd.invalid. nobody.invalid. 1 3600 600 86400 30"
            ])
        #expect(noData.records().map(\.section) == [.authority])
        #expect(
            noData.head == AnswerHead(responseCode: .noError, authorityCount: 1, extendedErrorLength: 6))
        #expect(noData.keep == 30)
        let nxDomain = Answer.nxDomain(name, type: .a, negativeTTL: 5)
        #expect(nxDomain.head == AnswerHead(responseCode: .nxDomain, authorityCount: 1))
        #expect(nxDomain.keep == 5)
    }

    @Test func onlyNegativeAnswersOfThisProgramHaveASyntheticSOA() throws {
        #expect(Answer.noData(name, type: .soa, negativeTTL: 30).hasSyntheticAuthority)
        #expect(Answer.nxDomain(name, type: .soa, negativeTTL: 0).hasSyntheticAuthority)
        #expect(!Answer.failure(name, type: .soa, .servFail).hasSyntheticAuthority)
        let begin = "1234 8180 0001 0000 0001 0000" + question + "c00c 0006 0001 0000003c"
        let numbers = "00000001 00000e10 00000258 00015180 0000003c"
        for (names, isSynthetic) in [
            ("0868747470646e7364 07696e76616c6964 00 06 6e6f626f6479 07696e76616c6964 00", true),
            ("096c6f63616c686f7374 00 06 6e6f626f6479 07696e76616c6964 00", false), ("00 00", false),
        ] {
            let data = hex(names + numbers)
            let answer = try read(hex(begin) + [0, UInt8(data.count)] + data).answer
            #expect(answer.hasStartOfAuthority && answer.hasSyntheticAuthority == isSynthetic, "\(names)")
        }
    }

    @Test func failuresAreNotKept() {
        let answer = Answer.failure(name, type: .a, .servFail, extendedError: .networkError)
        #expect(answer.body == hex(question + "000f 0002 0017"))
        #expect(answer.head == AnswerHead(responseCode: .servFail, extendedErrorLength: 6))
        #expect(answer.extendedErrors == [.networkError])
        #expect(answer.keep == 0 && !answer.isCacheable)
        // BADVERS in a header alone would read NOERROR.
        #expect(Answer.failure(name, type: .a, .badVers, extendedError: nil).head.responseCode == .servFail)
    }

    /// RFC 8482 §4.2.
    @Test func anyGetsOneHINFO() {
        let answer = Answer.hinfo(name, ttl: 3600)
        #expect(answer.records().map(\.description) == [#"www.example.com. 3600 IN HINFO "RFC8482" """#])
        #expect(answer.body.starts(with: hex("03777777076578616d706c6503636f6d00 00ff 0001")))
    }

    @Test func clampingReachesEveryRecord() throws {
        var answer = try read(Vectors.chain).answer
        #expect(answer.records().map(\.ttl) == [300, 60, 60, 3600])
        answer.clampTTLs(minimum: 120, maximum: 900)
        #expect(answer.records().map(\.ttl) == [300, 120, 120, 900])
        #expect(answer.keep == 120)
    }

    @Test func clampingLiftsZeroOnlyForWhatMayBeCached() {
        var answer = Answer.addresses(name, type: .a, [.v4(192, 0, 2, 1)], ttl: 0)
        answer.clampTTLs(minimum: 0, maximum: 10)
        #expect(answer.keep == 0)
        answer.clampTTLs(minimum: 5, maximum: 10)
        #expect(answer.keep == 5 && answer.records()[0].ttl == 5)
        var failure = Answer.failure(name, type: .a, .servFail, extendedError: nil)
        failure.clampTTLs(minimum: 5, maximum: 10)
        #expect(failure.keep == 0)
    }

    /// As dnspython prints them, except for names that it leaves in upper case and its blank behind `\# 0`.
    @Test func recordsReadAsInAZoneFile() throws {
        let answer = try read(Vectors.manyTypes, to: Name("example.com")!, type: .any).answer
        #expect(
            answer.records().map(\.description) == [
                "example.com. 1 IN A 192.0.2.1",
                "example.com. 2 IN AAAA 2001:db8::1",
                "example.com. 3 IN NS ns1.example.com.",
                "example.com. 4 IN PTR host.example.com.",
                "example.com. 5 IN MX 10 mail.example.com.",
                #"example.com. 6 IN TXT "v=spf1 -all" "a\"b\\c\009\255""#,
                "example.com. 7 IN SOA ns1.example.com. host.example.com. 2024010101 7200 900 1209600 300",
                #"example.com. 9 IN CAA 0 issue "ca.example; x=1""#,
                #"example.com. 10 IN HINFO "RFC8482" """#,
                #"example.com. 11 IN CNAME a\.b.example.com."#,
                "example.com. 12 IN TYPE65280 \\# 3 010aff",
                "example.com. 13 IN TYPE65281 \\# 0",
                "example.com. 14 IN DNAME example.net.",
            ])
        #expect(answer.records()[4].rdata == hex("000a 046d61696c 076578616d706c65 03636f6d 00"))
    }

    @Test(arguments: [
        (RecordType.txt, "05 61"), (.txt, ""), (.hinfo, "0161"), (.hinfo, "0161 0161 0161"), (.caa, "00"),
        (.caa, "00 00"),
        (.caa, "00 05 69"), (.caa, "00 01 07"),
    ])
    func dataThatDoesNotFitIsShownOpaque(type: RecordType, data: String) {
        let bytes = hex(data)
        let head = AnswerHead(responseCode: .noError, answerCount: 1)
        let body = hex(question) + Wire.record(Wire.pointer, type, bytes)
        let records = Answer(head: head, body: body, keep: 0, isCacheable: false).records()
        let digits = data.filter { $0 != " " }
        #expect(records.map(\.data) == [bytes.isEmpty ? "\\# 0" : "\\# \(bytes.count) \(digits)"])
    }

    @Test func brokenBodiesGiveTheRecordsBeforeTheBreak() {
        let whole = Answer.addresses(name, type: .a, [.v4(192, 0, 2, 1), .v4(192, 0, 2, 2)], ttl: 60)
        for length in 0..<whole.body.count {
            var cut = Answer(head: whole.head, body: Array(whole.body[..<length]), keep: 60, isCacheable: true)
            let expected = length < 21 + 16 ? 0 : 1
            #expect(cut.records().count == expected, "\(length) octets")
            cut.clampTTLs(minimum: 90, maximum: 90)
            #expect(cut.records().allSatisfy { $0.ttl == 90 })
        }
    }

    /// The options of a query, behind their length.
    private func options(subnet: IPAddress? = nil, keepAlive: Bool = false, paddedTo block: Int = 1) -> [UInt8] {
        let message = Query.message(
            id: 0, name, type: .a, dnssecOK: false, checkingDisabled: false, subnet: subnet, keepAlive: keepAlive,
            paddedTo: block)
        #expect(message.count % block == 0)
        // Header, question, and the OPT record up to the length of its data.
        return Array(message[(12 + 17 + 4 + 9)...])
    }

    /// RFC 7871 §6 and §11.1: 24 bits of an IPv4 address, 56 of an IPv6 one, and no scope. Padding stands behind it.
    @Test func aQueryTellsNoMoreOfAnAddressThanItsNetwork() {
        #expect(options(subnet: .v4(203, 0, 113, 77)) == hex("000b 0008 0007 0001 18 00 cb0071"))
        #expect(
            options(subnet: IPAddress("2001:db8:1234:56ff::1")!) == hex("000f 0008 000b 0002 38 00 20010db8123456"))
        let padded = options(subnet: .v4(203, 0, 113, 77), paddedTo: 128)
        #expect(Array(padded[2..<13]) == hex("0008 0007 0001 18 00 cb0071"))
        #expect(Array(padded[13..<15]) == hex("000c") && Int(padded[1]) == padded.count - 2)
    }

    /// RFC 7828 §3.1: without a time in a query, before the padding.
    @Test func aQueryAsksHowLongAConnectionIsKept() {
        #expect(options(keepAlive: true) == hex("0004 000b 0000"))
        #expect(Array(options(keepAlive: true, paddedTo: 128)[2..<8]) == hex("000b 0000 000c"))
    }

    // python3 -c 'import dns.message
    // m = dns.message.make_query("www.example.com", "A", use_edns=0, payload=1232, want_dnssec=True); m.id = 0x1234
    // m.flags |= dns.flags.AD | dns.flags.CD; print(m.to_wire().hex())'
    @Test func queriesForTheResolver() {
        let full = Query.message(id: 0x1234, name, type: .a, dnssecOK: true, checkingDisabled: true)
        #expect(
            full
                == hex(
                    "12340130000100000000000103777777076578616d706c6503636f6d000001000100002904d0000080000000"))
        let plain = Query.message(
            id: 1, .root, type: .txt, recordClass: RecordClass(rawValue: 3), dnssecOK: false, checkingDisabled: false)
        #expect(plain == hex("0001 0120 0001 0000 0000 0001 00 0010 0003 00 0029 04d0 00000000 0000"))
    }
}
