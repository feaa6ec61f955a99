import HTTP
import Testing

/// The further codes of RFC 9113 §7 that the tests name.
extension HTTP2Code {
    static let protocolError = HTTP2Code(rawValue: 1)
    static let internalError = HTTP2Code(rawValue: 2)
    static let flowControlError = HTTP2Code(rawValue: 3)
    static let frameSizeError = HTTP2Code(rawValue: 6)
    static let compressionError = HTTP2Code(rawValue: 9)
    static let http11Required = HTTP2Code(rawValue: 13)
}

/// Frames as a server writes them and a client's are read (RFC 9113 §4, §6), without any library.
struct Frame: Equatable {
    enum Kind: UInt8 {
        case data, headers, priority, reset, settings, pushPromise, ping, goAway, windowUpdate, continuation
    }

    static let endStream: UInt8 = 1
    static let ack: UInt8 = 1
    static let endHeaders: UInt8 = 4
    static let padded: UInt8 = 8

    var kind: Kind
    var flags: UInt8 = 0
    var stream: UInt32 = 0
    var payload: [UInt8] = []

    var bytes: [UInt8] {
        [
            UInt8(payload.count >> 16), UInt8(payload.count >> 8 & 0xFF), UInt8(payload.count & 0xFF), kind.rawValue,
            flags,
        ]
            + Self.number(stream) + payload
    }

    static func number(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(value >> (24 - 8 * $0) & 0xFF) } }

    static func settings(_ values: [(UInt16, UInt32)] = []) -> [UInt8] {
        Frame(kind: .settings, payload: values.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] + number($1) }).bytes
    }

    static let maximumStreams: UInt16 = 3
    static let initialWindow: UInt16 = 4

    static func headers(_ stream: UInt32, _ fields: [(String, String)], ends: Bool = false) -> [UInt8] {
        headers(stream, block: literals(fields), ends: ends)
    }

    static func headers(_ stream: UInt32, block: [UInt8], ends: Bool = false) -> [UInt8] {
        Frame(kind: .headers, flags: endHeaders | (ends ? endStream : 0), stream: stream, payload: block).bytes
    }

    /// Headers that end the stream, in as many frames as they need.
    static func fragments(_ stream: UInt32, _ block: [UInt8]) -> [UInt8] {
        let starts = Array(stride(from: 0, to: block.count, by: 16_384))
        return starts.flatMap { start in
            let end = min(start + 16_384, block.count)
            return Frame(
                kind: start == 0 ? .headers : .continuation,
                flags: (start == 0 ? endStream : 0) | (end == block.count ? endHeaders : 0), stream: stream,
                payload: Array(block[start..<end])
            ).bytes
        }
    }

    static func data(_ stream: UInt32, _ body: [UInt8], ends: Bool = false) -> [UInt8] {
        Frame(kind: .data, flags: ends ? endStream : 0, stream: stream, payload: body).bytes
    }

    /// A body in frames of the largest size that every client takes; the last one ends the stream.
    static func body(_ stream: UInt32, length: Int) -> [UInt8] {
        let starts = Array(stride(from: 0, to: max(length, 1), by: 16_384))
        return starts.flatMap { start in
            let count = min(16_384, length - start)
            return data(stream, [UInt8](repeating: 0xAB, count: count), ends: start + count == length)
        }
    }

    static func reset(_ stream: UInt32, _ code: HTTP2Code) -> [UInt8] {
        Frame(kind: .reset, stream: stream, payload: number(code.rawValue)).bytes
    }

    static func goAway(last: UInt32, _ code: HTTP2Code = .noError) -> [UInt8] {
        Frame(kind: .goAway, payload: number(last) + number(code.rawValue) + Array("debug".utf8)).bytes
    }

    static func ping(_ payload: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8], ack: Bool = false) -> [UInt8] {
        Frame(kind: .ping, flags: ack ? Frame.ack : 0, payload: payload).bytes
    }

    static func windowUpdate(_ stream: UInt32, _ increment: UInt32) -> [UInt8] {
        Frame(kind: .windowUpdate, stream: stream, payload: number(increment)).bytes
    }

    /// HPACK literals without indexing and without Huffman's code (RFC 7541 §6.2.2).
    static func literals(_ fields: [(String, String)]) -> [UInt8] {
        fields.flatMap { [0] + text($0.0) + text($0.1) }
    }

    static func text(_ text: String) -> [UInt8] { integer(text.utf8.count, prefix: 7) + Array(text.utf8) }

    /// RFC 7541 §5.1; the bits above the prefix are 0.
    static func integer(_ value: Int, prefix: Int) -> [UInt8] {
        let most = 1 << prefix - 1
        guard value >= most else { return [UInt8(value)] }
        var (bytes, rest) = ([UInt8(most)], value - most)
        while rest >= 128 {
            bytes.append(UInt8(rest & 127 | 128))
            rest >>= 7
        }
        return bytes + [UInt8(rest)]
    }

    /// What a client has sent, behind its preface.
    static func read(_ bytes: [UInt8]) throws -> [Frame] {
        let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
        try #require(bytes.starts(with: preface))
        return try readAll(Array(bytes[preface.count...]))
    }

    static func readAll(_ bytes: [UInt8]) throws -> [Frame] {
        var rest = bytes[...]
        var frames: [Frame] = []
        while !rest.isEmpty {
            try #require(rest.count >= 9)
            let head = Array(rest.prefix(9))
            let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
            try #require(rest.count >= 9 + length)
            frames.append(
                Frame(
                    kind: try #require(Kind(rawValue: head[3])), flags: head[4],
                    stream: head[5...8].reduce(0) { $0 << 8 | UInt32($1) },
                    payload: Array(rest.dropFirst(9).prefix(length))))
            rest = rest.dropFirst(9 + length)
        }
        return frames
    }
}

