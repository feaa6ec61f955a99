import Base

/// Reads the octets of a connection by itself.
package protocol RawOwner: AnyObject {
    /// Takes octets from the peer, in any pieces. The octets are valid during the call.
    func received(_ bytes: Span<UInt8>)
}

/// The answering side if the owner reads and writes by itself: the owner's octets leave with the link's next flush.
package final class RawConversation: Conversation {
    private unowned let owner: any RawOwner
    private var output: [UInt8] = []

    package init(owner: any RawOwner) { self.owner = owner }

    package func add(_ bytes: Span<UInt8>) { output.append(bytes) }
    package func receive(_ bytes: Span<UInt8>, into events: inout [ConversationEvent]) { owner.received(bytes) }
    package func takeOutput() -> [UInt8] { exchange(&output, with: []) }
}
