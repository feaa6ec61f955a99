import Base
import Counters
import Cryptography
import Forwarding
import Streams
import Transport

/// One connection to a server: a conversation, its stream, and the queries under way on it.
final class StreamConnection: Sender {
    let pool: StreamPool
    /// A number that increases with each connection of the upstream.
    let serial: Int
    let epoch: Int
    /// When it last became idle, in the time of ``Clock``; 0: never.
    var idleSince: UInt64 = 0
    /// Whether a query was sent again elsewhere because this connection was silent; it gets no further query until
    /// octets come.
    private(set) var isSuspect = false
    private(set) var isClosed = false
    private(set) var carried: [StreamQuery] = []
    /// Queries that were sent on it, and answered, in its life.
    private(set) var (queries, answers) = (0, 0)

    unowned let upstream: StreamUpstream
    private var conversation: any Conversation
    /// What the conversation gave before its next output, in pieces that get a TLS record each.
    private var apart: [[UInt8]] = []
    /// The established stream.
    var stream: Stream?
    var dialling = Dialling()
    /// Whether it gets no further queries.
    private var isRetired = false
    /// How long it had been idle when its last query was sent, in nanoseconds, until octets come.
    private var idleBefore: UInt64 = 0

    init(_ pool: StreamPool, serial: Int, upstream: StreamUpstream) {
        (self.pool, self.serial, self.upstream, epoch) = (pool, serial, upstream, pool.epoch)
        conversation = pool.dialect.conversation()
    }

    /// Whether the server has said that it takes no more queries.
    var isGoingAway: Bool { !conversation.mayTakeMore }

    var hasRoom: Bool {
        !isClosed && !isSuspect && !isRetired && conversation.room > 0
            && (answers > 0 || carried.count < pool.mostOnFresh)
    }

    /// What it takes at once, as far as the server has said so.
    var mostAtOnce: Int { conversation.mostAtOnce }

    /// Whether it is open and holds no octets from the server: the next ones will belong to the answer to the next
    /// request.
    var isAtRest: Bool { conversation.isIdle && stream?.isIdle ?? false }

    /// Whether the verification of the server's certificate may still be relied on.
    /// - Parameter wall: Seconds since 1970.
    func isTrusted(at wall: UInt64) -> Bool { stream?.isTrusted(at: wall) ?? false }

    func read() { stream?.read() }

    // MARK: Queries

    func put(_ query: StreamQuery, at now: Tick) {
        if carried.isEmpty { idleBefore = idleSince == 0 ? 0 : now.nanoseconds &- idleSince }
        queries += 1
        carried.append(query)
        query.connections.append(self)
        // Some servers (dnsdist 1.7) leave what follows the first query of a TLS record unread until more octets come.
        // Asked again because of that, a query must not meet the same.
        let isRepeat = query.connections.count > 1
        if isRepeat { apart.append(conversation.takeOutput()) }
        conversation.open(query.request, as: query.number)
        if isRepeat { apart.append(conversation.takeOutput()) }
        pool.put(self)
        if let outbox = upstream.outbox { outbox.add(self) } else { pump() }
    }

    /// Cancels a query.
    func drop(_ query: StreamQuery, at now: Tick) {
        guard let place = carried.firstIndex(where: { $0 === query }) else { return }
        carried.remove(at: place)
        guard conversation.cancel(query.number) else { return upstream.lost(self, nil) }
        pump()
        if carried.isEmpty, !isClosed { upstream.wake(at: pool.rested(self, at: now)) }
    }

    /// Takes no further queries, and closes when none is under way.
    func retire() { isRetired = true }
    func suspect() { isSuspect = true }

    /// Whether a query that ended with this connection may be sent again as if it had never been sent: the server has
    /// closed a connection that had worked, before it began to answer.
    func mayHaveBeenClosedBefore(_ query: StreamQuery) -> Bool {
        (answers > 0 || stream != nil && pool.dialect.retriesOnFresh) && !conversation.hasBegun(query.number)
    }

    /// Whether it had been idle and no octets have come since: the server may have closed it before any query reached it.
    var isSilentSinceIdle: Bool { idleBefore > 0 }

