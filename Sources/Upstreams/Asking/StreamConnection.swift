import Base
import Counters
import Cryptography
import Forwarding
import Streams
import Transport

/// One connection to a server: its creation, and then its link.
final class StreamConnection {
    let number: ConnectionNumber
    let pool: StreamPool
    let link: StreamLink
    var dialling = Dialling()
    /// The endpoint of the established connection, until an answer comes on it or the network changes.
    var unproven: Endpoint?
    private(set) var isClosed = false
    /// When the octets came whose events are being reported.
    private var heard: Tick?

    init(_ number: ConnectionNumber, _ pool: StreamPool) {
        (self.number, self.pool) = (number, pool)
        link = StreamLink(client: pool.kind.dialect.conversation())
        link.owner = self
    }

    var upstream: StreamUpstream { pool.upstream }

    /// Whether the connection takes a query now.
    /// - Parameters:
    ///   - wasIdle: Whether no query was under way on it. If only their order identifies answers, unsolicited octets
    ///     that wait in the socket would be taken for the answer to the next request, so the socket is read first.
    ///   - wall: The time in seconds since 1970.
    func takes(wasIdle: Bool, at wall: UInt64) -> Bool {
        if wasIdle {
            if !pool.kind.limits.sharesConnections { link.read() }
            guard link.isIdle else { return false }
        }
        if link.room == 0 { link.flush() }
        return link.room > 0 && link.isTrusted(at: wall)
    }

    /// - Parameter isApart: Some servers (dnsdist 1.7) leave the queries after the first query of a TLS record unread
    ///   until more octets come. A query that is sent again for that reason gets a record of its own.
    func send(_ query: StreamQuery, isApart: Bool) {
        link.open(query.request, as: query.number, isApart: isApart)
        sendLater()
    }

    func cancel(_ query: QueryNumber) {
        link.cancel(query)
        sendLater()
    }

    private func sendLater() { if let outbox = upstream.outbox { outbox.add(link) } else { link.flush() } }

    func expire(at now: Tick) { if let next = dialling.next, next <= now { tryNext(at: now) } }

    /// Handles a failed dialling.
    func fail(_ failure: Failure) {
        close()
        pool.ended(self, .finished, failure)
    }

    func close() {
        isClosed = true
        link.close()
        for attempt in dialling.attempts { attempt.stream.close() }
    }

    /// - Parameter stream: The attempt that is used from now on.
    func use(_ stream: Stream) {
        for attempt in dialling.attempts {
            guard attempt.stream === stream else {
                attempt.stream.close()
                continue
            }
            unproven = attempt.endpoint
        }
        dialling = Dialling()
        let now = upstream.now()
        pool.established(number, at: now)
        guard !isClosed else { return stream.close() }
        link.begin(stream)
        // Many servers write a session ticket first, and their answer waits until the ticket is acknowledged (RFC 896),
        // for which the kernel would take 40 ms. The next write ends the option, so the option is set after it.
        if pool.kind.security.isSecure { stream.acknowledgeAtOnce() }
    }
}

extension StreamConnection: LinkOwner {
    func happened(_ event: ConversationEvent, on link: StreamLink) {
        let now = heard ?? upstream.now()
        heard = now
        pool.happened(event, on: number, at: now)
    }

    func advanced(_ link: StreamLink) {
        let now = heard.take() ?? upstream.now()
        pool.tell(at: now) { [number] plan in
            if link.isDraining { plan.drain(number) }
            plan.advanced(number, mostAtOnce: link.mostAtOnce, at: now)
        }
    }

    func ended(_ link: StreamLink, _ end: LinkEnd) {
        isClosed = true
        pool.ended(self, end, Failure(end), hasBegun: link.hasBegun)
    }
}

/// Attempts to connect.
extension StreamConnection: StreamOwner {
    func connected(_ stream: Stream) {
        if let attempt = dialling.attempts.first(where: { $0.stream === stream }) {
            let silent = dialling.attempts.filter { !$0.stream.isConnected }.map(\.endpoint)
            upstream.progressed(.connected(attempt.endpoint, silent: silent))
        }
        if !pool.kind.security.isSecure { use(stream) }
    }

    func secured(_ stream: Stream) {
        pool.tally.secured(isResumed: stream.isResumed, certificateEnd: stream.certificateEnd)
        upstream.progressed(.secured(stream.protocolVersion))
        use(stream)
    }

    /// This is never called before the connection is secured.
    func received(_ bytes: Span<UInt8>, on stream: Stream) {}
    func ended(_ stream: Stream, isCut: Bool) { attemptFailed(stream, .closedByPeer) }
    func failed(_ stream: Stream, _ failure: LinkEnd) { attemptFailed(stream, failure) }
}
