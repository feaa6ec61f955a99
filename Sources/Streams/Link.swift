package import Cryptography
package import Transport

/// Why a link has ended, or a stream is unusable.
package enum LinkEnd: Error, Equatable, CustomStringConvertible {
    /// ``StreamLink/finish()`` was called, and the peer has closed since.
    case finished
    /// The peer has closed, or, without TLS's close_notify, any host on the path.
    case closedByPeer
    /// The peer or a machine on the way has reset the link, or the link could not be made.
    case reset(SystemError)
    /// The peer has acknowledged no data for too long.
    case timedOut(SystemError)
    /// TLS has failed: the peer's certificate was not accepted, or the two sides did not agree.
    case tls(TLSError)
    /// The peer has broken the protocol; the reason is one line without text from the peer.
    case protocolBroken(String)
    /// The peer leaves more octets unread than may wait for the peer.
    case tooSlow

    package init(_ error: SystemError) { self = error.isTimeout ? .timedOut(error) : .reset(error) }

    package var description: String {
        switch self {
        case .finished: "finished"
        case .closedByPeer: "closed by the server"
        case .reset(let error), .timedOut(let error): error.description
        case .tls(let error): error.description
        case .protocolBroken(let reason): reason
        case .tooSlow: "the server takes no more bytes"
        }
    }
}

/// Receives the events of a link, always in this order: events, one by one in the order of their arrival; then the
/// output is sent; then the end, exactly once. After ``StreamLink/close()`` nothing is reported. The owner retains the
/// link.
package protocol LinkOwner: AnyObject {
    /// The link was established after it had got its stream. Waiting output is sent after this call.
    func opened(_ link: StreamLink)
    func happened(_ event: ConversationEvent, on link: StreamLink)
    /// Octets have come. Their events, if any, were reported, and the resulting output was sent, or is left to the
    /// owner to send; there may be room again.
    func advanced(_ link: StreamLink)
    /// TLS has failed on the answering side. The link ends once the peer has read the reason and closed.
    func failing(_ link: StreamLink, _ end: LinkEnd)
    /// The link is closed.
    func ended(_ link: StreamLink, _ end: LinkEnd)
}

extension LinkOwner {
    package func opened(_ link: StreamLink) {}
    package func advanced(_ link: StreamLink) {}
    package func failing(_ link: StreamLink, _ end: LinkEnd) {}
}
