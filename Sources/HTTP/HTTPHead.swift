import Base

/// The head of a response, and the length of the body that it defines (RFC 9112 §4, §5, §6.3).
struct HTTPHead {
    private(set) var status: Int
    /// The reader's state after the head.
    private(set) var next = HTTPResponseReader.State.untilClose
    private(set) var keepAlive: Bool
    private(set) var fields = ResponseFields(keepingAll: false)

    /// The first bytes of each response.
    static let start = Array("HTTP/1.".utf8)

    /// - Parameter bytes: The octets from the status line to the empty line, which is not read.
    init(_ bytes: Span<UInt8>) throws(HTTPError) {
        var lines = HTTPFields()
        guard let line = lines.line(bytes) else { throw .badStatusLine }
        let minorVersion: UInt8
        (status, minorVersion) = try Self.statusLine(bytes, line)
        keepAlive = minorVersion >= UInt8(ascii: "1")
        var isChunked = false
        while let (name, value) = try lines.next(bytes) {
            if isEqual(bytes, name, to: "transfer-encoding") {
                // Two chunked codings are as wrong as an unknown coding. HTTP/1.0 has no codings (RFC 9112 §6.1).
                guard minorVersion > UInt8(ascii: "0"), !isChunked, isEqual(bytes, value, to: "chunked") else {
                    throw .transferEncoding
                }
                isChunked = true
            } else if isEqual(bytes, name, to: "connection") {
                if Self.list(bytes, value, holds: "close") { keepAlive = false }
            } else if status >= 400, isEqual(bytes, name, to: "date") {
                fields.readDate(bytes.extracting(value))
            } else {
                try fields.read(bytes.extracting(name), bytes.extracting(value))
            }
        }
        if isChunked, fields.length != nil { throw .twoLengths }
        if status < 200 || status == 204 || status == 304 {
            next = .complete
        } else if isChunked {
            next = .chunks
        } else if let length = fields.length {
            next = .body(remaining: length)
        } else {
            keepAlive = false
        }
    }

    /// Reads `HTTP/1.x NNN[ reason]`: the status and the digit of the minor version.
    private static func statusLine(_ bytes: Span<UInt8>, _ line: Range<Int>) throws(HTTPError) -> (Int, UInt8) {
        let version = line.lowerBound + start.count
        guard line.count >= start.count + 5 else { throw .badStatusLine }
        guard isEqual(bytes, line.lowerBound..<version, to: "http/1."), isDigit(bytes[version]),
            bytes[version + 1] == UInt8(ascii: " "),
            let status = decimal(bytes, version + 2..<version + 5, maximum: 999), status >= 100, status < 600,
            version + 5 == line.upperBound || bytes[version + 5] == UInt8(ascii: " ")
        else { throw .badStatusLine }
        return (status, bytes[version])
    }

    /// Whether a comma-separated list has the element, in any case of letters.
    static func list(_ bytes: Span<UInt8>, _ range: Range<Int>, holds element: StaticString) -> Bool {
        var start = range.lowerBound
        while start < range.upperBound {
            let end = firstIndex(of: UInt8(ascii: ","), in: bytes, start..<range.upperBound) ?? range.upperBound
            if isEqual(bytes, trimmed(bytes, start..<end), to: element) { return true }
            start = end + 1
        }
        return false
    }
}
