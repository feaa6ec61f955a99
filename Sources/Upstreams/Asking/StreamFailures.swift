import Cryptography
import Forwarding
import Streams
import Transport

// Failures of connections in the forwarder's form.

extension LinkEnd {
    /// Whether the peer, or a machine on the way to it, has ended the connection.
    var isConnectionEnd: Bool {
        switch self {
        case .closedByPeer, .reset, .timedOut: true
        case .finished, .tls, .protocolBroken, .tooSlow: false
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

    /// There is no way to the server, or this machine is short of a resource.
    init(_ error: SystemError) { self.init(error.isOwn ? .here : .unreachable, error.description) }

    init(_ failure: ConversationFailure) { self.init(.badAnswer, failure.reason) }
}
