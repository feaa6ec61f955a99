import Base
import Counters
import DNSWire
import Forwarding
import Transport

/// Servers that are asked in the clear over UDP. An answer that does not fit a datagram is reported as ``truncated``,
/// and its owner asks over TCP.
final class PlainUpstream: Upstream, Sender {
    var settle: Settle = { _, _, _ in }
    var wrote: (QueryID) -> Void = { _ in }
    var lost: (QueryID) -> Void = { _ in }
    /// Called with a question to ask over TCP. The outcome comes back by ``settledOverTCP(_:_:toRepeat:)``; an answer
    /// in a datagram may come before.
    var truncated: (QueryID, Server, Ask, Tick) -> Void = { _, _, _, _ in }
    let answers: DNSAnswers
    /// The way of ports out of this machine; ports that are open when it changes take no more queries.
    var egress = Egress() { didSet { networkChanged() } }
    let loop: EventLoop
    let tallies: UpstreamTallies
    private let clock: () -> Tick
    /// Sends the queries of a turn together; nil if each is sent alone.
    let outbox: Outbox?
    var servers: [Server: PlainServer] = [:]
    /// The server of the last query: most queries of a turn are for the same server.
    var latest: PlainServer?
    private var queries = Numbered<PlainQuery?>(none: nil)
    /// Nil if no query was made yet.
    var datagrams: QueryDatagrams?
    private(set) lazy var portIsReadable: (QueryPort) -> Void = { [unowned self] in read($0) }
    var openPorts = 0
    /// When to check for ports without a query under way.
    private var tidyAt: Tick?

    /// The most ports open at once, each a descriptor; further queries fail. Two and a half for each possible flight.
    static let maximumPorts = 4096
    /// The most servers remembered. Configurations have fewer; each query relearns the state of further servers.
    static let maximumServers = 64
    /// Milliseconds that a port without a query under way may stay open: later queries may share it, and one timer
    /// closes many.
    static let idleTime = 20

    /// - Parameter clock: Returns the time for events without a caller.
    init(
        _ answers: DNSAnswers, loop: EventLoop, tallies: UpstreamTallies = UpstreamTallies(), outbox: Outbox? = nil,
        clock: @escaping () -> Tick = { Tick(nanoseconds: Clock.now()) }
    ) {
        (self.answers, self.tallies, self.loop, self.outbox, self.clock) = (answers, tallies, loop, outbox, clock)
    }

    func ask(_ id: QueryID, _ server: Server, _ ask: Ask, at now: Tick) {
        guard case .message(let question) = ask else {
            return settle(id, .failed(Failure(.badAnswer, "a resolver is asked questions")), false)
        }
        let query = PlainQuery(id, question, known(server))
        queries.insert(query, as: id.number)
        send(query, edns: answers.edns.includes(server, at: now) ? .used : .omitted, isRepeat: false, at: now)
    }

    func askAgain(_ id: QueryID) {
        guard let query = queries.find(id.number), !query.isOverTCP else { return }
        let now = clock()
        let edns: EDNSUse = answers.edns.includes(query.server.server, at: now) ? .used : .omitted
        send(query, edns: edns, isRepeat: true, at: now)
    }

    func cancel(_ id: QueryID, isOverdue: Bool) {
        guard let query = queries.remove(id.number) else { return }
        for sent in query.sent { query.server.spelling.timedOut(sent) }
        forgetDatagrams(of: query, at: clock())
    }

    func keep(_ servers: [Server]) {
        for (server, known) in self.servers where !servers.contains(server) {
            known.isRemembered = false
            retirePort(of: known)
            self.servers[server] = nil
        }
        latest = nil
        answers.edns.keep(servers)
    }

    /// Another network may have another server at the same address.
    func networkChanged() {
        for server in servers.values {
            retirePort(of: server)
            server.spelling = Spelling()
        }
        answers.edns.keep([])
    }

    func close() {
        for query in queries.all.compactMap(\.self) {
            while let sent = query.sent.popLast() { close(sent.port) }
        }
        queries = Numbered(none: nil)
        for server in servers.values { retirePort(of: server) }
    }

    var isIdle: Bool { queries.count == 0 }
    var nextDeadline: Tick? { tidyAt }
    func expire(at now: Tick) {
        guard let tidyAt, tidyAt <= now else { return }
        self.tidyAt = nil
        for server in servers.values { if let port = server.port { closeIfIdle(port, at: now) } }
    }

    /// Sends the gathered queries.
    func flush() {
        guard let datagrams, let port = datagrams.port else { return }
        do throws(SystemError) { try datagrams.send(wrote, lost) } catch { fail(port, error) }
    }

    // MARK: Replies

    private func read(_ port: QueryPort) {
        guard let datagrams else { return }
        let errors = port.receive(into: &datagrams.incoming)
        let now = clock()
        for index in 0..<datagrams.incoming.count where port.isOpen {
            guard port.isFromServer(datagrams.incoming, index) else {
                answers.tally.count(.mismatchOtherQuery)
                continue
            }
            let bytes = unsafe datagrams.incoming.bytes(index)
            received(unsafe bytes.span, on: port, at: now)
        }
        for error in errors where port.isOpen { reported(error, on: port, at: now) }
    }

