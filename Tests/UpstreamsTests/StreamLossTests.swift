import Base
import Cryptography
import DNSWire
import Forwarding
import Foundation
import ShellTestSupport
import Testing

@testable import Upstreams

/// The fates of queries whose connection ends, is silent, or cannot be made.
@Suite struct StreamLossTests {
    private static let echo: @Sendable (Int, FramesConnection) -> Void = { _, connection in
        while let query = connection.query() { connection.answer(answer(to: query)) }
    }

    private static func id(_ number: UInt32) -> QueryID { QueryID(standalone: number, of: .fallback) }

    private static func label(_ query: [UInt8]) -> String {
        String(decoding: query[13..<13 + Int(query[12])], as: UTF8.self)
    }

    private static func connections(_ server: FramesServer) -> Int {
        var count = 0
        while !server.connections.isEmpty, server.connections.next() != nil { count += 1 }
        return count
    }

    // MARK: Silence

    /// The queries on a dead connection are doubted one after the other: one fresh connection takes all of them, even
    /// while it is idle.
    @Test(arguments: [false, true]) func oneFreshConnectionTakesAllThatIsDoubted(isSecure: Bool) throws {
        let tls = try isSecure ? TLSServerSettings(addresses: [.v4(127, 0, 0, 1)]) : nil
        let server = try FramesServer(tls: tls) { number, connection in
            while let query = connection.query() {
                if number > 1 || Self.label(query) == "w1" { connection.answer(answer(to: query)) }
            }
        }
        let asking = try StreamAsking(trusting: tls.map { [$0.certificate] } ?? [])
        let target = Server(server.endpoint, isSecure ? .tls : .tcp)
        #expect(asking.ask(target, 1)?.address == 1)
        asking.ask(target, 2...21)
        for number in 2...21 as ClosedRange<UInt32> {
            asking.onLoop { $0.askAgain(Self.id(number)) }
            #expect(asking.next() == .init(number: number, address: UInt8(number), toRepeat: true))
        }
        #expect(Self.connections(server) == 2)
        asking.end()
    }

    /// A query that was sent again a moment ago, since its connection was closed, gets as much time on the next
    /// connection as on the first.
    @Test func doubtCountsFromWhenAQuestionWasSent() throws {
        let (heard, close, again) = (Gate(), Gate(), Gate())
        let server = try FramesServer { number, connection in
            while let query = connection.query() {
                switch (number, Self.label(query)) {
                case (1, "w2"):
                    heard.open()
                    #expect(close.wait())
                    return
                case (2, "w2"): again.open()
                default: connection.answer(answer(to: query))
                }
            }
        }
        let asking = try StreamAsking()
        let target = Server(server.endpoint, .tcp)
        #expect(asking.ask(target, 1)?.address == 1)
        asking.ask(target, 2...2)
        #expect(heard.wait())
        asking.advance(milliseconds: 240)
        close.open()
        #expect(again.wait())
        asking.advance(milliseconds: 10)
        asking.onLoop { $0.askAgain(Self.id(2)) }
        let left =
            asking.onLoop { upstream in upstream.firstDeadline.map { $0.milliseconds(since: asking.now) } } ?? nil
        #expect(left == 240 && Self.connections(server) == 2)
        asking.advance(milliseconds: 240)
        asking.onLoop { $0.expire(at: asking.now) }
        #expect(asking.next() == .init(number: 2, address: 2, toRepeat: true))
        #expect(Self.connections(server) == 1)
        asking.end()
    }

    /// A connection whose verification is too old takes no further query, even if it is never idle; the queries on it
    /// do not delay others.
    @Test func trustEndsOnABusyConnection() throws {
        let (tls, heard, go) = (try TLSServerSettings(addresses: [.v4(127, 0, 0, 1)]), Gate(), Gate())
        let server = try FramesServer(tls: tls) { number, connection in
            while let query = connection.query() {
                if Self.label(query) == "w1" {
                    heard.open()
                    #expect(go.wait())
                }
                connection.answer(answer(to: query))
            }
        }
        let asking = try StreamAsking(trusting: [tls.certificate])
        let target = Server(server.endpoint, .tls)
        asking.ask(target, 1...1)
        #expect(heard.wait() && server.connections.next() == 1)
        asking.ask(target, 2...2)
        asking.onLoop { upstream in
            let wall = upstream.wall()
            upstream.wall = { wall + 86_400 + 60 }
        }
        asking.ask(target, 3...3)
        #expect(asking.next() == .init(number: 3, address: 3))
        #expect(Self.connections(server) == 1)
        go.open()
        #expect(asking.next(2) == StreamAsking.answered(1...2))
        asking.end()
    }

