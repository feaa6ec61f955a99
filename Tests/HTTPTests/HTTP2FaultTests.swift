import HTTP
import Testing

/// A server that breaks the rules or floods: the connection ends, and says why in words.
@Suite struct HTTP2FaultTests {
    private let ok = [(":status", "200")]

    /// Why the connection ended, on which two requests were open.
    private func end(_ bytes: [UInt8], sourceLocation: SourceLocation = #_sourceLocation) throws -> HTTP2Error? {
        let events = try Client.events(2, bytes)
        guard case .ended(let error) = events.last else { return nil }
        let lost = [HTTP2Event.failed(0, .lost), .failed(1, .lost), .ended(error)]
        #expect(events == lost, sourceLocation: sourceLocation)
        return error
    }

    @Test(
        "what is no HTTP/2 is told at once",
        arguments: [
            "HTTP/1.1 400 Bad Request\r\n\r\n", "H", "SSH-2.0-OpenSSH_9.2\r\n", "220 mail.example ESMTP\r\n", "<html>",
        ])
    func notHTTP2(_ text: String) throws {
        #expect(try end(Array(text.utf8)) == .notHTTP2)
        #expect(HTTP2Error.notHTTP2.description == "the server does not speak HTTP/2")
    }

    @Test func otherFrameFirst() throws {
        #expect(try end(Frame.ping()) == .notHTTP2)
        #expect(try end(Frame.goAway(last: 0)) == .notHTTP2)
        #expect(try end([UInt8](repeating: 0, count: 100)) == .notHTTP2)
        #expect(try end([0x00, 0x00, 0x02, 0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x28, 0x00]) == .notHTTP2)
    }

    @Test("the server is told which rule it broke")
    func farewell() throws {
        let client = try Client(requests: 1)
        client.receive(Frame.settings() + Frame.windowUpdate(0, 0))
        let last = try client.frames.last
        #expect(last?.kind == .goAway)
        #expect(last?.payload[4..<8] == [0, 0, 0, 1])
        #expect(client.session.isFinished)
        #expect(HTTP2Error.violation(.protocolError).description.hasSuffix("(PROTOCOL_ERROR)"))
    }

    @Test func brokenRules() throws {
        let start = Frame.settings()
        let zeroes = [UInt8](repeating: 0, count: 16_385)
        for (bytes, code) in [
            (Frame.windowUpdate(0, 0), .protocolError),
            (Frame.windowUpdate(0, 0x7FFF_FFFF) + Frame.windowUpdate(0, 0x7FFF_FFFF), .flowControlError),
            (Frame(kind: .data, stream: 1, payload: zeroes).bytes, .frameSizeError),
            (Frame(kind: .settings, payload: [0]).bytes, .frameSizeError),
            (Frame(kind: .settings, stream: 1).bytes, .protocolError),
            (Frame(kind: .ping, payload: [0]).bytes, .frameSizeError),
            (Frame.settings([(2, 1)]), .protocolError),
            (Frame.settings([(4, 0x8000_0000)]), .flowControlError),
            (Frame.data(0, [1]), .protocolError),
            (Frame.data(7, [1]), .protocolError),
            (Frame.data(1, [1], ends: true), .protocolError),
            (Frame.headers(2, ok), .protocolError),
            (Frame.headers(7, ok), .protocolError),
            (Frame.reset(7, .cancel), .protocolError),
            (Frame(kind: .continuation, stream: 1).bytes, .protocolError),
            (Frame(kind: .data, flags: Frame.padded, stream: 1, payload: [9, 1]).bytes, .protocolError),
        ] as [([UInt8], HTTP2Code)] {
            #expect(try end(start + bytes) == .violation(code), "\(bytes.prefix(20))")
        }
    }

    @Test("a head that was begun is continued by nothing but itself")
    func brokenHead() throws {
        // Whole: nghttp2 counts each piece of a frame behind a begun head as a CONTINUATION.
        let client = try Client(requests: 1)
        client.receive(Frame.settings() + Frame(kind: .headers, stream: 1).bytes + Frame.ping())
        #expect(client.events == [.failed(0, .lost), .ended(.violation(.protocolError))])
    }

