import Base
import Counters
import Cryptography
import DNSWire
import Forwarding
import Streams
import Transport

/// One client over TCP, TLS or HTTPS: its queries are handled as they come and answered as they are ready, in any order
/// (RFC 7766 §7).
final class StreamClient: @unchecked Sendable {
    // Unchecked: other queues only retain it; each method is called on the server's loop.
    let address: IPAddress
    private unowned let server: StreamServer
    let link: StreamLink
    private let conversation: any ServerConversation
    private var isClosed = false
    /// The client's state in the server's room.
    private var standing: ClientRoom.Guest
    /// Whether the client's handshake has failed. The client may stay for the rest of the handshake's time, to read the
    /// reason.
    private var hasFailed = false
    /// Octets that wait for the client to read, by the last count.
    private var queued = 0

    /// Whether the server calls ``flush()`` at the end of the turn.
    private var isGathered = false

    /// Whether other handshakes of its source must end before it may begin its own; its octets wait in the kernel.
    var waits = false {
        didSet { link.isReading = !waits }
    }

    /// The most octets that wait for a slow client: four of the largest messages. A client that exceeds this is
    /// disconnected.
    static let maximumQueued = 4 * (65_535 + 2)
    /// Output of this many octets does not wait for the end of the turn: the plaintext of a TLS record (RFC 8446 §5.1).
    private static let mostGathered = 16_384
    /// The most queries of one connection under way; with so many, no more are read.
    static let maximumWaiting = 128

    /// - Parameter tls: The session; nil if the client uses DNS in the clear.
    init(
        _ socket: consuming StreamSocket, from address: IPAddress, of source: Source, as number: UInt64 = 0,
        tls: TLSSession? = nil,
        server: StreamServer
    ) throws(SystemError) {
        let now = Clock.now()
        (self.address, self.server) = (address, server)
        standing = ClientRoom.Guest(
            number: number, source: source, lastActivity: now, handshakeBegan: tls == nil ? nil : now)
        conversation =
            server.tally.transport == .https ? ServerHTTP(clock: server.clock) : ServerFrames()
        link = StreamLink(server: conversation, isSentByOwner: true)
        conversation.owner = self
        link.owner = self
        link.begin(
            try Stream(
                socket, isConnected: true, tls: tls, limit: Self.maximumQueued, scratch: server.scratch,
                loop: server.loop, owner: link))
    }

    /// The client's number in the server.
    var number: UInt64 { standing.number }

    var guest: ClientRoom.Guest {
        var guest = standing
        guest.isQuiet = conversation.underWay == 0
        return guest
    }

    /// The way back for answers from the forwarder's loop. It does not retain the client: the client's memory is freed
    /// when it leaves, not with the last answer to its questions.
    private func way(_ message: Span<UInt8>, _ id: RequestID) -> Client.Way {
        let isPadded = server.isPadded(message)
        return .stream { [server, number] client, answer, age in
            server.loop.submit { server.clients[number]?.send(answer, age, to: client, isPadded, id) }
        }
    }

    private func send(_ answer: Answer, _ age: Reply.Age, to client: Client, _ isPadded: Bool, _ id: RequestID) {
        let written = server.replies
        let buffer = unsafe written.buffer
        var room = unsafe buffer.mutableSpan
        let length = Reply.write(
            answer, age: age, to: client.question, query: client.query.span, limit: Int(UInt16.max), into: &room)
        give(unsafe written.first(length).span, isPadded, id)
        standing.lastActivity = Clock.now()
        gather()
    }

    /// Sends the client's output at the end of the loop's turn, so that later output of the turn shares its TLS record
    /// and its segment; at once if there is much.
    private func gather() {
        if conversation.unsent >= Self.mostGathered { return flush() }
        guard !isGathered else { return }
        isGathered = true
        server.flushLater(self)
    }

    func flush() {
        isGathered = false
        link.flush()
        count()
    }

    /// Takes no more queries; closes when the waiting queries are answered.
    func stopReading() { link.drain() }

    func close() {
        link.close()
        leave()
    }

    /// Closes an idle connection, and announces the end to the client.
    func closeIdle() {
        link.leave()
        leave()
    }

    private func leave() {
        guard !isClosed else { return }
        isClosed = true
        count()
        server.remove(self)
        handshakeEnded(nil)
    }

    /// The client's handshake is done or has failed, if it was under way.
    func handshakeEnded(_ failure: Counted?) {
        guard standing.handshakeBegan != nil, !hasFailed else { return }
        if failure == nil { standing.handshakeBegan = nil } else { hasFailed = true }
        server.handshakeEnded(self, failure)
    }

