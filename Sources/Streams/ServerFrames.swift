import Base

/// Is asked DNS messages by a client.
package protocol MessageOwner: AnyObject {
    /// Whether it takes one more message now; else they wait, and their client with them.
    var takesMessages: Bool { get }
    /// Takes a message, which is valid during the call. ``ServerFrames/answer(_:)`` is called once for each, now or later.
    func asked(_ message: Span<UInt8>)
}

/// DNS messages over a stream as the side that answers: questions are taken as they come and answered as they are ready, in
/// any order (RFC 7766 §7).
package final class ServerFrames: Conversation {
    private unowned let owner: any MessageOwner
    private var incoming = FramedMessages()
    private var output: [UInt8] = []
    /// Messages that were taken and not answered yet.
    package private(set) var underWay = 0

    package init(owner: any MessageOwner) { self.owner = owner }

    /// Octets held: those of messages that are not taken yet, and answers that were not given out.
    package var held: Int { incoming.count + output.count }
    package var isAnswering: Bool { underWay > 0 || incoming.hasMessage }
    package var mayGoOn: Bool { incoming.hasMessage && owner.takesMessages }
    /// Octets of answers that were not given out yet.
    package var unsent: Int { output.count }

    /// - Parameter reply: Nil: the message gets no answer.
    package func answer(_ reply: Span<UInt8>?) {
        underWay -= 1
        guard let reply else { return }
        output.append16(UInt16(reply.count))
        output.append(reply)
    }

    package func receive(
        _ bytes: Span<UInt8>, into events: inout [ConversationEvent]
    ) throws(ConversationFailure) {
        var messages = exchange(&incoming, with: FramedMessages())
        defer { incoming = messages }
        guard owner.takesMessages else { return messages.keep(bytes) }
        try messages.receive(bytes) { message throws(ConversationFailure) in
            underWay += 1
            owner.asked(message)
            return owner.takesMessages
        }
    }

    package func endOfStream(isCut: Bool, into events: inout [ConversationEvent]) throws(ConversationFailure) {}

    package func takeOutput() -> [UInt8] { exchange(&output, with: []) }
}
