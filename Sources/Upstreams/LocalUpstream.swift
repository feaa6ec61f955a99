package import Base
package import Counters
import DNSWire
package import Forwarding
package import Transport

/// Resolvers that are asked in the clear: over UDP, and over TCP for what does not fit a datagram.
package final class LocalUpstream: Upstream {
    package var settle: Settle = { _, _, _ in }
    package let answers: DNSAnswers

    let loop: EventLoop
    /// Memory that the messages of all queries are read into.
    let scratch = Scratch(65_535 + 2)
    package let tallies: UpstreamTallies
    /// For answers that do not fit a datagram.
    private let streams: StreamUpstream
    private var spelling = Spelling()
    private var attempts: [QueryID: Attempt] = [:]

    /// A query under way, with each datagram and stream it was sent on.
    private struct Attempt {
        let question: MessageQuestion
        let server: Server
        var datagrams = SmallList<DatagramExchange>()
        /// Whether the answer did not fit a datagram, and comes over TCP.
        var isOverTCP = false
        /// Whether it was sent a second time, because the server was silent.
        var isRepeat = false
    }

    package init(_ answers: DNSAnswers, loop: EventLoop, tallies: UpstreamTallies = UpstreamTallies()) {
        (self.answers, self.tallies, self.loop) = (answers, tallies, loop)
        streams = StreamUpstream(answers, tls: nil, loop: loop, tallies: tallies)
        streams.settle = { [unowned self] id, outcome, toRepeat in
            end(id, outcome, toRepeat: toRepeat || attempts[id]?.isRepeat ?? false)
        }
    }

    package convenience init(
        loop: EventLoop, negativeTTL: UInt32, trustsAD: Bool = false, tallies: UpstreamTallies = UpstreamTallies()
    ) {
        self.init(DNSAnswers(negativeTTL: negativeTTL, trustsAD: trustsAD), loop: loop, tallies: tallies)
    }

    package func ask(_ id: QueryID, _ server: Server, _ ask: Ask, at now: Tick) {
        guard case .message(let question) = ask else {
            return settle(id, .failed(Failure(.badAnswer, "a resolver is asked questions")), false)
        }
        attempts[id] = Attempt(question: question, server: server)
        let knowsEDNS = answers.edns.includes(server, at: now)
        send(id, message(question, to: server, edns: knowsEDNS ? .used : .omitted), isRepeat: false)
    }

    package func askAgain(_ id: QueryID) {
        guard let attempt = attempts[id] else { return }
        if attempt.isOverTCP { return streams.askAgain(id) }
        let knowsEDNS = answers.edns.includes(attempt.server, at: Tick(nanoseconds: Clock.now()))
        send(id, message(attempt.question, to: attempt.server, edns: knowsEDNS ? .used : .omitted), isRepeat: true)
    }

    package func cancel(_ id: QueryID) {
        guard let attempt = attempts.removeValue(forKey: id) else { return }
        for datagram in attempt.datagrams {
            spelling.waitedInVain(datagram.sent)
            datagram.close()
        }
        if attempt.isOverTCP { streams.cancel(id) }
    }

    package func keep(_ servers: [Server]) {
        spelling.keep(servers)
        answers.edns.keep(servers)
        streams.keep(servers)
    }

    package func networkChanged() {}

    package func close() {
        for attempt in attempts.values { for datagram in attempt.datagrams { datagram.close() } }
        attempts = [:]
        streams.close()
    }

    package var nextDeadline: Tick? { nil }

    package func expire(at now: Tick) {}

    // MARK: Sending

    private func message(_ question: MessageQuestion, to server: Server, edns: SentQuery.EDNS) -> SentQuery {
        let id = answers.nextID()
        var bytes = Query.message(
            id: id, question.name, type: question.type, dnssecOK: question.dnssecOK,
            checkingDisabled: question.checkingDisabled, hasEDNS: edns == .used,
            subnet: answers.clientSubnet)
        let isMixed = spelling.repeatsCase(server) != false && Query.mixCase(of: &bytes) { answers.random64() }
        return SentQuery(
            id: id, question: question, server: server, bytes: bytes, edns: edns, isMixed: isMixed, at: Clock.now())
    }

    private func send(_ id: QueryID, _ sent: SentQuery, isRepeat: Bool) {
        do throws(SystemError) {
            let datagram = try DatagramExchange(sent, isRepeat: isRepeat, scratch: scratch, loop: loop) {
                [unowned self] in received($0, $1, for: id)
            }
            attempts[id]?.datagrams.append(datagram)
        } catch {
            failed(id, Failure(.unreachable, error.description))
        }
    }

    // MARK: Receiving

    private func received(_ datagram: DatagramExchange, _ received: DatagramExchange.Received, for id: QueryID) {
        switch received {
        case .stranger: answers.mismatches.strangers += 1
        case .failed(let error):
            drop(datagram, of: id)
            failed(id, Failure(.unreachable, error.description))
        case .message(let count):
            let buffer = unsafe scratch.first(count)
            switch read(unsafe buffer.span, as: datagram.sent) {
            // Nor does a message that begins well end the wait: an attacker's guess must not keep the true answer out.
            case nil: return
            case .withoutEDNS:
                drop(datagram, of: id)
                let question = datagram.sent.question
                send(id, message(question, to: datagram.sent.server, edns: .tried), isRepeat: datagram.isRepeat)
            case .truncated: askOverTCP(id, datagram)
            case .outcome(let outcome): end(id, outcome, toRepeat: datagram.isRepeat)
            }
        }
    }

    private func askOverTCP(_ id: QueryID, _ datagram: DatagramExchange) {
        for other in attempts[id]?.datagrams ?? SmallList() { drop(other, of: id) }
        attempts[id]?.isOverTCP = true
        attempts[id]?.isRepeat = datagram.isRepeat
        let sent = datagram.sent
        streams.ask(id, sent.server, .message(sent.question), at: Tick(nanoseconds: Clock.now()))
    }

    /// The meaning of a message; nil if it is no answer to this query.
    private func read(_ message: Span<UInt8>, as sent: SentQuery) -> DNSAnswers.Meaning? {
        guard let reply = answers.read(message, id: sent.id, to: sent.question) else { return nil }
        let asked = sent.bytes
        guard spelling.allows(Response.repeatsQuestion(message, of: asked.span), sent) else {
            answers.mismatches.otherCase += 1
            return nil
        }
        let now = Clock.now()
        tallies.server(sent.server).answered(reply.answer.head.responseCode, nanoseconds: now &- sent.at)
        return answers.meaning(of: reply, from: sent.server, asked: sent.edns, at: Tick(nanoseconds: now))
    }

    private func drop(_ datagram: DatagramExchange, of id: QueryID) {
        datagram.close()
        attempts[id]?.datagrams.removeAll { $0 === datagram }
    }

    /// One way of sending has failed. A failure of the second attempt, say, is no reason to stop waiting for the first.
    private func failed(_ id: QueryID, _ failure: Failure) {
        guard let attempt = attempts[id], attempt.datagrams.isEmpty, !attempt.isOverTCP else { return }
        end(id, .failed(failure))
    }

    private func end(_ id: QueryID, _ outcome: Outcome, toRepeat: Bool = false) {
        guard let attempt = attempts.removeValue(forKey: id) else { return }
        for datagram in attempt.datagrams { datagram.close() }
        settle(id, outcome, toRepeat)
    }
}