    /// Reports the client's stored octets to the server, and reads on if there are not too many.
    private func count() {
        let left = conversation.unsent + link.queued
        // Octets alone do not count as activity: a client that sends an octet now and then would stay without end.
        if left < queued { standing.lastActivity = Clock.now() }
        queued = left
        let change = (isClosed ? 0 : conversation.held + link.queued) - standing.held
        standing.held += change
        if change != 0 { server.keep(change) }
        if left > Self.maximumQueued, !isClosed { return server.cutOff(self) }
        link.isReading = conversation.mustListen || takesMessages
    }
}

extension StreamClient: LinkOwner {
    func opened(_ link: StreamLink) {
        guard standing.handshakeBegan != nil else { return }
        handshakeEnded(nil)
        standing.lastActivity = Clock.now()
        server.checkInTime(self)
    }

    func happened(_ event: ConversationEvent, on link: StreamLink) {}

    func advanced(_ link: StreamLink) { gather() }

    func failing(_ link: StreamLink, _ end: LinkEnd) { handshakeEnded(Counted(failedBy: end)) }

    func ended(_ link: StreamLink, _ end: LinkEnd) {
        if end == .tooSlow { return server.cutOff(self) }
        handshakeEnded(Counted(failedBy: end))
        leave()
    }
}

extension Counted {
    /// The reason of a failed handshake. Of the alerts, "bad certificate" to "certificate unknown" and "unknown
    /// authority" (RFC 8446 §6.2) are about the certificate that the client was shown; scanners send others for many
    /// reasons.
    init(failedBy end: LinkEnd) {
        self =
            switch end {
            case .tls(.notTLS): .handshakeNotTLS
            case .tls(.noSharedVersion): .handshakeVersion
            case .tls(.noSharedCipher): .handshakeCipher
            case .tls(.noSharedProtocol): .handshakeProtocol
            case .tls(.alert(42...46)), .tls(.alert(48)): .handshakeCertificate
            case .tls, .protocolBroken, .tooSlow: .handshakeOther
            case .finished, .closedByPeer, .reset, .timedOut: .handshakeLeft
            }
    }
}

extension StreamClient: MessageOwner {
    /// While so many octets wait for the client to read, it gets no more answers.
    var takesMessages: Bool {
        conversation.underWay < min(Self.maximumWaiting, conversation.mostAtOnce)
            && conversation.unsent + link.queued < Self.maximumQueued / 2
    }

    func asked(_ message: Span<UInt8>, as id: RequestID) {
        let now = Tick(nanoseconds: Clock.now())
        standing.lastActivity = now.nanoseconds
        let server = server
        let written = server.replies
        switch server.receive(message, from: address, at: now) {
        case .silence: conversation.answer(nil, to: id)
        case .reply(let length):
            unsafe answered(written.first(length), to: message, id, at: now)
        case .ask(let question, let isProven): submit(question, message, id, isProven: isProven, at: now)
        case .replyAndRefresh(let length, let question):
            unsafe answered(written.first(length), to: message, id, at: now)
            submit(question, message, id, isProven: true, isRefresh: true, at: now)
        }
    }

    private func submit(
        _ question: Question, _ message: Span<UInt8>, _ id: RequestID, isProven: Bool, isRefresh: Bool = false,
        at now: Tick
    ) {
        let asker = server.asker(address, isProven: isProven)
        let client = Client(question, message: message, of: asker, way: way(message, id), at: now)
        server.forwarderLoop.submit([Miss(client: client, isRefresh: isRefresh)])
    }

    private func answered(
        _ reply: UnsafeBufferPointer<UInt8>, to message: Span<UInt8>, _ id: RequestID, at now: Tick
    ) {
        let took = Clock.now() - now.nanoseconds
        let server = server
        server.tally.took(took)
        if server.notes.isWatched {
            server.notes.note(1) {
                $0.add(
                    unsafe reply.span, to: address, over: server.tally.transport, at: WallClock.unixMicroseconds(),
                    took: took)
            }
        }
        give(unsafe reply.span, server.isPadded(message), id)
    }

    private func give(_ reply: Span<UInt8>, _ isPadded: Bool, _ id: RequestID) {
        guard isPadded else { return conversation.answer(reply, to: id) }
        var padded: [UInt8] = []
        padded.append(reply)
        Padding.add(to: &padded)
        conversation.answer(padded.span, to: id)
    }
}
