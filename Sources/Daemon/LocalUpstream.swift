import Addresses
import DNSWire
import Forwarding
import Transport

/// The local resolvers as the forwarder sees them: a query goes out over UDP or TCP, an outcome comes back.
final class LocalUpstream {
    let loop: EventLoop
    /// Told how each query ended, unless it was cancelled.
    var settle: (ResolverQuery, ResolverOutcome) -> Void = { _, _ in }
    /// In the order of the forwarder's places.
    var servers: [Endpoint]
    /// `negativeTTL`, for an answer that says "no such record" without an SOA.
    let negativeTTL: UInt32
    /// Messages that came to a query's port and were not its answer, or none at all: somebody guesses.
    private(set) var mismatches: UInt64 = 0
    /// What any query's messages are read into.
    let scratch = Scratch(65_535 + 2)

    private var random = Random()
    private var exchanges: [ResolverQuery: any LocalExchange] = [:]

    init(loop: EventLoop, servers: [Endpoint], negativeTTL: UInt32) {
        self.loop = loop
        self.servers = servers
        self.negativeTTL = negativeTTL
    }

    func send(_ query: ResolverQuery, to server: Int, overTCP: Bool, _ question: ResolverQuestion) {
        guard server < servers.count else {
            return settle(query, .failed(Failure(.unreachable, "the server is no longer configured")))
        }
        do throws(SystemError) {
            let id = random.uint16()
            exchanges[query] =
                overTCP
                ? try StreamExchange(query, id: id, question, to: servers[server], self)
                : try DatagramExchange(query, id: id, question, to: servers[server], self)
        } catch {
            settle(query, .failed(Failure(.unreachable, error.description)))
        }
    }

    func cancel(_ query: ResolverQuery) {
        exchanges.removeValue(forKey: query)?.close()
    }

    func close() {
        for exchange in exchanges.values { exchange.close() }
        exchanges = [:]
    }

    /// A message has come where an answer is waited for.
    /// - Returns: false when it is not the answer to this query and the wait goes on.
    func take(_ message: Span<UInt8>, as id: UInt16, to question: ResolverQuestion, for query: ResolverQuery) -> Bool {
        let outcome: ResolverOutcome
        do throws(WireError) {
            let reply = try Response.read(
                message, id: id, to: question.name, type: question.type, defaultNegativeTTL: negativeTTL)
            outcome = reply.truncated ? .truncated : .answered(reply.answer)
        } catch {
            // Also one that begins well: whoever guesses must not be able to end the wait for the true answer.
            mismatches += 1
            return false
        }
        end(query, outcome)
        return true
    }

    func end(_ query: ResolverQuery, _ outcome: ResolverOutcome) {
        exchanges.removeValue(forKey: query)?.close()
        settle(query, outcome)
    }
}

/// A query under way, whatever it travels by.
private protocol LocalExchange: EventHandler {
    func close()
}

/// A query over UDP, on a socket of its own: its port is as random as its id (RFC 5452 §9).
private final class DatagramExchange: LocalExchange {
    private let query: ResolverQuery
    private let id: UInt16
    private let question: ResolverQuestion
    private unowned let upstream: LocalUpstream
    private var socket: QuerySocket
    private var registration: Registration?

    init(
        _ query: ResolverQuery, id: UInt16, _ question: ResolverQuestion, to server: Endpoint, _ upstream: LocalUpstream
    ) throws(SystemError) {
        (self.query, self.id, self.question, self.upstream) = (query, id, question, upstream)
        socket = try QuerySocket.connect(to: server)
        // Not sent for want of room is as good as lost: the deadline finds it.
        _ = try socket.send(question.message(id: id).span)
        registration = try upstream.loop.register(socket.descriptor, .readable, self)
    }

    func ready(_ readiness: Readiness) {
        do throws(SystemError) {
            while case .bytes(let count) = try socket.receive(into: upstream.scratch) {
                let buffer = unsafe upstream.scratch.first(count)
                let message = unsafe buffer.span
                if upstream.take(message, as: id, to: question, for: query) { return }
            }
        } catch {
            upstream.end(query, .failed(Failure(.unreachable, error.description)))
        }
    }

    func close() {
        if let registration { upstream.loop.unregister(registration) }
        registration = nil
        socket.close()
    }
}

/// A query over TCP, on a connection of its own, for an answer that did not fit a datagram.
private final class StreamExchange: LocalExchange {
    private let query: ResolverQuery
    private let id: UInt16
    private let question: ResolverQuestion
    private unowned let upstream: LocalUpstream
    private var socket: StreamSocket
    private var registration: Registration?
    private var outgoing = StreamBuffer(limit: 1024)
    private var incoming: [UInt8] = []
    private var isConnected = false

    init(
        _ query: ResolverQuery, id: UInt16, _ question: ResolverQuestion, to server: Endpoint, _ upstream: LocalUpstream
    ) throws(SystemError) {
        (self.query, self.id, self.question, self.upstream) = (query, id, question, upstream)
        socket = try StreamSocket.connect(to: server)
        registration = try upstream.loop.register(socket.descriptor, .writable, self)
        let message = question.message(id: id)
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
            if !upstream.take(message.span, as: id, to: question, for: query) {
                upstream.end(query, .failed(Failure(.badAnswer, "an answer to another question")))
            }
        }
    }

    func close() {
        if let registration { upstream.loop.unregister(registration) }
        registration = nil
        socket.close()
    }
}

extension ResolverQuestion {
    fileprivate func message(id: UInt16) -> [UInt8] {
        Query.message(
            id: id, name, type: type, dnssecOK: dnssecOK, checkingDisabled: checkingDisabled)
    }
}
