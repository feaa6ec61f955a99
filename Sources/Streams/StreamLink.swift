/// A link over one stream: octets from the stream go into a conversation, whose events go to the owner, and whose
/// output goes to the stream. Only this type defines the order of the three, which ``LinkOwner`` describes.
///
/// A link is made without a stream and takes requests at once. ``begin(_:)`` gives it a stream: the first of several
/// that was established, a stream that is being dialled, or an accepted stream. A link is confined to its loop.
package final class StreamLink {
    /// The owner is set before the link begins.
    package unowned var owner: (any LinkOwner)!
    /// Whether the owner sends the output that follows from received octets, by ``flush()`` after
    /// ``LinkOwner/advanced(_:)``.
    private let isSentByOwner: Bool
    private let conversation: any Conversation
    /// The conversation, if it is the requesting side.
    private let client: (any ClientConversation)?
    /// Nil before ``begin(_:)``, and when the link is closed.
    private(set) var stream: Stream?
    /// Whether the link has ended or was closed.
    package private(set) var isClosed = false
    /// The end to report when the peer has closed after ``finish()``.
    private var finishEnd: LinkEnd?
    /// The end to report when all requests are answered. Nothing more is read, unless the peer announces how much it can
    /// receive.
    private var lastEnd: LinkEnd?
    /// Whether events are being reported; output is sent after the events.
    private var isHearing = false
    /// Requests from before the stream was open, which the conversation has not got, so that they can be cancelled; nil
    /// afterwards.
    private var early: [(octets: [UInt8], id: RequestID, isApart: Bool)]? = []
    /// Output in parts that get a TLS record each, before the conversation's next output.
    private var apart: [[UInt8]] = []

    /// A link for the requesting side.
    package init(client: any ClientConversation, owner: (any LinkOwner)? = nil) {
        (conversation, self.client, self.owner, isSentByOwner) = (client, client, owner, false)
    }

    /// A link for the answering side, whose conversation gets the answers from its owner.
    package init(server: any Conversation, owner: (any LinkOwner)? = nil, isSentByOwner: Bool = false) {
        (conversation, client, self.owner, self.isSentByOwner) = (server, nil, owner, isSentByOwner)
    }

    /// Continues with a stream, and becomes its owner.
    package func begin(_ stream: Stream) {
        guard !isClosed else { return stream.close() }
        self.stream = stream
        stream.owner = self
        flush()
    }

    /// Whether no more requests are taken; requests under way may still be answered.
    package var isDraining: Bool { finishEnd != nil || lastEnd != nil || !(client?.mayTakeMore ?? true) }

    /// The number of further requests that the link takes now. While it is being dialled, these wait. With 0 it takes
    /// no request for the moment, or never again.
    package var room: Int { isClosed ? 0 : max(0, (client?.room ?? 0) - (early?.count ?? 0)) }
    /// The most requests that the peer takes at once, as far as the peer has announced it.
    package var mostAtOnce: Int { client?.mostAtOnce ?? 0 }
    /// Whether the link has not ended and no request is under way, so that the next octets from the peer belong to the
    /// next request. A link that has not begun has no octets from the peer.
    package var isIdle: Bool {
        !isClosed && early?.isEmpty ?? true && client?.isIdle ?? true && stream?.isIdle ?? true
    }

    /// Whether the verification of the peer's certificate is still valid, or has not begun.
    /// - Parameter wall: Seconds since 1970.
    package func isTrusted(at wall: UInt64) -> Bool { stream?.isTrusted(at: wall) ?? true }

    /// The number of octets that wait for the peer to read; see ``Stream/queued``.
    package var queued: Int { stream?.queued ?? 0 }

    /// Whether octets are read; else they wait in the kernel, and the peer's end is not noticed.
    package var isReading: Bool {
        get { stream?.isReading ?? false }
        set { stream?.isReading = newValue && (lastEnd == nil || lastEnd == .finished && conversation.mustListen) }
    }

    /// Takes a request, for which there must be room. It is sent with the next ``flush()``.
    /// - Parameter isApart: Whether the request shares its TLS record with no other request.
    package func open(_ request: [UInt8], as id: RequestID, isApart: Bool = false) {
        guard !isClosed, let client else { return }
        if early != nil {
            early?.append((request, id, isApart))
            return
        }
        if isApart { apart.append(client.takeOutput()) }
        client.open(request, as: id)
        if isApart { apart.append(client.takeOutput()) }
    }

    /// Cancels a request, whose answer is no longer needed; see ``ClientConversation/cancel(_:)``. Before the stream is
    /// open, the request is not sent any more.
    package func cancel(_ id: RequestID) {
        if let index = early?.firstIndex(where: { $0.id == id }) {
            early?.remove(at: index)
        } else {
            client?.cancel(id)
        }
    }

    /// Whether part of the answer has come.
    package var hasBegun: Bool { client?.hasBegun ?? false }

    /// Reads the waiting octets, if any, without waiting for the loop's event. The call has no effect while an event is
    /// being reported.
    package func read() { if !isHearing { stream?.read() } }

    /// Sends the output; while events are being reported, the output follows the events.
    package func flush() {
        guard !isHearing else { return }
        repeat {
            guard let stream, stream.isOpen else {
                // The peer has left, or serving has ended, before the handshake was done.
                if let lastEnd, stream != nil { end(lastEnd) }
                return
            }
            for request in early.take() ?? [] {
                // There is room again when the output was taken.
                if room == 0 { apart.append(conversation.takeOutput()) }
                open(request.octets, as: request.id, isApart: request.isApart)
            }
            if !apart.isEmpty {
                for octets in exchange(&apart, with: []) where !octets.isEmpty { stream.send(octets.span) }
            }
            sendOutput(on: stream)
        } while goesOn()
        if finishEnd == nil, conversation.isFinished { finishEnd = .finished }
        if finishEnd != nil { stream?.finish() }
        if let lastEnd, !conversation.isAnswering, queued == 0 { end(lastEnd) }
    }

    /// A server's conversation gives its output in parts: the next part when the peer has taken the part before.
    private func sendOutput(on stream: Stream) {
        var output: [UInt8]
        repeat {
            output = conversation.takeOutput()
            if !output.isEmpty { stream.send(output.span) }
        } while client == nil && !output.isEmpty && !isClosed && stream.queued == 0
    }

    /// Whether the conversation had more to do with its buffered octets after its output was taken.
    private func goesOn() -> Bool {
        guard client == nil, !isClosed, conversation.mayGoOn else { return false }
        let failure = tell { events throws(ConversationFailure) in
            try conversation.receive(Span(), into: &events)
        }
        if let failure { end(.protocolBroken(failure.reason)) }
        return !isClosed
    }

    /// Sends no more after the present output, and waits for the peer to close: closing first could destroy the last
    /// octets (RFC 9112 §9.6).
    package func finish() {
        finishEnd = .finished
        flush()
    }

    /// Takes no more questions, and announces the end; ends when all are answered and the peer has read the answers.
    package func drain() {
        conversation.announceEnd()
        drain(.finished)
    }

    private func drain(_ end: LinkEnd) {
        lastEnd = end
        isReading = true
        flush()
    }

    /// Closes at once, after announcing the end if the peer takes that immediately.
    package func leave() {
        conversation.announceEnd()
        flush()
        close()
    }

    /// Closes at once. No further event is reported.
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

    /// Gives the conversation input, reports its events and sends its output.
    private func hear(isLast: Bool = false, _ give: (inout [ConversationEvent]) throws(ConversationFailure) -> Void) {
        let failure = tell(give)
        if !isSentByOwner || isLast || failure != nil { flush() }
        if let failure {
            end(.protocolBroken(failure.reason))
        } else if !isLast, !isClosed {
            owner.advanced(self)
        }
    }

    private func tell(_ give: (inout [ConversationEvent]) throws(ConversationFailure) -> Void) -> ConversationFailure? {
        var failure: ConversationFailure?
        var events: [ConversationEvent] = []
        isHearing = true
        do throws(ConversationFailure) { try give(&events) } catch { failure = error }
        for event in events where !isClosed { owner.happened(event, on: self) }
        isHearing = false
        return failure
    }
}

