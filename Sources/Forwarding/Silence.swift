import Base

/// The meaning of a time-out for the server that was asked: a zone whose own servers are silent must not move the names
/// of other zones to another server.
///
/// | from the server since the question was sent | the same question at others of its group | verdict |
/// | --- | --- | --- |
/// | an answer to any question, or a refusal of its own | either | `ofName`: only this question goes on |
/// | nothing | asked, and not answered | `ofAll`: it fails, and retains its rank, since no other is better |
/// | nothing; it is encrypted | answered, or not asked | `ofConnection`: as a SERVFAIL, the third in a row sets it aside |
/// | nothing; it is not | answered, or not asked | `ofServer`: it is set aside |
///
/// An encrypted server whose connection is found dead (closed, reset, refused, TLS impossible) is not judged here: that
/// is a failure like any other, and sets it aside at once. A server that takes connections and answers nothing is found
/// by the third question that another server has answered.
///
/// The servers of an account, and plain resolvers, are asked one after the other, so only the first column counts for
/// them: a time-out during which an answer came does not count among the failures in a row, and the server that is
/// asked for the late name does not take the rank of the one before. A dead server has answered nothing since, so each
/// question counts that was sent after its last answer.
enum Silence {
    case ofName, ofAll, ofConnection, ofServer

    init(of query: Query, by server: ServerState) {
        if let heardAt = server.heardAt, query.sent < heardAt {
            self = .ofName
        } else if query.isSilentAlike {
            self = .ofAll
        } else {
            self = server.server.isEncrypted ? .ofConnection : .ofServer
        }
    }
}

extension Query {
    /// Whether other servers of the group were asked the same, and none has answered.
    fileprivate var isSilentAlike: Bool {
        switch subject {
        case .names: false
        case .message(let step): isOvertaken && !step.hasAnswer
        case .measurement(let step): !step.hasAnswer
        }
    }
}

extension Failure.Kind {
    /// Whether the server itself reported it, which shows that it is reachable.
    var isServersWord: Bool {
        switch self {
        case .unauthorized, .tooOften, .denied, .badAnswer: true
        case .timedOut, .unreachable, .untrusted, .insecure, .here: false
        }
    }
}
