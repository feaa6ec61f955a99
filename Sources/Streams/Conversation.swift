package import HTTP

/// One side of the protocol on one connection. A conversation knows no socket, TLS or clock: octets go in, octets and
/// events come out. After a throw the conversation is unusable.
///
/// Conversations are classes, so that a call through `any Conversation` copies nothing.
package protocol Conversation: AnyObject {
    /// Called with ALPN's choice before the first octets from the peer; with nil if ALPN has chosen none.
    func opened(_ applicationProtocol: String?)
    /// Takes octets from the peer, in any pieces.
    /// - Parameter events: The resulting events are appended, also before an error.
    func receive(_ bytes: Span<UInt8>, into events: inout [ConversationEvent]) throws(ConversationFailure)
    /// The peer sends no more.
    /// - Parameter isCut: See ``StreamOwner/ended(_:isCut:)``.
    func endOfStream(isCut: Bool, into events: inout [ConversationEvent]) throws(ConversationFailure)
    /// Announces to the peer, if the protocol can, that no more requests are taken from it.
    func announceEnd()
    /// The octets to send to the peer, each given once; to be called after each other call, and at the start.
    func takeOutput() -> [UInt8]
    /// Whether this side still owes the peer answers, so that the connection goes on when the peer sends no more.
    var isAnswering: Bool { get }
    /// Whether the peer must be read while no message is taken, since the peer announces how much it can receive.
    var mustListen: Bool { get }
    /// Whether the conversation could go on with its buffered octets alone.
    var mayGoOn: Bool { get }
    /// Whether the connection is finished in both directions once the output is sent.
    var isFinished: Bool { get }
}

extension Conversation {
    package func opened(_ applicationProtocol: String?) {}
    package func endOfStream(isCut: Bool, into events: inout [ConversationEvent]) throws(ConversationFailure) {}
    package func announceEnd() {}
    package var isAnswering: Bool { false }
    package var mustListen: Bool { false }
    package var mayGoOn: Bool { false }
    package var isFinished: Bool { false }
}

/// The requesting side: requests go in as well, and answers are events.
package protocol ClientConversation: Conversation {
    /// The number of further requests that the conversation takes now. With 0 it takes none for the moment, while the
    /// peer's limit is reached, or never again.
    var room: Int { get }
    /// The most requests that the peer takes at once, as far as the peer has announced it.
    var mostAtOnce: Int { get }
    /// Whether there may be room again; if not, requests under way may still be answered.
    var mayTakeMore: Bool { get }
    /// Whether no request is under way and no input from the peer is incomplete.
    var isIdle: Bool { get }
    /// Takes a request, for which there must be room.
    func open(_ request: [UInt8], as id: RequestID)
    /// Cancels a request, whose answer is no longer needed. Without effect where only their order identifies answers.
    func cancel(_ id: RequestID)
    /// Whether part of the answer has come, so that the connection's end would leave a broken answer.
    var hasBegun: Bool { get }
}

extension ClientConversation {
    package var mostAtOnce: Int { .max }
    package func cancel(_ id: RequestID) {}
    package var hasBegun: Bool { false }
}

/// The owner's ID of a request.
package typealias RequestID = UInt64

package enum ConversationEvent: Equatable {
    case answered(RequestID, ConversationAnswer)
    /// The peer has not processed the request, which may be sent again at once, preferably on another connection.
    case refused(RequestID)
    /// Only this request failed; the other requests go on.
    case failed(RequestID, ConversationFailure)
    /// The peer has begun to process the request and stopped: another connection may answer it.
    case givenUp(RequestID, ConversationFailure)
    /// ``ClientConversation/mayTakeMore`` is false from now on.
    case goingAway
}

package enum ConversationAnswer: Equatable {
    /// A DNS message, with the ID 0.
    case message([UInt8])
    case http(HTTPResponse)
    case store(StoreReply)
}

/// The peer broke the protocol, or sent octets that are no answer.
package struct ConversationFailure: Error, Equatable {
    /// One line, without text from the peer or the request.
    package let reason: String

    package init(_ reason: String) { self.reason = reason }
}