/// A session whose output and events are taken after each call, as its owner does.
final class Client {
    let session: HTTP2Session
    private(set) var sent: [UInt8] = []
    private(set) var events: [HTTP2Event] = []

    /// - Parameter requests: How many are open, with ids from 0; that of stream 1 is 0, of stream 3 is 1.
    init(requests: Int = 0, bodyLimit: Int = 65_535) throws {
        session = try HTTP2Session(bodyLimit: bodyLimit)
        for id in 0..<requests { try #require(session.open(Self.request(), as: UInt64(id))) }
        take()
    }

    static func request(body: [UInt8] = [1, 2, 3]) -> HTTP2Request {
        var request = HTTP2Request(
            .post, authority: "dns.example", path: "/dns-query",
            fields: [("accept", "application/dns-message"), ("content-type", "application/dns-message")])!
        request.body = body
        return request
    }

    var frames: [Frame] {
        get throws { try Frame.read(sent) }
    }

    func take() {
        while case let part = session.takeOutput(), !part.isEmpty { sent += part }
        while let event = session.nextEvent() { events.append(event) }
    }

    func open(_ id: UInt64, _ request: HTTP2Request = Client.request()) -> Bool {
        defer { take() }
        return session.open(request, as: id)
    }

    /// - Returns: What it has told of them.
    @discardableResult
    func receive(_ bytes: [UInt8]) -> [HTTP2Event] {
        events = []
        session.receive(bytes.span)
        take()
        return events
    }

    /// The events of a connection on which these octets come, the order of which must not depend on their pieces.
    static func events(_ requests: Int, _ bytes: [UInt8], bodyLimit: Int = 65_535) throws -> [HTTP2Event] {
        let whole = try Client(requests: requests, bodyLimit: bodyLimit)
        whole.receive(bytes)
        let pieces = try Client(requests: requests, bodyLimit: bodyLimit)
        var events: [HTTP2Event] = []
        for byte in bytes { events += pieces.receive([byte]) }
        #expect(events.map { "\($0)" }.sorted() == whole.events.map { "\($0)" }.sorted())
        return whole.events
    }
}
