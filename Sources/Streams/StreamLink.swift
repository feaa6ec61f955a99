/// A link over one stream: octets from the stream go into a conversation, its events to the owner, its output to the stream.
/// This is the one place for the order of the three, which ``LinkOwner`` describes.
///
/// It is made without a stream and takes requests at once. ``begin(_:)`` gives it one: the first of several that was
/// established, one that is being dialled, or one that was accepted.
package final class StreamLink: Link {
    private unowned let owner: any LinkOwner
    private let conversation: any Conversation
    /// The conversation, if it is the side that requests.
    private let client: (any ClientConversation)?
    /// Nil before ``begin(_:)``, and when the link is closed.
    private var stream: Stream?
    private var isClosed = false
    private var isFinishing = false
    /// Events are being told; what is to be sent goes out after them.
    private var isHearing = false
    /// Output in pieces that get a TLS record each, before what the conversation gives next.
    private var apart: [[UInt8]] = []
    /// Events that are yet to be told, the last one first; empty but while octets are taken.
    private var events: [ConversationEvent] = []

    /// For the side that requests.
    package init(client: any ClientConversation, owner: any LinkOwner) {
        (conversation, self.client, self.owner) = (client, client, owner)
    }

    /// For the side that answers, whose conversation is told the answers by its owner.
    package init(server: any Conversation, owner: any LinkOwner) {
        (conversation, client, self.owner) = (server, nil, owner)
    }

    /// Goes on with a stream, whose owner the link becomes.
    package func begin(_ stream: Stream) {
        guard !isClosed else { return stream.close() }
        self.stream = stream
        stream.owner = self
        flush()
    }

    package var state: LinkState {
        if isClosed { return .closed }
        guard stream?.isOpen ?? false else { return .dialling }
        return isFinishing || !(client?.mayTakeMore ?? true) ? .draining : .open
    }

    package var room: Int { isClosed ? 0 : client?.room ?? 0 }
    package var mostAtOnce: Int { client?.mostAtOnce ?? 0 }
    package var isIdle: Bool { client?.isIdle ?? true && stream?.isIdle ?? false }

    package func isTrusted(at wall: UInt64) -> Bool { stream?.isTrusted(at: wall) ?? true }

    /// How many octets wait for the peer to read; see ``Stream/queued``.
    package var queued: Int { stream?.queued ?? 0 }

    /// False: octets from the peer wait in the kernel, and its end is not noticed.
    package var isReading: Bool {
        get { stream?.isReading ?? false }
        set { stream?.isReading = newValue }
    }

    package func open(_ request: [UInt8], as id: RequestID, isApart: Bool = false) {
        guard !isClosed, let client else { return }
        if isApart { apart.append(client.takeOutput()) }
        client.open(request, as: id)
        if isApart { apart.append(client.takeOutput()) }
    }

    package func cancel(_ id: RequestID) -> Bool { client?.cancel(id) ?? true }
    package func hasBegun(_ id: RequestID) -> Bool { client?.hasBegun(id) ?? false }

    package func read() { if !isHearing { stream?.read() } }

    package func flush() {
        guard let stream, stream.isOpen, !isHearing else { return }
        if !apart.isEmpty {
            for octets in exchange(&apart, with: []) where !octets.isEmpty { stream.send(octets.span) }
        }
        let output = conversation.takeOutput()
        if !output.isEmpty { stream.send(output.span) }
        if isFinishing { stream.finish() }
    }

    /// Sends no more after what there is to be sent now, and waits for the peer to close: closing first could destroy the
    /// last octets (RFC 9112 §9.6).
    package func finish() {
        isFinishing = true
        flush()
    }

    package func close() {
        guard !isClosed else { return }
        isClosed = true
        stream?.close()
        stream = nil
    }

    private func end(_ end: LinkEnd) {
        guard !isClosed else { return }
        close()
        owner.ended(self, end)
    }

    /// Gives the conversation something, tells its events and sends its output.
    private func hear(
        isLast: Bool = false, _ give: (inout [ConversationEvent]) throws(ConversationFailure) -> Void
    ) {
        var failure: ConversationFailure?
        var events = exchange(&events, with: [])
        isHearing = true
        do throws(ConversationFailure) { try give(&events) } catch { failure = error }
        if events.count > 1 { events.reverse() }
        while let event = events.popLast() { if !isClosed { owner.happened(event, on: self) } }
        isHearing = false
        // The memory is used again.
        swap(&self.events, &events)
        flush()
        if let failure {
            end(.protocolBroken(failure.reason))
        } else if !isLast, !isClosed {
            owner.advanced(self)
        }
    }
}

extension StreamLink: StreamOwner {
    package func connected(_ stream: Stream) { if stream.isOpen { opened() } }
    package func secured(_ stream: Stream) { opened() }

    private func opened() {
        owner.opened(self)
        flush()
    }

    package func received(_ bytes: Span<UInt8>, on stream: Stream) {
        hear { events throws(ConversationFailure) in try conversation.receive(bytes, into: &events) }
    }

    package func ended(_ stream: Stream, isCut: Bool) {
        guard !isFinishing else { return end(.finished) }
        hear(isLast: true) { events throws(ConversationFailure) in
            try conversation.endOfStream(isCut: isCut, into: &events)
        }
        end(.closedByPeer(cleanly: !isCut))
    }

    package func failed(_ stream: Stream, _ failure: StreamFailure) { end(LinkEnd(failure)) }

    /// Its end is waited for.
    package func finished(_ stream: Stream) { stream.isReading = true }
}
