import Base

/// The head of one HTTP/1.x request. Requests with a body are not supported.
package struct HTTPRequest: Equatable {
    package enum Method {
        case get, head, post, other
    }

    package private(set) var method: Method
    /// Path and query as they were sent.
    package private(set) var target: [UInt8]
    package private(set) var keepAlive: Bool
    /// The Host field as it was sent; nil: an HTTP/1.0 client sent none.
    package private(set) var host: [UInt8]?

    /// - Parameter head: From the request line to the empty line.
    package init(_ head: Span<UInt8>) throws(MalformedRequest) {
        var fields = HTTPFields()
        guard let line = fields.line(head),
            let first = firstIndex(of: UInt8(ascii: " "), in: head, line),
            let last = lastIndex(of: UInt8(ascii: " "), in: head, line), first > line.lowerBound, last > first,
            last + 1 + "HTTP/1.x".utf8.count == line.upperBound,
            isEqual(head, last + 1..<line.upperBound - 1, to: "http/1."), isDigit(head[line.upperBound - 1])
        else { throw MalformedRequest() }
        method = Method(head, line.lowerBound..<first)
        target = (first + 1..<last).map { head[$0] }
        keepAlive = head[line.upperBound - 1] != UInt8(ascii: "0")
        let mustNameHost = keepAlive
        var hosts = 0
        do throws(HTTPError) {
            while let (name, value) = try fields.next(head) {
                if isEqual(head, name, to: "host") {
                    hosts += 1
                    host = value.map { head[$0] }
                } else if isEqual(head, name, to: "connection") {
                    if isEqual(head, value, to: "close") { keepAlive = false }
                } else if isEqual(head, name, to: "content-length") {
                    guard decimal(head, value, maximum: 1) == 0 else { throw .badContentLength }
                } else if isEqual(head, name, to: "transfer-encoding") {
                    throw .transferEncoding
                }
            }
        } catch {
            throw MalformedRequest()
        }
        // RFC 9112 §3.2.
        guard hosts == 1 || !mustNameHost && hosts == 0 else { throw MalformedRequest() }
    }
}

/// A request that is malformed or longer than allowed; the connection is of no further use.
package struct MalformedRequest: Error, Equatable {}

/// Owns the bytes of a connection that have not become a request yet.
package struct HTTPRequestReader {
    private let headLimit: Int
    private let pipelineLimit: Int
    private var buffer: [UInt8] = []

    /// - Parameters:
    ///   - headLimit: The longest head, in bytes.
    ///   - pipelineLimit: The most bytes of requests that wait for the answer to the one before them.
    package init(headLimit: Int, pipelineLimit: Int) {
        (self.headLimit, self.pipelineLimit) = (headLimit, pipelineLimit)
    }

    package mutating func receive(_ bytes: Span<UInt8>) throws(MalformedRequest) {
        guard buffer.count + bytes.count <= pipelineLimit else { throw MalformedRequest() }
        buffer.append(bytes)
    }

    /// The next request; nil if none is complete.
    package mutating func next() throws(MalformedRequest) -> HTTPRequest? {
        // RFC 9112 §2.2: empty lines before a request are ignored.
        let start = buffer.firstIndex { $0 != UInt8(ascii: "\r") && $0 != UInt8(ascii: "\n") } ?? buffer.count
        guard let end = headEnd(from: start) else {
            guard buffer.count - start <= headLimit else { throw MalformedRequest() }
            return nil
        }
        guard end - start <= headLimit else { throw MalformedRequest() }
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

extension HTTPRequest.Method {
    fileprivate init(_ head: Span<UInt8>, _ name: Range<Int>) {
        if isEqual(head, name, to: "get") {
            self = .get
        } else if isEqual(head, name, to: "head") {
            self = .head
        } else if isEqual(head, name, to: "post") {
            self = .post
        } else {
            self = .other
        }
    }
}