    /// Many servers write a session ticket first; the kernel then holds their answer back until an acknowledgement.
    @Test func anAnswerBehindATicketIsNotHeldUp() throws {
        let tls = try TLSServerSettings(addresses: [.v4(127, 0, 0, 1)])
        let server = try FramesServer(tls: tls) { _, connection in
            connection.gathersOctets()
            guard let query = connection.query() else { return }
            connection.send([])
            connection.answer(answer(to: query))
        }
        let asking = try StreamAsking(trusting: [tls.certificate])
        // The machine may be busy: the best of several runs counts.
        var best = Duration.seconds(9)
        for number in 1...10 as ClosedRange<UInt32> {
            let start = ContinuousClock.now
            #expect(asking.ask(Server(server.endpoint, .tls), number)?.address == UInt8(number))
            best = min(best, start.duration(to: .now))
        }
        #expect(best < .milliseconds(30))
        asking.end()
    }

    /// A connection takes longer to be made than an attempt, and the other one has no room by then: the query that
    /// waits leaves on the connection as soon as it is made.
    @Test func aDoubtedConnectionIsUsedWhenItIsMade() throws {
        let (tls, go, silence) = (try TLSServerSettings(addresses: [.v4(127, 0, 0, 1)]), Gate(), Gate())
        let server = try FramesServer(tls: tls) { number, connection in
            // The handshake begins after that.
            #expect((number == 1 ? go : silence).wait())
            Self.echo(number, connection)
        }
        let asking = try StreamAsking(
            trusting: [tls.certificate],
            limits: StreamLimits(connections: 1, atOnce: 2, idleTime: StreamLimits.frames.idleTime))
        let target = Server(server.endpoint, .tls)
        asking.ask(target, 1...1)
        #expect(server.connections.next() == 1)
        asking.onLoop { $0.cancel(Self.id(1), isOverdue: true) }
        asking.ask(target, 2...4)
        #expect(server.connections.next() == 2)
        go.open()
        #expect(asking.next() == .init(number: 4, address: 4))
        silence.open()
        #expect(asking.next(2) == StreamAsking.answered(2...3))
        #expect(Self.connections(server) == 0)
        asking.end()
    }

    /// A query that is cancelled while the connection is being made never leaves.
    @Test func whatIsCancelledBeforeTheConnectionIsMadeIsNotSent() throws {
        let (tls, go) = (try TLSServerSettings(addresses: [.v4(127, 0, 0, 1)]), Gate())
        let heard = Arrivals<String>()
        let server = try FramesServer(tls: tls) { _, connection in
            // The handshake begins after that.
            #expect(go.wait())
            while let query = connection.query() {
                heard.append(Self.label(query))
                connection.answer(answer(to: query))
            }
        }
        let asking = try StreamAsking(trusting: [tls.certificate])
        asking.ask(Server(server.endpoint, .tls), 1...2)
        #expect(server.connections.next() == 1)
        asking.onLoop { $0.cancel(Self.id(1), isOverdue: false) }
        go.open()
        #expect(asking.next() == .init(number: 2, address: 2))
        #expect(heard.next() == "w2" && heard.isEmpty)
        asking.end()
    }

    // MARK: The end of a connection

    /// Two answers come together, and the first leads to a query that cannot be sent any more: the other answer still
    /// counts.
    @Test func answersInHandCount() throws {
        let (asked, isBlocked, isReset) = (Gate(), Gate(), Gate())
        let heardTwice = Arrivals<String>()
        let server = try FramesServer { number, connection in
            guard number == 1 else {
                while let query = connection.query() {
                    heardTwice.append(Self.label(query))
                    connection.answer(answer(to: query))
                }
                return
            }
            let queries = (0..<2).compactMap { _ in connection.query() }
            asked.open()
            #expect(isBlocked.wait())
            // Both orders are tried: one of them is the order in which the client reads.
            let frames = queries.map { framed(answer(to: $0, code: Self.label($0) == "w1" ? 0 : 1)) }
            connection.send(frames[0] + frames[1])
            connection.resetsAtClose()
            connection.close()
            isReset.open()
        }
        let asking = try StreamAsking()
        asking.ask(Server(server.endpoint, .tcp), 1...2)
        #expect(asked.wait())
        asking.loop.submit {
            isBlocked.open()
            _ = isReset.wait()
        }
        #expect(asking.next(2) == StreamAsking.answered(1...2))
        #expect(heardTwice.next() == "w2" && heardTwice.isEmpty)
        asking.end()
    }

