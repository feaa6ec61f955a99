package import Base
package import Counters
import DNSWire
package import Forwarding
package import Transport

/// The local resolvers as the forwarder sees them: a query goes out over UDP or TCP, an outcome comes back.
package final class LocalUpstream {
    let loop: EventLoop
    /// Told how each query ended, unless it was cancelled.
    package var settle: (ResolverQuery, ResolverOutcome) -> Void = { _, _ in }
    /// In the order of the forwarder's places.
    package var servers: [Endpoint] {
        didSet {
            spelling.keep(servers)
            edns.keep(servers)
        }
    }
    /// `negativeTTL`, for an answer that says "no such record" without an SOA.
    package var negativeTTL: UInt32
    /// `trustAD`: the AD bit of resolvers beyond this machine counts too.
    package var trustsAD: Bool
    package fileprivate(set) var mismatches = MismatchCounters()
    /// What any query's messages are read into.
    let scratch = Scratch(65_535 + 2)
    package let tallies: UpstreamTallies

    private var random = Random()
    private var spelling = Spelling()
    private var edns = EDNSKnowledge()
    private var exchanges: [ResolverQuery: any LocalExchange] = [:]

    package init(
        loop: EventLoop, servers: [Endpoint], negativeTTL: UInt32, trustsAD: Bool = false,
        tallies: UpstreamTallies = UpstreamTallies()
    ) {
        self.tallies = tallies
        self.loop = loop
        self.servers = servers
        self.negativeTTL = negativeTTL
        self.trustsAD = trustsAD
    }

    package func send(_ query: ResolverQuery, to server: Int, overTCP: Bool, _ question: ResolverQuestion) {
        guard server < servers.count else {
            return settle(query, .failed(Failure(.unreachable, "the server is no longer configured")))
        }
        let server = servers[server]
        let knowsEDNS = edns.includes(server, at: Tick(nanoseconds: Clock.now()))
        begin(query, message(question, to: server, overTCP: overTCP, edns: knowsEDNS ? .used : .omitted))
    }

    private func begin(_ query: ResolverQuery, _ sent: SentQuery) {
        do throws(SystemError) {
            exchanges[query] =
                sent.overTCP ? try StreamExchange(query, sent, self) : try DatagramExchange(query, sent, self)
        } catch {
            settle(query, .failed(Failure(.unreachable, error.description)))
        }
    }

    /// Over TCP the letters' case would be one guess more for a forger who has to guess sequence numbers anyway.
    private func message(
        _ question: ResolverQuestion, to server: Endpoint, overTCP: Bool, edns: SentQuery.EDNS
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

    package func cancel(_ query: ResolverQuery) {
        guard let exchange = exchanges.removeValue(forKey: query) else { return }
        spelling.waitedInVain(exchange.sent)
        exchange.close()
    }

    package func close() {
        for exchange in exchanges.values { exchange.close() }
        exchanges = [:]
    }

    /// A message has come where an answer is waited for.
    /// - Returns: false when it is not the answer to this query and the wait goes on.
    func take(_ message: Span<UInt8>, as sent: SentQuery, for query: ResolverQuery) -> Bool {
        let outcome: ResolverOutcome
        do throws(WireError) {
            let question = sent.question
            let reply = try Response.read(
                message, id: sent.id, to: question.name, type: question.type, defaultNegativeTTL: negativeTTL)
            let asked = sent.bytes
            guard spelling.allows(Response.repeatsQuestion(message, of: asked.span), sent) else {
                mismatches.otherCase += 1
                return false
            }
            let now = Clock.now()
            tallies.server(sent.server).answered(reply.answer.head.responseCode, nanoseconds: now &- sent.at)
            if reply.responseCode.mayBeAboutEDNS {
                guard sent.edns != .used else {
                    askWithoutEDNS(query, sent)
                    return true
                }
            } else if sent.edns == .tried {
                edns.lacks(sent.server, at: Tick(nanoseconds: now))
            }
            outcome = self.outcome(reply, from: sent.server)
        } catch {
            // Also one that begins well: whoever guesses must not be able to end the wait for the true answer.
            if error == .mismatch { mismatches.otherQuery += 1 } else { mismatches.malformed += 1 }
            return false
        }
        end(query, outcome)
        return true
    }

    /// A FORMERR is not passed on: whoever waits has asked a question that can be read.
    ///
    /// AD says that the server has validated the answer. It proves nothing when it has come through a network, where
    /// whoever is on the path can set it (RFC 4035 §4.9.3); from loopback it has not.
    private func outcome(_ reply: Response.Reply, from server: Endpoint) -> ResolverOutcome {
        if reply.responseCode == .formErr || reply.responseCode == .badVers {
            return .failed(Failure(.badAnswer, "\(reply.responseCode), without EDNS too"))
        }
        if reply.truncated { return .truncated }
        var answer = reply.answer
        if !trustsAD, !server.address.isLoopback { answer.head.authenticData = false }
        return .answered(answer)
    }

    /// The same question once more, with an id and a port of its own, within the time that the first one has.
    private func askWithoutEDNS(_ query: ResolverQuery, _ sent: SentQuery) {
        exchanges.removeValue(forKey: query)?.close()
        begin(query, message(sent.question, to: sent.server, overTCP: sent.overTCP, edns: .tried))
    }

    func end(_ query: ResolverQuery, _ outcome: ResolverOutcome) {
        exchanges.removeValue(forKey: query)?.close()
        settle(query, outcome)
    }
}

/// A query under way, whatever it travels by.
private protocol LocalExchange: EventHandler {
    var sent: SentQuery { get }
    func close()
}

/// A query over UDP, on a socket of its own: its port is as random as its id (RFC 5452 §9).
private final class DatagramExchange: LocalExchange {
    private let query: ResolverQuery
    let sent: SentQuery
    private unowned let upstream: LocalUpstream
    private var socket: QuerySocket
    private var registration: Registration?

    /// Datagrams read before anybody else has a turn.
    private static let turn = 16

    init(_ query: ResolverQuery, _ sent: SentQuery, _ upstream: LocalUpstream) throws(SystemError) {
        (self.query, self.sent, self.upstream) = (query, sent, upstream)
        socket = try QuerySocket.open(to: sent.server)
        // Not sent for want of room is as good as lost: the deadline finds it.
        let message = sent.bytes
        _ = try socket.send(message.span)
        registration = try upstream.loop.register(socket.descriptor, .readable, self)
    }

    func ready(_ readiness: Readiness) {
        do throws(SystemError) {
            for _ in 0..<Self.turn {
                switch try socket.receive(into: upstream.scratch) {
                case .wouldBlock: return
                case .stranger: upstream.mismatches.strangers += 1
                case .bytes(let count):
                    let buffer = unsafe upstream.scratch.first(count)
                    let message = unsafe buffer.span
                    if upstream.take(message, as: sent, for: query) { return }
                }
            }
        } catch {
            upstream.end(query, .failed(Failure(.unreachable, error.description)))
        }
    }

    func close() {
        if let registration { upstream.loop.unregister(registration, closing: true) }
        registration = nil
        socket.close()
    }
}

/// A query over TCP, on a connection of its own, for an answer that did not fit a datagram.
private final class StreamExchange: LocalExchange {
    private let query: ResolverQuery
    let sent: SentQuery
    private unowned let upstream: LocalUpstream
    private var socket: StreamSocket
    private var registration: Registration?
    private var outgoing = StreamBuffer(limit: 1024)
    private var incoming: [UInt8] = []
    private var isConnected = false

    init(_ query: ResolverQuery, _ sent: SentQuery, _ upstream: LocalUpstream) throws(SystemError) {
        (self.query, self.sent, self.upstream) = (query, sent, upstream)
        socket = try StreamSocket.connect(to: sent.server)
        registration = try upstream.loop.register(socket.descriptor, .writable, self)
        let message = sent.bytes
        // A query has at most 12 + 255 + 4 + 11 octets.
        _ = outgoing.append([UInt8(message.count >> 8), UInt8(message.count & 0xFF)].span)
        _ = outgoing.append(message.span)
    }

    func ready(_ readiness: Readiness) {
        do throws(SystemError) {
            if !isConnected {
                try socket.connectResult()
                isConnected = true
            }
            if !outgoing.isEmpty, try outgoing.flush(to: socket), let registration {
                upstream.loop.update(registration, .readable)
            }
            if readiness.contains(.readable) { try receive() }
        } catch {
            upstream.end(query, .failed(Failure(.unreachable, error.description)))
        }
    }

    private func receive() throws(SystemError) {
        switch try socket.receive(into: upstream.scratch) {
        case .wouldBlock: return
        case .endOfStream:
            upstream.end(query, .failed(Failure(.unreachable, "closed by the server before it answered")))
        case .bytes(let count):
            unsafe incoming.append(contentsOf: upstream.scratch.first(count))
            guard incoming.count >= 2 else { return }
            let end = 2 + (Int(incoming[0]) << 8 | Int(incoming[1]))
            guard incoming.count >= end else { return }
            let message = Array(incoming[2..<end])
            if !upstream.take(message.span, as: sent, for: query) {
                upstream.end(query, .failed(Failure(.badAnswer, "an answer to another question")))
            }
        }
    }

    func close() {
        if let registration { upstream.loop.unregister(registration, closing: true) }
        registration = nil
        socket.close()
    }
}
