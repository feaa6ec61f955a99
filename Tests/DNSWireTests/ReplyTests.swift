import Base
import DNSWire
import Testing

/// The reply to `query` as the client gets it.
func reply(
    _ answer: Answer, to query: [UInt8], age: Reply.Age = .elapsed(0), limit: Int = 4096, room: Int = 65535,
    options: ReplyOptions = ReplyOptions()
) throws -> [UInt8] {
    var question = try question(query)
    question.replyOptions = options
    var buffer = [UInt8](repeating: 0xEE, count: room)
    var out = buffer.mutableSpan
    let length = Reply.write(answer, age: age, to: question, query: query.span, limit: limit, into: &out)
    return Array(buffer[..<length])
}

/// The refusal of `query` as the client gets it.
func refused(
    _ code: ResponseCode, _ question: Question?, _ query: [UInt8], error: ExtendedError? = nil,
    room: Int = Reply.maximumRefusalLength
) -> [UInt8] {
    var buffer = [UInt8](repeating: 0xEE, count: room)
    var out = buffer.mutableSpan
    let length = Reply.refuse(code, extendedError: error, question: question, query: query.span, into: &out)
    return Array(buffer[..<length])
}

private func refusal(_ query: [UInt8], room: Int = 288) -> [UInt8]? {
    guard case .refuse(let code, let question) = Question.read(query.span) else { return nil }
    return refused(code, question, query, room: room)
}

struct ReplyTests {
    private let name = Name("www.example.com")!
    private let address = IPAddress.v4(192, 0, 2, 1)
    // Vectors.query's question, as sent.
    private let sent = "03777777074578616d706c6503434f4d00 0001 0001"
    private let opt = "00 0029 04d0 00008000"

