import DNSWire
import Testing

/// A reading as text, so that a failed expectation shows all of it.
func outcome(_ message: [UInt8]) -> String {
    switch Question.read(message.span) {
    case .silence: "silence"
    case .refuse(let code, let question): "\(code)" + (question == nil ? "" : " with question")
    case .cookieQuery: "cookie query"
    case .question: "question"
    }
}

func question(_ message: [UInt8]) throws -> Question {
    guard case .question(let question) = Question.read(message.span) else { throw NotAQuestion() }
    return question
}

struct NotAQuestion: Error {}

func nameAsked(_ message: [UInt8]) throws -> Name {
    try question(message).name(in: message.span)
}

/// A query for a.b type A with the given header fields, and sections behind it.
private func query(flags: UInt16 = 0x0100, counts: [UInt8] = [1, 0, 0, 0], _ rest: String = "") -> [UInt8] {
    [0x12, 0x34, UInt8(flags >> 8), UInt8(flags & 0xFF)] + counts.flatMap { [0, $0] }
        + hex("0161 0162 00 0001 0001" + rest)
}

private let opt = "00 0029 04d0 00000000 0000"

struct QuestionTests {
    @Test func readsAPlainQuery() throws {
        let question = try question(Vectors.query)
        #expect(question.id == 0x1234)
        #expect(question.type == .a && question.recordClass == .in)
        #expect(question.edns == nil)
        #expect(question.recursionDesired && !question.checkingDisabled && !question.wantsAuthenticData)
        #expect(try nameAsked(Vectors.query) == Name("www.example.com"))
        #expect(question.end == Vectors.query.count)
        #expect(Reply.udpLimit(question, isLoopback: true) == 512)
        #expect(Reply.udpLimit(question, isLoopback: false) == 512)
    }

    @Test func readsEDNS() throws {
        let question = try question(Vectors.ednsQuery)
        let edns = try #require(question.edns)
        #expect(edns.udpSize == 4096 && edns.version == 0 && edns.dnssecOK)
        #expect(question.dnssecOK && question.wantsAuthenticData && !question.authenticData)
        let offset = Int(edns.cookieOffset)
        let cookie = Vectors.ednsQuery[offset..<offset + Int(edns.cookieLength)]
        #expect(Array(cookie) == hex("0102030405060708") && !edns.asksForKeepAlive)
        #expect(Reply.udpLimit(question, isLoopback: true) == 4096)
    }

    @Test(arguments: [
        (0, 512), (511, 512), (512, 512), (513, 513), (1232, 1232), (4096, 4096), (4097, 4096), (65535, 4096),
    ])
    func udpSizesAreClamped(offered: Int, limit: Int) throws {
        let size = String(offered, radix: 16)
        let padded = String(repeating: "0", count: 4 - size.count) + size
        let message = query(counts: [1, 0, 0, 1], "00 0029 \(padded) 00000000 0000")
        #expect(try Reply.udpLimit(question(message), isLoopback: true) == limit)
        #expect(try Reply.udpLimit(question(message), isLoopback: false) == min(limit, 1232))
    }

    @Test func signedQueriesAreReadAndTheSignatureSkipped() throws {
        let question = try question(Vectors.signedQuery)
        #expect(question.edns?.udpSize == 1400)
    }

    /// What ISC's genreport sends (RFC 8906 §8), as far as this layer decides it.
    @Test(arguments: [
        ("Z bit", 0x0140, "", 0, "question"),
        ("AA", 0x0500, "", 0, "question"), ("TC", 0x0300, "", 0, "question"), ("RA", 0x0180, "", 0, "question"),
        ("AD and CD", 0x0130, "", 0, "question"),
        ("unknown EDNS flag", 0x0100, "00 0029 04d0 00000080 0000", 1, "question"),
        ("unknown EDNS option", 0x0100, "00 0029 04d0 00000000 0004 0064 0000", 1, "question"),
        ("EDNS version 1", 0x0100, "00 0029 04d0 00010000 0000", 1, "BADVERS with question"),
        ("EDNS version 1 with an option", 0x0100, "00 0029 04d0 00018000 0004 0064 0000", 1, "BADVERS with question"),
        ("EDNS version 255", 0x0100, "00 0029 04d0 00ff0000 0000", 1, "BADVERS with question"),
        ("rcode bits in a query's OPT", 0x0100, "00 0029 04d0 ff000000 0000", 1, "question"),
        (
            "option list", 0x0100, "00 0029 04d0 00000000 0014 0003 0000 0008 0008 0001200000000000 0009 0000", 1,
            "question"
        ),
    ])
    func complianceProbes(probe: String, flags: Int, rest: String, additional: Int, expected: String) {
        #expect(outcome(query(flags: UInt16(flags), counts: [1, 0, 0, UInt8(additional)], rest)) == expected)
    }

    @Test func otherOpcodesAreNotImplemented() {
        for opcode in UInt16(1)...15 {
            #expect(outcome(query(flags: opcode << 11)) == "NOTIMP")
            #expect(outcome(Array(query(flags: opcode << 11 | 0x07F0, counts: [0, 0, 0, 0])[..<12])) == "NOTIMP")
        }
    }

