package import Cryptography
package import Transport

package enum LinkState: Equatable {
    /// Not established yet; with TLS, the handshake belongs to that.
    case dialling
    case open
    /// No more requests are taken; those under way may still be answered.
    case draining
    case closed
}

/// Why a link is no more.
package enum LinkEnd: Error, Equatable, CustomStringConvertible {
    /// ``StreamLink/finish()`` was called, and the peer has closed since.
    case finished
    /// - Parameter cleanly: False: TLS's close_notify was missing, so anybody on the path may have done it.
    case closedByPeer(cleanly: Bool)
    /// The peer or something on the way has reset it, or it could not be made.
    case reset(SystemError)
    /// The peer has acknowledged nothing for too long.
    case timedOut(SystemError)
    /// TLS has failed: the peer's certificate was not accepted, or the two did not agree.
    case tls(TLSError)
    /// The peer has sent what the protocol does not allow; the reason is one line without any text of the peer's.
    case protocolBroken(String)
    /// The peer leaves more unread than is kept for it.
    case tooSlow

    package init(_ failure: StreamFailure) {
        switch failure {
        case .system(let error): self = error.isTimeout ? .timedOut(error) : .reset(error)
        case .tls(let error): self = .tls(error)
        case .closed: self = .closedByPeer(cleanly: false)
        case .unread: self = .tooSlow
        }
    }

    package var description: String {
        switch self {
        case .finished: "finished"
        case .closedByPeer: StreamFailure.closed.description
        case .reset(let error), .timedOut(let error): error.description
        case .tls(let error): error.description
        case .protocolBroken(let reason): reason
        case .tooSlow: StreamFailure.unread.description
        }
    }
}

/// Is told what happens on a link, always in this order: events, each by itself in the order in which they came; then what
/// is to be sent goes out; then the end, exactly once. After ``StreamLink/close()`` nothing is told. The owner keeps the link
/// alive.
package protocol LinkOwner: AnyObject {
    /// The link was established after it had been given its stream. What was waiting leaves after this call.
    func opened(_ link: StreamLink)
    func happened(_ event: ConversationEvent, on link: StreamLink)
    /// Octets have come. Their events, if any, were told, and what followed from them was sent, or is yet to be sent by the
    /// owner: there may be room again.
    func advanced(_ link: StreamLink)
    /// The link is closed.
    func ended(_ link: StreamLink, _ end: LinkEnd)
}

extension LinkOwner {
    package func opened(_ link: StreamLink) {}
    package func advanced(_ link: StreamLink) {}
}