    @Test func aPlainReply() throws {
        let answer = Answer.addresses(name, type: .a, [address], ttl: 60)
        #expect(
            try reply(answer, to: Vectors.query)
                == hex("1234 8180 0001 0001 0000 0000" + sent + "c00c 0001 0001 0000003c 0004 c0000201"))
    }

    @Test func clientsWithEDNSGetAnOPT() throws {
        let answer = Answer.addresses(name, type: .a, [address], ttl: 60)
        #expect(
            try reply(answer, to: Vectors.ednsQuery)
                == hex(
                    "1234 8180 0001 0001 0000 0001" + sent + "c00c 0001 0001 0000003c 0004 c0000201" + opt + "0000"))
    }

    @Test func optionsGiveWayToTheLongestAnswer() throws {
        var answer = Answer.failure(name, type: .a, .noError)
        answer.body += hex("c00c 0001 0001 0000003c ffc7") + [UInt8](repeating: 0, count: 0xffc7)
        answer.head.answerCount = 1
        let whole = try reply(answer, to: Vectors.ednsQuery, limit: 65_535, options: ReplyOptions(keepAlive: 100))
        #expect(whole.count == 65_535 && whole[2] & 2 == 0 && whole.suffix(2) == [0, 0])
        let datagram = try reply(answer, to: Vectors.ednsQuery, options: ReplyOptions(keepAlive: 100))
        #expect(datagram[2] & 2 != 0 && datagram.suffix(2) == [0, 100])
    }

    @Test func extendedErrorsGoIntoTheOPT() throws {
        let answer = Answer.failure(name, type: .a, .servFail, extendedError: .networkError)
        #expect(
            try reply(answer, to: Vectors.ednsQuery)
                == hex("1234 8182 0001 0000 0000 0001" + sent + opt + "0006 000f 0002 0017"))
        #expect(try reply(answer, to: Vectors.query) == hex("1234 8182 0001 0000 0000 0000" + sent))
    }

    @Test func extendedErrorsGoAsFarAsThereIsRoom() throws {
        let text = String(repeating: "61", count: 200)
        let options = [String](repeating: "000f 00ca 0006" + text, count: 3).joined()
        let answer = try read(
            hex("1234 8182 0001 0000 0000 0001" + sent + "00 0029 04d0 00000000 026a" + options)
        ).answer
        #expect(answer.extendedErrors == [.dnssecBogus, .dnssecBogus, .dnssecBogus])
        let whole = 44 + 3 * 206
        #expect(try reply(answer, to: Vectors.ednsQuery, limit: whole).count == whole)
        #expect(try reply(answer, to: Vectors.ednsQuery, limit: whole - 1).count == whole - 206)
        #expect(try reply(answer, to: Vectors.ednsQuery, limit: 512).count == whole - 206)
        #expect(try reply(answer, to: Vectors.query, limit: 512) == hex("1234 8182 0001 0000 0000 0000" + sent))
        var stale = answer
        stale.add(.staleAnswer)
        #expect(stale.extendedErrors == [.staleAnswer] + answer.extendedErrors)
        #expect(try reply(stale, to: Vectors.ednsQuery).count == whole + 6)
    }

    @Test(arguments: [
        (Reply.Age.elapsed(0), [300, 60, 60, 3600] as [UInt32]), (.elapsed(59), [241, 1, 1, 3541]),
        (.elapsed(60), [240, 0, 0, 3540]), (.elapsed(4_000_000_000), [0, 0, 0, 0]),
        (.fixed(30), [30, 30, 30, 30]),
    ])
    func timeToLiveAges(age: Reply.Age, ttls: [UInt32]) throws {
        let answer = try read(Vectors.chain).answer
        let message = try reply(answer, to: Vectors.ednsQuery, age: age)
        let received = try read(message).answer
        #expect(received.records().map(\.ttl) == ttls)
        #expect(received.records().map(\.data) == answer.records().map(\.data))
    }

    /// RFC 6840 §5.7 and §5.8.
    @Test(arguments: [
        (true, 0x0100, false, false), (true, 0x0120, false, true), (true, 0x0100, true, true),
        (false, 0x0120, true, false),
    ])
    func authenticDataIsForThoseWhoAsk(validated: Bool, flags: Int, dnssecOK: Bool, expected: Bool) throws {
        var answer = Answer.addresses(name, type: .a, [address], ttl: 60)
        answer.head.authenticData = validated
        var query = dnssecOK ? Vectors.ednsQuery : Vectors.query
        query[3] = UInt8(flags & 0xFF)
        #expect(try reply(answer, to: query)[3] & 0x20 == (expected ? 0x20 : 0))
    }

    @Test func onlyRDAndCDAreCopied() throws {
        let answer = Answer.addresses(name, type: .a, [address], ttl: 60)
        for (flags, expected) in [(0x07FF, 0x8190), (0x0000, 0x8080), (0x0010, 0x8090), (0x0100, 0x8180)] {
            var query = Vectors.query
            query[2] = UInt8(flags >> 8)
            query[3] = UInt8(flags & 0xFF)
            #expect(try Array(reply(answer, to: query)[2...3]) == [UInt8(expected >> 8), UInt8(expected & 0xFF)])
        }
    }

    /// RFC 2181 §9: no TC for what is only additional.
    @Test func theAdditionalSectionGoesFirst() throws {
        let name = try #require(Name("big.example.com"))
        var answer = try read(Vectors.big, to: name).answer
        // Resolvers' additional sections are not passed on; the cache file of an earlier version has some.
        #expect(answer.head.additionalCount == 0)
        answer.body = Array(Vectors.big[12...])
        answer.head.additionalCount = 8
        let cut = try reply(answer, to: Vectors.bigQuery, limit: 512)
        #expect(cut.count == 563 - 8 * 16 + 11)
        #expect(Array(cut[2..<12]) == hex("8180 0001 0018 0001 0001"))
        let received = try read(cut, to: name).answer
        #expect(received.records() == answer.records().filter { $0.section != .additional })
        // Exactly enough room for everything, and one octet less.
        #expect(try reply(answer, to: Vectors.bigQuery, limit: 574).count == 574)
        #expect(try reply(answer, to: Vectors.bigQuery, limit: 573).count == 446)
    }

    /// RFC 2181 §9, RFC 4035 §3.1.1: no TC for an authority section that the answer does not need.
    @Test func theAuthoritySectionGoesNextWhereTheAnswerIsComplete() throws {
        let addresses = (0..<28).map { IPAddress.v4(192, 0, 2, $0) }
        let whole = Answer.addresses(name, type: .a, addresses, ttl: 60)
        for (type, signed, isCut) in [
            (RecordType.ns, false, false), (.ns, true, false), (.nsec, false, false), (.nsec, true, true),
            (.soa, false, true),
        ] {
            var answer = whole
            answer.body += hex("c00c") + [0, UInt8(type.rawValue)] + hex("0001 0000003c 0016")
            answer.body += [UInt8](repeating: 0, count: 22)
            answer.head.authorityCount = 1
            let asked = Query.message(id: 0x1234, name, type: .a, dnssecOK: true, checkingDisabled: false)
            let query = signed ? asked : Vectors.query
            let message = try reply(answer, to: query, limit: 512)
            #expect(message[2] & 2 == (isCut ? 2 : 0), "\(type)")
            #expect(Array(message[6..<10]) == (isCut ? [0, 0, 0, 0] : [0, 28, 0, 0]))
            #expect(message.count == (isCut ? 33 : 33 + 28 * 16) + (signed ? 11 : 0))
        }
    }

    @Test func whatDoesNotFitIsTruncatedWhole() throws {
        let addresses = (0..<31).map { IPAddress.v4(192, 0, 2, $0) }
        var answer = Answer.addresses(name, type: .a, addresses, ttl: 60)
        answer.head.authenticData = true
        answer.add(.staleAnswer)
        #expect(try reply(answer, to: Vectors.query, limit: 529).count == 33 + 31 * 16)
        #expect(try reply(answer, to: Vectors.query, limit: 528) == hex("1234 8380 0001 0000 0000 0000" + sent))
        #expect(
            try reply(answer, to: Vectors.ednsQuery, limit: 539)
                == hex("1234 8380 0001 0000 0000 0001" + sent + opt + "0006 000f 0002 0003"))
        // An extended error is no reason to truncate (RFC 8914 §3).
        #expect(try reply(answer, to: Vectors.ednsQuery, limit: 540).count == 540)
        #expect(try reply(answer, to: Vectors.ednsQuery, limit: 545).count == 540)
        #expect(try reply(answer, to: Vectors.ednsQuery, limit: 546).count == 546)
        // A buffer smaller than the limit counts as the limit.
        #expect(try reply(answer, to: Vectors.query, room: 528).count == 33)
    }

    @Test func bodiesThatAreNotWhatTheirHeadSaysBecomeSERVFAIL() throws {
        let servFail = hex("1234 8182 0001 0000 0000 0000" + sent)
        let whole = Answer.addresses(name, type: .a, [address, address], ttl: 60)
        for length in 0..<whole.body.count {
            let cut = Answer(head: whole.head, body: Array(whole.body[..<length]), keep: 0, isCacheable: false)
            #expect(try reply(cut, to: Vectors.query) == servFail, "\(length) octets")
        }
        var answer = whole
        answer.head.answerCount = 1
        #expect(try reply(answer, to: Vectors.query) == servFail)
        answer.head.answerCount = 3
        #expect(try reply(answer, to: Vectors.query) == servFail)
        answer = whole
        answer.body[21] = 0x40
        #expect(try reply(answer, to: Vectors.query) == servFail)
        // Too long for the limit and broken as well.
        answer = whole
        answer.body += [UInt8](repeating: 0x40, count: 600)
        answer.head.additionalCount = 1
        #expect(try reply(answer, to: Vectors.query, limit: 512).count == 33 + 32)
        answer.head.answerCount = 3
        #expect(try reply(answer, to: Vectors.query, limit: 512) == servFail)
    }

    @Test func tooLittleRoomWritesNothing() throws {
        let answer = Answer.failure(name, type: .a, .servFail, extendedError: nil)
        #expect(try reply(answer, to: Vectors.ednsQuery, room: 44).count == 44)
        for room in 0..<44 { #expect(try reply(answer, to: Vectors.ednsQuery, room: room).isEmpty) }
        #expect(refusal(hex("1234 0100 0000 0000 0000 0000"), room: 11) == [])
    }

    @Test func theLongestNameIsAnswered() throws {
        let name = try nameAsked(Vectors.longestName)
        let answer = Answer.addresses(name, type: .a, [address], ttl: 60)
        let message = try reply(answer, to: Vectors.longestName, limit: 512)
        let received = try read(message, to: name).answer
        #expect(received == answer)
    }

    @Test(arguments: [
        // NOTIMP echoes the opcode and no flags (genreport: opcode, opcodeflg).
        ("opcode 15", "1234 7800 0000 0000 0000 0000", "1234 f804 0000 0000 0000 0000"),
        ("opcode 15, all flags", "1234 7ff0 0000 0000 0000 0000", "1234 f804 0000 0000 0000 0000"),
        ("a NOTIFY", "1234 2400 0001 0000 0000 0000 00 0006 0001", "1234 a004 0000 0000 0000 0000"),
        ("no question", "1234 0110 0000 0000 0000 0000", "1234 8191 0000 0000 0000 0000"),
        ("junk behind", "1234 0000 0001 0000 0000 0000 00 0001 0001 ff", "1234 8081 0001 0000 0000 0000 00 0001 0001"),
        (
            "EDNS version 1", "1234 0100 0001 0000 0000 0001 00 0006 0001 00 0029 1000 00018000 0004 0064 0000",
            "1234 8180 0001 0000 0000 0001 00 0006 0001 00 0029 04d0 01008000 0000"
        ),
    ])
    func refusals(what: String, query: String, expected: String) {
        #expect(refusal(hex(query)) == hex(expected))
    }

    @Test func refusalsFit288Octets() throws {
        var query = Vectors.longestName + hex("00 0029 04d0 00000000 0000")
        query[11] = 1
        let reply = try refused(.refused, question(query), query, error: .prohibited, room: 288)
        #expect(reply.count == 288)
        #expect(Array(reply[2..<4]) == hex("8185"))
        #expect(Array(reply[(288 - 17)...]) == hex("00 0029 04d0 00000000 0006 000f 0002 0012"))
    }
}
