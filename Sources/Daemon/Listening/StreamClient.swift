import Base
import Counters
import DNSWire
import Forwarding
import Streams
import Transport

/// One TCP client: its queries are handled as they come and answered as they are ready, in any order (RFC 7766 §7).
final class StreamClient: @unchecked Sendable {
    // Unchecked: other queues only hold it; every method is called on the server's loop.
    let address: IPAddress
    let source: Source
    private unowned let server: StreamServer
    private(set) var link: StreamLink!
    private var frames: ServerFrames!
    private var isClosed = false
    private(set) var lastActivity = Clock.now()
    /// Octets that wait for the client to read, when they were last counted.
    private var queued = 0
    /// Octets kept for this client, as last told to the server.
    private(set) var kept = 0

    /// The most octets that wait for a client that reads slowly: four of the largest messages. A client that exceeds it
    /// is disconnected.
    static let maximumQueued = 4 * (65_535 + 2)
    /// The most queries of one connection under way; with so many, no more are read.
    static let maximumWaiting = 128

    init(_ socket: consuming StreamSocket, from address: IPAddress, server: StreamServer) throws(SystemError) {
        (self.address, source, self.server) = (address, Source(address), server)
        frames = ServerFrames(owner: self)
        link = StreamLink(server: frames, owner: self)
        link.begin(
            try Stream(
                socket, isConnected: true, tls: nil, limit: Self.maximumQueued, scratch: server.scratch,
                loop: server.loop, owner: link))
    }

    /// Whether nothing is on its way in either direction, so that closing costs the client only a new connection.
    var isIdle: Bool { isQuiet && kept == 0 }
    /// Whether no query is being looked up for it; half-sent queries or unread answers do not keep it open for ever.
    var isQuiet: Bool { frames.underWay == 0 }

    /// The way back for answers from the forwarder's loop.
    private var way: Client.Way {
        .stream(from: address) { [self] reply in server.loop.submit { self.send(reply) } }
    }

    private func send(_ reply: [UInt8]) {
        guard !isClosed else { return }
        frames.answer(reply.span)
        lastActivity = Clock.now()
        link.flush()
        count()
    }

    /// Takes no more queries; closes when those that wait are answered.
    func stopReading() { link.drain() }

    func close() {
        link.close()
        leave()
    }

    private func leave() {
        guard !isClosed else { return }
        isClosed = true
        count()
        server.remove(self)
    }

    /// Tells the server how much is kept for this client now, and reads on if that is not too much.
    private func count() {
        let left = link.queued
        // Octets alone do not count as activity: a client that sends one now and then would stay for ever.
        if left < queued { lastActivity = Clock.now() }
        queued = left
        let change = (isClosed ? 0 : frames.held + left) - kept
        kept += change
        if change != 0 { server.keep(change) }
        link.isReading = takesMessages
    }
}

extension StreamClient: LinkOwner {
    func happened(_ event: ConversationEvent, on link: any Link) {}

    func advanced(_ link: any Link) { count() }

    func ended(_ link: any Link, _ end: LinkEnd) { if end == .tooSlow { server.cutOff(self) } else { leave() } }
}

extension StreamClient: MessageOwner {
    /// While so many octets wait for the client to read, it gets no more answers until it has.
    var takesMessages: Bool {
        frames.underWay < Self.maximumWaiting && frames.unsent + link.queued < Self.maximumQueued / 2
    }

    func asked(_ message: Span<UInt8>) {
        let now = Tick(nanoseconds: Clock.now())
        lastActivity = now.nanoseconds
        let written = server.replies
        switch server.receive(message, from: address, at: now) {
        case .silence: frames.answer(nil)
        case .reply(let length):
            unsafe answered(written.first(length), at: now)
        case .ask(let question, _):
            server.forwarderLoop.submit([Miss(client: Client(question, message: message, way: way, at: now))])
        case .replyAndRefresh(let length, let question):
            unsafe answered(written.first(length), at: now)
            let client = Client(question, message: message, way: way, at: now)
            server.forwarderLoop.submit([Miss(client: client, isRefresh: true)])
        }
    }

    private func answered(_ reply: UnsafeBufferPointer<UInt8>, at now: Tick) {
        let took = Clock.now() - now.nanoseconds
        server.tally.took(took)
        if server.notes.isWatched {
            server.notes.note(1) {
                $0.add(unsafe reply.span, to: address, isStream: true, at: WallClock.unixMicroseconds(), took: took)
            }
        }
        frames.answer(unsafe reply.span)
    }
}
