import Cryptography
import Forwarding
import Streams
import Transport

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
            case .tls(let error): error.refusesCertificate ? .untrusted : .insecure
            case .protocolBroken: .badAnswer
            case .reset(let error) where error.isOwn: .here
            case .finished, .closedByPeer, .reset, .timedOut, .tooSlow: .unreachable
            }
        self.init(kind, end.description)
    }

    init(_ failure: StreamFailure) { self.init(LinkEnd(failure)) }

    /// There is no way to the server, or this machine is short of something.
    init(_ error: SystemError) { self.init(error.isOwn ? .here : .unreachable, error.description) }

    init(_ failure: ConversationFailure) { self.init(.badAnswer, failure.reason) }
}