    func takeCarried() -> [StreamQuery] { exchange(&carried, with: []) }
    private func takeCarried(_ number: UInt64) -> StreamQuery? {
        carried.firstIndex { $0.number == number }.map { carried.remove(at: $0) }
    }

    func pump() {
        guard let stream else { return }
        for octets in exchange(&apart, with: []) { stream.send(octets.span) }
        let output = conversation.takeOutput()
        if !output.isEmpty { stream.send(output.span) }
    }

    // MARK: Its end

    func close() {
        guard !isClosed else { return }
        (isClosed, carried) = (true, [])
        stream?.close()
        for attempt in dialling.attempts { attempt.stream.close() }
        pool.closed(self)
    }

    /// The server has closed the connection.
    private func closedByServer(_ failure: Failure) {
        let now = upstream.now()
        if carried.isEmpty {
            pool.closedByServer(afterIdle: idleSince == 0 ? 0 : now.nanoseconds &- idleSince)
        } else if idleBefore > 0 {
            pool.closedByServer(afterIdle: idleBefore)
        } else if answers > 0 {
            pool.closedByServer(afterAnswers: answers, at: now)
        }
        upstream.wake(at: pool.nextDeadline)
        upstream.lost(self, failure, isClosedByServer: true)
    }
}

extension StreamConnection: StreamOwner {
    func connected(_ stream: Stream) {
        upstream.progressed(.connected)
        if !pool.dialect.isSecure { stands(stream) }
    }

    func secured(_ stream: Stream) {
        pool.tally.secured(isResumed: stream.isResumed, certificateEnd: stream.certificateEnd)
        upstream.progressed(.secured(stream.protocolVersion))
        if let refusal = pool.dialect.refusal(of: stream) { return attemptFailed(stream, refusal) }
        stands(stream)
    }

    func received(_ bytes: Span<UInt8>, on stream: Stream) {
        (isSuspect, idleBefore) = (false, 0)
        converse { conversation, events throws(ConversationFailure) in
            try conversation.receive(bytes, into: &events)
        }
    }

    func ended(_ stream: Stream, isCut: Bool) {
        guard self.stream === stream else { return attemptFailed(stream, .closed) }
        retire()
        converse { conversation, events throws(ConversationFailure) in
            try conversation.endOfStream(isCut: isCut, into: &events)
        }
        if !isClosed { closedByServer(Failure(.unreachable, "closed by the server")) }
    }

    func failed(_ stream: Stream, _ failure: StreamFailure) {
        guard self.stream === stream else { return attemptFailed(stream, failure) }
        closedByServer(Failure(failure))
    }

    private func told(_ event: ConversationEvent, at now: Tick) {
        switch event {
        case .answered(let number, let answer):
            answers += 1
            if let query = takeCarried(number) { upstream.answered(query, answer, on: self, at: now) }
        case .refused(let number):
            if let query = takeCarried(number) { upstream.refused(query, on: self, at: now) }
        case .failed(let number, let failure):
            if let query = takeCarried(number) { upstream.failed(query, Failure(failure), on: self, at: now) }
        case .givenUp(let number, let failure):
            if let query = takeCarried(number) { upstream.askElsewhere(query, Failure(failure), on: self, at: now) }
        case .goingAway: retire()
        }
    }

    /// Tells the conversation something, and heeds what it says.
    private func converse(
        _ tell: (inout any Conversation, inout [ConversationEvent]) throws(ConversationFailure) -> Void
    ) {
        let upstream = upstream
        var events = upstream.takeEvents()
        var failure: ConversationFailure?
        do throws(ConversationFailure) { try tell(&conversation, &events) } catch { failure = error }
        pump()
        guard !events.isEmpty || failure != nil else { return upstream.giveBack(&events) }
        let now = upstream.now()
        // From the end: removing there copies nothing, and events that came together have no order among themselves.
        while let event = events.popLast() { told(event, at: now) }
        upstream.giveBack(&events)
        if let failure {
            upstream.lost(self, Failure(failure))
        } else if !isClosed {
            upstream.advanced(self, at: now)
        }
    }
}
