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
    private let conversation: any ClientConversation
    /// What the conversation gave before its next output, in pieces that get a TLS record each.
    private var apart: [[UInt8]] = []
    /// The established stream.
    var stream: Stream?
    var dialling = Dialling()
    /// Whether it gets no further queries.
    private var isRetired = false
    /// Events of the conversation are being handled; what is to be sent goes out after them.
    private var isHearing = false
    /// How long it had been idle when its last query was sent, in nanoseconds, until octets come.
    private var idleBefore: UInt64 = 0

    init(_ pool: StreamPool, serial: Int, upstream: StreamUpstream) {
        (self.pool, self.serial, self.upstream, epoch) = (pool, serial, upstream, pool.epoch)
        conversation = pool.kind.dialect.conversation()
    }

    /// Whether the server has said that it takes no more queries.
    var isGoingAway: Bool { !conversation.mayTakeMore }

    var hasRoom: Bool {
        !isClosed && !isSuspect && !isRetired && conversation.room > 0
            && (answers > 0 || carried.count < pool.mostOnFresh)
    }

    /// Whether it has room or may have some later.
    var mayTakeMore: Bool { !isClosed && !isSuspect && !isRetired && conversation.mayTakeMore }

    /// What it takes at once, as far as the server has said so.
    var mostAtOnce: Int { conversation.mostAtOnce }

    /// Whether it is open and holds no octets from the server: the next ones will belong to the answer to the next
    /// request.
    var isAtRest: Bool { conversation.isIdle && stream?.isIdle ?? false }

    /// Whether the verification of the server's certificate may still be relied on, or is yet to come.
    /// - Parameter wall: Seconds since 1970.
    func isTrusted(at wall: UInt64) -> Bool { stream?.isTrusted(at: wall) ?? true }

    /// Whether it is from before the network, or the list of servers, was another.
    var isOld: Bool { epoch != pool.epoch }

    func read() { stream?.read() }

    // MARK: Queries

    func put(_ query: StreamQuery, at now: Tick) {
        if carried.isEmpty { idleBefore = idleSince == 0 ? 0 : now.nanoseconds &- idleSince }
        queries += 1
        carried.append(query)
        query.connections.append(self)
        pool.forget(query)
        query.sent = now
        if query.patience != nil { upstream.wake(at: query.doubtedAt) }
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

    /// It is established: whoever has waited for that has had a sign of life.
    func established(at now: Tick) {
        isSuspect = false
        for query in carried {
            query.sent = now
            if query.patience != nil { upstream.wake(at: query.doubtedAt) }
        }
    }

    /// What decides whether a query goes out once more after the end of this connection.
    /// - Parameter isAlone: No other query was under way on it.
    func loss(of query: StreamQuery, isAlone: Bool) -> QueryLoss {
        QueryLoss(
            losses: query.retries, unanswered: query.unanswered, isAlone: isAlone, answers: answers,
            hasBegun: conversation.hasBegun(query.number),
            goesOutAgainAfterFresh: stream != nil && pool.kind.limits.retriesOnFresh)
    }

    /// Whether it had been idle and no octets have come since: the server may have closed it before any query reached it.
    var isSilentSinceIdle: Bool { idleBefore > 0 }

    func takeCarried() -> [StreamQuery] { exchange(&carried, with: []) }
    private func takeCarried(_ number: UInt64) -> StreamQuery? {
        carried.firstIndex { $0.number == number }.map { carried.remove(at: $0) }
    }

    func pump() {
        guard let stream, !isHearing else { return }
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

    /// The server has ended the connection.
    /// - Parameter isClean: It has closed it, and did not reset it.
    private func learn(isClean: Bool, at now: Tick) {
        if !carried.isEmpty, idleBefore == 0 {
            let isAgain = carried.contains { $0.retries > 0 }
            pool.closed(self, .busy(answers: answers, isClean: isClean, isAgain: isAgain), at: now)
        } else if isClean, !carried.isEmpty {
            pool.closed(self, .idle(idleBefore), at: now)
        } else if isClean, idleSince > 0 {
            pool.closed(self, .idle(now.nanoseconds &- idleSince), at: now)
        }
        upstream.wake(at: pool.nextDeadline)
    }
}

extension StreamConnection: StreamOwner {
    func connected(_ stream: Stream) {
        upstream.progressed(.connected)
        if !pool.kind.security.isSecure { stands(stream) }
    }

    func secured(_ stream: Stream) {
        pool.tally.secured(isResumed: stream.isResumed, certificateEnd: stream.certificateEnd)
        upstream.progressed(.secured(stream.protocolVersion))
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
        guard !isClosed else { return }
        learn(isClean: true, at: upstream.now())
        upstream.lost(self, Failure(.unreachable, "closed by the server"), after: .closed)
    }

    func failed(_ stream: Stream, _ failure: StreamFailure) {
        guard self.stream === stream else { return attemptFailed(stream, failure) }
        if failure.isEnd { learn(isClean: false, at: upstream.now()) }
        upstream.lost(self, Failure(failure), after: .closed)
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
            if let query = takeCarried(number) {
                upstream.retryOnOtherConnection(query, Failure(failure), on: self, at: now)
            }
        case .goingAway: retire()
        }
    }

    /// Tells the conversation something, and heeds what it says.
    private func converse(
        _ tell: (any ClientConversation, inout [ConversationEvent]) throws(ConversationFailure) -> Void
    ) {
        let upstream = upstream
        var events = upstream.takeEvents()
        var failure: ConversationFailure?
        do throws(ConversationFailure) { try tell(conversation, &events) } catch { failure = error }
        guard !events.isEmpty || failure != nil else {
            upstream.giveBack(&events)
            return pump()
        }
        let now = upstream.now()
        // Before anything is sent: that may fail and end the connection, and what has come counts all the same.
        let isInside = exchange(&isHearing, with: true)
        // From the end: removing there copies nothing, and events that came together have no order among themselves.
        while let event = events.popLast() { told(event, at: now) }
        isHearing = isInside
        upstream.giveBack(&events)
        pump()
        if let failure {
            upstream.lost(self, Failure(failure), after: .brokenProtocol)
        } else if !isClosed {
            upstream.advanced(self, at: now)
        }
    }
}
