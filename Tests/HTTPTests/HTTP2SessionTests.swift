import HTTP
import Testing

/// What happens to requests, and to the connection in the hands of a server that keeps the rules.
@Suite struct HTTP2SessionTests {
    private let ok = [(":status", "200")]
    private let answer = HTTPResponse(status: 200, body: [7])

    private func answer(_ stream: UInt32) -> [UInt8] { Frame.headers(stream, ok) + Frame.data(stream, [7], ends: true) }

    @Test("the first flight has the preface, the settings, a larger window and the requests")
    func firstFlight() throws {
        let client = try Client(requests: 2)
        let frames = try client.frames
        #expect(frames.map(\.kind) == [.settings, .windowUpdate, .headers, .data, .headers, .data])
        let settings = stride(from: 0, to: frames[0].payload.count, by: 6).map { Array(frames[0].payload[$0..<$0 + 6]) }
        #expect(settings.contains([0, 1, 0, 0, 0x10, 0]))
        #expect(settings.contains([0, 2, 0, 0, 0, 0]))
        #expect(settings.contains([0, 4, 0, 2, 0, 0]))
        #expect(frames[1].payload == Frame.number(1024 * 1024 - 65_535))
        #expect(frames.map(\.stream) == [0, 0, 1, 1, 3, 3])
        #expect(frames[3].payload == [1, 2, 3])
        #expect(frames[3].flags & Frame.endStream != 0)
    }

    @Test func settingsAndPingsAreAcknowledged() throws {
        let client = try Client()
        let before = try client.frames.count
        #expect(client.receive(Frame.settings() + Frame.ping([8, 7, 6, 5, 4, 3, 2, 1])) == [])
        let frames = try client.frames[before...].sorted { $0.kind.rawValue < $1.kind.rawValue }
        #expect(frames.map(\.kind) == [.settings, .ping])
        #expect(frames.allSatisfy { $0.flags == Frame.ack })
        #expect(frames[1].payload == [8, 7, 6, 5, 4, 3, 2, 1])
    }

    @Test func answersComeInAnyOrder() throws {
        let events = try Client.events(3, Frame.settings() + answer(5) + answer(1) + answer(3))
        #expect(events == [.answered(2, answer), .answered(0, answer), .answered(1, answer)])
    }

    @Test("streams above the last one of a GOAWAY were not looked at, the others may be answered")
    func goAway() throws {
        let client = try Client(requests: 3)
        let events = client.receive(Frame.settings() + Frame.goAway(last: 1))
        #expect(events == [.goingAway(.noError), .failed(1, .refused), .failed(2, .refused)])
        #expect(client.session.room == 0)
        #expect(!client.open(9))
        #expect(!client.session.isFinished)
        #expect(client.receive(answer(1)) == [.answered(0, answer)])
        #expect(client.session.isFinished)
    }

    @Test("a graceful GOAWAY comes in two steps and is told once")
    func gracefulGoAway() throws {
        let client = try Client(requests: 3)
        #expect(client.receive(Frame.settings() + Frame.goAway(last: 0x7FFF_FFFF)) == [.goingAway(.noError)])
        #expect(client.session.room == 0)
        #expect(client.receive(answer(1)) == [.answered(0, answer)])
        #expect(client.receive(Frame.goAway(last: 3)) == [.failed(2, .refused)])
        #expect(client.receive(answer(3)) == [.answered(1, answer)])
        #expect(client.session.isFinished)
    }

    @Test func goAwayAtOnce() throws {
        let client = try Client(requests: 1)
        let events = client.receive(Frame.settings() + Frame.goAway(last: 0, .enhanceYourCalm))
        #expect(events == [.goingAway(.enhanceYourCalm), .failed(0, .refused)])
        #expect(client.session.isFinished)
    }

