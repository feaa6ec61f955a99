import Base
import Counters
import Cryptography
import DNSWire
import Forwarding
import Foundation
import HTTP
import ShellTestSupport
import Streams
import Testing
import Transport

@testable import Upstreams

/// No reference keeps a closed, removed or answered object: a cycle would stay for as long as the daemon runs.
@Suite struct LifetimeTests {
    /// Objects that should be gone, used on one loop.
    private final class Watched: @unchecked Sendable {
        private struct Weak { weak var object: AnyObject? }
        private var all: [(name: String, weak: Weak)] = []

        func watch(_ name: String, _ object: AnyObject?) { all.append((name, Weak(object: object))) }
        var left: [String] { all.filter { $0.weak.object != nil }.map(\.name) }
        var count: Int { all.count }
    }

    private static let question = Ask.message(MessageQuestion(name: Name("www.example.com")!, type: .a))

    private static func id(_ number: UInt32) -> QueryID { QueryID(standalone: number, of: .fallback) }

    /// Does the steps one after the other, each in its own turn of the loop.
    private func onLoop(_ loop: EventLoop, _ work: @escaping @Sendable () -> Void) {
        let done = Gate()
        loop.submit {
            work()
            done.open()
        }
        #expect(done.wait())
    }

    private func stop(_ loop: EventLoop) {
        let stopped = Gate()
        loop.stop { stopped.open() }
        #expect(stopped.wait())
    }

    // MARK: Connections

    enum Moment: CaseIterable { case lookedUp, dialled, asked, answered, refused }
    enum End: CaseIterable { case closed, removed }

