import HTTP
import Testing

/// What a server may put into a response, and what makes it none; the connection goes on.
@Suite struct HTTP2ResponseTests {
    /// The first event of a request that is answered so, behind which a second one is answered well.
    private func outcome(_ frames: [UInt8], bodyLimit: Int = 65_535) throws -> HTTP2Event? {
        let second = Frame.headers(3, [(":status", "200")], ends: true)
        let events = try Client.events(2, Frame.settings() + frames + second, bodyLimit: bodyLimit)
        #expect(events.count == 2)
        #expect(events.contains(.answered(1, HTTPResponse(status: 200, body: []))))
        return events.first { $0 != .answered(1, HTTPResponse(status: 200, body: [])) }
    }

    private func response(_ fields: [(String, String)]) throws -> HTTPResponse? {
        guard case .answered(0, let response) = try outcome(Frame.headers(1, [(":status", "203")] + fields, ends: true))
        else { return nil }
        #expect(response.status == 203)
        return response
    }

    @Test func interimResponsesAndTrailers() throws {
        let frames =
            Frame.headers(1, [(":status", "100"), ("age", "9")])
            + Frame.headers(1, [(":status", "103"), ("link", "x")])
            + Frame.headers(1, [(":status", "200"), ("content-length", "4")])
            + Frame.data(1, [1, 2]) + Frame.data(1, []) + Frame.data(1, [])
            + Frame(kind: .data, flags: Frame.padded, stream: 1, payload: [5, 3, 4, 0, 0, 0, 0, 0]).bytes
            + Frame.headers(1, [("age", "7"), ("content-encoding", "gzip")], ends: true)
        #expect(try outcome(frames) == .answered(0, HTTPResponse(status: 200, body: [1, 2, 3, 4])))
    }

    @Test func tooManyInterimResponses() throws {
        let interim = Frame.headers(1, [(":status", "103")])
        let last = Frame.headers(1, [(":status", "200")], ends: true)
        let eight = Array([[UInt8]](repeating: interim, count: 8).joined())
        #expect(try outcome(eight + last) == .answered(0, HTTPResponse(status: 200, body: [])))
        #expect(try outcome(eight + interim + last) == .failed(0, .response(.interim)))
    }

    @Test func ages() throws {
        for (values, age) in [
            (["0"], 0), (["50"], 50), (["99999999999999999999"], Int(Int32.max)), (["x"], nil), (["-1"], nil),
            ([""], nil),
            (["5", "7"], 5), (["5, 7"], 5), ([], nil),
        ] as [([String], Int?)] {
            #expect(try response(values.map { ("age", $0) })?.age == age, "\(values)")
        }
    }

    @Test func mediaTypes() throws {
        for (values, type) in [
            ([], nil), (["application/dns-message"], true), (["Application/DNS-Message"], true),
            (["application/dns-message ; charset=utf-8"], true), (["application/dns-message-2"], false),
            (["application/dns-message", "application/dns-message; charset=x"], true), (["text/html"], false),
            (["application/dns-message", "text/html"], false), (["text/html", "application/dns-message"], false),
            (["application/dns-message, text/html"], false), ([""], false),
            (["a/" + String(repeating: "b", count: 300)], false),
        ] as [([String], Bool?)] {
            #expect(try response(values.map { ("content-type", $0) })?.isDNSMessage == type, "\(values)")
        }
    }

    @Test func otherFields() throws {
        let fields = [
            ("retry-after", "17"), ("location", "https://other.example/dns-query?dns=AAAB"),
            ("cache-control", "no-store"),
            ("content-encoding", "identity"),
        ]
        let response = try response(fields)
        #expect(response?.retryAfter == 17)
        #expect(response?.location == "https://other.example/dns-query")
        #expect(try self.response([("location", "/a b")])?.location == nil)
        #expect(try self.response([("location", "/" + String(repeating: "a", count: 2000))])?.location == nil)
    }

