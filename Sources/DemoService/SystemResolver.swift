internal import Base
internal import DNSWire
internal import Streams
internal import Transport

/// Asks the machine's DNS resolver, over UDP, and over TCP for what does not fit a datagram; owns the queries in flight.
/// Confined to its loop, whose deadline it has for itself.
///
/// Each query once: a demo's client that hears nothing asks again.
final class SystemResolver {
    /// Nanoseconds for one query: less than a daemon waits for its servers.
    static let timeout: UInt64 = 1_500_000_000
    /// The most queries at once, each with its own socket; further ones have no answer.
    static let queryLimit = 64

    private let server: Endpoint
    private let loop: EventLoop
    private var random = Random()
    /// In the order of their deadlines, since all have the same time.
    private var exchanges: [SystemExchange] = []

    init(_ server: Endpoint, loop: EventLoop) {
        self.server = server
        self.loop = loop
    }

    /// - Parameter done: Called once, now or later; nil: there was no answer.
    func ask(_ query: SystemQuery, done: @escaping (Answer?) -> Void) {
        guard exchanges.count < Self.queryLimit,
            let exchange = try? SystemExchange(
                query, id: random.uint16(), to: server, deadline: Clock.now() + Self.timeout, loop: loop, done: done,
                settled: { [weak self] in self?.settle($0, $1) })
        else { return done(nil) }
        exchanges.append(exchange)
        loop.setDeadline(exchanges.first?.deadline)
    }

    /// The loop's deadline has come.
    func expire() {
        let now = Clock.now()
        while let oldest = exchanges.first, oldest.deadline <= now { settle(oldest, nil) }
    }

    private func settle(_ exchange: SystemExchange, _ answer: Answer?) {
        exchanges.removeAll { $0 === exchange }
        exchange.close()
        loop.setDeadline(exchanges.first?.deadline)
        exchange.done(answer)
    }
}

/// One query in flight: a datagram, then a connection if the answer is truncated.
private final class SystemExchange: EventHandler, StreamOwner {
    let deadline: UInt64
    let done: (Answer?) -> Void
    private let query: SystemQuery
    private let id: UInt16
    private let server: Endpoint
    private let loop: EventLoop
    private let settled: (SystemExchange, Answer?) -> Void
    private var socket: QuerySocket
    private var registration: Registration?
    private var stream: Stream?
    private var frames: DNSFrames

    /// Octets of a datagram: more than the size that a query allows.
    private static let datagramLimit = 4096
    /// Octets that one read of a connection brings at most.
    private static let readLimit = 16 * 1024

    /// Sends the query.
    /// - Parameter settled: Called once, later; nil: there was no answer.
    init(
        _ query: SystemQuery, id: UInt16, to server: Endpoint, deadline: UInt64, loop: EventLoop,
        done: @escaping (Answer?) -> Void, settled: @escaping (SystemExchange, Answer?) -> Void
    ) throws(SystemError) {
        (self.query, self.id, self.server, self.deadline, self.loop) = (query, id, server, deadline, loop)
        (self.done, self.settled) = (done, settled)
        frames = DNSFrames { id }
        socket = try QuerySocket.open(to: server)
        // Not sent for want of room is as good as lost: the deadline finds it.
        _ = try socket.send(query.message(id: id).span)
        registration = try loop.register(socket.descriptor, .readable, self)
    }

    func ready(_ readiness: Readiness) {
        var buffer = [UInt8](repeating: 0, count: Self.datagramLimit)
        var room = buffer.mutableSpan
        do throws(SystemError) {
            guard case .bytes(let count) = try socket.receive(into: &room) else { return }
            take(buffer.span.extracting(0..<count), id: id)
        } catch {
            if socket.takeErrors().contains(where: { $0.isRefusal && $0.id == id }) { settled(self, nil) }
        }
    }

    /// A message that is no answer to this query may be forged: the true answer may still come.
    private func take(_ message: Span<UInt8>, id: UInt16) {
        let reply = try? Response.read(
            message, id: id, to: query.name, type: query.type, recordClass: query.recordClass, defaultNegativeTTL: 0)
        guard var reply else { return }
        if reply.truncated, stream == nil { return askOverTCP() }
        // Of what comes through a network it proves nothing, and clients would believe it of a server on loopback.
        if !server.address.isLoopback { reply.answer.head.authenticData = false }
        settled(self, reply.answer)
    }

    private func askOverTCP() {
        closeSocket()
        frames.open(query.message(id: id), as: 0)
        do throws(StreamFailure) {
            let stream = try Stream(
                to: server, tls: nil, limit: Int(UInt16.max), scratch: Scratch(Self.readLimit), loop: loop, owner: self)
            self.stream = stream
            stream.send(frames.takeOutput().span)
        } catch {
            settled(self, nil)
        }
    }

    func received(_ bytes: Span<UInt8>, on stream: Stream) {
        var events: [ConversationEvent] = []
        do throws(ConversationFailure) {
            try frames.receive(bytes, into: &events)
        } catch {
            return settled(self, nil)
        }
        // A conversation's messages have the id 0.
        if case .answered(_, .message(let message)) = events.first { take(message.span, id: 0) }
    }

    func ended(_ stream: Stream, isCut: Bool) { settled(self, nil) }

    func failed(_ stream: Stream, _ failure: StreamFailure) { settled(self, nil) }

    func close() {
        closeSocket()
        stream?.close()
        stream = nil
    }

    private func closeSocket() {
        if let registration { loop.unregister(registration, closing: true) }
        registration = nil
        socket.close()
    }
}
