import Base

/// One HTTP/1.x request.
package struct HTTPRequest: Equatable {
    package private(set) var method: HTTPMethod
    /// Path and query as sent, even after a scheme and an authority (RFC 9112 §3.2.2).
    package private(set) var target: [UInt8]
    package private(set) var keepAlive: Bool
    /// The authority of the target, else the Host field, as sent; nil if an HTTP/1.0 client sent neither.
    package private(set) var host: [UInt8]?
    /// The value of Content-Type; empty without the field.
    package private(set) var contentType: [UInt8] = []
    package fileprivate(set) var body: [UInt8] = []
    /// The length of the body, in octets; nil for a body in chunks.
    fileprivate var bodyLength: Int? = 0
    /// Whether the client waits for an interim response before it sends the body (RFC 9110 §10.1.1).
    fileprivate var expectsContinue = false

    /// - Parameter head: The octets from the request line to the empty line.
    package init(_ head: Span<UInt8>, bodyLimit: Int = 0) throws(MalformedRequest) {
        var fields = HTTPFields()
        guard let line = fields.line(head),
            let first = firstIndex(of: UInt8(ascii: " "), in: head, line),
            let last = lastIndex(of: UInt8(ascii: " "), in: head, line), first > line.lowerBound, last > first,
            last + 1 + "HTTP/1.x".utf8.count == line.upperBound,
            isEqual(head, last + 1..<line.upperBound - 1, to: "http/1."), isDigit(head[line.upperBound - 1])
        else { throw MalformedRequest() }
        method = HTTPMethod(head.extracting(line.lowerBound..<first))
        let (authority, path) = try Self.split(head, first + 1..<last)
        target = path.map { head[$0] }
        // The path of `https://host?query` is empty, which is written "/".
        if authority != nil, path.isEmpty || head[path.lowerBound] != Self.slash { target.insert(Self.slash, at: 0) }
        keepAlive = head[line.upperBound - 1] != UInt8(ascii: "0")
        let mustNameHost = keepAlive
        var hosts = 0
        var length: Int?
        var isChunked = false
        do throws(HTTPError) {
            while let (name, value) = try fields.next(head) {
                if isEqual(head, name, to: "host") {
                    hosts += 1
                    host = value.map { head[$0] }
                } else if isEqual(head, name, to: "connection") {
                    if HTTPHead.list(head, value, holds: "close") { keepAlive = false }
                } else if isEqual(head, name, to: "content-length") {
                    let given = decimal(head, value, maximum: .max)
                    guard let given, given == length ?? given else { throw .badContentLength }
                    length = given
                } else if isEqual(head, name, to: "transfer-encoding") {
                    // As in a response: see `HTTPHead`.
                    guard mustNameHost, !isChunked, isEqual(head, value, to: "chunked") else { throw .transferEncoding }
                    isChunked = true
                } else if isEqual(head, name, to: "content-type") {
                    contentType = value.map { head[$0] }
                } else if isEqual(head, name, to: "expect") {
                    expectsContinue = mustNameHost && isEqual(head, value, to: "100-continue")
                }
            }
            if isChunked, length != nil { throw .twoLengths }
        } catch {
            throw MalformedRequest()
        }
        // RFC 9112 §3.2.
        guard hosts == 1 || !mustNameHost && hosts == 0 else { throw MalformedRequest() }
        if let authority { host = authority.map { head[$0] } }
        bodyLength = isChunked ? nil : length ?? 0
        guard bodyLength ?? 0 <= bodyLimit else { throw MalformedRequest(.contentTooLarge) }
    }

    private static let slash = UInt8(ascii: "/")

    /// The ranges of a target's authority and path; nil: the target is only a path, without authority.
    private static func split(
        _ head: Span<UInt8>, _ target: Range<Int>
    ) throws(MalformedRequest) -> (authority: Range<Int>?, path: Range<Int>) {
        guard !target.isEmpty, head[target.lowerBound] != slash else { return (nil, target) }
        for scheme in ["http://", "https://"] as [StaticString] {
            let start = target.lowerBound + scheme.utf8CodeUnitCount
            guard start <= target.upperBound, isEqual(head, target.lowerBound..<start, to: scheme) else { continue }
            let end =
                (start..<target.upperBound).first { head[$0] == slash || head[$0] == UInt8(ascii: "?") }
                ?? target.upperBound
            guard end > start else { throw MalformedRequest() }
            return (start..<end, end..<target.upperBound)
        }
        return (nil, target)
    }
}

