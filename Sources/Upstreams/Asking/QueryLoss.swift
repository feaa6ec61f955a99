/// How a connection that was established has ended.
enum ConnectionEnd {
    /// It was given up here.
    case givenUp
    /// The server has closed it, or it has broken off.
    case closed
    /// The server has sent what the protocol does not allow.
    case brokenProtocol
}

/// What is known of a query whose connection has ended without an answer to it: whether it goes out once more, on another
/// connection. A value; that a server is asked for the same twice does no harm.
struct QueryLoss {
    /// How often it was lost before.
    var losses: Int
    /// How often of these a connection was lost on which no answer had come.
    var unanswered: Int
    /// No other query was under way on the connection.
    var isAlone: Bool
    /// The answers that had come on the connection.
    var answers: Int
    /// Part of the answer has come.
    var hasBegun: Bool
    /// It goes out again although there was no answer on the connection, which was established.
    var goesOutAgainAfterFresh: Bool

    /// How often a query goes out again while others are answered on the connections that it loses: a server that closes after
    /// some answers ends the connections of many queries until that is known of it.
    static let most = 3

    func goesOutAgain(after end: ConnectionEnd) -> Bool {
        guard !hasBegun, answers > 0 || goesOutAgainAfterFresh else { return false }
        return switch end {
        case .givenUp: false
        case .closed where answers > 0: losses - unanswered < Self.most
        case .closed where isAlone: losses < 1
        // A reset may take others' answers along that had come and were not read yet.
        case .closed: unanswered < (losses > unanswered ? Self.most : 1)
        case .brokenProtocol: losses < 1
        }
    }
}
