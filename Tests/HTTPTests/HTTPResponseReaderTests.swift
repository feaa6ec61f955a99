import HTTP
import TestSupport
import Testing

/// What a reader makes of a whole connection's bytes.
struct Reading: Equatable {
    var responses: [HTTPResponse] = []
    var error: HTTPError?

    /// - Parameter pieces: The bytes as they arrive; the end of the connection follows.
    /// - Parameter isCut: How it ends: by somebody else's doing, as the end of TCP under TLS may be.
    init(_ pieces: [[UInt8]], isCut: Bool = false) {
        var reader = HTTPResponseReader()
        do throws(HTTPError) {
            for piece in pieces {
                var response = try reader.receive(piece.span)
                while let complete = response {
                    responses.append(complete)
                    response = try reader.receive(Span())
                }
            }
            if let last = try reader.endOfStream(isCut: isCut) { responses.append(last) }
        } catch {
            self.error = error
        }
    }

    init(_ text: String) { self.init([Array(text.utf8)]) }
}

@Suite struct HTTPResponseReaderTests {
    static let fixed = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    static let chunked =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n"
        + "2;name=\"value\";x\r\nhe\r\n0003 \r\nllo\r\n0\r\nTrailer: 1\r\nOther: 2\r\n\r\n"
    static let untilClose = "HTTP/1.1 200 OK\r\nServer: x\r\n\r\nhello"
    static let interim =
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nContent-Length: 3\r\n\r\n"
        + "HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\ncontent-length:0\r\n\r\n"
    static let folded =
        "HTTP/1.1 200 OK\r\nX: a\r\n  b\r\nContent-Length:\r\n\t 5 \r\nConnection: x,\r\n close\r\n\r\nhello"

    private func hello(keepAlive: Bool) -> HTTPResponse {
        HTTPResponse(status: 200, body: Array("hello".utf8), keepAlive: keepAlive)
    }

