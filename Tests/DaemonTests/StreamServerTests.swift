import Base
import Configuration
import Counters
import Cryptography
import DNSCache
import DNSWire
import Foundation
import ShellTestSupport
import Testing

@testable import Daemon
@testable import Streams
@testable import Transport

/// TCP clients, each the other end of a socket pair, turned by hand.
@Suite struct StreamServerTests {
    private let server: StreamServer
    private let forwarder: ForwarderLoop
    private let cache = DNSCache(bytes: 16 << 20, seed: (1, 2))

    @Test("only an alert about the certificate counts as a client that does not accept it", arguments: 0...UInt8.max)
    func alerts(_ code: UInt8) {
        let isAboutIt = [42, 43, 44, 45, 46, 48].contains(code)
        #expect(Counted(failedBy: .tls(.alert(code))) == (isAboutIt ? .handshakeCertificate : .handshakeOther))
    }

    init() throws {
        let report = LogLines().report
        forwarder = try ForwarderLoop(cache: cache, report: report)
        // Behind the forwarder, which begins an epoch.
        let now = Tick(nanoseconds: Clock.now()).seconds
        let answer = Answer.addresses(example, type: .a, [.v4(192, 0, 2, 1)], ttl: 600)
        cache.store(answer, to: example, type: .a, for: .everyone, at: now, basis: 1)
        let label = String(repeating: "x", count: 63)
        let targets = (0..<200).map { Name("\(label).\(label).host-\($0)")! }
        cache.store(.pointers(example, targets, ttl: 600), to: example, type: .ptr, for: .everyone, at: now, basis: 1)
        server = try StreamServer(
            StreamServer.Listeners(transport: .tcp, listeners: [], certificate: nil), Settings().listen,
            frontend: CurrentFrontend(QueryFrontend(cache: cache, Settings().listen, queue: forwarder.queue)),
            forwarderLoop: forwarder, report: report)
    }

    /// A client, and what it has at its own end.
    private struct Connection {
        let client: StreamClient
        let end: Int32

        func send(_ bytes: [UInt8]) {
            var rest = bytes[...]
            while !rest.isEmpty {
                let sent = Array(rest).withUnsafeBytes {
                    Foundation.send(end, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard sent > 0 else { return }
                rest.removeFirst(sent)
                client.link.stream?.ready([.readable])
            }
        }

        /// All that has come; nil at the end of the stream.
        func received() -> [UInt8]? {
            var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
            while true {
                client.link.stream?.ready([.writable])
                let count = recv(end, &buffer, buffer.count, Int32(MSG_DONTWAIT))
                guard count > 0 else { return count == 0 && bytes.isEmpty ? nil : bytes }
                bytes += buffer[..<count]
            }
        }
    }

    private func connect() throws -> Connection {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue)
        try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
        let socket = StreamSocket(adopting: Descriptor(adopting: ends[0]))
        return Connection(
            client: try StreamClient(socket, from: .v4(127, 0, 0, 1), of: .host, server: server), end: ends[1])
    }

    private func framed(_ message: [UInt8]) -> [UInt8] { octets(UInt16(message.count)) + message }

    /// The messages behind their lengths.
    private func messages(_ bytes: [UInt8]?) -> [[UInt8]] {
        var (rest, all) = ((bytes ?? [])[...], [[UInt8]]())
        while rest.count >= 2 {
            let length = Int(rest.removeFirst()) << 8 + Int(rest.removeFirst())
            all.append(Array(rest.prefix(length)))
            rest = rest.dropFirst(length)
        }
        return all
    }

    @Test func queriesAreAnsweredInWhateverPiecesTheyCome() throws {
        let connection = try connect()
        let bytes = framed(query(example, id: 1)) + framed(query(example, id: 2))
        for octet in bytes { connection.send([octet]) }
        let replies = messages(connection.received())
        #expect(replies.map { $0[1] } == [1, 2])
        #expect(replies.allSatisfy { $0.suffix(4) == [192, 0, 2, 1] })
        connection.client.close()
        close(connection.end)
    }

    @Test func afterTheClientsEndTheConnectionIsClosedOnceAllIsAnswered() throws {
        let connection = try connect()
        connection.send(framed(query(example)))
        shutdown(connection.end, Int32(SHUT_WR))
        connection.client.link.stream?.ready([.readable])
        #expect(messages(connection.received()).count == 1)
        #expect(connection.received() == nil)
        close(connection.end)
    }

    @Test func soManyQueriesOfOneConnectionAreUnderWayAndNoMore() throws {
        let connection = try connect()
        let most = StreamClient.maximumWaiting
        // Nobody takes them on: the loop has not begun.
        for id in 0..<UInt16(most + 40) {
            connection.send(framed(query(Name("n\(id).example.com")!, id: id)))
        }
        #expect(!connection.client.guest.isQuiet)
        // One that the cache knows waits behind those.
        connection.send(framed(query(example)))
        #expect(connection.received() == [])
        connection.client.close()
        close(connection.end)
    }