    @Test("PUSH_PROMISE was forbidden in the first flight")
    func pushPromise() throws {
        let promise = Frame(
            kind: .pushPromise, flags: Frame.endHeaders, stream: 1,
            payload: Frame.number(2)
                + Frame.literals([
                    (":method", "GET"), (":scheme", "https"), (":authority", "dns.example"), (":path", "/"),
                ])
        ).bytes
        let acknowledged = Frame(kind: .settings, flags: Frame.ack).bytes
        #expect(try end(Frame.settings() + acknowledged + promise) == .violation(.protocolError))
        // Before the server has acknowledged that, it may not know it; what it pushes is refused.
        let client = try Client(requests: 1)
        let answer = Frame.headers(1, ok, ends: true)
        let pushed = Frame.headers(2, ok) + Frame.data(2, [1], ends: true)
        let events = client.receive(Frame.settings() + promise + pushed + answer)
        #expect(events == [.answered(0, HTTPResponse(status: 200, body: []))])
        #expect(try client.frames.contains { $0.kind == .reset && $0.stream == 2 })
    }

    @Test("HPACK: whatever cannot be decoded ends the connection")
    func compression() throws {
        for block in [
            [0x80], [0xBE], [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
            // A table larger than announced, and a size change behind a field.
            [0x3F, 0xE2, 0x1F, 0x88], [0x88, 0x20],
            // Huffman's code: padding of eight bits, padding of zeroes, EOS.
            [0x88, 0x00, 0x82, 0x1F, 0xFF, 0x01, 0x61], [0x88, 0x00, 0x81, 0x18, 0x01, 0x61],
            [0x88, 0x00, 0x84, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 0x61],
            // Strings that are longer than what is there.
            [0x88, 0x00, 0x7F], [0x88, 0x00, 0x01],
        ] as [[UInt8]] {
            let error = try end(Frame.settings() + Frame.headers(1, block: block, ends: true))
            #expect(error == .violation(.compressionError), "\(block)")
        }
    }

    @Test("the table may shrink and grow, and what stands in it is found again")
    func tableSize() throws {
        // A field with indexing, then by its index behind a size change to 0 and back to 4096.
        let age: [UInt8] = [0x40] + Frame.text("age") + Frame.text("12")
        let first = Frame.headers(1, block: [0x88] + age, ends: true)
        let second = Frame.headers(3, block: [0x88, 0xBE], ends: true)
        let emptied = Frame.headers(3, block: [0x20, 0x3F, 0xE1, 0x1F, 0x88] + age, ends: true)
        let answered = HTTPResponse(status: 200, body: [], age: 12)
        for bytes in [first + second, first + emptied] {
            let events = try Client.events(2, Frame.settings() + bytes)
            #expect(events == [.answered(0, answered), .answered(1, answered)])
        }
        let stale = Frame.headers(3, block: [0x20, 0x3F, 0xE1, 0x1F, 0x88, 0xBE], ends: true)
        #expect(try Client.events(2, Frame.settings() + first + stale).last == .ended(.violation(.compressionError)))
    }

    @Test func continuationFlood() throws {
        let first = Frame(kind: .headers, stream: 1, payload: [0x88]).bytes
        let more = Frame(kind: .continuation, stream: 1, payload: Frame.literals([("x", "y")])).bytes
        let last = Frame(kind: .continuation, flags: Frame.endHeaders, stream: 1).bytes
        let flood = Array([[UInt8]](repeating: more, count: 10_000).joined())
        #expect(try end(Frame.settings() + first + flood + last) == .flood)
    }

    @Test("a small head that unfolds to megabytes is given up at its limit")
    func headBomb() throws {
        let large: [UInt8] = [0x40] + Frame.text("x") + Frame.text(String(repeating: "y", count: 4000))
        let bomb = Frame.headers(1, block: [0x88] + large + [UInt8](repeating: 0xBE, count: 10_000), ends: true)
        let second = Frame.headers(3, ok, ends: true)
        let events = try Client.events(2, Frame.settings() + bomb + second)
        #expect(
            events == [.failed(0, .response(.headTooLong)), .answered(1, HTTPResponse(status: 200, body: []))])
    }

