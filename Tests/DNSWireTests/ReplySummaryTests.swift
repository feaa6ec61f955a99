import Testing

@testable import DNSWire

@Suite struct ReplySummaryTests {
    /// Bodies of queries, behind the id: flags, counts, question, additional records.
    private static let plain: [UInt8] = [1, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    private static let withOPT: [UInt8] = [1, 0, 0, 1, 0, 0, 0, 0, 0, 1]
    private static let name: [UInt8] = [3] + Array("wWw".utf8) + [7] + Array("example".utf8) + [0]
    private static let opt: [UInt8] = [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]
    private static let badVersion: [UInt8] = [0, 0, 41, 4, 208, 0, 1, 0, 0, 0, 0]

    private func refusal(_ query: [UInt8], _ code: ResponseCode? = nil) -> ReplySummary? {
        let query = [7, 7] + query
        var question: Question?
        var given = code
        switch Question.read(query.span) {
        case .question(let read), .cookieQuery(let read): question = read
        case .refuse(let code, let read): (question, given) = (read, given ?? code)
        case .silence: return nil
        }
        return read(refused(given ?? .servFail, question, query))
    }

    private func read(_ reply: [UInt8]) -> ReplySummary? { ReplySummary(reply.span) }

    @Test func aRefusalHasItsWholeCode() throws {
        let plain = try #require(refusal(Self.plain + Self.name + [0, 28, 0, 1], .refused))
        #expect(plain.code == .refused && plain.type == .aaaa && plain.name == 12..<25 && !plain.isAnswer)
        // BADVERS has the lower bits of NOERROR, and BADCOOKIE those of YXRRSET.
        let version = try #require(refusal(Self.withOPT + Self.name + [0, 1, 0, 1] + Self.badVersion))
        #expect(version.code == .badVers && version.type == .a && !version.isAnswer)
        let cookie = try #require(refusal(Self.withOPT + Self.name + [0, 1, 0, 1] + Self.opt, .badCookie))
        #expect(cookie.code == .badCookie)
    }

    @Test func aReplyMayHaveNoQuestion() throws {
        let formErr = try #require(refusal([1, 0, 0, 2, 0, 0, 0, 0, 0, 0]))
        #expect(formErr.code == .formErr && formErr.name.isEmpty && !formErr.isAnswer)
        let notImp = try #require(refusal([0x28, 0, 0, 1, 0, 0, 0, 0, 0, 0]))
        #expect(notImp.code == .notImp)
    }

    @Test func anAnswerIsOneWhateverItsRecords() throws {
        let query = [7, 7] + Self.withOPT + Self.name + [0, 1, 0, 1] + Self.opt
        guard case .question(let question) = Question.read(query.span) else {
            Issue.record("the query is not read")
            return
        }
        let name = question.name(in: query.span)
        for answer in [
            Answer.addresses(name, type: .a, [.v4(192, 0, 2, 1)], ttl: 60), .nxDomain(name, type: .a, negativeTTL: 5),
            .noData(name, type: .a, negativeTTL: 5),
        ] {
            let reply = try reply(answer, to: query, limit: 1232)
            let summary = try #require(read(reply))
            #expect(summary.code == answer.head.responseCode && summary.isAnswer && summary.type == .a)
            let asked = Name(wire: reply.span, at: summary.name.lowerBound, length: summary.name.count)
            #expect(asked == name)
        }
    }

    @Test func whatIsCutIsNone() {
        let whole = [7, 7, 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0] + Self.name + [0, 1, 0, 1]
        #expect(read(whole) != nil)
        for count in whole.indices { #expect(read(Array(whole[..<count])) == nil) }
    }
}
