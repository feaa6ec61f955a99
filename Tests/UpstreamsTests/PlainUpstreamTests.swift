import Base
import Counters
import DNSWire
import Forwarding
import Foundation
import ShellTestSupport
import Testing
import Transport

@testable import Upstreams

/// The upstream of local resolvers alone, over real sockets.
@Suite struct PlainUpstreamTests {
    private static let name = Name("www.example.com")!

    /// A resolver on a UDP and a TCP port of the same number, which answers as the test says.
    private final class Resolver: Sendable {
        let endpoint: Endpoint
        /// The messages over UDP, and the messages over TCP with their length in front.
        let datagrams = Arrivals<[UInt8]>()
        let streams = Arrivals<[UInt8]>()
        private let sockets: [ServerSocket]

        /// - Parameters:
        ///   - datagram: The answer to the message with this number; nil: silence.
        ///   - stream: The answer over TCP; nil: silence.
        init(
            datagram: @escaping @Sendable (Int, [UInt8]) -> [UInt8]?,
            stream: @escaping @Sendable ([UInt8]) -> [UInt8]? = { _ in nil }
        ) throws {
            let (listener, endpoint) = try listeningSocket()
            let socket = try loopbackSocket(SOCK_DGRAM, port: endpoint.port).descriptor
            (sockets, self.endpoint) = ([ServerSocket(socket), ServerSocket(listener)], endpoint)
            Thread.detachNewThread { [datagrams, socket = sockets[0]] in
                var number = 0
                socket.answerAll { octets in
                    let message = Array(octets)
                    datagrams.append(message)
                    number += 1
                    return datagram(number - 1, message)
                }
            }
            Thread.detachNewThread { [streams, listener = sockets[1]] in
                while let client = listener.accept() {
                    var buffer = [UInt8](repeating: 0, count: 4096)
                    let count = recv(client, &buffer, buffer.count, 0)
                    streams.append(Array(buffer[..<max(0, count)]))
                    if count > 2, let answer = stream(Array(buffer[2..<count])) {
                        _ = send(client, framed(answer), answer.count + 2, Int32(MSG_NOSIGNAL))
                    }
                    close(client)
                }
            }
        }

        deinit { for socket in sockets { socket.end() } }
    }

    private static func answer(_ query: [UInt8], truncated: Bool = false, address: UInt8? = nil) -> [UInt8] {
        ShellTestSupport.answer(
            to: query, addresses: address.map { [.v4(192, 0, 2, $0)] } ?? [], isTruncated: truncated)
    }

    /// The result of one query: the address, or the failure; and whether the answer came to the second message.
    private struct Ended: Sendable, Equatable {
        var address: String?
        var failure: Failure.Kind?
        var toRepeat: Bool
    }

    /// Sends one query; `then` is done on the loop once the first message has reached the resolver. `counted` gets the
    /// number of answers that the figures have at the end.
    private func ask(
        _ resolver: Resolver, counted: Arrivals<UInt64> = Arrivals(),
        then: @escaping @Sendable (GroupUpstream, QueryID) -> Void = { _, _ in }
    ) throws -> Ended? {
        let loop = try EventLoop(label: "test")
        let upstream = OnLoop(GroupUpstream(DNSAnswers(negativeTTL: 30), tls: nil, loop: loop))
        let ended = Arrivals<Ended>()
        upstream.value.settle = { _, outcome, toRepeat in
            let durations = upstream.value.tallies.figures.values.flatMap(\.durations.values)
            counted.append(durations.reduce(0) { $0 + $1.total })
            switch outcome {
            case .answer(let answer):
                let address = answer.records().first.flatMap { IPAddress(bytes: $0.rdata.span) }
                ended.append(Ended(address: address?.description, toRepeat: toRepeat))
            case .failed(let failure): ended.append(Ended(failure: failure.kind, toRepeat: toRepeat))
            case .addresses: break
            }
        }
        loop.start()
        let id = QueryID(standalone: 1, of: .fallback)
        let endpoint = resolver.endpoint
        loop.submit {
            upstream.value.ask(
                id, Server(endpoint), .message(MessageQuestion(name: Self.name, type: .a)),
                at: Tick(nanoseconds: Clock.now()))
        }
        #expect(resolver.datagrams.next() != nil)
        loop.submit { then(upstream.value, id) }
        defer {
            let gate = Gate()
            loop.submit { upstream.value.close() }
            loop.stop { gate.open() }
            #expect(gate.wait())
        }
        return ended.next()
    }

