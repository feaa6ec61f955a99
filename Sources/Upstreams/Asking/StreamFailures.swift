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
    init(_ end: LinkEnd) {
        let kind: Failure.Kind =
            switch end {
            case .untrusted: .untrusted
            case .protocolBroken: .badAnswer
            case .finished, .closedByPeer, .reset, .timedOut, .tooSlow: .unreachable
            }
        self.init(kind, end.description)
    }

    init(_ failure: StreamFailure) { self.init(LinkEnd(failure)) }

    init(_ failure: ConversationFailure) { self.init(.badAnswer, failure.reason) }
}
