import Base

/// DNS messages over a stream, on the answering side: questions are taken as they come and answered as they are ready,
/// in any order (RFC 7766 §7).
package final class ServerFrames: ServerConversation {
    /// Set before any octets are received.
    package unowned var owner: (any MessageOwner)!
    private var incoming = FramedMessages()
    private var output: [UInt8] = []
    package private(set) var underWay = 0

    /// Room for the answers that usually leave together: growing to it would take as long as looking them up.
    private static let usualOutput = 512

    package init(owner: (any MessageOwner)? = nil) { self.owner = owner }

    package var held: Int { incoming.count + output.count }
    package var isAnswering: Bool { underWay > 0 || incoming.hasMessage }
    package var mayGoOn: Bool { incoming.hasMessage && owner.takesMessages }
    package var unsent: Int { output.count }
    package var mostAtOnce: Int { .max }

    /// - Parameter id: It is ignored, since the message's own ID identifies the question.
    package func answer(_ reply: Span<UInt8>?, to id: RequestID) {
        underWay -= 1
        guard let reply else { return }
        if output.isEmpty { output.reserveCapacity(Self.usualOutput) }
        output.append16(UInt16(reply.count))
        output.append(reply)
    }

    package func receive(_ bytes: Span<UInt8>, into events: inout [ConversationEvent]) throws(ConversationFailure) {
        var messages = exchange(&incoming, with: FramedMessages())
        defer { incoming = messages }
        let owner = owner!
        guard owner.takesMessages else { return messages.keep(bytes) }
        try messages.receive(bytes) { message throws(ConversationFailure) in
            underWay += 1
            owner.asked(message, as: 0)
            return owner.takesMessages
        }
    }

    package func takeOutput() -> [UInt8] { exchange(&output, with: []) }
}
