import HTTP
import Testing

/// The server's side: what it takes of a request, and what it does not take.
@Suite struct HTTP2ServerTests {
    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + Frame.settings()
    private let get = [(":method", "GET"), (":scheme", "https"), (":authority", "h"), (":path", "/p?q")]
    private let post = [
        (":method", "POST"), (":scheme", "https"), (":authority", "h"), (":path", "/p"), ("content-type", "a/b"),
    ]

    /// What a server has read of some bytes, and what it has sent.
    private func serve(
        _ server: HTTP2Server, _ bytes: [UInt8], answer: (HTTPServerRequest) -> Void = { _ in }
    ) -> (requests: [HTTPServerRequest], sent: [UInt8]) {
        server.receive(bytes.span)
        var requests: [HTTPServerRequest] = []
        while let request = server.nextRequest() {
            requests.append(request)
            answer(request)
        }
        var sent: [UInt8] = []
        while case let part = server.takeOutput(), !part.isEmpty { sent += part }
        return (requests, sent)
    }

    @Test("our client's requests are answered in any order, bodies of any length")
    func answers() throws {
        let (client, server) = (try Client(requests: 3), try HTTP2Server(bodyLimit: 3))
        let (requests, first) = serve(server, client.sent)
        #expect(requests.map(\.stream) == [1, 3, 5])
        for request in requests {
            #expect(request.method == .post)
            #expect(String(decoding: request.path, as: UTF8.self) == "/dns-query")
            #expect(String(decoding: request.contentType, as: UTF8.self) == "application/dns-message")
            #expect(request.body == [1, 2, 3])
        }
        #expect(client.receive(first) == [])
        let large = [UInt8](repeating: 7, count: 65_535)
        server.answer(5, HTTPAnswer(.notFound))
        server.answer(1, HTTPAnswer(.ok, contentType: "application/dns-message", body: large))
        var responses: [UInt64: HTTPResponse] = [:]
        for case .answered(let id, let response) in client.receive(serve(server, []).sent) { responses[id] = response }
        #expect(responses[2] == HTTPResponse(status: 404, body: []))
        #expect(responses[0]?.isDNSMessage == true)
        // What is not equal would be printed, octet for octet.
        #expect(responses[0]?.body.elementsEqual(large) ?? false)
        #expect(responses.count == 2)
        #expect(!server.isFinished)
    }

    @Test("a client that gives up and says farewell gets no more")
    func farewell() throws {
        let server = try HTTP2Server(bodyLimit: 3)
        #expect(serve(server, Self.preface + Frame.headers(1, get, ends: true)).requests.count == 1)
        _ = serve(server, Frame.reset(1, .cancel))
        server.answer(1, HTTPAnswer(.ok, body: [1]))
        #expect(serve(server, []).sent.isEmpty && !server.isFinished)
        _ = serve(server, Frame.goAway(last: 0))
        #expect(server.isFinished)
    }

    @Test("the end is said with the last request that is answered, and those after it get nothing")
    func announcedEnd() throws {
        let server = try HTTP2Server(bodyLimit: 3)
        #expect(serve(server, Self.preface + Frame.headers(1, get, ends: true)).requests.count == 1)
        server.announceEnd()
        let farewell = try Frame.readAll(serve(server, []).sent)
        #expect(farewell.map(\.bytes) == [Frame(kind: .goAway, payload: [0, 0, 0, 1, 0, 0, 0, 0]).bytes])
        #expect(serve(server, Frame.headers(3, get, ends: true)).requests.isEmpty && !server.isFinished)
        server.answer(1, HTTPAnswer(.ok, body: [1]))
        let sent = try Frame.readAll(serve(server, []).sent)
        #expect(sent.map(\.kind) == [.headers, .data] && sent.map(\.stream) == [1, 1])
        #expect(server.isFinished)
        server.announceEnd()
        #expect(serve(server, []).sent.isEmpty)
    }

    @Test func inAnyPieces() throws {
        let server = try HTTP2Server(bodyLimit: 10)
        var requests: [HTTPServerRequest] = []
        for byte in Self.preface + Frame.headers(1, post) + Frame.data(1, [1, 2]) + Frame.data(1, [3], ends: true) {
            requests += serve(server, [byte]).requests
        }
        #expect(requests.map(\.body) == [[1, 2, 3]])
        #expect(requests.map { String(decoding: $0.path, as: UTF8.self) } == ["/p"])
    }

    @Test("a request that is too long is to be refused, what follows of it is not wanted, and the connection goes on")
    func limits() throws {
        let server = try HTTP2Server(bodyLimit: 2)
        let long = [("x", String(repeating: "a", count: 40_000))]
        let bytes =
            Frame.headers(1, post) + Frame.data(1, [1, 2, 3])
            + Frame.fragments(3, Frame.literals(get + long)) + Frame.headers(5, get, ends: true)
        let (requests, sent) = serve(server, Self.preface + bytes) {
            server.answer($0.stream, HTTPAnswer($0.refusal ?? .ok))
        }
        #expect(requests.map(\.stream) == [1, 5])
        #expect(requests.map(\.refusal) == [.contentTooLarge, nil])
        let frames = try Frame.readAll(sent)
        #expect(frames.filter { $0.kind == .headers }.map(\.stream) == [1, 5])
        let resets = frames.filter { $0.kind == .reset }
        #expect(resets.map { [UInt8($0.stream)] + $0.payload } == [[3, 0, 0, 0, 11], [1, 0, 0, 0, 0]])
        #expect(server.held == 0 && !server.isFinished)
        #expect(serve(server, Frame.headers(7, get, ends: true)).requests.count == 1)
    }

