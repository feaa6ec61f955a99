import Cryptography
import Forwarding
import Streams
import Transport

// Failures of connections in the forwarder's form.

extension StreamFailure {
    /// Whether the peer, or a machine on the way to it, has ended the connection.
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
            case .tls(.storeUnread): .here
            case .tls(let error): error.refusesCertificate ? .untrusted : .insecure
            case .protocolBroken: .badAnswer
            case .reset(let error) where error.isOwn: .here
            case .finished, .closedByPeer, .reset, .timedOut, .tooSlow: .unreachable
            }
        self.init(kind, end.description)
    }

    init(_ failure: StreamFailure) { self.init(LinkEnd(failure)) }

    /// There is no way to the server, or this machine is short of a resource.
    init(_ error: SystemError) { self.init(error.isOwn ? .here : .unreachable, error.description) }

    init(_ failure: ConversationFailure) { self.init(.badAnswer, failure.reason) }
}