    /// A server takes a few queries on a connection and closes it with many others unread, which resets it. The lost
    /// queries are sent again until the limit is known, and then only so many on a connection: no query fails.
    @Test(arguments: [1, 2, 7], [false, true])
    func aServerThatTakesFewQuestionsAConnection(few: Int, isReset: Bool) throws {
        let server = try FramesServer { _, connection in
            for _ in 0..<few {
                guard let query = connection.query() else { return }
                connection.answer(answer(to: query))
            }
            if isReset { connection.resetsAtClose() }
        }
        let asking = try StreamAsking()
        asking.ask(Server(server.endpoint, .tcp), 1...100)
        #expect(asking.next(100) == StreamAsking.answered(1...100))
        asking.end()
    }

    /// Resets that end different queries show no limit: later connections take as much as before.
    @Test func resetsOfYoungConnectionsTeachNothing() throws {
        let server = try FramesServer { number, connection in
            guard number <= 2 else { return Self.echo(number, connection) }
            if let query = connection.query() { connection.answer(answer(to: query)) }
            _ = connection.query()
            connection.resetsAtClose()
        }
        let asking = try StreamAsking()
        let target = Server(server.endpoint, .tcp)
        #expect(asking.ask(target, 1)?.address == 1)
        // The second query is lost with the first connection, the third with the second; each is answered on the next.
        #expect(asking.ask(target, 2)?.address == 2)
        #expect(asking.ask(target, 3)?.address == 3)
        #expect(Self.connections(server) == 3)
        asking.ask(target, 4...203)
        #expect(asking.next(200) == StreamAsking.answered(4...203))
        #expect(Self.connections(server) == 0)
        asking.end()
    }

    /// The queries on a connection whose server breaks the protocol are sent once more, on another connection.
    @Test func aBrokenProtocolGetsOneMoreTry() throws {
        let server = try FramesServer { number, connection in
            guard number == 1 else { return Self.echo(number, connection) }
            _ = connection.query()
            connection.send([0, 0])
            _ = connection.query()
        }
        let asking = try StreamAsking()
        #expect(asking.ask(Server(server.endpoint, .tcp), 1) == .init(number: 1, address: 1))
        #expect(Self.connections(server) == 2)
        asking.end()
    }

    /// A connection that ends in its handshake gets one more try; a server that always does so has failed.
    @Test(arguments: [false, true], [1, 100]) func aHandshakeThatEnds(isReset: Bool, times: Int) throws {
        let tls = try TLSServerSettings(addresses: [.v4(127, 0, 0, 1)])
        let server = try FramesServer(tls: tls) { number, connection in
            guard number <= times else { return Self.echo(number, connection) }
            // The handshake has begun. The server reads all octets, so that only an intended reset is one.
            connection.dropsOctets()
            if isReset { connection.resetsAtClose() }
        }
        let asking = try StreamAsking(trusting: [tls.certificate])
        asking.ask(Server(server.endpoint, .tls), 1...3)
        let ended = asking.next(3)
        if times == 1 {
            #expect(ended == StreamAsking.answered(1...3))
        } else {
            #expect(ended.count == 3 && ended.allSatisfy { $0.failure?.kind == .unreachable })
        }
        #expect(Self.connections(server) == 2)
        asking.end()
    }

    /// The failure is the refused certificate, even if the alert cannot be sent any more.
    @Test func aRefusedCertificateIsSaidThoughTheServerIsGone() throws {
        let (tls, other) = (try TLSServerSettings(names: ["a.example"]), try TLSServerSettings(names: ["b.example"]))
        let (greeted, isBlocked, isReset) = (Gate(), Gate(), Gate())
        let server = try FramesServer(tls: tls) { _, connection in
            _ = connection.receive()
            greeted.open()
            guard isBlocked.wait() else { return }
            connection.send([])
            connection.resetsAtClose()
            connection.close()
            isReset.open()
        }
        let asking = try StreamAsking(trusting: [other.certificate])
        asking.ask(Server(server.endpoint, .tls), 1...1)
        #expect(greeted.wait())
        asking.loop.submit {
            isBlocked.open()
            _ = isReset.wait()
        }
        #expect(asking.next()?.failure?.kind == .untrusted)
        asking.end()
    }

