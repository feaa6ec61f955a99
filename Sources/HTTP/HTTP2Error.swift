/// The reason for which a connection takes no more requests, in words for the log.
package enum HTTP2Error: Error, Equatable, Sendable, CustomStringConvertible {
    /// The server's first bytes are not a SETTINGS frame (RFC 9113 §3.4), but perhaps HTTP/1.1 or a banner.
    case notHTTP2
    /// The server broke the protocol, and gets this code.
    case violation(HTTP2Code)
    /// More than ``HTTP2Session/frameLimit`` frames came without an answer among them, or too many acknowledgements
    /// wait to be sent.
    case flood
    /// The server closed the connection.
    case closed
    /// nghttp2 failed with this error code of its own, for example without memory.
    case library(code: Int)

    package var description: String {
        switch self {
        case .notHTTP2: "the server does not speak HTTP/2"
        case .violation(let code): "the server broke the rules of HTTP/2 (\(code))"
        case .flood: "the server sent too many frames that answer nothing"
        case .closed: "the server closed the connection"
        case .library(let code): "nghttp2 failed with \(code)"
        }
    }
}

/// The reason for which one request has no answer.
package enum HTTP2Failure: Error, Equatable, Sendable, CustomStringConvertible {
    /// The server has not processed the request, which can be sent again safely (RFC 9113 §8.7).
    case refused
    /// The server reset the stream; the connection goes on.
    case reset(HTTP2Code)
    /// The response is malformed or too large; the connection goes on.
    case response(HTTPError)
    /// The connection ended before the answer.
    case lost

    package var description: String {
        switch self {
        case .refused: "the server refused the request"
        case .reset(let code): "the server gave the request up (\(code))"
        case .response(let error): error.description
        case .lost: "the connection ended before the answer"
        }
    }
}

/// The reason for which a stream or a connection is ended (RFC 9113 §7). Any number is valid.
package struct HTTP2Code: RawRepresentable, Equatable, Sendable, CustomStringConvertible {
    package let rawValue: UInt32

    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let noError = HTTP2Code(rawValue: 0)
    package static let refusedStream = HTTP2Code(rawValue: 7)
    package static let cancel = HTTP2Code(rawValue: 8)
    package static let enhanceYourCalm = HTTP2Code(rawValue: 11)

    /// Names of the registered codes, by number.
    private static let names = [
        "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
        "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
    ]

    package var description: String {
        rawValue < Self.names.count ? Self.names[Int(rawValue)] : "error \(rawValue)"
    }
}
