/// The statuses of this program's servers (RFC 9110 §15).
package enum HTTPStatus: Int, Sendable {
    case ok = 200
    case badRequest = 400
    case unauthorized = 401
    case notFound = 404
    case methodNotAllowed = 405
    case contentTooLarge = 413
    case unsupportedMediaType = 415
    case misdirectedRequest = 421
    case unprocessableContent = 422
    case internalServerError = 500
    case notImplemented = 501
    case serviceUnavailable = 503

    /// The end of a status line.
    package var line: String { "\(rawValue) \(reason)" }

    private var reason: String {
        switch self {
        case .ok: "OK"
        case .badRequest: "Bad Request"
        case .unauthorized: "Unauthorized"
        case .notFound: "Not Found"
        case .methodNotAllowed: "Method Not Allowed"
        case .contentTooLarge: "Content Too Large"
        case .unsupportedMediaType: "Unsupported Media Type"
        case .misdirectedRequest: "Misdirected Request"
        case .unprocessableContent: "Unprocessable Content"
        case .internalServerError: "Internal Server Error"
        case .notImplemented: "Not Implemented"
        case .serviceUnavailable: "Service Unavailable"
        }
    }
}
