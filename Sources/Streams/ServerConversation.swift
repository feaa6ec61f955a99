import Base

/// Receives DNS messages from a client.
package protocol MessageOwner: AnyObject {
    /// Whether the owner takes one more message now; otherwise the client waits.
    var takesMessages: Bool { get }
    /// Takes a message, which is valid during the call. ``ServerConversation/answer(_:to:)`` is called once for each,
    /// now or later.
    func asked(_ message: Span<UInt8>, as id: RequestID)
}

/// The side that answers DNS messages, over any transport: the messages go to a ``MessageOwner``, and its answers back.
package protocol ServerConversation: Conversation {
    var owner: (any MessageOwner)! { get set }
    /// - Parameter reply: The reply; nil if the message gets no answer.
    func answer(_ reply: Span<UInt8>?, to id: RequestID)
    /// The number of messages that were taken and not answered yet.
    var underWay: Int { get }
    /// The most messages that the conversation passes on at once.
    var mostAtOnce: Int { get }
    /// Octets held: the octets of messages that are not taken yet, and ``unsent``.
    var held: Int { get }
    /// Octets of answers that were not sent yet.
    var unsent: Int { get }
}