    @Test("requests that are refused are frames that end in a flood", arguments: [1, 17_000])
    func refusedRequests(length: Int) throws {
        let more = [("x", String(repeating: "a", count: length))]
        let server = try HTTP2Server(bodyLimit: 2)
        _ = serve(server, Self.preface)
        var answered = 0
        for number in 0..<1001 {
            let head = Frame.fragments(UInt32(1 + 2 * number), Frame.literals(get + more))
            answered += serve(server, head) { server.answer($0.stream, HTTPAnswer(.methodNotAllowed)) }.requests.count
        }
        #expect(answered == (length > 16_384 ? 0 : 999) && server.isFinished)
    }

    @Test("the table of a client's fields is small")
    func fieldTable() throws {
        let settings = try #require(try Frame.readAll(serve(try HTTP2Server(bodyLimit: 2), []).sent).first)
        let table = try #require((0..<settings.payload.count / 6).first { settings.payload[6 * $0 + 1] == 1 })
        #expect(Array(settings.payload[6 * table..<6 * table + 6]) == [0, 1, 0, 0, 2, 0])
    }

    @Test("of many bodies that do not end no more is kept than of one that does")
    func manyBodies() throws {
        let server = try HTTP2Server(bodyLimit: 65_535)
        _ = serve(server, Self.preface)
        var refused = 0
        for stream in (0..<90).map({ UInt32(1 + 2 * $0) }) {
            let parts = (0..<2).flatMap { _ in Frame.data(stream, [UInt8](repeating: 0, count: 16_000)) }
            refused += serve(server, Frame.headers(stream, post) + parts).requests.count {
                $0.refusal == .contentTooLarge
            }
            #expect(server.held <= HTTP2Server.heldLimit)
        }
        #expect(refused > 80)
        #expect(!server.isFinished)
    }

    @Test("of many heads that do not end no more is kept either")
    func manyHeads() throws {
        let server = try HTTP2Server(bodyLimit: 65_535)
        _ = serve(server, Self.preface)
        let long = get.dropLast() + [(":path", "/" + String(repeating: "a", count: 15_000))]
        var refused = 0
        for stream in (0..<90).map({ UInt32(1 + 2 * $0) }) {
            refused += serve(server, Frame.headers(stream, Array(long))).requests.count {
                $0.refusal == .contentTooLarge
            }
            #expect(server.held <= HTTP2Server.heldLimit)
        }
        #expect(refused > 70)
        for stream in (0..<90).map({ UInt32(1 + 2 * $0) }) { _ = serve(server, Frame.reset(stream, .cancel)) }
        #expect(server.held == 0 && !server.isFinished)
    }

    @Test("an answer for which the client gives no room waits, and so do no more than a hundred")
    func closedWindow() throws {
        let server = try HTTP2Server(bodyLimit: 2)
        // INITIAL_WINDOW_SIZE 0.
        _ = serve(server, Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + Frame.settings([(4, 0)]))
        for stream in (0..<150).map({ UInt32(1 + 2 * $0) }) {
            _ = serve(server, Frame.headers(stream, get, ends: true)) {
                server.answer($0.stream, HTTPAnswer(.ok, body: [UInt8](repeating: 1, count: 1000)))
            }
        }
        #expect(server.unsent == 100_000 && !server.isFinished)
        let sent = serve(server, Frame.windowUpdate(1, 10)).sent
        #expect(try Frame.readAll(sent).filter { $0.kind == .data }.map(\.payload.count) == [10])
        #expect(server.unsent == 99_990)
        _ = serve(server, Frame.reset(1, .cancel))
        #expect(server.unsent == 99_000)
    }

    @Test("a request that is cancelled before it is taken leaves nothing; many of them are a flood")
    func rapidReset() throws {
        func pairs(_ range: Range<Int>) -> [UInt8] {
            range.map { UInt32(1 + 2 * $0) }.flatMap { Frame.headers($0, get, ends: true) + Frame.reset($0, .cancel) }
        }
        let server = try HTTP2Server(bodyLimit: 2)
        #expect(serve(server, Self.preface + pairs(0..<400)).requests.isEmpty && !server.isFinished)
        let (requests, sent) = serve(server, pairs(400..<600))
        #expect(requests.isEmpty && server.isFinished)
        #expect(try Frame.readAll(sent).filter { $0.kind == .goAway }.map { $0.payload[7] } == [11])
    }

    @Test("a hundred requests at a time are served, the next is refused")
    func streamLimit() throws {
        let server = try HTTP2Server(bodyLimit: 2)
        let streams = (0...100).map { UInt32(1 + 2 * $0) }
        let (requests, sent) = serve(
            server, Self.preface + streams.flatMap { Frame.headers($0, get, ends: true) })
        #expect(requests.map(\.stream) == streams.prefix(100).map(Int32.init))
        #expect(try Frame.readAll(sent).filter { $0.kind == .reset }.map(\.stream) == [201])
    }

    @Test("what is no HTTP/2, a breach of it and a flood end the connection")
    func hostile() throws {
        let pings = (0...1000).flatMap { _ in Frame.ping() }
        let streams = (0..<600).map { UInt32(1 + 2 * $0) }
        let resets = streams.flatMap { Frame.headers($0, get) + Frame.reset($0, .cancel) }
        let breach = Frame.windowUpdate(0, 0)
        for bytes in [
            Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8), Self.preface + breach, Self.preface + pings,
            Self.preface + resets,
        ] {
            let server = try HTTP2Server(bodyLimit: 2)
            _ = serve(server, bytes)
            #expect(server.isFinished)
            server.answer(1, HTTPAnswer(.ok, body: [1]))
            #expect(serve(server, Frame.headers(5, get, ends: true)).requests.isEmpty)
        }
    }
}
