import DNSWire
import Testing

/// Reads a response with id 0x1234.
func read(
    _ message: [UInt8], to name: Name = Name("www.example.com")!, type: RecordType = .a
) throws(WireError) -> Response.Reply {
    try Response.read(message.span, id: 0x1234, to: name, type: type, defaultNegativeTTL: 30)
}

/// The error of reading, nil for none.
private func failure(_ message: [UInt8]) -> WireError? {
    do {
        _ = try read(message)
        return nil
    } catch { return error }
}

/// A response to www.example.com IN A; records begin at offset 33.
private func response(counts: [UInt8], _ records: String) -> [UInt8] {
    hex("1234 8180 0001") + counts.flatMap { [0, $0] } + hex("03777777076578616d706c6503636f6d00 0001 0001" + records)
}

struct ResponseTests {
    @Test func readsAnAliasChain() throws {
        let reply = try read(Vectors.chain)
        #expect(!reply.truncated && reply.responseCode == .noError)
        #expect(
            reply.answer.records().map(\.description) == [
                "www.example.com. 300 IN CNAME web.example.net.",
                "web.example.net. 60 IN A 192.0.2.2",
                "web.example.net. 60 IN A 192.0.2.1",
                "example.net. 3600 IN NS ns1.example.net.",
            ])
        #expect(
            reply.answer.head
                == AnswerHead(
                    responseCode: .noError, authenticData: true, answerCount: 2 + 1, authorityCount: 1))
        #expect(reply.answer.keep == 60 && reply.answer.isCacheable)
    }

    @Test func bodiesHaveTheQuestionInLowerCaseAndNoOPT() throws {
        let body = try read(Vectors.chain).answer.body
        #expect(body.starts(with: hex("03777777076578616d706c6503636f6d00 0001 0001")))
        // OPT, and an address of the additional section.
        #expect(body.count == Vectors.chain.count - 12 - 11 - 16)
        #expect(Array(body[21...]) == Array(Vectors.chain[33..<Vectors.chain.count - 11 - 16]))
    }

    @Test func whatIsBehindOPTChangesNothing() throws {
        let address = "c00c 0001 0001 0000003c 0004 c0000201"
        let opt = "00 0029 04d0 00000000 0000"
        // The owner's name is read out of the OPT record's TTL.
        let behind = "c036 0001 0001 0000003c 0004 c0000202"
        let plain = try read(response(counts: [1, 0, 1], address + opt))
        #expect(try read(response(counts: [1, 0, 2], address + opt + behind)) == plain)
        #expect(plain.answer.keep == 60 && plain.answer.head.additionalCount == 0)
    }

    /// A referral and an empty message have none; one that is not about the name is not passed on, so it proves nothing.
    @Test func anSOAProvesThatARecordDoesNotExist() throws {
        let data = "0006 0001 0000003c 0016 00 00 00000001 00000002 00000003 00000004 0000002d"
        let nameServer = "c010 0002 0001 0000003c 0002 c00c"
        let alias = "c00c 0005 0001 0000003c 0002 c010"
        for (counts, records, hasSOA) in [
            ([0, 0, 0], "", false), ([0, 1, 0], nameServer, false), ([0, 1, 0], "c010" + data, true),
            ([0, 2, 0], nameServer + "c010" + data, true), ([1, 1, 0], alias + "c010" + data, true),
            ([1, 0, 0], alias, false), ([0, 1, 0], "017800" + data, false), ([0, 0, 1], "c010" + data, false),
        ] as [([UInt8], String, Bool)] {
            #expect(try read(response(counts: counts, records)).answer.hasStartOfAuthority == hasSOA, "\(records)")
        }
    }

    /// RFC 2308 §5.
    @Test(arguments: [
        ("NXDOMAIN: SOA TTL 900, MINIMUM 300", Vectors.nxDomain, 300 as UInt32, true, [300 as UInt32]),
        ("no data: the same", Vectors.noData, 300, true, [300]),
        ("no SOA", Vectors.noDataWithoutSOA, 30, true, []),
        ("a referral", Vectors.referral, 0, false, [3600]),
        ("an SOA of another zone", Vectors.foreignSOA, 30, true, []),
        ("an alias to no data", Vectors.danglingAlias, 45, true, [300, 45]),
        ("SERVFAIL", Vectors.servFail, 0, false, []),
        ("an alias loop", Vectors.aliasLoop, 0, false, [300, 300]),
        ("another name's address", Vectors.unrelated, 0, false, []),
        ("DNAME", Vectors.dname, 70, true, [500, 70]),
        ("TTL with its high bit set", Vectors.hugeTTL, 0, true, [0]),
        ("truncated", Vectors.truncated, 0, false, []),
    ])
    func lifetimes(what: String, message: [UInt8], keep: UInt32, isCacheable: Bool, ttls: [UInt32]) throws {
        let answer = try read(message).answer
        #expect(answer.keep == keep)
        #expect(answer.isCacheable == isCacheable)
        #expect(answer.records().map(\.ttl) == ttls)
    }

    @Test func negativeLifetimesAreCapped() throws {
        let soa = "c010 0006 0001 00ffffff 0016 00 00 00000001 00000002 00000003 00000004 00ffffff"
        let answer = try read(response(counts: [0, 1, 0], soa)).answer
        #expect(answer.keep == 10800)
        #expect(answer.records().map(\.ttl) == [10800])
    }

    /// A cache behind this one would keep half an answer for as long as the alias says.
    @Test(arguments: [
        ("no SOA", "", [30 as UInt32]),
        (
            "the SOA of another zone",
            "0178 00 0006 0001 0000003c 0016 00 00 00000001 00000002 00000003 00000004 00000005", [30]
        ),
    ])
    func whatIsKeptForAShortTimeSaysSo(what: String, authority: String, ttls: [UInt32]) throws {
        for (ttl, shown) in [
            ("00000e10", ttls), ("0000001f", ttls), ("0000001e", ttls), ("00000005", [5]), ("80000000", [0]),
        ] {
            let alias = "c00c 0005 0001 \(ttl) 0004 0161 c010"
            let answer = try read(response(counts: [1, authority.isEmpty ? 0 : 1, 0], alias + authority)).answer
            #expect(answer.records().map(\.ttl) == shown, "\(what), \(ttl)")
            #expect([answer.keep] == shown)
        }
    }

    /// RFC 3597 §4: what is compressed in the data of these types is written whole again when it is passed on. Here the record
    /// before them, of another name, goes, so that nothing is where the pointers lead.
    @Test(arguments: [
        (RecordType.ns, "", ""), (.cname, "", ""), (.ptr, "", ""), (.mx, "000a", ""), (.afsdb, "0001", ""),
        (.rt, "0001", ""),
        (.kx, "0001", ""), (.dname, "", ""), (.srv, "0001 0002 0035", ""), (.minfo, "00", ""), (.rp, "00", ""),
        (.px, "0001 00", ""), (.soa, "00", "00000001 00000002 00000003 00000004 00000005"),
        (.sig, "0001 05 02 0000003c 65000000 64000000 1234", "0badcafe"),
        (.sig, "0000 05 00 00000000 65000000 64000000 1234", ""),
        (.nxt, "", "6200 0001"), (.nxt, "", "40"),
        (.naptr, "000a 0014 01 73 07 5349502b443255 00", ""), (.naptr, "000a 0014 00 00 02 2121", ""),
    ])
    func namesInDataAreWrittenWhole(type: RecordType, before: String, behind: String) throws {
        let code = String(0x10000 + Int(type.rawValue), radix: 16).dropFirst()
        let (first, last) = (hex(before), hex(behind))
        let target = hex("0a 737472616e67657273 2e 07 6578616d706c65 03 6e6574 00")
        var message = hex("1234 8180 0001 0003 0000 0000 03777777076578616d706c6503636f6d00") + hex(code + "0001")
        message += hex("0178 00 0001 0001 0000003c 0004 c0000263")
        let pointer = message.count + 12 + first.count + 11
        message += Wire.record(Wire.pointer, type, first + target + last)
        message += Wire.record(Wire.pointer, type, first + [4] + "sips".utf8 + [0xC0, UInt8(pointer)] + last)
        let records = try read(message, type: type).answer.records()
        #expect(records.map(\.rdata) == [first + target + last, first + hex("04 73697073") + target[11...] + last])
    }

    @Test(arguments: [
        (RecordType.naptr, "000a 0014 01 73"), (.naptr, "000a 0014 ff 73 00 00 00"),
        (.naptr, "000a 0014 00 00 00 00 00"),
        (.naptr, "000a"), (.naptr, ""), (.sig, "0001 05 02"), (.sig, "0001 05 02 0000003c 65000000 64000000 1234"),
        (.nxt, ""),
        (.nxt, "40"), (.naptr, "000a 0014 00 00 00 c0ff"),
    ])
    func dataThatDoesNotFitItsType(type: RecordType, data: String) {
        let octets = hex(data)
        let code = String(0x10000 + Int(type.rawValue), radix: 16).dropFirst()
        let message = response(
            counts: [1, 0, 0],
            "c00c" + code + "0001 0000003c 00" + String(0x100 + octets.count, radix: 16).dropFirst() + data)
        #expect(failure(message) != nil)
    }

    /// An alias that lives shorter than the SOA it leads to.
    @Test func negativeLifetimesEndWithTheFirstRecord() throws {
        let alias = "c00c 0005 0001 00000014 0004 0161 c010"
        let soa = "c010 0006 0001 0000003c 0016 00 00 00000001 00000002 00000003 00000004 0000002d"
        let answer = try read(response(counts: [1, 1, 0], alias + soa)).answer
        #expect(answer.keep == 20)
        #expect(answer.records().map(\.ttl) == [20, 45])
    }

    /// RFC 6672 §2.2: 255 octets can be the result of a DNAME, 256 cannot.
    @Test func renamedNamesHave255OctetsAtMost() throws {
        let name = try nameAsked(Vectors.longestName)  // labels of 63, 63, 63 and 61
        let parent = 12 + 192
        for (length, isCacheable) in [(61, true), (62, false)] {
            var message = Vectors.longestName
            message[2] |= 0x80
            message[7] = 1
            message += hex("c0") + [UInt8(parent)] + hex("0027 0001 0000003c 00") + [UInt8(length + 2), UInt8(length)]
            message += [UInt8](repeating: 0x65, count: length) + [0]
            let answer = try read(message, to: name).answer
            #expect(answer.isCacheable == isCacheable, "a target of \(length + 2) octets")
            #expect(answer.records().map(\.type) == [.dname])
        }
    }

    @Test func contradictionsAreNotKept() throws {
        // NXDOMAIN with the address asked for.
        var message = response(counts: [1, 0, 0], "c00c 0001 0001 0000003c 0004 c0000201")
        message[3] |= 3
        #expect(try !read(message).answer.isCacheable)
        // The right name and type, in another class.
        let chaos = response(counts: [1, 0, 0], "c00c 0001 0003 0000003c 0004 c0000201")
        #expect(try !read(chaos).answer.isCacheable)
        // YXDOMAIN, without records.
        message = response(counts: [0, 0, 0], "")
        message[3] |= 6
        #expect(try !read(message).answer.isCacheable)
    }

    @Test func aliasesAreFollowedSixtyFourTimes() throws {
        // www → a → b → … each two octets and a pointer to "example.com" at 16.
        for (aliases, isCacheable) in [(64, true), (65, false)] {
            var records = "c00c 0005 0001 0000003c 0004 0161 c010"
            for index in 0..<aliases - 1 {
                let owner = String(0x61 + index, radix: 16)
                let target = String(0x62 + index, radix: 16)
                records += "01\(owner) c010 0005 0001 0000003c 0004 01\(target) c010"
            }
            let last = String(0x61 + aliases - 1, radix: 16)
            records += "01\(last) c010 0001 0001 00000009 0004 c0000201"
            let answer = try read(response(counts: [UInt8(aliases + 1), 0, 0], records)).answer
            #expect(answer.isCacheable == isCacheable)
            #expect(answer.keep == (isCacheable ? 9 : 0))
        }
    }

    @Test func extendedErrorsStay() throws {
        #expect(try read(Vectors.nxDomain).answer.extendedErrors == [.dnssecBogus])
        #expect(try read(Vectors.servFail).answer.extendedErrors == [.noReachableAuthority])
        #expect(try read(Vectors.chain).answer.extendedErrors == [])
    }

    /// A response to www.example.com with these options in its OPT.
    private func withOptions(_ options: [[UInt8]], code: UInt8 = 0) -> [UInt8] {
        let data = options.joined()
        var message = response(counts: [0, 0, 1], "00 0029 04d0 00000000")
        message[3] |= code
        return message + [UInt8(data.count >> 8), UInt8(data.count & 0xFF)] + data
    }

    private func option(_ code: UInt16, _ text: [UInt8]) -> [UInt8] {
        [0, 15, UInt8((text.count + 2) >> 8), UInt8((text.count + 2) & 0xFF), UInt8(code >> 8), UInt8(code & 0xFF)]
            + text
    }

    private func errors(_ options: [[UInt8]]) throws -> [UInt8] {
        let answer = try read(withOptions(options)).answer
        return Array(answer.body.suffix(Int(answer.head.extendedErrorLength)))
    }

    @Test func extendedErrorsStayWhole() throws {
        let sent = [option(6, Array("signature expired".utf8)), option(22, []), option(49152, [0xC3, 0xA4, 0])]
        #expect(try errors(sent) == Array(sent.joined()))
        let others: [[UInt8]] = [[0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8], [0, 15, 0, 0], [0, 15, 0, 1, 7]]
        #expect(try errors(others + sent) == Array(sent.joined()), "what is none of them is left out")
    }

    @Test func extendedErrorsAreBounded() throws {
        #expect(try errors([[UInt8]](repeating: option(6, [0x61]), count: 30)).count == 8 * 7)
        #expect(try errors([option(6, [UInt8](repeating: 0x61, count: 255))]).count == 6 + 255)
        #expect(try errors([option(6, [UInt8](repeating: 0x61, count: 1100))]).count == 6 + 255)
        // A character of three octets is cut off whole.
        let text = [UInt8](repeating: 0x61, count: 253) + Array("\u{20AC}uro".utf8)
        #expect(try errors([option(6, text)]) == option(6, Array(text[..<253])))
        #expect(try errors([option(6, [UInt8](repeating: 0x80, count: 300))]) == option(6, []))
    }

    @Test(arguments: [
        ("no signature for wWw.ExAmPLe.com. A", "no signature for www.example.com. A"),
        ("<EXAMPLE.COM>", "<example.com>"), ("WWW", "www"), ("WWWW Example2 -COM", "WWWW Example2 -COM"),
        ("Other.Example", "Other.example"), ("", ""),
    ])
    func textsDoNotShowHowANameWasSpelled(text: String, shown: String) throws {
        #expect(try errors([option(6, Array(text.utf8))]) == option(6, Array(shown.utf8)))
    }

    @Test func upperResponseCodeBitsAreNotLost() throws {
        let reply = try read(Vectors.badVersion)
        #expect(reply.responseCode == .badVers)
        #expect(reply.answer.head.responseCode == .servFail)
        #expect(!reply.answer.isCacheable)
    }

    /// Some servers cut a record in half (RFC 2181 §9: the records of such an answer are not to be used).
    @Test func truncatedAnswersHaveNoRecords() throws {
        for length in 33...Vectors.truncated.count {
            let reply = try read(Array(Vectors.truncated[..<length]))
            #expect(reply.truncated)
            #expect(reply.answer.records().isEmpty && reply.answer.body.count == 21)
        }
    }

    @Test func refusalsMayBeABareHeader() throws {
        for code: UInt16 in [1, 2, 4, 5] {
            let reply = try read(hex("1234 818\(code) 0000 0000 0000 0000"))
            #expect(reply.responseCode == ResponseCode(rawValue: code))
            #expect(reply.answer.head.responseCode == reply.responseCode)
            #expect(!reply.answer.isCacheable)
        }
        for code in [0, 3] { #expect(failure(hex("1234 818\(code) 0000 0000 0000 0000")) == .mismatch) }
    }

    @Test(arguments: [
        ("another id", "1235 8180 0001 0000 0000 0000 03777777076578616d706c6503636f6d00 0001 0001"),
        ("a query", "1234 0180 0001 0000 0000 0000 03777777076578616d706c6503636f6d00 0001 0001"),
        ("another opcode", "1234 a180 0001 0000 0000 0000 03777777076578616d706c6503636f6d00 0001 0001"),
        ("another name", "1234 8180 0001 0000 0000 0000 03777778076578616d706c6503636f6d00 0001 0001"),
        ("another type", "1234 8180 0001 0000 0000 0000 03777777076578616d706c6503636f6d00 001c 0001"),
        ("another class", "1234 8180 0001 0000 0000 0000 03777777076578616d706c6503636f6d00 0001 0003"),
        ("no question", "1234 8180 0000 0000 0000 0000"),
        ("two questions", "1234 8180 0002 0000 0000 0000 03777777076578616d706c6503636f6d00 0001 0001"),
        ("a longer name", "1234 8180 0001 0000 0000 0000 03777777076578616d706c6503636f6d0141 00 0001 0001"),
    ])
    func whatAnswersAnotherQuestion(what: String, message: String) {
        #expect(failure(hex(message)) == .mismatch)
    }

    /// "@" and "`" differ by the bit that makes the case of letters.
    @Test func onlyLettersHaveCase() {
        let message = hex("1234 8180 0001 0000 0000 0000 08 60 6578616d706c65 00 0001 0001")
        #expect(throws: WireError.mismatch) { try read(message, to: Name("@example")!) }
    }

    @Test(arguments: [
        ("a pointer to itself", "c021 0001 0001 0000003c 0004 c0000201", WireError.badPointer(at: 33)),
        ("a pointer forward", "c023 0001 0001 0000003c 0004 c0000201", .badPointer(at: 33)),
        ("a pointer beyond the end", "ffff 0001 0001 0000003c 0004 c0000201", .badPointer(at: 33)),
        ("a pointer into the header", "c004 0001 0001 0000003c 0004 c0000201", .badPointer(at: 33)),
        ("a label and a pointer back to it", "0161 c021 0001 0001 0000003c 0004 c0000201", .badPointer(at: 35)),
        ("an extended label", "4100 0001 0001 0000003c 0004 c0000201", .badLabel(at: 33)),
        ("a label type of 10", "8000 0001 0001 0000003c 0004 c0000201", .badLabel(at: 33)),
        ("half a pointer", "c0", .truncated(at: 33)),
        ("a label beyond the end", "3f61", .truncated(at: 33)),
        ("no fixed part", "c00c 0001 0001 0000003c 00", .truncated(at: 33)),
        ("data beyond the end", "c00c 0001 0001 0000003c 0004 c00002", .truncated(at: 33)),
        ("an address of 3 octets", "c00c 0001 0001 0000003c 0003 c00002", .badData(at: 45)),
        ("an IPv6 address of 4 octets", "c00c 001c 0001 0000003c 0004 c0000201", .badData(at: 45)),
        ("an alias without data", "c00c 0005 0001 0000003c 0000", .badData(at: 45)),
        ("an alias and an octet", "c00c 0005 0001 0000003c 0003 c00c 00", .badData(at: 45)),
        ("an alias beyond its data", "c00c 0005 0001 0000003c 0001 c0 0c", .badData(at: 45)),
        ("an alias to itself by pointer", "c00c 0005 0001 0000003c 0002 c02d", .badPointer(at: 45)),
        ("a mail exchanger without a name", "c00c 000f 0001 0000003c 0002 000a", .badData(at: 45)),
        ("an SOA without numbers", "c00c 0006 0001 0000003c 0004 c00c c00c", .badData(at: 45)),
        ("a service's name with a bad label", "c00c 0021 0001 0000003c 0008 000100020003 40 00", .badLabel(at: 51)),
        ("an alias read through its TTL", "c00c 0005 0001 0000003c 0002 c027", .badPointer(at: 45)),
        ("an alias whose pointer ends in its TTL", "c00c 0005 00c0 0c00003c 0002 c026", .badPointer(at: 45)),
        ("OPT in the answer", "00 0029 04d0 00000000 0000", .badOption(at: 33)),
        ("a signature in the answer", "00 00fa 00ff 00000000 0000", .badOption(at: 33)),
    ])
    func malformedRecords(what: String, record: String, expected: WireError) {
        #expect(failure(response(counts: [1, 0, 0], record)) == expected)
    }

    @Test(arguments: [
        ("OPT in authority", [0, 1, 0] as [UInt8], "00 0029 04d0 00000000 0000", WireError.badOption(at: 33)),
        ("a signature in authority", [0, 1, 0], "00 00fa 00ff 00000000 0000", .badOption(at: 33)),
        ("OPT twice", [0, 0, 2], "00 0029 04d0 00000000 0000 00 0029 04d0 00000000 0000", .badOption(at: 44)),
        ("OPT not at the root", [0, 0, 1], "c00c 0029 04d0 00000000 0000", .badOption(at: 33)),
        ("an option beyond its OPT", [0, 0, 1], "00 0029 04d0 00000000 0004 000f 0002", .badOption(at: 44)),
        ("half an option", [0, 0, 1], "00 0029 04d0 00000000 0002 000f", .badOption(at: 44)),
    ])
    func misplacedRecords(what: String, counts: [UInt8], record: String, expected: WireError) {
        #expect(failure(response(counts: counts, record)) == expected)
    }

    /// Each reply has other TTLs; a name that is read through one would be another each time, or none.
    @Test func noNameIsReadThroughATTL() throws {
        let a = "c00c 0001 0001 00000001 0004 c0000201"  // TTLs are at 39, 55, 71
        let end = "0001 0001 00000001 0004 c0000201"
        for octet in 0..<16 * 3 {
            let pointer = "c0" + String(33 + octet, radix: 16)
            let message = response(counts: [4, 0, 0], a + a + a + pointer + end)
            let offset = octet % 16
            if (6..<10).contains(offset) {
                #expect(failure(message) == .badPointer(at: 81), "octet \(offset)")
            } else if offset == 2 || offset == 4 || offset == 10 {
                // The 0 of a type, class or length stays what it is.
                #expect(failure(message) == nil, "octet \(offset)")
            }
        }
    }

    /// A label that a pointer leads to could else swallow the pointer and end in the record's own TTL, or behind it.
    @Test func noNameIsReadThroughItself() {
        for length in 0...12 {
            let label = String(0x100 + length, radix: 16).dropFirst()
            let data = "c00c ff00 0001 0000003c 0001 \(label)"  // the label at 45
            let record = "c02d 0001 0001 00000001 0004 c0000201"
            #expect((failure(response(counts: [2, 0, 0], data + record)) == nil) == (length == 0), "\(length) octets")
        }
        let pointer = "c00c ff00 0001 0000003c 0001 c0  c02d 0001 0001 00000001 0004 c0000201"
        #expect(failure(response(counts: [2, 0, 0], pointer)) == .badPointer(at: 46))
    }

    /// Each client has the question in its own letters' case: a pointer there could lead to 97 for one, to 65 for another.
    @Test func noPointerIsInTheQuestion() throws {
        let b = String(repeating: "b", count: 63)
        let name = Name(b + "." + b.prefix(20) + "\\000bb\\192aend")!
        for (owner, expected) in [("c061", nil), ("c064", WireError.badPointer(at: 110))] {
            let record = owner + "0001 0001 00000001 0004 c0000201"
            let message = hex("1234 8180 0001 0001 0000 0000") + name.wire + hex("0001 0001" + record)
            do throws(WireError) {
                _ = try read(message, to: name)
                #expect(expected == nil)
            } catch { #expect(error == expected) }
        }
    }

    @Test func theAdditionalSectionGoes() throws {
        let a = "c00c 0001 0001 0000003c 0004 c0000201"
        for stop in ["00 0029 04d0 00000000 0000", "00 00fa 00ff 00000000 0000"] {
            let reply = try read(response(counts: [1, 0, 3], a + a + stop + a))
            #expect(reply.answer.records().map(\.section) == [.answer])
            #expect(reply.answer.body.count == 21 + 16)
        }
        // They are validated all the same.
        let broken = response(counts: [1, 0, 2], a + "00 0029 04d0 00000000 0000 c00c 0001 0001 0000003c 0003 c00002")
        #expect(failure(broken) == .badData(at: 72))
    }

    /// As other resolvers do; what stands there is not passed on.
    @Test func octetsBehindTheEndAreIgnored() throws {
        let whole = response(counts: [1, 0, 0], "c00c 0001 0001 0000003c 0004 c0000201")
        #expect(try read(whole + [0, 1, 2]) == read(whole))
    }

    /// 255 octets are a name, 256 are none, compressed or not.
    @Test func longNames() throws {
        let label = "3f" + String(repeating: "61", count: 63)
        let owner = label + label + label  // 192 octets; "www.example.com." has 17
        for (last, expected) in [(45, nil), (46, WireError.nameTooLong(at: 33))] {
            let rest = String(format(last)) + String(repeating: "62", count: last)
            let record = owner + rest + "c00c 0010 0001 0000003c 0001 00"
            #expect(failure(response(counts: [1, 0, 0], record)) == expected)
        }
        func format(_ value: Int) -> String { (value < 16 ? "0" : "") + String(value, radix: 16) }
    }

    @Test func pointersArePursued127Times() {
        // In one record's opaque data: pointers that each lead to the one before, the first to the question.
        for (hops, expected) in [(127, nil), (128, WireError.badPointer(at: 45))] {
            var data = "c00c"
            for index in 0..<hops - 2 { data += String(0xC000 + 45 + 2 * index, radix: 16) }
            let last = String(0xC000 + 45 + 2 * (hops - 2), radix: 16)
            let length = String(0x10000 + 2 * (hops - 1), radix: 16).dropFirst()
            let records = "c00c ff00 0001 0000003c \(length)" + data + last + "0001 0001 0000003c 0004 c0000201"
            let error = failure(response(counts: [2, 0, 0], records))
            #expect((error == nil) == (expected == nil))
            if let expected { #expect(error == expected) }
        }
    }

    @Test(arguments: [
        Vectors.chain, Vectors.nxDomain, Vectors.noData, Vectors.referral, Vectors.danglingAlias, Vectors.aliasLoop,
        Vectors.dname, Vectors.servFail, Vectors.badVersion,
    ])
    func noTruncationIsAnAnswer(message: [UInt8]) {
        for length in 0..<message.count { #expect(failure(Array(message[..<length])) != nil, "\(length) octets") }
        #expect(failure(message) == nil)
    }

    @Test func errorsSayWhere() {
        #expect("\(WireError.badPointer(at: 33))" == "bad compression pointer at octet 33")
        #expect("\(WireError.mismatch)" == "not an answer to the question asked")
    }
}