/// The method of a request; its name has only capital letters (RFC 9110 §9.1).
package enum HTTPMethod {
    case get, head, post, other

    init(_ name: Span<UInt8>) {
        let all = name.indices
        if isSame(name, all, as: "GET") {
            self = .get
        } else if isSame(name, all, as: "HEAD") {
            self = .head
        } else if isSame(name, all, as: "POST") {
            self = .post
        } else {
            self = .other
        }
    }
}

/// A request that is malformed or longer than allowed, after which the connection is unusable.
package struct MalformedRequest: Error, Equatable {
    /// The status for the answer.
    package let status: HTTPStatus

    init(_ status: HTTPStatus = .badRequest) { self.status = status }
}

/// Owns the bytes of a connection that have not become a request yet.
package struct HTTPRequestReader {
    private let headLimit: Int
    private let pipelineLimit: Int
    private let bodyLimit: Int
    private var buffer: [UInt8] = []
    private(set) var headEnd = HeadEnd()
    /// The head of a request whose body is incomplete.
    private var head: HTTPRequest?
    private var chunks = ChunkReader()

    /// - Parameters:
    ///   - headLimit: The longest head, in bytes.
    ///   - pipelineLimit: The most bytes of requests that wait for the answer to an earlier request.
    ///   - bodyLimit: The longest body, in bytes.
    package init(headLimit: Int, pipelineLimit: Int, bodyLimit: Int = 0) {
        (self.headLimit, self.pipelineLimit, self.bodyLimit) = (headLimit, pipelineLimit, bodyLimit)
    }

    /// Octets that have not become a request yet.
    var held: Int { buffer.count + (head?.body.count ?? 0) + chunks.held }

    package mutating func receive(_ bytes: Span<UInt8>) throws(MalformedRequest) {
        guard buffer.count + bytes.count <= pipelineLimit else { throw MalformedRequest() }
        buffer.append(bytes)
    }

    /// The next request; nil: no request is complete.
    package mutating func next() throws(MalformedRequest) -> HTTPRequest? {
        if head == nil { head = try nextHead() }
        guard var request = exchange(&head, with: nil) else { return nil }
        guard try readBody(of: &request) else {
            head = request
            return nil
        }
        return request
    }

    /// Moves the available part of a body; false: the body is incomplete.
    private mutating func readBody(of request: inout HTTPRequest) throws(MalformedRequest) -> Bool {
        if let length = request.bodyLength {
            guard buffer.count >= length else { return false }
            request.body = Array(buffer.prefix(length))
            buffer.removeSubrange(..<length)
            return true
        }
        do throws(HTTPError) {
            let taken = try chunks.read(buffer[...], into: &request.body, limit: bodyLimit)
            buffer.removeSubrange(..<taken)
            guard chunks.isWhole else { return false }
            chunks = ChunkReader()
            return true
        } catch {
            throw MalformedRequest(error == .bodyTooLong ? .contentTooLarge : .badRequest)
        }
    }

    /// Whether the client waits for an interim response before it sends the body of a request whose head has come; true
    /// once.
    mutating func takeExpectation() -> Bool {
        guard head?.expectsContinue ?? false, held == 0 else { return false }
        head?.expectsContinue = false
        return true
    }

    private mutating func nextHead() throws(MalformedRequest) -> HTTPRequest? {
        // Empty lines before a request are ignored (RFC 9112 §2.2).
        let start = buffer.firstIndex { $0 != UInt8(ascii: "\r") && $0 != UInt8(ascii: "\n") } ?? buffer.count
        if start > 0 { buffer.removeSubrange(..<start) }
        guard let end = headEnd.find(in: buffer) else {
            guard buffer.count <= headLimit else { throw MalformedRequest() }
            return nil
        }
        headEnd = HeadEnd()
        guard end <= headLimit else { throw MalformedRequest() }
        let request = try HTTPRequest(buffer.span.extracting(..<end), bodyLimit: bodyLimit)
        buffer.removeSubrange(..<end)
        return request
    }
}
