internal import HTTPDNS

/// The head of one request; a body is never read.
struct HTTPRequest: Equatable {
    private(set) var isGet: Bool
    private(set) var target: [UInt8]
    private(set) var keepAlive: Bool

    /// - Parameter head: From the request line to the empty line.
    init(_ head: Span<UInt8>) throws(Refusal) {
        var fields = HTTPFields()
        guard let line = fields.line(head),
            let first = firstIndex(of: UInt8(ascii: " "), in: head, line),
            let last = lastIndex(of: UInt8(ascii: " "), in: head, line), first > line.lowerBound, last > first,
            last + 1 + "HTTP/1.x".utf8.count == line.upperBound,
            isEqual(head, last + 1..<line.upperBound - 1, to: "http/1."), isDigit(head[line.upperBound - 1])
        else { throw .badRequest }
        isGet = isEqual(head, line.lowerBound..<first, to: "get")
        target = (first + 1..<last).map { head[$0] }
        keepAlive = head[line.upperBound - 1] != UInt8(ascii: "0")
        let mustNameHost = keepAlive
        var hosts = 0
        do throws(HTTPError) {
            while let (name, value) = try fields.next(head) {
                if isEqual(head, name, to: "host") {
                    hosts += 1
                } else if isEqual(head, name, to: "connection") {
                    if isEqual(head, value, to: "close") { keepAlive = false }
                } else if isEqual(head, name, to: "content-length") || isEqual(head, name, to: "transfer-encoding") {
                    throw .badHeader
                }
            }
        } catch {
            throw .badRequest
        }
        // RFC 9112 §3.2.
        guard hosts == 1 || !mustNameHost && hosts == 0 else { throw .badRequest }
    }
}

/// A status other than 200, with which the service answers instead of addresses.
enum Refusal: Int, Error {
    /// What cannot be understood; the connection is of no further use then.
    case badRequest = 400
    /// An unknown id or token, names encrypted with another key, or a request whose time is over.
    case unauthorized = 401
    case notFound = 404
    case notImplemented = 501

    var reason: String {
        switch self {
        case .badRequest: "Bad Request"
        case .unauthorized: "Unauthorized"
        case .notFound: "Not Found"
        case .notImplemented: "Not Implemented"
        }
    }

    var endsConnection: Bool { self == .badRequest || self == .notImplemented }
}

/// Owns the bytes of a connection that have not become a request yet.
struct HTTPRequestReader {
    /// Bytes of one head: a batch of eight longest names, encrypted, is 4 KiB.
    static let headLimit = 16 * 1024
    /// Bytes of requests that wait for the one before them.
    static let pipelineLimit = 64 * 1024

    private var buffer: [UInt8] = []

    mutating func receive(_ bytes: Span<UInt8>) throws(Refusal) {
        guard buffer.count + bytes.count <= Self.pipelineLimit else { throw .badRequest }
        for index in bytes.indices { buffer.append(bytes[index]) }
    }

    /// The next request; nil if none is complete.
    mutating func next() throws(Refusal) -> HTTPRequest? {
        // RFC 9112 §2.2: empty lines before a request are ignored.
        let start = buffer.firstIndex { $0 != UInt8(ascii: "\r") && $0 != UInt8(ascii: "\n") } ?? buffer.count
        guard let end = headEnd(from: start) else {
            guard buffer.count - start <= Self.headLimit else { throw .badRequest }
            return nil
        }
        guard end - start <= Self.headLimit else { throw .badRequest }
        let request = try HTTPRequest(buffer.span.extracting(start..<end))
        buffer.removeSubrange(..<end)
        return request
    }

    private func headEnd(from start: Int) -> Int? {
        var lineStart = start
        for index in start..<buffer.count where buffer[index] == UInt8(ascii: "\n") {
            let length = index - lineStart
            if length == 0 || length == 1 && buffer[lineStart] == UInt8(ascii: "\r") { return index + 1 }
            lineStart = index + 1
        }
        return nil
    }
}
