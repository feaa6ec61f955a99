import HTTP
import Testing

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
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", 411),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
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
}
