import Base

/// One whole response. Its body has no transfer coding.
public struct HTTPResponse: Sendable, Equatable {
    public var status: Int
    public var body: [UInt8]
    /// Whether the connection can carry another request.
    public var keepAlive: Bool
    /// Whether the body counts as complete. False if the body ended with the connection, and is empty or TLS ended
    /// without close_notify. An attacker on the path can cause such an end, so such a body must not be an answer.
    public var isWhole: Bool
    /// The seconds for which the server asks for a pause (RFC 9110 §10.2.3); nil if there is no such field, or if the
    /// field has a date.
    public var retryAfter: Int?
    /// The server's time in seconds since 1970 (RFC 9110 §6.6.1); nil: there is no such field. Only read from HTTP/1.x
    /// responses with a status of 400 or more, which may be due to this machine's clock.
    public var date: UInt64?
    /// Seconds for which a cache on the way has stored the response (RFC 9111 §5.1); nil if there is no such field, or
    /// if its value is not a number.
    public var age: Int?
    /// Whether each Content-Type is that of DNS messages; nil without such a field.
    public var isDNSMessage: Bool?
    /// The URL in Location (RFC 9110 §10.2.2), without its query; nil if the field is missing or malformed.
    public var location: String?

    public init(
        status: Int, body: [UInt8], keepAlive: Bool = true, isWhole: Bool = true, retryAfter: Int? = nil,
        date: UInt64? = nil, age: Int? = nil, isDNSMessage: Bool? = nil, location: String? = nil
    ) {
        (self.status, self.body, self.keepAlive) = (status, body, keepAlive)
        (self.isWhole, self.retryAfter, self.date) = (isWhole, retryAfter, date)
        (self.age, self.isDNSMessage, self.location) = (age, isDNSMessage, location)
    }

    init(status: Int, fields: ResponseFields, body: [UInt8], keepAlive: Bool = true, isWhole: Bool = true) {
        self.init(
            status: status, body: body, keepAlive: keepAlive, isWhole: isWhole, retryAfter: fields.retryAfter,
            date: fields.date, age: fields.age, isDNSMessage: fields.isDNSMessage, location: fields.location)
    }
}

/// The reason for which received bytes are not a response. The HTTP/1.x connection or HTTP/2 stream is then unusable.
public enum HTTPError: Error, Equatable, Sendable, CustomStringConvertible {
    case badStatusLine
    case badHeader
    /// The head is longer than ``HTTPResponseReader/headLimit``, or in HTTP/2 has more fields than
    /// ``HTTP2Session/fieldLimit``.
    case headTooLong
    /// The body is longer than the reader allows, or in HTTP/2 than its session allows.
    case bodyTooLong
    /// Content-Length is not a number, or several such fields differ.
    case badContentLength
    /// A response has Content-Length and Transfer-Encoding: two readers may then see different responses.
    case twoLengths
    /// A transfer coding other than chunked alone, or any transfer coding in HTTP/1.0.
    case transferEncoding
    /// A content coding, which is never requested.
    case contentEncoding
    case badChunk
    /// More interim (1xx) responses than ``HTTPResponseReader/interimLimit``, or an upgrade that was not requested.
    case interim
    /// More bytes after a response than one further response could have.
    case excess
    /// The connection ended inside a response.
    case truncated

    public var description: String {
        switch self {
        case .badStatusLine: "the server does not speak HTTP/1.1"
        case .badHeader: "malformed HTTP header"
        case .headTooLong: "HTTP header too long"
        case .bodyTooLong: "HTTP body too long"
        case .badContentLength: "malformed Content-Length"
        case .twoLengths: "Content-Length and Transfer-Encoding in one response"
        case .transferEncoding: "unknown Transfer-Encoding"
        case .contentEncoding: "unwanted Content-Encoding"
        case .badChunk: "malformed HTTP chunk"
        case .interim: "unwanted interim HTTP responses"
        case .excess: "unsolicited data"
        case .truncated: "the connection ended inside a response"
        }
    }
}
