import Base

/// Owns the bytes of one connection that have not become a response yet.
///
/// The reader is for one request at a time. Bytes after a complete response wait for the next ``receive(_:)``. A
/// connection whose reader is not ``isIdle`` then must not carry another request: the waiting bytes would count as its
/// response, and each later response as the response of the next request. After an error, each further call throws it.
public struct HTTPResponseReader: Sendable {
    /// The longest head, and the longest trailers of a chunked body, in bytes. The HTTPDNS service sends about 200.
    public static let headLimit = 16 * 1024
    /// The longest body from an untrusted peer, in bytes. The HTTPDNS service documents 8 KiB for a full batch.
    public static let bodyLimit = 64 * 1024
    /// The most 1xx responses before the final response.
    public static let interimLimit = 8

    enum State {
        case head
        case body(remaining: Int)
        case chunks
        case untilClose
        case complete
        case failed(HTTPError)
    }

    private var state = State.head
    /// The received bytes that are not consumed yet.
    private var buffer: [UInt8] = []
    private var headEnd = HeadEnd()
    private var interims = 0
    private var head: HTTPHead?
    private var body: [UInt8] = []
    private var chunks = ChunkReader()

    private let bodyLimit: Int

    /// - Parameter bodyLimit: The longest body, in bytes, which must be less than 2^56.
    public init(bodyLimit: Int = Self.bodyLimit) { self.bodyLimit = bodyLimit }

    /// Whether no byte of a response is buffered. The server may close the connection now, and any byte that the server
    /// sends before a request is unsolicited.
    public var isIdle: Bool { if case .head = state { buffer.isEmpty && interims == 0 } else { false } }

    /// Takes bytes from the connection, perhaps none.
    /// - Returns: A response if one is complete. The remaining bytes may hold another: call this again for them.
    public mutating func receive(_ bytes: Span<UInt8>) throws(HTTPError) -> HTTPResponse? {
        do throws(HTTPError) {
            buffer.append(bytes)
            let response = try advance()
            guard buffer.count <= Self.headLimit + bodyLimit else { throw HTTPError.excess }
            return response
        } catch {
            fail(error)
            throw error
        }
    }

    /// The peer has closed the connection.
    /// - Parameter isCut: Whether TCP ended while TLS was open, without the close_notify that only the peer can send
    ///   (RFC 8446 §6.1, RFC 9112 §9.8).
    /// - Returns: The response whose body ends with the connection; nil if no response had begun.
    public mutating func endOfStream(isCut: Bool = false) throws(HTTPError) -> HTTPResponse? {
        switch state {
        case .untilClose:
            return finish(isWhole: !isCut && !body.isEmpty)
        case .failed(let error):
            throw error
        default:
            guard isIdle else {
                fail(.truncated)
                throw .truncated
            }
            return nil
        }
    }

    /// The new part of a body that ends with the connection, since the last call; nil for any other response, and
    /// before the head is complete. The response at the end does not contain the parts taken here.
    public mutating func takeBody() -> [UInt8]? {
        guard case .untilClose = state else { return nil }
        return exchange(&body, with: [])
    }

    private mutating func advance() throws(HTTPError) -> HTTPResponse? {
        while true {
            switch state {
            case .head:
                guard try readHead() else { return nil }
            case .body(let remaining):
                let left = remaining - take(remaining)
                state = left == 0 ? .complete : .body(remaining: left)
                guard left == 0 else { return nil }
            case .chunks:
                buffer.removeSubrange(..<(try chunks.read(buffer[...], into: &body, limit: bodyLimit)))
                guard chunks.isWhole else { return nil }
                state = .complete
            case .untilClose:
                guard buffer.count <= bodyLimit - body.count else { throw .bodyTooLong }
                _ = take(buffer.count)
                return nil
            case .complete:
                return finish()
            case .failed(let error):
                throw error
            }
        }
    }

    /// Reads a head; false: the head is incomplete. 1xx responses are skipped here (RFC 9110 §15.2).
    private mutating func readHead() throws(HTTPError) -> Bool {
        // Any other protocol is recognised at its first byte, not when the head's limit is reached.
        let start = HTTPHead.start
        for index in 0..<min(start.count, buffer.count) where buffer[index] != start[index] {
            throw .badStatusLine
        }
        guard let length = headEnd.find(in: buffer) else {
            guard buffer.count <= Self.headLimit else { throw .headTooLong }
            return false
        }
        headEnd = HeadEnd()
        guard length <= Self.headLimit else { throw .headTooLong }
        let head = try HTTPHead(buffer.span.extracting(..<length))
        buffer.removeSubrange(..<length)
        guard head.status >= 200 else {
            interims += 1
            guard head.status != 101, interims <= Self.interimLimit else { throw .interim }
            return true
        }
        if case .body(let length) = head.next, length > bodyLimit { throw .bodyTooLong }
        (self.head, state, chunks) = (head, head.next, ChunkReader())
        return true
    }

    /// Moves at most `count` bytes to the body and returns their number.
    private mutating func take(_ count: Int) -> Int {
        let taken = min(count, buffer.count)
        body += buffer[..<taken]
        buffer.removeSubrange(..<taken)
        return taken
    }

    private mutating func finish(isWhole: Bool = true) -> HTTPResponse? {
        guard let head else { return nil }
        let response = HTTPResponse(
            status: head.status, fields: head.fields, body: body, keepAlive: head.keepAlive, isWhole: isWhole)
        state = .head
        self.head = nil
        body = []
        interims = 0
        return response
    }

    private mutating func fail(_ error: HTTPError) {
        state = .failed(error)
        buffer = []
    }
}