    // MARK: Connections that do not come about

    /// Many queries wait, and no connection can be made any more: each fails, none inside the failure of another.
    @Test func diallingThatFailsAtOnceIsNoRecursion() throws {
        let tls = try TLSServerSettings(names: ["dns.example"])
        let asking = try StreamAsking(trusting: [tls.certificate], lookup: Self.lost.finder)
        let target = Server(.tls, .name("dns.example"), port: 853, addresses: [])
        asking.ask(target, 1...2000)
        #expect(asking.isQuiet)
        asking.onLoop { _ in Self.lost.value.end() }
        #expect(asking.next(2000).allSatisfy { $0.failure?.detail == "gone" })
        #expect(asking.onLoop { _ in Self.lost.value.deepest } ?? 99 < 4)
        asking.end()
    }

    /// Lets callers wait until ``end()``; then no address is found.
    private final class Lost {
        var deepest = 0
        private var depth = 0
        private var waiting: [(ServerEndpoints) -> Void] = []
        private var isOver = false

        func find(_ then: @escaping (ServerEndpoints) -> Void) {
            guard isOver else { return waiting.append(then) }
            depth += 1
            deepest = max(deepest, depth)
            then(.unknown(Failure(.unreachable, "gone")))
            depth -= 1
        }

        func end() {
            isOver = true
            for then in waiting { then(.unknown(Failure(.unreachable, "gone"))) }
        }
    }

    private static let lost = LostFinder()

    /// The finder is used on the loop alone.
    private final class LostFinder: @unchecked Sendable {
        let value = Lost()
        var finder: ServerFinder {
            ServerFinder(find: { [value] _, _, then in value.find(then) }, worked: { _, _ in }, allFailed: { _, _ in })
        }
    }

    /// The group drops the server while a connection to it is being made: the further addresses are still tried.
    @Test func aServerThatIsLetGoWhileItIsDialled() throws {
        let (tls, silence) = (try TLSServerSettings(names: ["dns.example"]), Gate())
        let working = try FramesServer(4, tls: tls, Self.echo)
        let hanging = try FramesServer(2, port: working.endpoint.port) { _, _ in _ = silence.wait() }
        let asking = try StreamAsking(trusting: [tls.certificate])
        let target = Server(
            .tls, .name("dns.example"), port: working.endpoint.port,
            addresses: [.v4(127, 0, 0, 2), .v4(127, 0, 0, 4)])
        asking.ask(target, 1...1)
        #expect(hanging.connections.next() == 1)
        asking.onLoop { $0.keep([]) }
        asking.advance(milliseconds: 250)
        asking.onLoop { $0.expire(at: asking.now) }
        #expect(asking.next() == .init(number: 1, address: 1))
        silence.open()
        asking.end()
    }

    /// An address takes connections and answers nothing: its queries go to the other address, and so do later ones.
    @Test(arguments: [false, true]) func anAddressThatAnswersNothing(isSilent: Bool) throws {
        let (tls, asked, silence) = (try TLSServerSettings(names: ["dns.example"]), Gate(), Gate())
        let working = try FramesServer(4, tls: tls, Self.echo)
        let broken = try FramesServer(2, port: working.endpoint.port, tls: tls) { _, connection in
            _ = connection.query()
            asked.open()
            if isSilent { _ = silence.wait() }
        }
        let asking = try StreamAsking(trusting: [tls.certificate])
        let target = Server(
            .tls, .name("dns.example"), port: working.endpoint.port,
            addresses: [.v4(127, 0, 0, 2), .v4(127, 0, 0, 4)])
        asking.ask(target, 1...1)
        #expect(asked.wait())
        if isSilent { asking.onLoop { $0.askAgain(Self.id(1)) } }
        #expect(asking.next() == .init(number: 1, address: 1, toRepeat: isSilent))
        asking.onLoop { $0.expire(at: asking.now.advanced(milliseconds: 30_000)) }
        #expect(asking.ask(target, 2) == .init(number: 2, address: 2))
        #expect(Self.connections(working) == 2 && Self.connections(broken) == 1)
        silence.open()
        asking.end()
    }

