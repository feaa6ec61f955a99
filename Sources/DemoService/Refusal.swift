/// A status other than 200 in the place of an answer.
enum Refusal: Int, Error {
    /// The request cannot be parsed; the connection is of no further use then.
    case badRequest = 400
    /// An unknown id or token, names encrypted with another key, or an expired request.
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
