import Base
import Cryptography
import DNSWire
import Forwarding
import Foundation
import ShellTestSupport
import Streams
import Testing
import Transport

@testable import Upstreams

/// The queries that are reported as sent, or as not sent, over real sockets.
@Suite struct WrittenTests {
    /// Asks a server once, and records the reports.
    private final class Told: @unchecked Sendable {
        let loop: EventLoop
        let events = Arrivals<String>()
        private let upstream: OnLoop<GroupUpstream>

        init(_ server: Server, trusting certificate: [UInt8]? = nil, from source: IPAddress? = nil) throws {
            let (loop, events) = (try EventLoop(label: "test"), events)
            var egress = Egress()
            egress.source = source
            let tls = try certificate.map { try TLSClientContext(TLSPolicy(anchors: $0)) }
            self.loop = loop
            upstream = OnLoop(GroupUpstream(DNSAnswers(negativeTTL: 30), tls: tls, loop: loop, egress: egress))
            upstream.value.wrote = { _ in events.append("wrote") }
            upstream.value.settle = { _, outcome, _ in
                if case .failed = outcome { events.append("failed") } else { events.append("answered") }
            }
            upstream.value.progressed = { progress in if case .connected = progress { events.append("connected") } }
            loop.start()
            loop.submit { [upstream] in
                upstream.value.ask(
                    QueryID(standalone: 1, of: .fallback), server,
                    .message(MessageQuestion(name: Name("www.example.com")!, type: .a)),
                    at: Tick(nanoseconds: Clock.now()))
            }
        }

        func end() {
            let gate = Gate()
            loop.submit { [upstream] in upstream.value.close() }
            loop.stop { gate.open() }
            #expect(gate.wait() && events.isEmpty)
        }
    }

    private static func silent() throws -> FramesServer { try FramesServer { _, connection in _ = connection.query() } }

    @Test func aDatagramHasLeftOnceTheKernelHasIt() throws {
        let (socket, endpoint) = try loopbackSocket(SOCK_DGRAM, port: 0)
        let resolver = ServerSocket(socket)
        let told = try Told(Server(endpoint))
        #expect(told.events.next() == "wrote")
        told.end()
        resolver.end()
    }

    @Test func aDatagramThatCannotBeSentHasNotLeft() throws {
        // An address for documentation, which no machine has.
        let told = try Told(Server(Endpoint("127.0.0.9:53")!), from: IPAddress("192.0.2.9"))
        #expect(told.events.next() == "failed")
        told.end()
    }

    @Test func aRequestHasLeftOnceItsConnectionIsEstablished() throws {
        let server = try FramesServer { _, connection in
            while let query = connection.query() { connection.answer(answer(to: query)) }
        }
        let told = try Told(Server(server.endpoint, .tcp))
        #expect(told.events.next() == "connected" && told.events.next() == "wrote")
        #expect(told.events.next() == "answered")
        told.end()
    }

    @Test func aRequestThatIsSentAgainHasLeftAgain() throws {
        let server = try FramesServer { number, connection in
            // The first connection ends when it has the query, as when a server is restarted.
            while let query = connection.query(), number > 1 { connection.answer(answer(to: query)) }
        }
        let told = try Told(Server(server.endpoint, .tcp))
        for event in ["connected", "wrote", "connected", "wrote", "answered"] { #expect(told.events.next() == event) }
        told.end()
    }

    @Test func aRequestToNobodyHasNotLeft() throws {
        let (listener, endpoint) = try listeningSocket()
        ServerSocket(listener).end()
        let told = try Told(Server(endpoint, .tcp))
        #expect(told.events.next() == "failed")
        told.end()
    }

    @Test func nothingIsWrittenBeforeTheServerHasProvenWhoItIs() throws {
        let settings = try TLSServerSettings(addresses: [.v4(127, 0, 0, 1)])
        let server = try Self.silent()
        let told = try Told(Server(server.endpoint, .tls), trusting: settings.certificate)
        #expect(told.events.next() == "connected")
        told.end()
    }

    /// A connection has no room, and this machine has none for a second one: the query that waits is reported.
    @Test func aQueryForWhichThereIsNoConnectionIsReported() throws {
        let isReported = Gate()
        let server = try FramesServer { number, connection in
            if number == 1 {
                let queries = (0..<DNSFrames.maximumUnderWay).compactMap { _ in connection.query() }
                #expect(isReported.wait())
                for query in queries { connection.answer(answer(to: query)) }
            }
            while let query = connection.query() { connection.answer(answer(to: query)) }
        }
        let (endpoint, lookups) = (server.endpoint, OnLoop(0))
        let finder = ServerFinder(
            find: { _, _, then in
                lookups.value += 1
                then(lookups.value == 2 ? .unknown(Failure(.here, "short")) : .known([endpoint]))
            }, worked: { _, _ in }, allFailed: { _, _ in })
        let loop = try EventLoop(label: "test")
        let upstream = OnLoop(GroupUpstream(DNSAnswers(negativeTTL: 30), tls: nil, loop: loop, lookup: finder))
        let ids = (1...DNSFrames.maximumUnderWay + 1).map { QueryID(standalone: UInt32($0), of: .fallback) }
        let (lost, answered) = (Arrivals<QueryID>(), Arrivals<QueryID>())
        upstream.value.lost = { lost.append($0) }
        upstream.value.settle = { id, outcome, _ in if case .answer = outcome { answered.append(id) } }
        loop.start()
        loop.submit {
            for id in ids {
                upstream.value.ask(
                    id, Server(.tcp, .name("dns.example"), port: endpoint.port),
                    .message(MessageQuestion(name: Name("www.example.com")!, type: .a)),
                    at: Tick(nanoseconds: Clock.now()))
            }
        }
        #expect(lost.next() == ids.last)
        isReported.open()
        #expect(Set(ids.compactMap { _ in answered.next() }) == Set(ids))
        let gate = Gate()
        loop.submit { upstream.value.close() }
        loop.stop { gate.open() }
        #expect(gate.wait() && lost.isEmpty)
    }
}
