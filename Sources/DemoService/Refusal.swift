internal import HTTP

/// A status other than 200 in the place of an answer.
enum Refusal: Error {
    /// The request cannot be parsed; the connection is of no further use then.
    case badRequest
    /// An unknown id or token, names encrypted with another key, or an expired request.
    case unauthorized
    case notFound
    case notImplemented

    var status: HTTPStatus {
        switch self {
        case .badRequest: .badRequest
        case .unauthorized: .unauthorized
        case .notFound: .notFound
        case .notImplemented: .notImplemented
        }
    }

    var endsConnection: Bool { self == .badRequest || self == .notImplemented }
}
