import Base
import DNSWire
import TestSupport
import Testing

/// Random octets and damaged messages: nothing may trap, and what is accepted must hold together.
struct HostileTests {
    private static let seed: UInt64 = 0x1035_2181_2308_6891
    private static let queries = [
        Vectors.query, Vectors.ednsQuery, Vectors.signedQuery, Vectors.longestName,
        hex("1234 0100 0000 0000 0000 0001 00 0029 04d0 00000000 0010 000a 0008 0102030405060708 000b 0000"),
    ]
    private static let responses = [
        Vectors.chain, Vectors.nxDomain, Vectors.danglingAlias, Vectors.aliasLoop, Vectors.dname, Vectors.servFail,
        Vectors.truncated, Vectors.badVersion,
    ]

    /// One to four changes: an octet, a cut, an octet more, a copy of a part, an interesting number.
    private func damaged(_ message: [UInt8], _ random: inout Chance) -> [UInt8] {
        var message = message
        for _ in 0..<Int.random(in: 1...4, using: &random) where !message.isEmpty {
            let at = Int.random(in: 0..<message.count, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0: message[at] = UInt8.random(in: 0...255, using: &random)
            case 1: message[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 2: message.removeSubrange(at...)
            case 3: message.insert(UInt8.random(in: 0...255, using: &random), at: at)
            case 4: message.append(contentsOf: message[at...].prefix(40))
            default: message[at] = [0, 1, 12, 0x3F, 0x40, 0x80, 0xC0, 0xFF].randomElement(using: &random)!
            }
        }
        return message
    }

    private func noise(_ random: inout Chance) -> [UInt8] {
        let length = Int.random(in: 0...120, using: &random)
        return (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    @Test func queriesOfAllKinds() throws {
        var random = Chance(seed: HostileTests.seed)
        let name = Name("www.example.com")!
        let stored = Answer.addresses(name, type: .a, [.v4(192, 0, 2, 1)], ttl: 60)
        let cookies = ServerCookies(seed: (HostileTests.seed, 1))
        var buffer = [UInt8](repeating: 0, count: 4096)
        var accepted = 0
        var cookieQueries = 0
        for round in 0..<100_000 {
            let query =
                round % 4 == 0 ? noise(&random) : damaged(HostileTests.queries.randomElement(using: &random)!, &random)
            var out = buffer.mutableSpan
            switch Question.read(query.span) {
            case .silence: break
            case .refuse(let code, let question):
                let length = Reply.refuse(code, question: question, query: query.span, into: &out)
                try #require(
                    (12...Reply.maximumRefusalLength).contains(length), "seed \(HostileTests.seed), round \(round)")
            case .cookieQuery(var question):
                cookieQueries += 1
                addCookie(to: &question, query, cookies)
                let length = Reply.refuse(.noError, question: question, query: query.span, into: &out)
                try #require(length == 12 + 11 + 28, "seed \(HostileTests.seed), round \(round)")
            case .question(var question):
                accepted += 1
                addCookie(to: &question, query, cookies)
                let name = question.name(in: query.span)
                let own = Answer.noData(name, type: question.type, negativeTTL: 30)
                let length = Reply.write(
                    own, age: .elapsed(1), to: question, query: query.span,
                    limit: Reply.udpLimit(question, isLoopback: true), into: &out)
                let message = Array(buffer[..<length])
                // The other half of the module must accept it as the answer to that question.
                let read = try? Response.read(
                    message.span, id: question.id, to: name, type: question.type, recordClass: question.recordClass,
                    defaultNegativeTTL: 30)
                try #require(read != nil, "seed \(HostileTests.seed), round \(round)")
                // A body of another question is an error of ours, not a trap.
                var again = buffer.mutableSpan
                _ = Reply.write(stored, age: .fixed(1), to: question, query: query.span, limit: 512, into: &again)
            }
        }
        #expect(accepted > 5_000 && cookieQueries > 1_000)
    }

    private func addCookie(to question: inout Question, _ query: [UInt8], _ cookies: ServerCookies) {
        guard let edns = question.edns else { return }
        let made = cookies.cookie(for: edns, in: query.span, from: .v4(192, 0, 2, 1), at: 1)
        question.replyOptions = ReplyOptions(cookie: made?.cookie)
    }

    @Test func responsesOfAllKinds() throws {
        var random = Chance(seed: HostileTests.seed &+ 1)
        let query = Vectors.ednsQuery
        var buffer = [UInt8](repeating: 0, count: 4096)
        var accepted = 0
        for round in 0..<100_000 {
            var message = damaged(HostileTests.responses.randomElement(using: &random)!, &random)
            // Most damage to id and question would end the reading there.
            if round % 4 != 0 { message.replaceSubrange(0..<min(2, message.count), with: [0x12, 0x34]) }
            guard let reply = try? read(message), !reply.truncated else { continue }
            accepted += 1
            // Written for a client and read again, it must be the same answer.
            let written = write(reply.answer, age: .elapsed(0), to: query, into: &buffer)
            let again = try? read(written).answer
            // Whether it answers the question may have been seen by what does not belong to it.
            var expected = reply.answer
            if !expected.isCacheable, let again {
                (expected.isCacheable, expected.keep) = (again.isCacheable, again.keep)
            }
            try #require(again == expected, "seed \(HostileTests.seed &+ 1), round \(round)")
            var clamped = reply.answer
            clamped.clampTTLs(minimum: 5, maximum: 10)
            _ = write(clamped, age: .elapsed(6), to: query, into: &buffer)
            _ = clamped.records().map(\.description)
        }
        #expect(accepted > 1_000)
    }

    private func write(_ answer: Answer, age: Reply.Age, to query: [UInt8], into buffer: inout [UInt8]) -> [UInt8] {
        guard case .question(let question) = Question.read(query.span) else { return [] }
        var out = buffer.mutableSpan
        let length = Reply.write(answer, age: age, to: question, query: query.span, limit: 4096, into: &out)
        return Array(buffer[..<length])
    }

    /// Bodies that were never validated.
    @Test func storedBodiesOfAllKinds() throws {
        var random = Chance(seed: HostileTests.seed &+ 2)
        let query = Vectors.ednsQuery
        let question = try question(query)
        var buffer = [UInt8](repeating: 0, count: 700)
        for round in 0..<100_000 {
            let whole = HostileTests.responses.randomElement(using: &random)!
            let body = round % 4 == 0 ? noise(&random) : damaged(Array(whole[12...]), &random)
            let head = AnswerHead(
                responseCode: .noError, answerCount: .random(in: 0...5, using: &random),
                authorityCount: .random(in: 0...2, using: &random),
                additionalCount: .random(in: 0...2, using: &random))
            var answer = Answer(head: head, body: body, keep: 1, isCacheable: true)
            var out = buffer.mutableSpan
            let length = Reply.write(
                answer, age: .elapsed(7), to: question, query: query.span, limit: 512, into: &out)
            try #require((44...512).contains(length), "seed \(HostileTests.seed &+ 2), round \(round)")
            answer.clampTTLs(minimum: 1, maximum: 2)
            _ = answer.records().map(\.description)
        }
    }
}