extension StreamLink: StreamOwner {
    package func connected(_ stream: Stream) { if stream.isOpen { opened() } }
    package func secured(_ stream: Stream) { opened() }

    private func opened() {
        conversation.opened(stream?.applicationProtocol)
        owner.opened(self)
        flush()
    }

    package func received(_ bytes: Span<UInt8>, on stream: Stream) {
        hear { events throws(ConversationFailure) in try conversation.receive(bytes, into: &events) }
    }

    package func ended(_ stream: Stream, isCut: Bool) {
        if let finishEnd { return end(finishEnd) }
        hear(isLast: true) { events throws(ConversationFailure) in
            try conversation.endOfStream(isCut: isCut, into: &events)
        }
        if client == nil, !isClosed { drain(.closedByPeer) } else { end(.closedByPeer) }
    }

    /// After a failure of TLS the answering side waits until the peer has read the alert, which contains the reason.
    package func failed(_ stream: Stream, _ failure: LinkEnd) {
        // A later failure, such as a reset, is not the reason for the link's end.
        if case .tls? = finishEnd, let finishEnd { return end(finishEnd) }
        guard client == nil, case .tls = failure, finishEnd == nil else { return end(failure) }
        finishEnd = failure
        owner.failing(self, failure)
        stream.finish()
    }

    package func written(_ stream: Stream) {
        flush()
        if client == nil, !isClosed { owner.advanced(self) }
    }

    /// Reads on, to see the peer's end.
    package func finished(_ stream: Stream) { stream.isReading = true }
}
