import Base
import DNSWire
import Forwarding
import HTTP
import Testing

@testable import Upstreams

/// The meaning of an HTTP response for the query.
@Suite struct DNSOverHTTPSTests {
    private let question = MessageQuestion(name: Name("www.example.com")!, type: .a)
    private let now = Tick(nanoseconds: 1_000_000_000)
    private let server = Server(
        .https(path: "/dns-query", usesGET: false), .name("dns.example"), port: 443, addresses: [.v4(192, 0, 2, 1)])

    private func dialect() -> DNSOverHTTPS {
        DNSOverHTTPS(server, "/dns-query", usesGET: false, DNSAnswers(negativeTTL: 30))
    }

    /// A reply to the question with one address, written by hand.
    private func reply(id: UInt8 = 0, flags: UInt8 = 0x81, code: UInt8 = 0x80, ttl: UInt8 = 60) -> [UInt8] {
        let name: [UInt8] = [3] + Array("www".utf8) + [7] + Array("example".utf8) + [3] + Array("com".utf8) + [0]
        let hasAnswer: UInt8 = code & 0x0F == 0 ? 1 : 0
        return [0, id, flags, code, 0, 1, 0, hasAnswer, 0, 0, 0, 0] + name + [0, 1, 0, 1]
            + (hasAnswer == 1 ? [0xC0, 0x0C, 0, 1, 0, 1, 0, 0, 0, ttl, 0, 4, 192, 0, 2, 7] : [])
    }

    private func read(_ response: HTTPResponse) -> Reading {
        dialect().read(.http(response), to: .message(question), isRewritten: false, at: now)
    }

    private func answer(_ reading: Reading) -> Answer? {
        if case .outcome(.answer(let answer), _, _) = reading { answer } else { nil }
    }

    private func failure(_ reading: Reading) -> Failure? {
        if case .outcome(.failed(let failure), _, let isInSync) = reading, isInSync { failure } else { nil }
    }

    /// RFC 8484 §4.1: id 0; RFC 8467 §4.1: 128 octets.
    @Test func aQueryHasNoIDAndIsPadded() throws {
        for name in ["a.example", "a-much-longer-name.in.some.zone.example"] {
            let ask = Ask.message(MessageQuestion(name: Name(name)!, type: .aaaa, dnssecOK: true))
            let message = try dialect().request(ask, isRewritten: false, at: now, wall: 0)
            #expect(message.count == 128 && message[0] == 0 && message[1] == 0)
        }
    }

    @Test func aSuccessIsItsMessageWhateverItsCode() {
        #expect(answer(read(HTTPResponse(status: 200, body: reply())))?.head.answerCount == 1)
        #expect(answer(read(HTTPResponse(status: 204, body: reply())))?.head.answerCount == 1)
        #expect(answer(read(HTTPResponse(status: 200, body: reply(code: 0x83))))?.head.responseCode == .nxDomain)
        #expect(answer(read(HTTPResponse(status: 200, body: reply(code: 0x82))))?.head.responseCode == .servFail)
    }

    /// The time in a cache on the way shortens the lifetime of an answer (RFC 8484 §5.1).
    @Test(arguments: [(nil, 60), (0, 60), (50, 10), (59, 1), (60, 1), (1_000_000, 1)] as [(Int?, UInt32)])
    func ageIsTakenOff(age: Int?, left: UInt32) {
        let answer = answer(read(HTTPResponse(status: 200, body: reply(), age: age)))
        #expect(answer?.keep == left)
        #expect(answer?.records().map(\.ttl) == [left])
    }

    @Test func aPageIsNoAnswer() {
        let page = read(HTTPResponse(status: 200, body: Array("<html>".utf8), isDNSMessage: false))
        #expect(failure(page)?.kind == .badAnswer && failure(page)?.detail.contains("login page") == true)
        #expect(failure(read(HTTPResponse(status: 200, body: reply(), isDNSMessage: false)))?.kind == .badAnswer)
        #expect(answer(read(HTTPResponse(status: 200, body: reply(), isDNSMessage: true))) != nil)
        #expect(answer(read(HTTPResponse(status: 200, body: reply(), isDNSMessage: nil))) != nil)
    }

    @Test func whatIsNoAnswerToTheQuestionFails() {
        #expect(failure(read(HTTPResponse(status: 200, body: [])))?.kind == .badAnswer)
        #expect(failure(read(HTTPResponse(status: 200, body: Array(reply().prefix(11)))))?.kind == .badAnswer)
        #expect(failure(read(HTTPResponse(status: 200, body: reply(id: 1))))?.kind == .badAnswer)
        // A query, and a truncated reply: both are unusable.
        #expect(failure(read(HTTPResponse(status: 200, body: reply(flags: 0x01))))?.kind == .badAnswer)
        #expect(
            failure(read(HTTPResponse(status: 200, body: reply(flags: 0x83))))?.detail
                == "truncated, which no answer on a connection may be")
    }

    @Test(arguments: [408, 421, 425, 502, 504]) func whatMayPassIsAskedOnceMoreElsewhere(status: Int) {
        guard case .retryOnOtherConnection(let failure) = read(HTTPResponse(status: status, body: [])) else {
            Issue.record("not asked elsewhere")
            return
        }
        #expect(failure.statusCode == status)
    }

    @Test func aServerThatIsAskedTooOftenIsLeftAlone() {
        for status in [429, 503] {
            let told = failure(read(HTTPResponse(status: status, body: [], retryAfter: 17)))
            #expect(told?.kind == .tooOften && told?.retryAfter == 17 && told?.statusCode == status)
            #expect(failure(read(HTTPResponse(status: status, body: [])))?.retryAfter == 5)
        }
    }

    @Test(arguments: [301, 302, 307, 308, 401, 403, 404, 415])
    func whatTheConfigurationHasWrongIsSaidAndLeftAloneForAMinute(status: Int) {
        let response = HTTPResponse(
            status: status, body: reply(), location: status < 400 ? "https://other.example/dns" : nil)
        let told = failure(read(response))
        #expect(told?.kind == .unauthorized && told?.retryAfter == 60)
        #expect(told?.detail.contains("https://other.example/dns") == (status < 400))
    }

    /// A message in the body of a failure is no answer.
    @Test(arguments: [100, 400, 500, 501, 505]) func anyOtherStatusIsAFailure(status: Int) {
        #expect(failure(read(HTTPResponse(status: status, body: reply())))?.kind == .badAnswer)
    }
}
