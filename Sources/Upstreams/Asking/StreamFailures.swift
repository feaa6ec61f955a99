import Forwarding
import Streams

// Failures of connections as the forwarder knows them.

extension StreamFailure {
    /// The peer, or something on the way to it, has ended the connection.
    var isEnd: Bool {
        switch self {
        case .closed, .system: true
        case .tls, .unread: false
        }
    }
}

extension Failure {
    init(_ failure: StreamFailure) {
        switch failure {
        case .tls: self.init(.untrusted, failure.description)
        case .system, .closed, .unread: self.init(.unreachable, failure.description)
        }
    }

    init(_ failure: ConversationFailure) { self.init(.badAnswer, failure.reason) }

    init(_ failure: HTTPExchange.Failure) {
        switch failure {
        case .stream(let failure): self.init(failure)
        case .response: self.init(.badAnswer, failure.description)
        }
    }
}