    /// An ICMP error fails the query that it quotes; its other contents could be forged.
    private func reported(_ error: QuerySocket.ReportedError, on port: QueryPort, at now: Tick) {
        switch port.owner(of: error) {
        case .nothing: answers.tally.count(.mismatchICMP)
        case .endedQuery: return
        case .query(let sent):
            drop(sent, at: now)
            failed(sent.query, Failure(.unreachable, "recv: Connection refused"))
        }
    }

    private func received(_ message: Span<UInt8>, on port: QueryPort, at now: Tick) {
        guard let id = Response.id(of: message) else {
            answers.tally.count(.mismatchMalformed)
            return
        }
        switch port.owner(of: id) {
        case .nothing: answers.tally.count(.mismatchOtherQuery)
        // The message is late, or a duplicate.
        case .endedQuery: return
        case .query(let sent):
            switch read(message, as: sent, at: now) {
            // A message of which only the beginning is right is ignored as well: a forger must not be able to end the
            // wait for the true answer.
            case nil: return
            case .withoutEDNS:
                drop(sent, at: now)
                send(sent.query, edns: .tried, isRepeat: sent.isRepeat, at: now)
            case .truncated:
                forgetDatagrams(of: sent.query, at: now)
                askOverTCP(sent, at: now)
            case .outcome(let outcome): end(sent.query, outcome, toRepeat: sent.isRepeat, at: now)
            }
        }
    }

    /// The meaning of a message; nil if it is no answer to this query.
    private func read(_ message: Span<UInt8>, as sent: SentQuery, at now: Tick) -> DNSAnswers.Meaning? {
        guard let reply = answers.read(message, id: sent.id, to: sent.query.question) else { return nil }
        let server = sent.query.server
        let asked = sent.bytes
        let repeats = sent.isMixed ? Response.repeatsQuestion(message, of: asked.span) : nil
        let sawOtherCase = sent.sawOtherCase
        guard server.spelling.allows(repeats, sent) else {
            answers.tally.count(.mismatchOtherCase)
            guard !sawOtherCase else { return nil }
            answers.otherCase(server.server)
            askOverTCP(sent, at: now)
            return nil
        }
        let code = reply.answer.head.responseCode
        let meaning = answers.classify(reply, from: server.server, asked: sent.edns, at: now)
        // A query that is sent in another way counts by the answer to that.
        if case .outcome = meaning {
            if server.tally == nil { server.tally = tallies.server(server.server) }
            server.tally?.answered(code, nanoseconds: now.nanoseconds &- min(now.nanoseconds, sent.at.nanoseconds))
        }
        return meaning
    }

    // MARK: Over TCP

    private func askOverTCP(_ sent: SentQuery, at now: Tick) {
        let query = sent.query
        guard !query.isOverTCP else { return }
        (query.isOverTCP, query.isRepeat) = (true, sent.isRepeat)
        truncated(query.id, query.server.server, .message(query.question), now)
    }

    /// Takes the answer over TCP, which cannot be guessed. While datagrams are awaited as well, a failure ends nothing.
    /// Its arrival is no reason to accept answers in another case of letters: such answers may have been forged.
    /// - Returns: Whether the query is known here.
    func settledOverTCP(_ id: QueryID, _ outcome: Outcome, toRepeat: Bool) -> Bool {
        guard let query = queries.find(id.number) else { return false }
        switch outcome {
        case .failed where !query.sent.isEmpty: query.isOverTCP = false
        default: end(query, outcome, toRepeat: toRepeat || query.isRepeat)
        }
        return true
    }

    // MARK: Ends

    private func drop(_ sent: SentQuery, at now: Tick) {
        sent.query.sent.removeAll { $0 === sent }
        sent.port.ended(sent)
        closeIfIdle(sent.port, at: now)
    }

    private func forgetDatagrams(of query: PlainQuery, at now: Tick) {
        while let sent = query.sent.popLast() {
            sent.port.ended(sent)
            closeIfIdle(sent.port, at: now)
        }
    }

    private func closeIfIdle(_ port: QueryPort, at now: Tick) {
        guard port.isIdle else { return }
        guard port.takesQueries(at: now) else { return close(port) }
        tidyAt = tidyAt ?? now.advanced(milliseconds: Self.idleTime)
    }

    /// Fails all queries of a port: there is no way to the server.
    private func fail(_ port: QueryPort, _ error: SystemError) {
        let waiting = port.takeWaiting()
        close(port)
        for sent in waiting {
            sent.query.sent.removeAll { $0 === sent }
            failed(sent.query, Failure(error))
        }
    }

    /// One way of sending has failed. A failure of the second attempt, for example, does not end the wait for the first
    /// one.
    func failed(_ query: PlainQuery, _ failure: Failure) {
        guard query.sent.isEmpty, !query.isOverTCP else { return }
        end(query, .failed(failure))
    }

    func end(_ query: PlainQuery, _ outcome: Outcome, toRepeat: Bool = false, at now: Tick? = nil) {
        guard queries.remove(query.id.number) != nil else { return }
        if !query.sent.isEmpty { forgetDatagrams(of: query, at: now ?? clock()) }
        settle(query.id, outcome, toRepeat)
    }
}
