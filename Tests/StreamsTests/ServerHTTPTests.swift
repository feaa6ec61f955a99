import HTTP
import Testing

@testable import Streams

/// DNS messages in HTTP requests, over HTTP/1.1, whose octets can be read.
@Suite struct ServerHTTPTests {
    private final class Owner: MessageOwner {
        var takesMessages = true
        var asked: [[UInt8]] = []
        func asked(_ message: Span<UInt8>, as id: RequestID) { asked.append(message.indices.map { message[$0] }) }
    }

    private let owner = Owner()
    private let http: ServerHTTP
    init() {
        http = ServerHTTP(owner: owner, clock: HTTPClock { 784_111_777 })
        http.opened(nil)
    }

    private func exchange(_ text: String) throws -> String {
        var events: [ConversationEvent] = []
        try http.receive(Array(text.utf8).span, into: &events)
        return String(decoding: http.takeOutput(), as: UTF8.self)
    }

    private static let post = "POST /dns-query HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Type: "

    @Test(
        "a message is taken from where RFC 8484 says",
        arguments: [
            "GET /dns-query?dns=YWJj HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET /dns-query?a=b&dns=YWJj&dns=x HTTP/1.1\r\nHost: h\r\n\r\n",
            post + "application/dns-message\r\n\r\nabc", post + "Application/DNS-Message ; a=b\r\n\r\nabc",
        ]) func messages(request: String) throws
    {
        #expect(try exchange(request) == "")
        #expect(owner.asked == [Array("abc".utf8)] && http.underWay == 1 && http.isAnswering)
        // The reply has one address record, with a TTL of 77 s.
        let reply: [UInt8] =
            [0, 0, 0x80, 0, 0, 1, 0, 1, 0, 0, 0, 0] + [0, 0, 1, 0, 1] + [0, 0, 1, 0, 1, 0, 0, 0, 77, 0, 4, 1, 2, 3, 4]
        http.answer(reply.span, to: 0)
        let sent = http.takeOutput()
        #expect(sent.suffix(reply.count).elementsEqual(reply))
        #expect(
            String(decoding: sent.dropLast(reply.count), as: UTF8.self)
                == "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: application/dns-message\r\nCache-Control: max-age=77\r\nContent-Length: 32\r\n\r\n"
        )
        #expect(http.underWay == 0 && !http.isAnswering && !http.isFinished)
    }

    @Test(
        "what is no such request is refused, and the connection goes on",
        arguments: [
            ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", "404 Not Found"),
            ("GET /dns-query/ HTTP/1.1\r\nHost: h\r\n\r\n", "404 Not Found"),
            ("GET /dns-quer HTTP/1.1\r\nHost: h\r\n\r\n", "404 Not Found"),
            ("GET /DNS-QUERY?dns=YWJj HTTP/1.1\r\nHost: h\r\n\r\n", "404 Not Found"),
            ("GET /dns-query HTTP/1.1\r\nHost: h\r\n\r\n", "400 Bad Request"),
            ("GET /dns-query? HTTP/1.1\r\nHost: h\r\n\r\n", "400 Bad Request"),
            ("GET /dns-query?dnss=YWJj&xdns=YWJj HTTP/1.1\r\nHost: h\r\n\r\n", "400 Bad Request"),
            ("GET /dns-query?dns=YWJjZA== HTTP/1.1\r\nHost: h\r\n\r\n", "400 Bad Request"),
            ("GET /dns-query?dns=a+b/ HTTP/1.1\r\nHost: h\r\n\r\n", "400 Bad Request"),
            ("GET /dns-query?name=example.com HTTP/1.1\r\nHost: h\r\n\r\n", "400 Bad Request"),
            ("PUT /dns-query?dns=YWJj HTTP/1.1\r\nHost: h\r\n\r\n", "405 Method Not Allowed"),
            ("get /dns-query?dns=YWJj HTTP/1.1\r\nHost: h\r\n\r\n", "405 Method Not Allowed"),
            ("HEAD /dns-query?dns=YWJj HTTP/1.1\r\nHost: h\r\n\r\n", "405 Method Not Allowed"),
            (post + "application/dns-json\r\n\r\nabc", "415 Unsupported Media Type"),
            (post + "application/dns-messages\r\n\r\nabc", "415 Unsupported Media Type"),
            (post + "\r\n\r\nabc", "415 Unsupported Media Type"),
        ]) func refused(request: String, status: String) throws
    {
        let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
        let allow = status.hasPrefix("405") ? "Allow: GET, POST\r\n" : ""
        #expect(try exchange(request) == "HTTP/1.1 \(status)\r\n\(date)\(allow)Content-Length: 0\r\n\r\n")
        #expect(owner.asked.isEmpty && http.underWay == 0 && !http.isFinished)
    }

    /// What UDP leaves without an answer.
    @Test func whatGetsNoReplyIsABadRequest() throws {
        _ = try exchange("GET /dns-query?dns= HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(owner.asked == [[]])
        http.answer(nil, to: 0)
        #expect(String(decoding: http.takeOutput(), as: UTF8.self).hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
    }

    @Test func requestsWaitForRoom() throws {
        owner.takesMessages = false
        #expect(try exchange("GET /x HTTP/1.1\r\nHost: h\r\n\r\n") == "")
        #expect(http.isAnswering && !http.mayGoOn && http.held > 0)
        owner.takesMessages = true
        #expect(http.mayGoOn)
        #expect(try exchange("").hasPrefix("HTTP/1.1 404"))
        #expect(http.held == 0 && !http.mayGoOn)
    }
}