    @Test("a hundred requests at first, then as many as the server allows")
    func streamLimit() throws {
        let client = try Client()
        #expect(client.session.room == 100)
        for id in 0..<3 { #expect(client.open(UInt64(id))) }
        #expect(client.receive(Frame.settings([(Frame.maximumStreams, 1)])) == [])
        #expect(client.session.room == 0)
        let refusals = Frame.reset(3, .refusedStream) + Frame.reset(5, .refusedStream)
        #expect(client.receive(refusals) == [.failed(1, .refused), .failed(2, .refused)])
        #expect(client.session.room == 0)
        #expect(client.receive(answer(1)) == [.answered(0, answer)])
        #expect(client.session.room == 1)
        #expect(client.open(3))
        #expect(!client.open(4))
        #expect(client.receive(answer(7)) == [.answered(3, answer)])
    }

    @Test func streamLimitBeforeTheServerHasSaidIt() throws {
        let client = try Client(requests: 2)
        #expect(client.session.room == HTTP2Session.assumedLimit - 2)
    }

    @Test func streamLimitChanges() throws {
        let client = try Client(requests: 2)
        client.receive(Frame.settings([(Frame.maximumStreams, 0)]))
        #expect(client.session.room == 0)
        #expect(client.receive(answer(1) + answer(3)).count == 2)
        #expect(client.session.room == 0)
        client.receive(Frame.settings([(Frame.maximumStreams, .max)]))
        #expect(client.session.room == HTTP2Session.requestLimit)
        let most = UInt64(HTTP2Session.requestLimit)
        for id in 0..<most { #expect(client.open(id)) }
        #expect(!client.open(most))
    }

    @Test(
        "one stream is reset, and the others go on",
        arguments: [HTTP2Code.noError, .cancel, .internalError, .enhanceYourCalm, .http11Required, .init(rawValue: 99)])
    func reset(_ code: HTTP2Code) throws {
        let bytes = Frame.settings() + Frame.headers(3, ok) + Frame.reset(3, code) + answer(5) + answer(1)
        let events = try Client.events(3, bytes)
        #expect(events == [.failed(1, .reset(code)), .answered(2, answer), .answered(0, answer)])
    }

    /// Its stream ends by itself, which no server takes for an attack.
    @Test func cancelledIsForgotten() throws {
        let client = try Client(requests: 2)
        client.receive(Frame.settings() + Frame.headers(1, ok))
        #expect(client.session.cancel(0) && !client.session.cancel(0))
        client.take()
        #expect(client.session.room == HTTP2Session.requestLimit - 1)
        #expect(client.receive(Frame.data(1, [7], ends: true) + answer(3)) == [.answered(1, answer)])
        #expect(try !client.frames.contains { $0.kind == .reset })
        #expect(client.session.room == HTTP2Session.requestLimit)
    }

    /// Those that were cancelled first make room for others.
    @Test func cancelledIsResetUnderPressure() throws {
        let client = try Client(requests: 3)
        client.receive(Frame.settings([(3, 3)]))
        for id in 0..<2 as Range<UInt64> { client.session.cancel(id) }
        #expect(client.session.room == 2)
        #expect(client.open(3) && client.open(4) && !client.open(5))
        client.take()
        let resets = try client.frames.filter { $0.kind == .reset }
        #expect(resets.map(\.stream) == [1, 3])
        #expect(client.receive(answer(5) + answer(7) + answer(9)) == [2, 3, 4].map { .answered($0, answer) })
    }

    /// A server that never ends them is not left with any number.
    @Test func cancelledIsResetWhenThereIsTooMuchOfIt() throws {
        let most = HTTP2Session.abandonedLimit
        let client = try Client()
        client.receive(Frame.settings())
        for id in 0..<UInt64(most + 3) {
            #expect(client.open(id))
            client.session.cancel(id)
        }
        client.take()
        #expect(try client.frames.filter { $0.kind == .reset }.map(\.stream) == [1, 3, 5])
    }

    @Test("an answer that has come and was not taken is dropped when its request is cancelled")
    func cancelledWithAnswer() throws {
        let session = try HTTP2Session(bodyLimit: 10)
        for id in 0..<3 as Range<UInt64> { #expect(session.open(Client.request(), as: id)) }
        let bytes = Frame.settings() + answer(1) + answer(3) + answer(5)
        session.receive(bytes.span)
        #expect(session.nextEvent() == .answered(0, answer))
        session.cancel(1)
        session.cancel(77)
        #expect(session.nextEvent() == .answered(2, answer))
        #expect(session.nextEvent() == nil)
    }

    /// Nobody has asked for them.
    @Test func acknowledgedPingsSayNothing() throws {
        let client = try Client()
        client.receive(Frame.settings())
        #expect(client.receive(Frame.ping(ack: true) + Frame.ping([UInt8](repeating: 0, count: 8), ack: true)) == [])
        #expect(client.session.room > 0)
    }

    @Test("the end of the connection fails what is open, once")
    func endOfStream() throws {
        let client = try Client(requests: 2)
        client.receive(Frame.settings() + answer(1) + Frame.headers(3, ok) + Frame.data(3, [7]))
        client.session.endOfStream()
        client.session.endOfStream()
        client.take()
        #expect(client.events == [.answered(0, answer), .failed(1, .lost), .ended(.closed)])
        #expect(client.session.isFinished)
        #expect(client.session.room == 0)
    }

    @Test("a body longer than the window goes out as the server allows")
    func requestBody() throws {
        let client = try Client()
        client.receive(Frame.settings([(Frame.initialWindow, 10)]))
        let body = (0..<65_535).map { UInt8($0 % 251) }
        #expect(client.open(0, Client.request(body: body)))
        func octets(_ client: Client) throws -> [UInt8] {
            try client.frames.filter { $0.kind == .data }.flatMap(\.payload)
        }
        #expect(try octets(client) == Array(body.prefix(10)))
        client.receive(Frame.windowUpdate(1, 100))
        #expect(try octets(client) == Array(body.prefix(110)))
        client.receive(Frame.windowUpdate(1, 70_000) + Frame.windowUpdate(0, 70_000))
        #expect(try octets(client) == body)
        #expect(try client.frames.last { $0.kind == .data }?.flags == Frame.endStream)
        #expect(client.receive(answer(1)) == [.answered(0, answer)])
    }

    @Test("an answer before the request was sent is one, and the rest of the request is not sent")
    func earlyAnswer() throws {
        let client = try Client()
        client.receive(Frame.settings([(Frame.initialWindow, 10)]))
        #expect(client.open(0, Client.request(body: [UInt8](repeating: 1, count: 100))))
        #expect(client.receive(Frame.headers(1, [(":status", "413")], ends: true)).count == 1)
        #expect(client.events == [.answered(0, HTTPResponse(status: 413, body: []))])
        #expect(try client.frames.last?.kind == .reset)
        client.receive(Frame.settings([(Frame.maximumStreams, 1)]))
        #expect(client.session.room == 1)
    }

    @Test func longHeads() {
        let path = String(repeating: "a", count: 16 * 1024)
        #expect(HTTP2Request(.get, authority: "dns.example", path: "/" + path) == nil)
        #expect(HTTP2Request(.get, authority: "dns.example", path: "/" + path.dropLast(100)) != nil)
    }
}