    @Test("frames without end that answer nothing end the connection, though each is allowed")
    func floods() throws {
        let head = Frame.settings() + Frame.headers(1, ok)
        for frame in [
            Frame.ping(), Frame.settings(), Frame.settings([(Frame.initialWindow, 1)]), Frame.data(1, []),
            Frame.windowUpdate(0, 1), Frame.windowUpdate(1, 1),
            Frame(kind: .priority, stream: 9, payload: [0, 0, 0, 0, 1]).bytes,
            Frame.goAway(last: 0x7FFF_FFFF), Frame.ping(ack: true),
        ] {
            let client = try Client(requests: 1)
            client.receive(head)
            var ended: HTTP2Event?
            var count = 0
            while count < 2 * HTTP2Session.frameLimit, ended == nil {
                ended = client.receive(frame).last { if case .ended = $0 { true } else { false } }
                count += 1
            }
            #expect(ended == .ended(.flood), "\(frame)")
            #expect(count <= HTTP2Session.frameLimit, "\(frame)")
        }
    }

    @Test("as many frames are no flood where requests are answered")
    func noFlood() throws {
        let client = try Client()
        client.receive(Frame.settings())
        for round in 0..<4000 as Range<UInt32> {
            #expect(client.open(UInt64(round)))
            let answer = Frame.headers(2 * round + 1, ok) + Frame.data(2 * round + 1, [7], ends: true)
            #expect(client.receive(Frame.ping() + answer).count == 1)
        }
    }

    @Test("output that nobody takes stays small, and a server that floods without reading is left")
    func backlog() throws {
        let session = try HTTP2Session(bodyLimit: 100)
        let pings = Array([[UInt8]](repeating: Frame.ping(), count: 500).joined())
        let start = Frame.settings()
        session.receive(start.span)
        for _ in 0..<100 { session.receive(pings.span) }
        #expect(session.nextEvent() == .ended(.flood))
        #expect(session.room == 0)

        let other = try HTTP2Session(bodyLimit: 100)
        other.receive(start.span)
        for _ in 0..<8 { other.receive(pings.span) }
        #expect(other.nextEvent() == nil)
        #expect(other.room == 0, "whose output nobody takes gets no more requests")
        var all = other.takeOutput()
        #expect(all.count <= HTTP2Session.backlogLimit + 16_384 + 9)
        while case let part = other.takeOutput(), !part.isEmpty { all += part }
        #expect(try Frame.read(all).filter { $0.kind == .ping }.count == 4000)
        #expect(other.room == HTTP2Session.requestLimit)
    }

    @Test("DATA on a stream that is over is dropped, and still counts for the connection's window")
    func dataBehindTheEnd() throws {
        let client = try Client(requests: 2)
        client.receive(Frame.settings() + Frame.headers(1, ok, ends: true))
        let piece = Frame.data(1, [UInt8](repeating: 0, count: 16_384))
        for _ in 0..<200 { #expect(client.receive(piece) == []) }
        #expect(
            try client.frames.contains {
                $0.kind == .windowUpdate && $0.stream == 0 && $0.payload != Frame.number(983_041)
            })
        #expect(client.receive(Frame.headers(3, ok, ends: true)) == [.answered(1, HTTPResponse(status: 200, body: []))])
    }

    @Test("more than the connection's window, before any of it was given back")
    func overrun() throws {
        let client = try Client(requests: 1)
        client.receive(Frame.settings() + Frame.headers(1, ok))
        let piece = Frame.data(1, [UInt8](repeating: 0, count: 16_384))
        client.receive(Array([[UInt8]](repeating: piece, count: 200).joined()))
        #expect(client.events == [.failed(0, .response(.bodyTooLong)), .ended(.violation(.flowControlError))])
    }
}
