import Testing

@testable import HTTP

/// HTTP/1.1 as the side that answers, by octets.
@Suite struct HTTP1ServerTests {
    private let server = HTTP1Server(bodyLimit: 10)

    private func receive(_ text: String) { server.receive(Array(text.utf8).span) }
    private func sent() -> String { String(decoding: server.takeOutput(), as: UTF8.self) }

    @Test(arguments: [1, 2, 7, 1000]) func aRequestComesInAnyPieces(length: Int) throws {
        let text = Array(
            "\r\nPOST /p?q HTTP/1.1\r\nHost: h\r\nContent-Type: a/b; c=d\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n"
                .utf8)
        var requests: [HTTPServerRequest] = []
        for start in stride(from: 0, to: text.count, by: length) {
            server.receive(Array(text[start..<min(start + length, text.count)]).span)
            while let request = server.nextRequest() { requests.append(request) }
        }
        let request = try #require(requests.first)
        #expect(requests.count == 1 && request.method == .post && request.refusal == nil)
        #expect(String(decoding: request.path, as: UTF8.self) == "/p?q")
        #expect(String(decoding: request.contentType, as: UTF8.self) == "a/b; c=d")
        #expect(request.body == Array("abc".utf8))
        #expect(!server.isFinished)
    }

    @Test func oneRequestAfterTheOtherIsAnswered() throws {
        receive("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        receive("GET /3 HTTP/1.1\r\nHost: h\r\n\r\n")
        _ = try #require(server.nextRequest())
        #expect(server.nextRequest() == nil && !server.hasRequest)
        server.answer(0, HTTPAnswer(.ok, contentType: "a/b", maximumAge: 7, body: Array("xyz".utf8)))
        let head = "Content-Type: a/b\r\nCache-Control: max-age=7\r\nContent-Length: 3\r\n"
        #expect(sent() == "HTTP/1.1 200 OK\r\n\(head)\r\nxyz")
        #expect(server.hasRequest)
        #expect(String(decoding: try #require(server.nextRequest()).path, as: UTF8.self) == "/2")
        server.answer(0, HTTPAnswer(.methodNotAllowed, allow: "GET"))
        let last = "Allow: GET\r\nConnection: close\r\nContent-Length: 0\r\n"
        #expect(sent() == "HTTP/1.1 405 Method Not Allowed\r\n\(last)\r\n")
        #expect(server.isFinished && !server.hasRequest && server.nextRequest() == nil)
    }

    /// RFC 9112 §3.2.2: the authority counts instead of the Host field.
    @Test(arguments: [
        ("https://a.example/p?q", "/p?q", "a.example"), ("HTTP://[::1]:8443/p", "/p", "[::1]:8443"),
        ("https://a.example", "/", "a.example"), ("https://a.example?q=/", "/?q=/", "a.example"),
        ("/p?https://b/", "/p?https://b/", "h"),
        ("//b/p", "//b/p", "h"), ("httpss://b/p", "httpss://b/p", "h"), ("*", "*", "h"), ("http:/", "http:/", "h"),
    ]) func aTargetMayHaveAnAuthority(sent: String, path: String, host: String) throws {
        let request = try HTTPRequest(Array("GET \(sent) HTTP/1.1\r\nHost: h\r\n\r\n".utf8).span)
        #expect(String(decoding: request.target, as: UTF8.self) == path)
        #expect(request.host.map { String(decoding: $0, as: UTF8.self) } == host)
    }

    @Test(arguments: ["http://", "https:///p", "https://?q"]) func anAuthorityIsNotEmpty(target: String) {
        #expect(throws: MalformedRequest.self) {
            try HTTPRequest(Array("GET \(target) HTTP/1.1\r\nHost: h\r\n\r\n".utf8).span)
        }
    }