    @Test(arguments: Moment.allCases, End.allCases) func theConnectionsToAServerGo(moment: Moment, end: End) throws {
        let reached = Gate()
        let server = try FramesServer { _, connection in
            while true {
                // Without TLS on this side, a handshake does not end.
                if moment == .dialled { _ = connection.receive() }
                guard moment != .dialled, let query = connection.query() else { return reached.open() }
                if moment == .answered { connection.answer(answer(to: query)) } else { reached.open() }
            }
        }
        let loop = try EventLoop(label: "test")
        let watched = Watched()
        let tls = moment == .dialled ? try TLSClientContext(TLSPolicy()) : nil
        let answers = DNSAnswers(negativeTTL: 30)
        let waiting = OnLoop<[(ServerEndpoints) -> Void]>([])
        let finder = ServerFinder(
            find: { server, _, then in
                if moment == .lookedUp { waiting.value.append(then) } else { then(.known(server.endpoints)) }
            }, worked: { _, _ in }, allFailed: { _, _ in })
        let upstream = OnLoop<StreamUpstream?>(
            StreamUpstream(loop: loop, tallies: UpstreamTallies(), lookup: finder) { server throws(Failure) in
                let kind = try ServerKind(server, answers, tls)
                watched.watch("pool", kind.dialect)
                return kind
            })
        upstream.value!.settle = { [reached] _, _, _ in reached.open() }
        watched.watch("upstream", upstream.value)
        // No server listens at port 1.
        let endpoint = moment == .refused ? Endpoint(.v4(127, 0, 0, 1), port: 1) : server.endpoint
        loop.start()
        onLoop(loop) {
            for number: UInt32 in 1...3 {
                upstream.value!.ask(
                    Self.id(number), Server(endpoint, moment == .dialled ? .tls : .tcp), Self.question,
                    at: Tick(nanoseconds: Clock.now()))
            }
        }
        if moment == .asked || moment == .answered || moment == .refused { #expect(reached.wait()) }
        onLoop(loop) {
            if end == .closed { return upstream.value!.close() }
            upstream.value!.keep([])
            for number: UInt32 in 1...3 { upstream.value!.cancel(Self.id(number)) }
            // Closed connections of a server are released with the next change, or when another deadline is due.
            upstream.value!.keep([])
        }
        onLoop(loop) {
            if end == .removed { #expect(watched.left == ["upstream"], "\(moment)") }
            upstream.value = nil
        }
        onLoop(loop) { #expect(watched.left.isEmpty && watched.count == 2) }
        stop(loop)
    }

    @Test(arguments: ["closed", "cancelled", "answered", "removed"]) func thePortsOfAPlainServerGo(end: String) throws {
        let (descriptor, endpoint) = try loopbackSocket(SOCK_DGRAM)
        let resolver = ServerSocket(descriptor)
        let answered = Gate()
        Thread.detachNewThread { resolver.answerAll { query in end == "answered" ? answer(to: Array(query)) : nil } }
        let loop = try EventLoop(label: "test")
        let watched = Watched()
        let upstream = OnLoop<PlainUpstream?>(nil)
        loop.start()
        onLoop(loop) {
            let made = PlainUpstream(DNSAnswers(negativeTTL: 30), loop: loop)
            upstream.value = made
            made.settle = { _, _, _ in answered.open() }
            made.ask(Self.id(1), Server(endpoint), Self.question, at: Tick(nanoseconds: Clock.now()))
            let server = made.servers.values.first
            watched.watch("upstream", made)
            watched.watch("server", server)
            watched.watch("port", server?.port)
        }
        if end == "answered" { #expect(answered.wait()) }
        onLoop(loop) {
            switch end {
            case "closed": upstream.value!.close()
            case "cancelled": upstream.value!.cancel(Self.id(1))
            case "removed":
                upstream.value!.keep([])
                upstream.value!.cancel(Self.id(1))
            default: break
            }
            if end != "closed" { upstream.value!.expire(at: Tick(nanoseconds: Clock.now() + 60_000_000_000)) }
        }
        onLoop(loop) {
            if end == "removed" { #expect(watched.left == ["upstream"]) }
            upstream.value!.close()
            upstream.value = nil
        }
        onLoop(loop) { #expect(watched.left.isEmpty && watched.count == 3) }
        resolver.end()
        stop(loop)
    }

    @Test(arguments: [true, false]) func theConnectionToAStoreGoes(isCut: Bool) throws {
        let (descriptor, endpoint) = try listeningSocket()
        let (listener, come, goOn) = (ServerSocket(descriptor), Gate(), Gate())
        Thread.detachNewThread {
            guard let client = listener.accept() else { return }
            come.open()
            if !isCut { _ = goOn.wait() }
            close(client)
        }
        let loop = try EventLoop(label: "test")
        let (watched, lost) = (Watched(), Gate())
        let store = OnLoop<StoreUpstream?>(nil)
        let outbox = OnLoop(Outbox())
        loop.turnEnded = { while outbox.value.send() {} }
        let seal = try FleetSeal(secret: [UInt8](repeating: 1, count: 32))
        let seals = OnLoop([StoreSeal(seal, [.httpdns: [1]])])
        loop.start()
        onLoop(loop) {
            let made = StoreUpstream(
                StoreUpstream.Access(.plain(endpoint), user: "", password: nil), seals: seals.value, generations: nil,
                loop: loop, outbox: outbox.value)
            store.value = made
            made.handle = { _ in lost.open() }
            made.perform(.dial, wall: 1_700_000_000)
            watched.watch("store", made)
            watched.watch("link", made.link)
        }
        #expect(come.wait())
        if isCut { #expect(lost.wait()) } else { onLoop(loop) { store.value!.close() } }
        onLoop(loop) { #expect(watched.left == ["store"]) }
        onLoop(loop) { store.value = nil }
        onLoop(loop) { #expect(watched.left.isEmpty && watched.count == 2) }
        goOn.open()
        stop(loop)
    }

    @Test(arguments: ["answered", "closed", "refused"]) func anExchangeGoes(end: String) throws {
        let server = try ScriptedServer([end == "answered" ? "HTTP/1.1 204 No Content\r\n\r\n" : nil])
        let loop = try EventLoop(label: "test")
        let (watched, done) = (Watched(), Gate())
        let exchange = OnLoop<HTTPExchange?>(nil)
        loop.start()
        onLoop(loop) {
            let request = HTTPRequestWriter(host: "h", keepsConnection: false).get(Array("/".utf8))
            exchange.value = try? HTTPExchange(request, to: server.endpoint, .plain, loop: loop) { _, _ in
                exchange.value = nil
                done.open()
            }
            watched.watch("exchange", exchange.value)
            if end == "closed" {
                exchange.value?.close()
                exchange.value = nil
                done.open()
            }
        }
        #expect(done.wait())
        onLoop(loop) { #expect(watched.left.isEmpty && watched.count == 1) }
        stop(loop)
    }
}
