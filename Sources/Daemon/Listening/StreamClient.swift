import Base
import Counters
import DNSWire
import Forwarding
import Transport

/// One TCP client: its queries are handled as they come and answered as they are ready, in any order (RFC 7766 §7).
final class StreamClient: EventHandler, @unchecked Sendable {
    // Unchecked: other queues only hold it; every method is called on the server's loop.
    let address: IPAddress
    let source: Source
    private unowned let server: StreamServer
    private var socket: StreamSocket
    private var registration: Registration?
    private var outgoing = StreamBuffer(limit: StreamClient.maximumQueued)
    /// Received octets that are not a whole message yet.
    private var incoming: [UInt8] = []
    /// Queries that the forwarder's loop has not answered yet.
    private var waiting = 0
    private var hasEnded = false
    private var isClosed = false
    private(set) var lastActivity = Clock.now()
    /// Octets kept for this client, as last told to the server.
    private(set) var kept = 0

    /// The most octets that wait for a client that reads slowly: four of the largest messages. A client that exceeds it
    /// is disconnected.
    static let maximumQueued = 4 * (65_535 + 2)
    /// The most queries of one connection under way; with so many, no more are read.
    static let maximumWaiting = 128

    init(_ socket: consuming StreamSocket, from address: IPAddress, server: StreamServer) throws(SystemError) {
        self.socket = socket
        self.address = address
        source = Source(address)
        self.server = server
        registration = try server.loop.register(self.socket.descriptor, .readable, self)
    }

    /// Whether nothing is on its way in either direction, so that closing costs the client only a new connection.
    var isIdle: Bool { waiting == 0 && outgoing.isEmpty && incoming.isEmpty }
    /// Whether no query is being looked up for it; half-sent queries or unread answers do not keep it open for ever.
    var isQuiet: Bool { waiting == 0 }

    /// Whether so many octets wait for the client to read that it gets no more answers until it has.
    private var isFull: Bool { outgoing.count >= Self.maximumQueued / 2 }

    func ready(_ readiness: Readiness) {
        do {
            if readiness.contains(.readable) { try read() }
            try advance()
        } catch {
            close()
        }
    }

    /// The way back for answers from the forwarder's loop.
    private var way: Client.Way {
        .stream(from: address) { [self] reply in server.loop.submit { self.send(reply) } }
    }

    private func send(_ reply: [UInt8]) {
        guard !isClosed else { return }
        waiting -= 1
        unsafe reply.withUnsafeBufferPointer { unsafe queue($0) }
        do {
            try advance()
        } catch {
            close()
        }
    }

    func stopReading() {
        hasEnded = true
        if isIdle { close() } else { updateInterest() }
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        count()
        if let registration { server.loop.unregister(registration, closing: true) }
        socket.close()
        server.remove(self)
    }

    private func read() throws(SystemError) {
        // One buffer in each turn, so that a client that sends without pause takes turns with the others.
        switch try socket.receive(into: server.scratch) {
        case .wouldBlock: return
        case .endOfStream: hasEnded = true
        case .bytes(let count): unsafe incoming.append(contentsOf: server.scratch.first(count))
        }
    }

    /// Handles received messages and sends replies, as far as the client's reading allows.
    private func advance() throws(SystemError) {
        try takeMessages()
        if !isClosed { try flush() }
        count()
    }

    /// Tells the server how much is kept for this client now.
    private func count() {
        let change = (isClosed ? 0 : incoming.count + outgoing.count) - kept
        kept += change
        if change != 0 { server.keep(change) }
    }

    /// Takes whole messages, each behind its length in two octets (RFC 1035 §4.2.2), while there is room for answers.
    private func takeMessages() throws(SystemError) {
        var bytes: [UInt8] = []
        swap(&bytes, &incoming)
        var offset = 0
        let now = Tick(nanoseconds: Clock.now())
        while waiting < Self.maximumWaiting, bytes.count - offset >= 2, !isClosed {
            let end = offset + 2 + (Int(bytes[offset]) << 8 | Int(bytes[offset + 1]))
            guard end <= bytes.count else { break }
            // Answers to a long pipeline are sent in parts, so that hits alone never exceed the limit.
            if isFull, try !outgoing.flush(to: socket), isFull { break }
            // Octets alone do not count as activity: a client that sends one now and then would stay for ever.
            lastActivity = now.nanoseconds
            answer(bytes.span.extracting(offset + 2..<end), at: now)
            offset = end
        }
        bytes.removeFirst(offset)
        incoming = bytes
    }

    private func answer(_ message: Span<UInt8>, at now: Tick) {
        let written = server.scratch
        switch server.receive(message, from: address, at: now) {
        case .silence: break
        case .reply(let length):
            unsafe answered(written.first(length), at: now)
        case .ask(let question, _):
            waiting += 1
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
        unsafe queue(reply)
    }

    private func queue(_ reply: UnsafeBufferPointer<UInt8>) {
        let length: [UInt8] = [UInt8(truncatingIfNeeded: reply.count >> 8), UInt8(truncatingIfNeeded: reply.count)]
        guard outgoing.append(length.span), unsafe outgoing.append(reply.span) else { return server.cutOff(self) }
    }

    private func flush() throws(SystemError) {
        if !outgoing.isEmpty {
            let before = outgoing.count
            _ = try outgoing.flush(to: socket)
            if outgoing.count < before { lastActivity = Clock.now() }
        }
        if hasEnded, waiting == 0, outgoing.isEmpty { return close() }
        updateInterest()
    }

    private func updateInterest() {
        guard let registration, !isClosed else { return }
        var interest: Readiness = []
        if !hasEnded, !isFull, waiting < Self.maximumWaiting { interest.insert(.readable) }
        if !outgoing.isEmpty { interest.insert(.writable) }
        server.loop.update(registration, interest)
    }
}
