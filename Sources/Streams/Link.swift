package import Cryptography
package import Transport

/// A connection as an owner of requests sees it: what is under way on it, and how it ends. Confined to its loop.
package protocol Link: AnyObject {
    var state: LinkState { get }
    /// How many more requests it takes now, also while it is being dialled: they wait. 0 for a moment, or for good.
    var room: Int { get }
    /// How many requests the peer takes at once, as far as it has said so.
    var mostAtOnce: Int { get }
    /// Whether it is open and nothing is under way, so that the next octets from the peer belong to the next request.
    var isIdle: Bool { get }
    /// Takes a request, for which there must be room. It leaves with the next ``flush()``.
    /// - Parameter isApart: It shares its TLS record with no other request.
    func open(_ request: [UInt8], as id: RequestID, isApart: Bool)
    /// Cancels a request: its answer is not wanted any more.
    /// - Returns: False if the answer would be taken for that of another request: then the link has to be closed.
    func cancel(_ id: RequestID) -> Bool
    /// Whether part of the answer has come.
    func hasBegun(_ id: RequestID) -> Bool
    /// Reads what has come, if any, without waiting for the loop to report it. Ignored while an event is told.
    func read()
    /// Sends what there is to be sent; while events are told that follows them of itself.
    func flush()
    /// Closes at once. Nothing more is told.
    func close()
    /// Whether the verification of the peer's certificate may still be relied on, or is yet to come.
    /// - Parameter wall: Seconds since 1970.
    func isTrusted(at wall: UInt64) -> Bool
}

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
/// is to be sent goes out; then the end, exactly once. After ``Link/close()`` nothing is told. The owner keeps the link
/// alive.
package protocol LinkOwner: AnyObject {
    /// The link was established after it had been given its stream. What was waiting leaves after this call.
    func opened(_ link: StreamLink)
    func happened(_ event: ConversationEvent, on link: any Link)
    /// Octets have come. Their events, if any, were told, and what followed from them was sent, or is yet to be sent by the
    /// owner: there may be room again.
    func advanced(_ link: any Link)
    /// The link is closed.
    func ended(_ link: any Link, _ end: LinkEnd)
}

extension LinkOwner {
    package func opened(_ link: StreamLink) {}
    package func advanced(_ link: any Link) {}
}
