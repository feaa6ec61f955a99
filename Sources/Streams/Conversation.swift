package import HTTP

/// What one side speaks on one connection. It knows no socket, TLS or clock: octets go in, octets and events come out.
/// Once it has thrown it is of no further use.
///
/// Conversations are classes: whoever keeps an `any Conversation` then calls it without copying anything first.
package protocol Conversation: AnyObject {
    /// Tells it what ALPN has chosen, before anything comes from the peer; nil: nothing.
    func opened(_ applicationProtocol: String?)
    /// Takes octets from the peer, in any pieces.
    /// - Parameter events: The resulting events are appended, also before an error.
    func receive(_ bytes: Span<UInt8>, into events: inout [ConversationEvent]) throws(ConversationFailure)
    /// Tells it that the peer will send no more.
    /// - Parameter isCut: See ``StreamOwner/ended(_:isCut:)``.
    func endOfStream(isCut: Bool, into events: inout [ConversationEvent]) throws(ConversationFailure)
    /// Tells the peer, where the protocol has a word for it, that nothing more is taken from it.
    func announceEnd()
    /// The octets to send to the peer, each given once; to be called after each of the other calls, and at the beginning.
    func takeOutput() -> [UInt8]
    /// Whether the peer is owed answers, so that the connection goes on when the peer sends no more.
    var isAnswering: Bool { get }
    /// Whether it could go on with what it holds, if it were given no octets.
    var mayGoOn: Bool { get }
    /// Whether nothing more is to go either way once the output is sent.
    var isFinished: Bool { get }
}

extension Conversation {
    package func opened(_ applicationProtocol: String?) {}
    package func announceEnd() {}
    package var isAnswering: Bool { false }
    package var mayGoOn: Bool { false }
    package var isFinished: Bool { false }
}

/// The side that requests: requests go in as well, and answers are events.
package protocol ClientConversation: Conversation {
    /// How many more requests it takes now. 0 for a moment, while the peer's limit is reached, or for good.
    var room: Int { get }
    /// How many requests the peer takes at once, as far as it has said so.
    var mostAtOnce: Int { get }
    /// False: there will be no room any more, though requests under way may still be answered.
    var mayTakeMore: Bool { get }
    /// Whether no request is under way and nothing from the peer is partly read.
    var isIdle: Bool { get }
    /// Takes a request, for which there must be room.
    func open(_ request: [UInt8], as id: RequestID)
    /// Cancels a request: its answer is not wanted any more.
    /// - Returns: False if the answer would be taken for that of another request: then the connection has to be closed.
    func cancel(_ id: RequestID) -> Bool
    /// Whether part of the answer has come, so that an end of the connection would leave a broken answer.
    func hasBegun(_ id: RequestID) -> Bool
}

extension ClientConversation {
    package var mostAtOnce: Int { .max }
    package func hasBegun(_ id: RequestID) -> Bool { false }
}

/// The id by which the owner knows a request.
package typealias RequestID = UInt64

package enum ConversationEvent: Equatable {
    case answered(RequestID, ConversationAnswer)
    /// The peer has not processed the request: it may be sent again at once, preferably on another connection.
    case refused(RequestID)
    /// Only this request failed; the others go on.
    case failed(RequestID, ConversationFailure)
    /// The peer has begun to process the request and stopped: another connection may answer it.
    case givenUp(RequestID, ConversationFailure)
    /// ``ClientConversation/mayTakeMore`` is false from now on.
    case goingAway
}

package enum ConversationAnswer: Equatable {
    /// A DNS message, with the id 0.
    case message([UInt8])
    case http(HTTPResponse)
    case store(StoreReply)
}

/// The peer broke the protocol, or sent something that is no answer.
package struct ConversationFailure: Error, Equatable {
    /// One line, without any text of the peer's or of the request.
    package let reason: String

    package init(_ reason: String) { self.reason = reason }
}