    @Test func whatDoesNotFitADatagramComesOverTCPFromTheSameServer() throws {
        let resolver = try Resolver(
            datagram: { _, query in Self.answer(query, truncated: true) },
            stream: { query in Self.answer(query, address: 7) })
        let counted = Arrivals<UInt64>()
        #expect(try ask(resolver, counted: counted) == Ended(address: "192.0.2.7", toRepeat: false))
        #expect(resolver.streams.next() != nil && resolver.streams.isEmpty)
        #expect(counted.next() == 1)
    }

    /// A resolver that truncates over TCP too is unusable, and one that closes the connection is not there.
    @Test func whatIsNoAnswerOverTCP() throws {
        let truncating = try Resolver(
            datagram: { _, query in Self.answer(query, truncated: true) },
            stream: { query in Self.answer(query, truncated: true) })
        #expect(try ask(truncating) == Ended(failure: .badAnswer, toRepeat: false))
        let closing = try Resolver(datagram: { _, query in Self.answer(query, truncated: true) })
        #expect(try ask(closing) == Ended(failure: .unreachable, toRepeat: false))
    }

    /// A resolver that is known to repeat the letters' case makes one error: it is asked over TCP at once. If it takes
    /// no TCP, the upstream waits for its datagram.
    @Test(arguments: [true, false]) func anAnswerWithOtherLettersIsAskedForOverTCP(takesTCP: Bool) throws {
        @Sendable func lowercased(_ message: [UInt8]) -> [UInt8] {
            message[..<12] + Self.name.wire + message[(12 + Self.name.wire.count)...]
        }
        let resolver = try Resolver(
            datagram: { number, query in
                number == 0 ? Self.answer(query, address: 1) : lowercased(Self.answer(query, address: 66))
            },
            stream: { query in takesTCP ? Self.answer(query, address: 7) : nil })
        let loop = try EventLoop(label: "test")
        let answers = DNSAnswers(negativeTTL: 30)
        let upstream = OnLoop(GroupUpstream(answers, tls: nil, loop: loop))
        let (ended, said) = (Arrivals<String>(), Arrivals<String>())
        answers.otherCase = { said.append("\($0)") }
        upstream.value.settle = { _, outcome, _ in
            guard case .answer(let answer) = outcome else { return ended.append("failed") }
            ended.append("\(answer.records()[0].rdata.last!)")
        }
        loop.start()
        let endpoint = resolver.endpoint
        for number: UInt32 in [1, 2] {
            loop.submit {
                upstream.value.ask(
                    QueryID(standalone: number, of: .fallback), Server(endpoint),
                    .message(MessageQuestion(name: Self.name, type: .a)), at: Tick(nanoseconds: Clock.now()))
            }
            if number == 1 { #expect(ended.next() == "1") }
        }
        #expect(said.next() == "\(Server(endpoint))")
        #expect(resolver.streams.next() != nil)
        if takesTCP { #expect(ended.next() == "7") }
        let gate = Gate()
        loop.submit { upstream.value.close() }
        loop.stop { gate.open() }
        #expect(gate.wait())
        #expect(ended.isEmpty)
    }

    /// What a resolver has shown of EDNS and of the letters' case is forgotten with the network.
    @Test func anotherNetworkMayHaveAnotherResolver() throws {
        // So many letters that some are in upper case.
        let name = Name("a-name-with-many-letters.in-a-domain-with-many-letters.example")!
        let wire = name.wire
        let resolver = try Resolver(datagram: { _, query in
            let hasEDNS = query[11] > 0
            let answer = ShellTestSupport.answer(to: query, addresses: [], code: hasEDNS ? 1 : 0)
            return Array(answer[..<12]) + wire + Array(answer[(12 + wire.count)...])
        })
        let loop = try EventLoop(label: "test")
        let upstream = OnLoop(GroupUpstream(DNSAnswers(negativeTTL: 30), tls: nil, loop: loop))
        let ended = Gate()
        upstream.value.settle = { _, _, _ in ended.open() }
        loop.start()
        let server = Server(resolver.endpoint)
        func ask(_ number: UInt32) {
            loop.submit {
                upstream.value.ask(
                    QueryID(standalone: number, of: .fallback), server,
                    .message(MessageQuestion(name: name, type: .a)), at: Tick(nanoseconds: Clock.now()))
            }
            #expect(ended.wait())
        }
        /// Whether the next message has an OPT record, and whether it has letters in upper case.
        func next() -> [Bool]? {
            resolver.datagrams.next().map { [$0[11] > 0, Array($0[12..<(12 + wire.count)]) != wire] }
        }
        ask(1)
        #expect(next() == [true, true] && next() == [false, false])
        ask(2)
        #expect(next() == [false, false])
        loop.submit { upstream.value.networkChanged() }
        ask(3)
        #expect(next() == [true, true])
        let gate = Gate()
        loop.submit { upstream.value.close() }
        loop.stop { gate.open() }
        #expect(gate.wait())
    }

    /// FORMERR may be about this question alone, so the server has not failed.
    @Test func aMalformedQuestionIsTheQuestionsFault() throws {
        let answers = DNSAnswers(negativeTTL: 30)
        let server = Server(Endpoint("192.0.2.53:53")!)
        let query = Query.message(id: 9, Self.name, type: .a, dnssecOK: false, checkingDisabled: false)
        var refusal = Self.answer(query)
        refusal[3] = 0x81
        let question = MessageQuestion(name: Self.name, type: .a)
        let read = answers.read(refusal.span, id: 9, to: question)
        let reply = try #require(read)
        guard
            case .outcome(.answer(let answer)) = answers.classify(
                reply, from: server, asked: .tried, at: Tick(nanoseconds: 0))
        else {
            Issue.record("the server has failed")
            return
        }
        #expect(answer.head.responseCode == .servFail && !answer.isCacheable && answer.extendedErrors == [.other])
    }

    /// The second message to a resolver has another ID and port; the result shows which of the two was answered.
    @Test(arguments: [0, 1]) func theAnswerToEitherAskingCounts(answered: Int) throws {
        let first = Arrivals<[UInt8]>()
        let resolver = try Resolver(datagram: { number, query in
            if number == 0 {
                first.append(query)
                return nil
            }
            // The first message is answered only now, if at all; each message has a port of its own.
            return answered == 1 ? Self.answer(query, address: 8) : nil
        })
        guard answered == 1 else {
            // The resolver answers neither message: both are given up together.
            let loop = try EventLoop(label: "test")
            let upstream = OnLoop(GroupUpstream(DNSAnswers(negativeTTL: 30), tls: nil, loop: loop))
            let id = QueryID(standalone: 1, of: .fallback)
            loop.start()
            let endpoint = resolver.endpoint
            loop.submit {
                upstream.value.ask(
                    id, Server(endpoint), .message(MessageQuestion(name: Self.name, type: .a)),
                    at: Tick(nanoseconds: Clock.now()))
                upstream.value.askAgain(id)
            }
            let messages = [resolver.datagrams.next(), resolver.datagrams.next()].compactMap { $0 }
            #expect(messages.count == 2 && messages[0][..<2] != messages[1][..<2])
            let gate = Gate()
            loop.submit { upstream.value.cancel(id) }
            loop.stop { gate.open() }
            #expect(gate.wait())
            return
        }
        #expect(try ask(resolver) { $0.askAgain($1) } == Ended(address: "192.0.2.8", toRepeat: true))
        #expect(first.next() != nil)
    }
}