    @Test func framings() {
        #expect(Reading(Self.fixed).responses == [hello(keepAlive: true)])
        #expect(Reading(Self.chunked).responses == [hello(keepAlive: true)])
        #expect(Reading(Self.untilClose).responses == [hello(keepAlive: false)])
        #expect(Reading(Self.folded).responses == [hello(keepAlive: false)])
        #expect(
            Reading(Self.interim).responses
                == [HTTPResponse(status: 429, body: [], keepAlive: true, retryAfter: 7)])
    }

    @Test func manyResponsesOnOneConnection() {
        let all = Reading(Self.fixed + Self.chunked + Self.interim + Self.folded + Self.untilClose)
        #expect(all.responses.count == 5)
        #expect(all.error == nil)
    }

    /// A body that ends with the connection can be taken as it comes; any other is given whole.
    @Test func bodiesAreTakenAsTheyCome() throws {
        var reader = HTTPResponseReader(bodyLimit: 8)
        var taken: [String?] = []
        for part in ["HTTP/1.1 200 OK\r\n", "\r\none", "two", "three", "and four"] {
            #expect(try reader.receive(Array(part.utf8).span) == nil)
            taken.append(reader.takeBody().map { String(decoding: $0, as: UTF8.self) })
        }
        #expect(taken == [nil, "one", "two", "three", "and four"])
    }

    /// Split at each byte, and byte by byte.
    @Test(arguments: [fixed + fixed, chunked + chunked, untilClose, interim + folded])
    func splitting(text: String) {
        let bytes = Array(text.utf8)
        let whole = Reading([bytes])
        #expect(whole.error == nil)
        for split in 0...bytes.count {
            #expect(Reading([Array(bytes[..<split]), Array(bytes[split...])]) == whole)
        }
        #expect(Reading(bytes.map { [$0] }) == whole)
    }

    @Test(arguments: [fixed, chunked, interim])
    func truncations(text: String) {
        let bytes = Array(text.utf8)
        for length in 1..<bytes.count {
            #expect(Reading([Array(bytes[..<length])]).error == .truncated)
        }
        #expect(Reading("") == Reading([]))
        #expect(Reading("").error == nil)
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true),
        ("HTTP/1.1 200 OK\nContent-Length: 0\n\n", true),
        ("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 00\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Encoding: Identity\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: CLOSE\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: foo ,\tclose\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: closed\r\n\r\n", true),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n", false),
    ])
    func keepAlive(text: String, expected: Bool) {
        #expect(Reading(text).responses == [HTTPResponse(status: 200, body: [], keepAlive: expected)])
    }

    /// A body that the end of the connection ends is whole if the server ended it, and never when nothing came of it.
    @Test(arguments: [("hello", false, true), ("hello", true, false), ("", false, false), ("", true, false)])
    func bodiesUntilTheEnd(body: String, isCut: Bool, isWhole: Bool) {
        let reading = Reading([Array("HTTP/1.1 200 OK\r\n\r\n\(body)".utf8)], isCut: isCut)
        let expected = HTTPResponse(status: 200, body: Array(body.utf8), keepAlive: false, isWhole: isWhole)
        #expect(reading.responses == [expected])
    }

    /// A body with an end of its own does not need the connection's, nor does an empty one.
    @Test(arguments: [fixed, chunked, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"])
    func aCutBehindABodyChangesNothing(text: String) {
        let bytes = Array(text.utf8)
        #expect(Reading([bytes], isCut: true) == Reading([bytes]))
        #expect(Reading([bytes]).responses.first?.isWhole == true)
        #expect(Reading([bytes.dropLast()], isCut: true).responses == [])
    }

    /// Their Content-Length is that of what they do not carry (RFC 9112 §6.3).
    @Test(arguments: [204, 304]) func bodilessStatuses(status: Int) {
        let reading = Reading("HTTP/1.1 \(status) x\r\nContent-Length: 500\r\n\r\n" + Self.fixed)
        #expect(reading.responses == [HTTPResponse(status: status, body: []), hello(keepAlive: true)])
    }

    @Test(arguments: [
        ("7", 7), ("0", 0), ("99999999999999999999", Int(Int32.max)), ("Fri, 31 Dec 1999 23:59:59 GMT", nil),
        ("-1", nil),
    ])
    func retryAfter(written: String, expected: Int?) {
        let reading = Reading("HTTP/1.1 503 x\r\nContent-Length: 0\r\nRetry-After: \(written)\r\n\r\n")
        #expect(reading.responses.first?.retryAfter == expected)
    }

    @Test(arguments: [
        ("Content-Length: -5", HTTPError.badContentLength), ("Content-Length: +5", .badContentLength),
        ("Content-Length: 5, 5", .badContentLength), ("Content-Length: 0x5", .badContentLength),
        ("Content-Length:", .badContentLength), ("Content-Length: 5 5", .badContentLength),
        ("Content-Length: 5\r\nContent-Length: 6", .badContentLength),
        ("Content-Length: 65537", .bodyTooLong), ("Content-Length: 18446744073709551621", .bodyTooLong),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", .twoLengths),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", .twoLengths),
        ("Transfer-Encoding: gzip, chunked", .transferEncoding), ("Transfer-Encoding: identity", .transferEncoding),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", .transferEncoding),
        ("Content-Encoding: gzip", .contentEncoding), ("Content-Encoding: br, identity", .contentEncoding),
        ("Content-Length : 5", .badHeader), ("no colon", .badHeader), (": nameless", .badHeader),
        (" folded: at the start", .badHeader), ("X: a\rb", .badHeader), ("X: a\0b", .badHeader),
        ("X: a\r\n b\rc", .badHeader), ("X(: a", .badHeader),
    ])
    func badHeads(fields: String, expected: HTTPError) {
        let reading = Reading("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\nhello")
        #expect(reading.error == expected)
        #expect(reading.responses == [])
    }

    @Test(arguments: [
        "\r\nHTTP/1.1 200 OK\r\n\r\n", "http/1.1 200 OK\r\n\r\n", "HTTP/2 200\r\n\r\n", "HTTP/1.1200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 099 x\r\n\r\n", "HTTP/1.1 600 x\r\n\r\n",
        "HTTP/1.x 200 OK\r\n\r\n", "HTTP/1.1\r\n\r\n", "HTTP/1.\r\n\r\n", "HTTP/1.1 +20 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n", "SSH-2.0-x", "\u{15}\u{3}\u{1}",
    ])
    func badStatusLines(text: String) {
        #expect(Reading(text).error == .badStatusLine)
    }

    @Test func http10HasNoTransferEncoding() {
        #expect(
            Reading("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").error == .transferEncoding)
    }

    @Test(arguments: [
        ("x\r\n", HTTPError.badChunk), ("\r\n", .badChunk), (";x\r\n", .badChunk), (" 5\r\n", .badChunk),
        ("-5\r\n", .badChunk), ("0x5\r\nhello", .badChunk), ("5\r\nhelloo\r\n", .badChunk), ("5\r\nhello", .truncated),
        ("10001\r\n", .bodyTooLong), ("ffffffffffffffffffffffff\r\n", .bodyTooLong),
        ("5\r\nhello\r\nfffc\r\n", .bodyTooLong), ("5\r\nhello\r\n0\r\n", .truncated),
        ("5;" + String(repeating: "x", count: 2000) + "\r\n", .badChunk),
        (String(repeating: "0", count: 2000), .badChunk),
        ("0\r\n" + String(repeating: "X: y\r\n", count: 5000) + "\r\n", .headTooLong),
    ])
    func badChunks(body: String, expected: HTTPError) {
        #expect(Reading("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body).error == expected)
    }

    @Test func limitsAreExact() {
        func head(_ length: Int) -> String {
            let frame = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: \r\n\r\n"
            return frame.replacing("X: ", with: "X: " + String(repeating: "y", count: length - frame.utf8.count))
        }
        #expect(Reading(head(HTTPResponseReader.headLimit)).error == nil)
        #expect(Reading(head(HTTPResponseReader.headLimit + 1)).error == .headTooLong)
        #expect(Reading(Array(head(HTTPResponseReader.headLimit + 1).utf8).map { [$0] }).error == .headTooLong)
        #expect(Reading("HTTP/1.1 " + String(repeating: "2", count: 20_000)).error == .headTooLong)
        let body = String(repeating: "y", count: HTTPResponseReader.bodyLimit)
        for framed in [
            "HTTP/1.1 200 OK\r\nContent-Length: 65536\r\n\r\n" + body,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000\r\n" + body + "\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n" + body,
        ] {
            #expect(Reading(framed).responses.first?.body.count == 65536)
        }
        #expect(Reading("HTTP/1.1 200 OK\r\n\r\ny" + body).error == .bodyTooLong)
    }

    @Test func interimResponsesEnd() {
        let one = "HTTP/1.1 100 Continue\r\n\r\n"
        #expect(Reading(String(repeating: one, count: 8) + Self.fixed).responses.count == 1)
        #expect(Reading(String(repeating: one, count: 9) + Self.fixed).error == .interim)
        #expect(Reading("HTTP/1.1 101 Switching Protocols\r\n\r\n").error == .interim)
        #expect(Reading(one).error == .truncated)
    }

    @Test func unaskedDataIsBounded() throws {
        var reader = HTTPResponseReader()
        let response = Array(Self.fixed.utf8)
        let many = [UInt8]((0..<500).map { _ in response }.joined())
        #expect(try reader.receive(many.span) != nil)
        #expect(throws: HTTPError.excess) {
            for _ in 0..<100 { _ = try reader.receive(many.span) }
        }
        #expect(throws: HTTPError.excess) { try reader.receive(Span()) }
        #expect(throws: HTTPError.excess) { try reader.endOfStream() }
    }

    @Test func idleness() throws {
        var reader = HTTPResponseReader()
        #expect(reader.isIdle)
        _ = try reader.receive(Array("H".utf8).span)
        #expect(!reader.isIdle)
        _ = try reader.receive(Array(Self.fixed.dropFirst().utf8).span)
        #expect(reader.isIdle)
        _ = try reader.receive(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8).span)
        #expect(!reader.isIdle)
    }

    /// 100,000 responses with a few bytes changed, cut at random points: never a trap, and the same as in one piece.
    @Test func mutations() {
        var generator = Chance.announced("HTTPResponseReaderTests.mutations")
        let seeds = [Self.fixed, Self.chunked, Self.untilClose, Self.interim, Self.folded].map { Array($0.utf8) }
        let syntax = Array("\r\n :;,0159afHTP/.-chunked".utf8)
        for _ in 0..<100_000 {
            var bytes = mutate(seeds.randomElement(using: &generator)!, with: syntax, &generator)
            if Bool.random(using: &generator) { bytes += seeds.randomElement(using: &generator)! }
            var pieces: [[UInt8]] = []
            var rest = bytes[...]
            while !rest.isEmpty {
                let length = Int.random(in: 1...rest.count, using: &generator)
                pieces.append(Array(rest.prefix(length)))
                rest = rest.dropFirst(length)
            }
            let (split, whole) = (Reading(pieces), Reading([bytes]))
            if split != whole { Issue.record("\(pieces) gives \(split), in one piece \(whole)") }
        }
    }
}
