package import Base
package import Counters
import DNSWire
package import Forwarding
package import Transport

/// Resolvers that are asked in the clear: over UDP, and over TCP for what does not fit a datagram.
package final class LocalUpstream: Upstream {
    package var settle: Settle = { _, _, _ in }
    /// `negativeTTL`, for an answer that says "no such record" without an SOA.
    package var negativeTTL: UInt32
    /// `trustAD`: the AD bit of resolvers beyond this machine counts too.
    package var trustsAD: Bool
    package private(set) var mismatches = MismatchCounters()

    let loop: EventLoop
    /// What any query's messages are read into.
    let scratch = Scratch(65_535 + 2)
    package let tallies: UpstreamTallies
    private var random = Random()
    private var spelling = Spelling()
    private var edns = EDNSKnowledge()
    private var attempts: [QueryID: Attempt] = [:]

    /// A query under way, by each way it went out.
    private struct Attempt {
        let question: MessageQuestion
        let server: Server
        var datagrams = Few<DatagramExchange>()
        /// The answer did not fit a datagram: a connection is made for it, and another when it is asked again.
        var streams = Few<StreamExchange>()

        func close() {
            for datagram in datagrams { datagram.close() }
            for stream in streams { stream.close() }
        }
    }

    package init(
        loop: EventLoop, negativeTTL: UInt32, trustsAD: Bool = false, tallies: UpstreamTallies = UpstreamTallies()
    ) {
        (self.negativeTTL, self.trustsAD, self.tallies, self.loop) = (negativeTTL, trustsAD, tallies, loop)
    }

    package func ask(_ id: QueryID, _ server: Server, _ ask: Ask, at now: Tick) {
        guard case .message(let question) = ask else {
            return settle(id, .failed(Failure(.badAnswer, "a resolver is asked questions")), false)
        }
        attempts[id] = Attempt(question: question, server: server)
        let knowsEDNS = edns.includes(server, at: now)
        send(id, message(question, to: server, edns: knowsEDNS ? .used : .omitted), isRepeat: false)
    }

    package func askAgain(_ id: QueryID) {
        guard let attempt = attempts[id] else { return }
        if let stream = attempt.streams.first(where: { _ in true }) {
            return sendOverTCP(id, stream.sent, isRepeat: true)
        }
        let knowsEDNS = edns.includes(attempt.server, at: Tick(nanoseconds: Clock.now()))
        send(id, message(attempt.question, to: attempt.server, edns: knowsEDNS ? .used : .omitted), isRepeat: true)
    }

    package func cancel(_ id: QueryID) {
        guard let attempt = attempts.removeValue(forKey: id) else { return }
        for datagram in attempt.datagrams { spelling.waitedInVain(datagram.sent) }
        attempt.close()
    }

    package func keep(_ servers: [Server]) {
        spelling.keep(servers)
        edns.keep(servers)
    }

    package func networkChanged() {}

    package func close() {
        for attempt in attempts.values { attempt.close() }
        attempts = [:]
    }

    package var nextDeadline: Tick? { nil }

    package func expire(at now: Tick) {}

    // MARK: Ways out

    /// Over TCP the letters' case would be one guess more for a forger who has to guess sequence numbers anyway.
    private func message(
        _ question: MessageQuestion, to server: Server, overTCP: Bool = false, edns: SentQuery.EDNS
    ) -> SentQuery {
        let id = random.uint16()
        var bytes = Query.message(
            id: id, question.name, type: question.type, dnssecOK: question.dnssecOK,
            checkingDisabled: question.checkingDisabled, hasEDNS: edns == .used)
        let isMixed =
            !overTCP && spelling.repeatsCase(server) != false && Query.mixCase(of: &bytes) { random.uint64() }
        return SentQuery(
            id: id, question: question, server: server, bytes: bytes, overTCP: overTCP, edns: edns,
            isMixed: isMixed, at: Clock.now())
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

    private func sendOverTCP(_ id: QueryID, _ sent: SentQuery, isRepeat: Bool) {
        do throws(SystemError) {
            let stream = try StreamExchange(sent, isRepeat: isRepeat, scratch: scratch, loop: loop) {
                [unowned self] in received($0, $1, for: id)
            }
            attempts[id]?.streams.append(stream)
        } catch {
            failed(id, Failure(.unreachable, error.description))
        }
    }

    // MARK: What comes back

    private func received(_ datagram: DatagramExchange, _ received: DatagramExchange.Received, for id: QueryID) {
        switch received {
        case .stranger: mismatches.strangers += 1
        case .failed(let error):
            drop(datagram, of: id)
            failed(id, Failure(.unreachable, error.description))
        case .message(let count):
            let buffer = unsafe scratch.first(count)
            switch read(unsafe buffer.span, as: datagram.sent) {
            // Also a message that begins well: whoever guesses must not be able to end the wait for the true answer.
            case .nothing: return
            case .withoutEDNS:
                drop(datagram, of: id)
                let question = datagram.sent.question
                send(id, message(question, to: datagram.sent.server, edns: .tried), isRepeat: datagram.isRepeat)
            case .truncated:
                let sent = datagram.sent
                for other in attempts[id]?.datagrams ?? Few() { drop(other, of: id) }
                let again = message(sent.question, to: sent.server, overTCP: true, edns: sent.edns)
                sendOverTCP(id, again, isRepeat: datagram.isRepeat)
            case .outcome(let outcome): end(id, outcome, toRepeat: datagram.isRepeat)
            }
        }
    }

    private func received(_ stream: StreamExchange, _ received: StreamExchange.Received, for id: QueryID) {
        drop(stream, of: id)
        switch received {
        case .failed(let reason): failed(id, Failure(.unreachable, reason))
        case .message(let message):
            let sent = stream.sent
            switch read(message.span, as: sent) {
            case .nothing: failed(id, Failure(.badAnswer, "an answer to another question"))
            case .withoutEDNS:
                let again = self.message(sent.question, to: sent.server, overTCP: true, edns: .tried)
                sendOverTCP(id, again, isRepeat: stream.isRepeat)
            case .truncated: failed(id, Failure(.badAnswer, "truncated over TCP"))
            case .outcome(let outcome): end(id, outcome, toRepeat: stream.isRepeat)
            }
        }
    }

    private enum Reading {
        /// It is no answer to this query.
        case nothing
        /// The server may not know EDNS: the same is to be asked without.
        case withoutEDNS
        case truncated
        case outcome(Outcome)
    }

    private func read(_ message: Span<UInt8>, as sent: SentQuery) -> Reading {
        do throws(WireError) {
            let question = sent.question
            let reply = try Response.read(
                message, id: sent.id, to: question.name, type: question.type, defaultNegativeTTL: negativeTTL)
            let asked = sent.bytes
            guard spelling.allows(Response.repeatsQuestion(message, of: asked.span), sent) else {
                mismatches.otherCase += 1
                return .nothing
            }
            let now = Clock.now()
            tallies.server(sent.server).answered(reply.answer.head.responseCode, nanoseconds: now &- sent.at)
            if reply.responseCode.mayBeAboutEDNS {
                if sent.edns == .used { return .withoutEDNS }
            } else if sent.edns == .tried {
                edns.lacks(sent.server, at: Tick(nanoseconds: now))
            }
            return reading(reply, from: sent.server)
        } catch {
            if error == .mismatch { mismatches.otherQuery += 1 } else { mismatches.malformed += 1 }
            return .nothing
        }
    }

    /// A FORMERR is not passed on: whoever waits has asked a question that can be read.
    ///
    /// AD says that the server has validated the answer. It proves nothing when it has come through a network, where
    /// whoever is on the path can set it (RFC 4035 §4.9.3); from loopback it has not.
    private func reading(_ reply: Response.Reply, from server: Server) -> Reading {
        if reply.responseCode == .formErr || reply.responseCode == .badVers {
            return .outcome(.failed(Failure(.badAnswer, "\(reply.responseCode), without EDNS too")))
        }
        if reply.truncated { return .truncated }
        var answer = reply.answer
        if !trustsAD, !(server.endpoints.first?.address.isLoopback ?? false) { answer.head.authenticData = false }
        return .outcome(.answer(answer))
    }

    private func drop(_ datagram: DatagramExchange, of id: QueryID) {
        datagram.close()
        attempts[id]?.datagrams.removeAll { $0 === datagram }
    }

    private func drop(_ stream: StreamExchange, of id: QueryID) {
        stream.close()
        attempts[id]?.streams.removeAll { $0 === stream }
    }

    /// One way has failed. What cannot be sent a second time, say, is no reason not to wait for the first.
    private func failed(_ id: QueryID, _ failure: Failure) {
        guard let attempt = attempts[id], attempt.datagrams.isEmpty, attempt.streams.isEmpty else { return }
        end(id, .failed(failure))
    }

    private func end(_ id: QueryID, _ outcome: Outcome, toRepeat: Bool = false) {
        guard let attempt = attempts.removeValue(forKey: id) else { return }
        attempt.close()
        settle(id, outcome, toRepeat)
    }
}
