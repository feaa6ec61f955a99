package import Base
package import Forwarding

/// Finds the endpoints of servers whose host is a name.
package struct ServerFinder {
    /// Calls `then` at once, or when the endpoints are found.
    let find: (_ server: Server, _ now: Tick, _ then: @escaping (ServerEndpoints) -> Void) -> Void
    /// Records that an answer has come from this endpoint, whose certificate was accepted.
    let worked: (_ server: Server, _ endpoint: Endpoint) -> Void
    /// Records that none of the endpoints given for this server could be reached, or answers.
    let allFailed: (_ server: Server, _ now: Tick) -> Void
}

/// The endpoints at which a server can be dialled.
package enum ServerEndpoints: Equatable {
    /// The endpoint that worked last comes first; the list is never empty.
    case known([Endpoint])
    case unknown(Failure)
}