    /// The name of a server has another address, and the former one still takes connections. A connection of another
    /// network says nothing about that.
    @Test(arguments: [false, true]) func aNameWhoseAddressAnswersNothingIsLookedUpAgain(inOtherNetwork: Bool) throws {
        let tls = try TLSServerSettings(names: ["dns.example"])
        let working = try FramesServer(4, tls: tls, Self.echo)
        let (asked, goesOn) = (Gate(), Gate())
        let former = try FramesServer(2, port: working.endpoint.port, tls: tls) { number, connection in
            guard connection.query() != nil, number == 1 else { return }
            asked.open()
            _ = goesOn.wait()
        }
        let (failed, worked) = (Arrivals<Server>(), Arrivals<Endpoint>())
        let (old, new) = (former.endpoint, working.endpoint)
        let finder = ServerFinder(
            find: { _, _, then in then(.known(failed.isEmpty ? [old] : [old, new])) },
            worked: { _, endpoint in worked.append(endpoint) }, allFailed: { server, _ in failed.append(server) })
        let asking = try StreamAsking(trusting: [tls.certificate], lookup: finder)
        let target = Server(.tls, .name("dns.example"), port: new.port, addresses: [])
        asking.ask(target, 1...1)
        #expect(asked.wait())
        if inOtherNetwork { asking.onLoop { $0.networkChanged() } }
        goesOn.open()
        #expect((asking.next()?.failure == nil) != inOtherNetwork)
        #expect(failed.isEmpty == inOtherNetwork && worked.isEmpty == inOtherNetwork)
        if !inOtherNetwork { #expect(failed.next() == target && worked.next() == new && worked.isEmpty) }
        asking.end()
    }

    /// A name that takes long on the first connection is no reason to look the server's name up again.
    @Test func aServerThatIsSlowWithANameIsNotLookedUpAgain() throws {
        let tls = try TLSServerSettings(names: ["dns.example"])
        let (asked, silence) = (Gate(), Gate())
        let server = try FramesServer(2, tls: tls) { number, connection in
            guard number == 1 else { return Self.echo(number, connection) }
            _ = connection.query()
            asked.open()
            _ = silence.wait()
        }
        let failed = Arrivals<Server>()
        let endpoint = server.endpoint
        let finder = ServerFinder(
            find: { _, _, then in then(.known([endpoint])) }, worked: { _, _ in },
            allFailed: { server, _ in failed.append(server) })
        let asking = try StreamAsking(trusting: [tls.certificate], lookup: finder)
        asking.ask(Server(.tls, .name("dns.example"), port: endpoint.port, addresses: []), 1...1)
        #expect(asked.wait())
        asking.onLoop { $0.askAgain(Self.id(1)) }
        #expect(asking.next() == .init(number: 1, address: 1, toRepeat: true))
        #expect(failed.isEmpty)
        silence.open()
        asking.end()
    }

    /// A machine that hangs takes connections, and no handshake ends: after a query's time the name is looked up again.
    @Test func aServerThatIsSilentWhileItIsDialledIsLookedUpAgain() throws {
        let (tls, silence) = (try TLSServerSettings(names: ["dns.example"]), Gate())
        let hanging = try FramesServer { _, _ in _ = silence.wait() }
        let (endpoint, failed) = (hanging.endpoint, Arrivals<Server>())
        let finder = ServerFinder(
            find: { _, _, then in then(.known([endpoint])) }, worked: { _, _ in },
            allFailed: { server, _ in failed.append(server) })
        let asking = try StreamAsking(trusting: [tls.certificate], lookup: finder)
        let target = Server(.tls, .name("dns.example"), port: endpoint.port, addresses: [])
        asking.ask(target, 1...2)
        #expect(hanging.connections.next() == 1)
        asking.onLoop { $0.cancel(Self.id(1), isOverdue: false) }
        #expect(failed.isEmpty)
        asking.onLoop { $0.cancel(Self.id(2), isOverdue: true) }
        #expect(failed.next() == target)
        silence.open()
        asking.end()
    }
}