    @Test func responsesAndFragmentsOfHeadersGetSilence() {
        #expect(outcome(query(flags: 0x8100)) == "silence")
        #expect(outcome(query(flags: 0xF900)) == "silence")
        for length in 0..<12 { #expect(outcome(Array(Vectors.query[..<length])) == "silence") }
    }

    @Test(arguments: [
        ("no question", [0, 0, 0, 0], "", "FORMERR with question"),
        ("two questions", [2, 0, 0, 0], "0161 00 0001 0001", "FORMERR"),
        ("an answer", [1, 1, 0, 0], "c00c 0001 0001 00000000 0004 01020304", "FORMERR with question"),
        ("an authority record", [1, 0, 1, 0], "c00c 0001 0001 00000000 0004 01020304", "FORMERR with question"),
        ("OPT in the answer", [1, 1, 0, 0], opt, "FORMERR with question"),
        ("OPT in authority", [1, 0, 1, 0], opt, "FORMERR with question"),
        ("OPT twice", [1, 0, 0, 2], opt + opt, "FORMERR with question"),
        ("OPT not at the root", [1, 0, 0, 1], "0161" + opt, "FORMERR with question"),
        ("OPT at a pointer to a root", [1, 0, 0, 1], "c010 0029 04d0 00000000 0000", "FORMERR with question"),
        ("broken option length", [1, 0, 0, 1], "00 0029 04d0 00000000 0004 000a 0001", "FORMERR with question"),
        ("half an option", [1, 0, 0, 1], "00 0029 04d0 00000000 0003 000a 00", "FORMERR with question"),
        ("octets behind the end", [1, 0, 0, 0], "00", "FORMERR with question"),
        ("octets behind OPT", [1, 0, 0, 1], opt + "00", "FORMERR with question"),
        ("a missing record", [1, 0, 0, 1], "", "FORMERR with question"),
        ("a record with a bad label", [1, 0, 0, 1], "40" + opt, "FORMERR with question"),
        ("another additional record", [1, 0, 0, 1], "c00c 0001 0001 00000000 0004 01020304", "question"),
        ("OPT and another", [1, 0, 0, 2], opt + "c00c 0001 0001 00000000 0004 01020304", "question"),
    ])
    func malformedQueries(what: String, counts: [Int], rest: String, expected: String) {
        #expect(outcome(query(counts: counts.map { UInt8($0) }, rest)) == expected)
    }

    @Test(arguments: [
        ("a pointer to itself", "c00c"), ("a pointer to the header", "c000"), ("a pointer behind a label", "0161 c00c"),
        ("an extended label", "41 00"), ("a label type of 10", "80 00"), ("a label beyond the end", "3f 61"),
    ])
    func questionsHaveNoOtherLabels(what: String, name: String) {
        #expect(outcome(Array(query()[..<12]) + hex(name + "0001 0001")) == "FORMERR")
    }

    @Test func namesOf255OctetsAreRead() throws {
        #expect(try nameAsked(Vectors.longestName).wire.count == 255)
        // One octet more in the last label.
        var longer = Vectors.longestName
        longer[12 + 192] += 1
        longer.insert(0x64, at: 12 + 193)
        #expect(outcome(longer) == "FORMERR")
    }

    @Test func classAndTypeAreNotJudgedHere() throws {
        // AXFR, ANY, IXFR; class CH; an unknown type; the root.
        for tail in ["00fc 0001", "00ff 0001", "00fb 0001", "0010 0003", "029a 0001", "0001 00ff"] {
            let message = Array(query()[..<12]) + hex("00" + tail)
            #expect(outcome(message) == "question", "\(tail)")
            #expect(try nameAsked(message) == .root)
        }
    }

    /// RFC 1995 §3: the client's SOA stands in the authority section.
    @Test func incrementalTransfersMayHaveAnAuthorityRecord() {
        let header = hex("1234 0000 0001 0000 0001 0000 0161 00 00fb 0001")
        let soa = hex("c00c 0006 0001 00000000 0016 00 00 00000001 00000000 00000000 00000000 00000000")
        #expect(outcome(header + soa) == "question")
        #expect(outcome(header + hex(opt)) == "FORMERR with question")
        #expect(outcome(header + soa.dropLast()) == "FORMERR with question")
    }

    @Test(arguments: [Vectors.query, Vectors.ednsQuery, Vectors.signedQuery, Vectors.longestName])
    func noTruncationIsAQuestion(message: [UInt8]) {
        for length in 0..<message.count {
            #expect(outcome(Array(message[..<length])) != "question", "\(length) octets")
        }
        #expect(outcome(message) == "question")
    }

    /// A reply must carry an OPT if the query did (RFC 6891 §6.1.1), also when something else was wrong.
    @Test func refusedQuestionsKeepTheirOPT() throws {
        for (additional, rest) in [
            (1, opt + "00"), (2, opt + opt), (1, "00 0029 04d0 00000000 0003 000a 00"),
            (1, "00 0029 04d0 00000000 0005 000a 0001 ff"),
        ] as [(UInt8, String)] {
            guard
                case .refuse(.formErr, let question) = Question.read(
                    query(counts: [1, 0, 0, additional], rest).span)
            else {
                Issue.record("expected FORMERR for \(rest)")
                continue
            }
            #expect(question?.edns?.udpSize == 1232, "\(rest)")
        }
    }
}
