import Base

/// Is asked DNS messages by a client.
package protocol MessageOwner: AnyObject {
    /// Whether it takes one more message now; else they wait, and their client with them.
    var takesMessages: Bool { get }
    /// Takes a message, which is valid during the call. ``ServerConversation/answer(_:to:)`` is called once for each, now or
    /// later.
    func asked(_ message: Span<UInt8>, as id: RequestID)
}

/// The side that answers DNS messages, whatever carries them: they go to a ``MessageOwner``, and its answers back.
package protocol ServerConversation: Conversation {
    var owner: (any MessageOwner)! { get set }
    /// - Parameter reply: Nil: the message gets no answer.
    func answer(_ reply: Span<UInt8>?, to id: RequestID)
    /// Messages that were taken and not answered yet.
    var underWay: Int { get }
    /// How many messages it gives at once.
    var mostAtOnce: Int { get }
    /// Octets held: those of messages that are not taken yet, and ``unsent``.
    var held: Int { get }
    /// Octets of answers that were not given out yet.
    var unsent: Int { get }
    /// Whether the client has to be listened to while no message is taken, since it says how much it can receive.
    var mustListen: Bool { get }
}
