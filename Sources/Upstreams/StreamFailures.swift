import Forwarding
import Streams

// What fails on a connection, as the forwarder knows it.

extension Failure {
    init(_ failure: StreamFailure) {
        switch failure {
        case .tls: self.init(.untrusted, failure.description)
        case .system, .closed, .unread: self.init(.unreachable, failure.description)
        }
    }

    init(_ failure: HTTPExchange.Failure) {
        switch failure {
        case .stream(let failure): self.init(failure)
        case .response: self.init(.badAnswer, failure.description)
        }
    }
}