    @Test func bodiesUpToTheLimit() throws {
        for length in [0, 11, 65_535] {
            let body = [UInt8](repeating: 0xAB, count: length)
            let answered = HTTP2Event.answered(0, HTTPResponse(status: 200, body: body))
            #expect(try outcome(Frame.headers(1, [(":status", "200")]) + Frame.body(1, length: length)) == answered)
            let head = Frame.headers(1, [(":status", "200"), ("content-length", "\(length)")])
            #expect(try outcome(head + Frame.body(1, length: length)) == answered)
        }
        let event = try outcome(Frame.headers(1, [(":status", "200")]) + Frame.body(1, length: 65_536))
        #expect(event == .failed(0, .response(.bodyTooLong)))
    }

    @Test("what is longer than the limit by its Content-Length is given up at once, an endless one at the limit")
    func tooLong() throws {
        let client = try Client(requests: 2)
        let long = Frame.headers(1, [(":status", "200"), ("content-length", "65536")])
        #expect(client.receive(Frame.settings() + long) == [.failed(0, .response(.bodyTooLong))])
        #expect(try client.frames.last == Frame(kind: .reset, stream: 1, payload: Frame.number(8)))
        client.receive(Frame.headers(3, [(":status", "200")]))
        var failures: [HTTP2Event] = []
        for _ in 0..<2000 { failures += client.receive(Frame.data(3, [UInt8](repeating: 0, count: 16_384))) }
        #expect(failures == [.failed(1, .response(.bodyTooLong))])
        #expect(try client.frames.filter { $0.kind == .reset && $0.stream == 3 }.count == 1)
        #expect(client.session.room == HTTP2Session.requestLimit)
    }

    @Test(
        "a response that breaks the rules fails alone",
        arguments: [
            [(":status", "200"), ("content-length", "2")], [(":status", "200"), ("content-length", "4")],
            [(":status", "200"), ("content-length", "3"), ("content-length", "3")],
            [(":status", "200"), ("content-length", "3"), ("content-length", "4")],
            [(":status", "200"), ("content-length", "x")], [(":status", "200"), ("content-length", "-3")],
            [(":status", "200"), ("content-length", "99999999999999999999")],
            [("age", "1"), (":status", "200")], [("age", "1")], [], [(":status", "20")], [(":status", "2000")],
            [(":status", "200"), (":status", "200")], [(":status", "200"), (":path", "/")], [(":status", "101")],
            [(":status", "200"), ("connection", "close")], [(":status", "200"), ("transfer-encoding", "chunked")],
            [(":status", "200"), ("Age", "1")], [(":status", "204"), ("content-length", "3")],
        ])
    func malformed(_ fields: [(String, String)]) throws {
        let event = try outcome(Frame.headers(1, fields) + Frame.data(1, [1, 2, 3], ends: true))
        #expect(event == .failed(0, .response(.badHeader)))
    }

    @Test func contentCodings() throws {
        let event = try outcome(
            Frame.headers(1, [(":status", "200"), ("content-encoding", "gzip")]) + Frame.data(1, [1], ends: true))
        #expect(event == .failed(0, .response(.contentEncoding)))
    }

    @Test func interimResponseAlone() throws {
        #expect(try outcome(Frame.headers(1, [(":status", "103")], ends: true)) == .failed(0, .response(.badHeader)))
    }

    @Test("a head of 16 KiB or 64 fields is the longest")
    func headLimits() throws {
        func head(fields: Int) -> [(String, String)] { [(":status", "200")] + (1..<fields).map { ("x-\($0)", "v") } }
        func head(size: Int) -> [(String, String)] {
            // The first field counts 42 octets, the second 33 and its value.
            [(":status", "200"), ("x", String(repeating: "v", count: size - 75))]
        }
        let answered = HTTP2Event.answered(0, HTTPResponse(status: 200, body: []))
        let failed = HTTP2Event.failed(0, .response(.headTooLong))
        #expect(try outcome(Frame.headers(1, head(fields: 64), ends: true)) == answered)
        #expect(try outcome(Frame.headers(1, head(fields: 65), ends: true)) == failed)
        #expect(try outcome(Frame.headers(1, head(size: 16 * 1024), ends: true)) == answered)
        #expect(try outcome(Frame.headers(1, head(size: 16 * 1024 + 1), ends: true)) == failed)
    }
}