    @Test func aClientThatDoesNotReadGetsNoMoreUntilItDoes() throws {
        let connection = try connect()
        // Each answer is some 30,000 octets: together more than may wait.
        for id in 0..<UInt16(80) { connection.send(framed(query(example, .ptr, id: id))) }
        #expect(connection.client.guest.held <= StreamClient.maximumQueued)
        var bytes: [UInt8] = []
        while let more = connection.received(), !more.isEmpty {
            bytes += more
            connection.client.link.stream?.ready([.readable, .writable])
        }
        #expect(messages(bytes).map { $0[1] } == Array(0..<80))
        #expect(connection.client.guest.held <= StreamClient.maximumQueued)
        connection.client.close()
        close(connection.end)
    }

    /// A server on a loop of its own, with a client over loopback.
    private struct Serving {
        let server: StreamServer
        let frontend: CurrentFrontend
        let client: Int32

        /// What comes next; nothing at the end, nil after ten seconds.
        func received() -> [UInt8]? {
            var octets = [UInt8](repeating: 0, count: 4096)
            let count = recv(client, &octets, octets.count, 0)
            return count < 0 ? nil : Array(octets.prefix(count))
        }

        /// A count, once the loop has done its work so far.
        func count(_ event: Counted) -> UInt64 {
            expectEnd { server.loop.submit($0) }
            return server.tally[event]
        }

        func stop() {
            expectEnd { server.stopListening($0) }
            expectEnd { server.stop(by: 0, $0) }
            close(client)
        }
    }

    /// - Parameter bytes: What the client sends.
    private func serve(
        _ bytes: [UInt8], over transport: Tally.Transport = .tcp, _ certificate: TLSServerContext? = nil
    ) throws -> Serving {
        let settings = Settings().listen
        let frontend = CurrentFrontend(QueryFrontend(cache: cache, settings, queue: forwarder.queue))
        let listener = try StreamListener.listen(Endpoint(.v4(127, 0, 0, 1), port: 0))
        let server = try StreamServer(
            StreamServer.Listeners(transport: transport, listeners: [listener], certificate: certificate), settings,
            frontend: frontend, forwarderLoop: forwarder, report: LogLines().report)
        try server.start()
        let client = try loopbackSocket(SOCK_STREAM).descriptor
        var longest = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &longest, socklen_t(MemoryLayout<timeval>.size))
        var room: Int32 = 32_768
        setsockopt(client, SOL_SOCKET, SO_RCVBUF, &room, socklen_t(MemoryLayout<Int32>.size))
        connectToLoopback(client, port: listener.local.port)
        try #require(send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
        return Serving(server: server, frontend: frontend, client: client)
    }

    @Test func aReloadClosesTheConnectionsOfClientsThatMayNotAskAnyMore() throws {
        let serving = try serve(framed(query(example)))
        defer { serving.stop() }
        #expect(serving.received()?.isEmpty == false)
        let settings = Settings().listen
        expectEnd { serving.server.apply(settings, nil, $0) }
        #expect(serving.count(.closedNotAllowed) == 0 && serving.count(.open) == 1, "it may ask as before")
        var others = settings
        others.allow = [Network("192.0.2.0/24")!]
        serving.frontend.change { $0.apply(others) }
        expectEnd { serving.server.apply(others, nil, $0) }
        #expect(serving.received() == [])
        #expect(serving.count(.closedNotAllowed) == 1 && serving.count(.open) == 0)
    }

    @Test func aHandshakeThatHasFailedIsCountedWhileTheClientStays() throws {
        let shown = try SelfSignedCertificate.make(names: ["dns.example"], addresses: [], days: 1)
        let serving = try serve(
            Array("GET / HTTP/1.1\r\n\r\n".utf8), over: .tls,
            TLSServerContext(certificatePEM: shown.certificatePEM, keyPEM: shown.keyPEM))
        defer { serving.stop() }
        #expect(serving.received() != nil)
        #expect(serving.count(.handshakeNotTLS) == 1 && serving.count(.handshakeFailed) == 1)
    }

    /// Answers of some 30,000 octets each: more than the kernel takes for a client that does not read.
    private var longQuestions: [UInt8] { (0..<16).flatMap { framed(query(example, .ptr, id: $0)) } }

    @Test func theEndWaitsForAClientThatReadsItsAnswers() throws {
        let serving = try serve(longQuestions)
        var bytes = try #require(serving.received())
        expectEnd { serving.server.stopListening($0) }
        let stopped = Gate()
        serving.server.stop(by: Clock.now() + 30_000_000_000) { stopped.open() }
        while let more = serving.received(), !more.isEmpty { bytes += more }
        #expect(messages(bytes).map { $0[1] } == Array(0..<16))
        #expect(stopped.wait())
        close(serving.client)
    }

    @Test func theEndDoesNotWaitForAClientThatDoesNotRead() throws {
        let serving = try serve(longQuestions)
        #expect(serving.received()?.isEmpty == false)
        expectEnd { serving.server.stopListening($0) }
        let begun = Clock.now()
        expectEnd { serving.server.stop(by: begun + 100_000_000, $0) }
        #expect(Clock.now() >= begun + 100_000_000)
        close(serving.client)
    }
}