    /// Whoever waits for a word before the body gets it once, and nobody else.
    @Test func anExpectationIsMet() throws {
        receive("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        #expect(server.nextRequest() == nil && sent() == "HTTP/1.1 100 Continue\r\n\r\n")
        receive("a")
        #expect(server.nextRequest() == nil && sent().isEmpty)
        receive("bc")
        #expect(server.nextRequest()?.body == Array("abc".utf8))
        server.answer(0, HTTPAnswer(.ok))
        _ = sent()
        receive("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na")
        #expect(server.nextRequest() != nil && sent().isEmpty)
    }

    @Test func answersCountUntilTheyAreGivenOut() throws {
        receive("GET / HTTP/1.0\r\nConnection: TE, Close\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n")
        #expect(server.nextRequest() == nil && server.unsent == 0)
        receive("a")
        _ = try #require(server.nextRequest())
        server.answer(0, HTTPAnswer(.ok, body: [UInt8](repeating: 0, count: 500)))
        #expect(server.unsent > 500)
        _ = sent()
        #expect(server.unsent == 0 && server.isFinished)
    }

    /// What cannot be read is refused, and nothing behind it is taken for a request.
    @Test(arguments: [
        ("GET /\r\n\r\n", 400), ("GET / HTTP/2.0\r\n\r\n", 400), ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n\r\n", 400), ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400), ("\u{16}\u{3}\u{1}\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nx: " + String(repeating: "y", count: 20_000), 400),
    ]) func whatIsWrongEndsTheConnection(text: String, status: Int) throws {
        receive(text)
        let refused = try #require(server.nextRequest())
        #expect(refused.refusal?.rawValue == status)
        server.answer(0, HTTPAnswer(try #require(refused.refusal)))
        #expect(sent().hasPrefix("HTTP/1.1 \(status) ") && server.isFinished)
        receive("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(server.nextRequest() == nil && sent().isEmpty)
    }

    private static let chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

    /// RFC 9112 §7.1. What comes behind the body is the next request.
    @Test(arguments: [
        ("3\r\nabc\r\n0\r\n\r\n", "abc"), ("0\r\n\r\n", ""), ("1\r\na\r\n002\r\nbc\r\n000\r\n\r\n", "abc"),
        ("A\r\n0123456789\r\n0\r\n\r\n", "0123456789"), ("a\r\n0123456789\r\n0\r\n\r\n", "0123456789"),
        ("2 ;a=b;c=\"d;e\"\r\n\r\n\r\n0;x\r\n\r\n", "\r\n"), ("1 \t\r\na\r\n0\r\n\r\n", "a"),
        ("1\r\na\r\n0\r\nContent-Length: 5\r\nHost: x\r\n\r\n", "a"),
        ("1;" + String(repeating: "x", count: 1000) + "\r\na\r\n0\r\n\r\n", "a"),
    ]) func aBodyMayComeInChunks(body: String, expected: String) throws {
        let text = Array((Self.chunked + body + "GET /next HTTP/1.1\r\nHost: h\r\n\r\n").utf8)
        for cut in 0...text.count {
            let server = HTTP1Server(bodyLimit: 10)
            let requests = requests(server, text, cutAt: cut)
            #expect(requests.map(\.refusal) == [nil, nil] && server.held == 0)
            #expect(requests.first?.body == Array(expected.utf8))
            #expect(requests.last?.path == Array("/next".utf8))
        }
    }

    /// What two readers could understand in two ways, and what has no bound, is refused, wherever it is cut.
    @Test(arguments: [
        ("\r\n", 400), (";x\r\n", 400), (" 1\r\na\r\n0\r\n\r\n", 400), ("+1\r\n", 400), ("-1\r\n", 400),
        ("0x1\r\n", 400), ("1 1\r\n", 400), ("1,\r\n", 400), ("g\r\n", 400), ("1\na\r\n0\r\n\r\n", 400),
        ("1\r\na\n0\r\n\r\n", 400),
        ("1\r\n3X\r\n", 400), ("1;a\rb\r\n", 400), ("1;a\0\r\n", 400), ("1\r\na\r\n0\r\n\n", 400),
        ("0\r\nx: a\nGET / HTTP/1.1\r\n\r\n", 400), ("0\r\nx: \rb\r\n\r\n", 400),
        ("b\r\n", 413), ("ffffffffffffffff\r\n", 413), ("10000000000000001\r\n", 413), ("5\r\nabcde\r\n6\r\n", 413),
        (String(repeating: "0", count: 1100), 400), ("1;" + String(repeating: "x", count: 1100), 400),
        ("0\r\nx: " + String(repeating: "y", count: 17_000), 400),
        ("0\r\n" + String(repeating: "x: y\r\n", count: 5000), 400),
    ]) func chunksThatAreWrongEndTheConnection(body: String, status: Int) throws {
        try expectRefusal(Self.chunked + body, status)
    }

    /// The extensions of all chunks together have a bound as well (RFC 9112 §7.1.1).
    @Test func extensionsOfAllChunksAreBounded() throws {
        let one = "1;" + String(repeating: "x", count: 1000) + "\r\na\r\n"
        let server = HTTP1Server(bodyLimit: 100)
        server.receive(Array((Self.chunked + String(repeating: one, count: 16) + "0\r\n\r\n").utf8).span)
        #expect(server.nextRequest()?.body.count == 16)
        server.answer(0, HTTPAnswer(.ok))
        server.receive(Array((Self.chunked + String(repeating: one, count: 17)).utf8).span)
        #expect(server.nextRequest()?.refusal == .badRequest)
    }

    /// One length, of one kind (RFC 9112 §6.1, §6.3).
    @Test(arguments: [
        "Content-Length: 1\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 1",
        "Content-Length: 1\r\nTransfer-Encoding: gzip, chunked", "Transfer-Encoding: gzip",
        "Transfer-Encoding: chunked, gzip", "Transfer-Encoding: identity",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip", "Transfer-Encoding: chunked,",
        "Transfer-Encoding: ,chunked", "Transfer-Encoding: gzip,, chunked",
        "Transfer-Encoding:", "Transfer-Encoding: xchunked", "Transfer-Encoding: chunked;q=1",
        "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
    ]) func aBodyHasOneLength(fields: String) throws {
        try expectRefusal("POST / HTTP/1.1\r\nHost: h\r\n\(fields)\r\n\r\n1\r\na\r\n0\r\n\r\n", 400)
    }

    @Test(arguments: ["chunked", "gzip, chunked"]) func http10HasNoChunks(codings: String) throws {
        try expectRefusal("POST / HTTP/1.0\r\nTransfer-Encoding: \(codings)\r\n\r\n0\r\n\r\n", 400)
    }

    /// A client that sends its heads octet by octet costs no more than another one.
    @Test func eachOctetOfAHeadIsLookedAtOnce() throws {
        var reader = HTTPRequestReader(headLimit: 20_000, pipelineLimit: 20_000)
        let head = Array(("GET / HTTP/1.1\r\nHost: h\r\nx: " + String(repeating: "y", count: 10_000) + "\r\n").utf8)
        for _ in 0..<2 {
            for (count, octet) in head.enumerated() {
                try reader.receive([octet].span)
                #expect(reader.headEnd.looked == count)
                #expect(try reader.next() == nil)
            }
            try reader.receive(Array("\r\n".utf8).span)
            #expect(try reader.next()?.target == Array("/".utf8))
        }
    }

    /// Octets of a body count as held until the request is whole.
    @Test func chunksThatWaitCount() {
        receive(Self.chunked.replacing("\r\n\r\n", with: "\r\nExpect: 100-continue\r\n\r\n"))
        #expect(server.nextRequest() == nil && sent() == "HTTP/1.1 100 Continue\r\n\r\n")
        receive("5\r\nabc")
        #expect(server.nextRequest() == nil && server.held == 3 && sent().isEmpty)
        receive("de\r\n0\r\nab")
        #expect(server.nextRequest() == nil && server.held == 7)
        receive("\r\n\r\n")
        #expect(server.nextRequest()?.body.count == 5 && server.held == 0)
    }

    /// It comes whole, and cut in two at each octet or, if it is long, in the middle.
    private func expectRefusal(_ text: String, _ status: Int) throws {
        let octets = Array(text.utf8)
        let cuts = octets.count < 200 ? Array(1..<octets.count) : [octets.count / 2]
        for cut in [octets.count] + cuts {
            let server = HTTP1Server(bodyLimit: 10)
            let requests = requests(server, octets, cutAt: cut)
            #expect(requests.map { $0.refusal?.rawValue } == [status] && server.isFinished)
        }
    }

    /// The requests that come in two pieces, each answered at once.
    private func requests(_ server: HTTP1Server, _ octets: [UInt8], cutAt cut: Int) -> [HTTPServerRequest] {
        var requests: [HTTPServerRequest] = []
        for piece in [octets[..<cut], octets[cut...]] {
            server.receive(Array(piece).span)
            while let request = server.nextRequest() {
                requests.append(request)
                server.answer(0, HTTPAnswer(request.refusal ?? .ok))
            }
        }
        return requests
    }
}
