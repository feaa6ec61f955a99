import Base

/// DNS messages over a stream, each after its length in two octets (RFC 1035 §4.2.2): many questions at once, answered
/// in any order and distinguished by IDs of their own (RFC 7766 §6.2.1.1, §7).
///
/// A stray answer, whose question is unknown or answered already, is ignored; when stray answers outnumber answers by
/// too many, the connection is given up.
package final class DNSFrames: ClientConversation {
    private let nextID: () -> UInt16
    /// The wire IDs in use and their requests; nil if the request was cancelled, but its ID is not reused until it is
    /// answered, or until ``maximumCancelled`` others wait for their answers.
    private var underWay: [(wireID: UInt16, request: RequestID?)] = []
    private var cancelled = 0
    private var incoming = FramedMessages(shortest: headerLength)
    private var output: [UInt8] = []
    /// The number of stray answers that may still come: each answer allows one more, since some servers answer twice.
    private var straysLeft = maximumStrays

    /// The most questions under way at once: on two connections, as many as the largest `concurrency` can use.
    package static let maximumUnderWay = 512
    /// The most cancelled questions whose IDs are reserved; a server may never answer them.
    package static let maximumCancelled = 512
    /// The stray answers that are ignored on one connection, beside the stray answers that answers make up for: at most
    /// as many as may be under way.
    package static let maximumStrays = 16
    /// Octets of a message's header, the shortest possible message (RFC 1035 §4.1.1).
    private static let headerLength = 12

    /// - Parameter nextID: Returns unpredictable IDs; an ID in use is skipped.
    package init(nextID: @escaping () -> UInt16) { self.nextID = nextID }

    package var room: Int { max(0, Self.maximumUnderWay - underWay.count + cancelled) }
    package var mostAtOnce: Int { Self.maximumUnderWay }
    package var mayTakeMore: Bool { straysLeft >= 0 }
    package var isIdle: Bool { underWay.count == cancelled && incoming.count == 0 }

    /// - Parameter request: A message of 12 to 65,535 octets, whose ID is replaced.
    package func open(_ request: [UInt8], as id: RequestID) {
        precondition(room > 0 && Self.headerLength...Int(UInt16.max) ~= request.count)
        var wireID = nextID()
        // The loop ends soon: far fewer IDs are in use than exist.
        while underWay.contains(where: { $0.wireID == wireID }) { wireID = nextID() }
        underWay.append((wireID, id))
        output.append16(UInt16(request.count))
        output.append16(wireID)
        output.append(request.span.extracting(2...))
    }

    package func cancel(_ id: RequestID) {
        guard let index = underWay.firstIndex(where: { $0.request == id }) else { return }
        underWay[index].request = nil
        cancelled += 1
        if cancelled > Self.maximumCancelled, let oldest = underWay.firstIndex(where: { $0.request == nil }) {
            underWay.remove(at: oldest)
            cancelled -= 1
        }
    }

    package func receive(_ bytes: Span<UInt8>, into events: inout [ConversationEvent]) throws(ConversationFailure) {
        try incoming.receive(bytes) { message throws(ConversationFailure) in
            try readMessage(message, &events)
            return true
        }
    }

    private func readMessage(_ message: Span<UInt8>, _ events: inout [ConversationEvent]) throws(ConversationFailure) {
        let wireID = UInt16(message[0]) << 8 | UInt16(message[1])
        guard let index = underWay.firstIndex(where: { $0.wireID == wireID }) else {
            straysLeft -= 1
            guard mayTakeMore else { throw ConversationFailure("unsolicited answers") }
            return
        }
        guard let request = underWay.remove(at: index).request else {
            cancelled -= 1
            return
        }
        straysLeft = min(straysLeft + 1, Self.maximumStrays + Self.maximumUnderWay)
        var answer: [UInt8] = []
        answer.append(message)
        (answer[0], answer[1]) = (0, 0)
        events.append(.answered(request, .message(answer)))
    }

    package func endOfStream(isCut: Bool, into events: inout [ConversationEvent]) throws(ConversationFailure) {
        // An incomplete message is no answer, and the next message cannot be found.
        straysLeft = -1
    }

    package func takeOutput() -> [UInt8] { exchange(&output, with: []) }
}
