package import HTTP

/// What is spoken on one connection, as a value that knows no socket, TLS or clock: requests and octets go in, octets
/// and events come out. Once it has thrown it is of no further use.
///
/// What is only read is declared as mutating: whoever keeps one as `any Conversation` then looks at it in its place,
/// and does not copy it first.
package protocol Conversation {
    /// Requests that it takes on now, beside those under way. 0 for a moment, as long as the peer's limit is reached,
    /// or for good.
    var room: Int { mutating get }
    /// False: there will be no room any more, though what is under way may still be answered.
    var mayTakeMore: Bool { mutating get }
    /// Whether nothing is under way and nothing of the peer's half read.
    var isIdle: Bool { mutating get }
    /// Takes on a request, for which there must be room.
    mutating func open(_ request: [UInt8], as id: RequestID)
    /// Nobody waits for an answer any more.
    /// - Returns: False if it would be taken for that of another request: then the connection has to be closed.
    mutating func cancel(_ id: RequestID) -> Bool
    /// Whether some of the answer has come, so that its end is that of a broken answer.
    mutating func hasBegun(_ id: RequestID) -> Bool
    /// Takes octets of the peer's, in any pieces.
    /// - Parameter events: What they brought is appended, also before an error.
    mutating func receive(
        _ bytes: Span<UInt8>, into events: inout [ConversationEvent]) throws(ConversationFailure)
    /// The peer will send no more.
    /// - Parameter isCut: See ``StreamOwner/ended(_:isCut:)``.
    mutating func endOfStream(isCut: Bool, into events: inout [ConversationEvent]) throws(ConversationFailure)
    /// What has to go to the peer, each octet once; to be asked for after each of the calls above, and at the
    /// beginning.
    mutating func takeOutput() -> [UInt8]
    /// Asks the peer for a sign of life.
    /// - Returns: False: there is nothing that can be said without a request.
    mutating func ping() -> Bool
}

extension Conversation {
    package mutating func hasBegun(_ id: RequestID) -> Bool { false }
    package mutating func ping() -> Bool { false }
}

/// What whoever asks knows a request by.
package typealias RequestID = UInt64

package enum ConversationEvent: Equatable {
    case answered(RequestID, ConversationAnswer)
    /// The peer has not looked at it: it may go out again at once, on another connection at best.
    case refused(RequestID)
    /// Only this one; the others go on.
    case failed(RequestID, ConversationFailure)
    /// ``Conversation/mayTakeMore`` is false from now on.
    case goingAway
}

package enum ConversationAnswer: Equatable {
    /// A DNS message, with the id 0.
    case message([UInt8])
    case http(HTTPResponse)
}

/// What the peer says is no answer, or a breach of the protocol.
package struct ConversationFailure: Error, Equatable {
    /// One line, without anything of the peer's or of the request's in it.
    package let reason: String

    package init(_ reason: String) { self.reason = reason }
}
