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
