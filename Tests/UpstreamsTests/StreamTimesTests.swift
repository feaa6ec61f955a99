import Base
import Cryptography
import DNSWire
import Forwarding
import Foundation
import ShellTestSupport
import Testing

@testable import Upstreams

/// The effects of time, endpoints and the network on connections: the test sets the clock.
@Suite struct StreamTimesTests {
    private static let echo: @Sendable (Int, FramesConnection) -> Void = { _, connection in
        while let query = connection.query() { connection.answer(answer(to: query)) }
    }

    /// The milliseconds until the upstream's next deadline.
    private static func nextDeadline(_ asking: StreamAsking) -> Int? {
        asking.onLoop { upstream in upstream.firstDeadline.map { $0.milliseconds(since: asking.now) } } ?? nil
    }

    private static func expire(_ asking: StreamAsking, after milliseconds: UInt64) {
        asking.advance(milliseconds: milliseconds)
        asking.onLoop { $0.expire(at: asking.now) }
    }

    // MARK: Idle connections

    @Test func anIdleConnectionIsClosedInTime() throws {
        let closed = Gate()
        let server = try FramesServer { number, connection in
            Self.echo(number, connection)
            closed.open()
        }
        let asking = try StreamAsking()
        #expect(asking.ask(Server(server.endpoint, .tcp), 1)?.address == 1)
        #expect(Self.nextDeadline(asking) == 25_000)
        Self.expire(asking, after: 24_999)
        #expect(Self.nextDeadline(asking) == 1)
        Self.expire(asking, after: 1)
        #expect(Self.nextDeadline(asking) == nil && closed.wait())
        asking.end()
    }

    /// A query that was sent again on its connection leaves no second entry: a connection in use is not closed as idle.
    @Test func aConnectionOnWhichAQueryWasAskedAnewIsIdleOrInUse() throws {
        let (asked, go) = (Gate(), Gate())
        let server = try FramesServer { _, connection in
            // The server does not know EDNS.
            for code in [1, 0] as [UInt8] {
                if let query = connection.query() { connection.answer(answer(to: query, code: code)) }
            }
            guard let query = connection.query() else { return }
            asked.open()
            #expect(go.wait())
            connection.answer(answer(to: query))
        }
        let asking = try StreamAsking()
        #expect(asking.ask(Server(server.endpoint, .tcp), 1)?.address == 1)
        asking.ask(Server(server.endpoint, .tcp), 2...2)
        #expect(asked.wait())
        #expect(Self.nextDeadline(asking) == nil)
        Self.expire(asking, after: 25_000)
        go.open()
        #expect(asking.next() == .init(number: 2, address: 2))
        asking.end()
    }

    /// Of two answers that come together, the first cancels the second query: the connection becomes idle only once.
    @Test func aConnectionWhoseLastQueryIsCancelledAmongItsAnswersIsIdleOrInUse() throws {
        let (asked, go) = (Gate(), Gate())
        let server = try FramesServer { _, connection in
            let queries = (0..<2).compactMap { _ in connection.query() }
            connection.send(queries.flatMap { framed(answer(to: $0)) })
            guard let query = connection.query() else { return }
            asked.open()
            #expect(go.wait())
            connection.answer(answer(to: query))
        }
        let asking = try StreamAsking()
        asking.onLoop { upstream in
            let told = upstream.settle
            upstream.settle = { [unowned upstream] id, outcome, toRepeat in
                for number in [1, 2] as [UInt32] { upstream.cancel(QueryID(standalone: number, of: .fallback)) }
                told(id, outcome, toRepeat)
            }
        }
        asking.ask(Server(server.endpoint, .tcp), 1...2)
        #expect(asking.next() != nil)
        asking.ask(Server(server.endpoint, .tcp), 3...3)
        #expect(asked.wait())
        #expect(Self.nextDeadline(asking) == nil && asking.isQuiet)
        Self.expire(asking, after: 25_000)
        go.open()
        #expect(asking.next() == .init(number: 3, address: 3))
        asking.end()
    }

    /// The milliseconds after which the server closes two connections. The next one is kept as long as usual.
    @Test(arguments: [500, 5000, 20_000])
    func whenAServerClosesIdleConnectionsTeachesNothing(closes: UInt64) throws {
        let (close, isClosed) = (Gate(), Gate())
        let server = try FramesServer { number, connection in
            guard number <= 2 else { return Self.echo(number, connection) }
            if let query = connection.query() { connection.answer(answer(to: query)) }
            #expect(close.wait())
            connection.close()
            isClosed.open()
        }
        let asking = try StreamAsking()
        #expect(asking.ask(Server(server.endpoint, .tcp), 1)?.address == 1)
        for number in [2, 3] as [UInt32] {
            #expect(Self.nextDeadline(asking) == 25_000)
            asking.advance(milliseconds: closes)
            close.open()
            #expect(isClosed.wait())
            // The end is in the socket: the upstream finds it at the latest when it uses the connection.
            #expect(asking.ask(Server(server.endpoint, .tcp), number)?.address == UInt8(number))
        }
        #expect(Self.nextDeadline(asking) == 25_000)
        asking.end()
    }

    /// The server says in tenths of a second for how long it keeps idle connections (RFC 7828), and 0 for not at all;
    /// another option says nothing. Only queries on kept connections ask for this option.
    @Test(
        arguments: [
            ([0, 11, 0, 2, 0, 100], 8000), ([0, 11, 0, 2, 255, 255], 120_000), ([0, 11, 0, 2, 0, 0], nil),
            ([0, 11, 0, 0], 25_000),
        ] as [([UInt8], Int?)])
    func whatAServerSaysOfIdleConnectionsCounts(option: [UInt8], kept: Int?) throws {
        let server = try FramesServer { _, connection in
            while let query = connection.query() {
                #expect(query.suffix(4) == [0, 11, 0, 0])
                var message = answer(to: query)
                message[11] = 1
                message += [0, 0, 41, 16, 0, 0, 0, 0, 0, 0, UInt8(option.count)] + option
                connection.answer(message)
            }
        }
        let asking = try StreamAsking()
        #expect(asking.ask(Server(server.endpoint, .tcp), 1)?.address == 1)
        #expect(Self.nextDeadline(asking) == kept)
        asking.end()
    }

    @Test func anotherNetworkEndsTheTrustInOpenConnections() throws {
        let go = Gate()
        let server = try FramesServer { number, connection in
            if number == 2, let query = connection.query() {
                #expect(go.wait())
                connection.answer(answer(to: query))
            }
            Self.echo(number, connection)
        }
        let asking = try StreamAsking()
        let target = Server(server.endpoint, .tcp)
        #expect(asking.ask(target, 1)?.address == 1)
        asking.onLoop { $0.networkChanged() }
        asking.ask(target, 2...2)
        // Queries under way are still answered on the old connection; new queries use another one.
        asking.onLoop { $0.networkChanged() }
        #expect(asking.ask(target, 3)?.address == 3)
        go.open()
        #expect(asking.next()?.address == 2)
        #expect(asking.ask(target, 4)?.address == 4)
        #expect((0..<3).compactMap { _ in server.connections.next() } == [1, 2, 3] && server.connections.isEmpty)
        asking.end()
    }

    @Test func aServerThatIsListedNoMoreIsLetGoOf() throws {
        let server = try FramesServer(1, Self.echo)
        let asking = try StreamAsking()
        let target = Server(server.endpoint, .tcp)
        #expect(asking.ask(target, 1)?.address == 1)
        asking.onLoop { $0.keep([]) }
        #expect(Self.nextDeadline(asking) == nil)
        #expect(asking.ask(target, 2)?.address == 2)
        #expect(server.connections.next() == 1 && server.connections.next() == 2)
        asking.end()
    }

    // MARK: Several endpoints

    private static func named(_ port: UInt16, _ addresses: [UInt8]) -> Server {
        Server(.tls, .name("dns.example"), port: port, addresses: addresses.map { .v4(127, 0, 0, $0) })
    }

    /// One endpoint refuses, one is silent, one has a certificate for another name, one works.
    @Test func theFirstThatProvesItselfWins() throws {
        let good = try TLSServerSettings(names: ["dns.example"])
        let bad = try TLSServerSettings(names: ["other.example"])
        let silence = Gate()
        let working = try FramesServer(4, tls: good, Self.echo)
        let port = working.endpoint.port
        let hanging = try FramesServer(2, port: port) { _, _ in _ = silence.wait() }
        let forged = try FramesServer(3, port: port, tls: bad, Self.echo)
        let asking = try StreamAsking(trusting: [good.certificate, bad.certificate])
        let target = Self.named(port, [1, 2, 3, 4])
        asking.ask(target, 1...1)
        // A refusing endpoint is passed over at once, a silent one after a moment, a wrong certificate at once.
        #expect(hanging.connections.next() == 1)
        #expect(Self.nextDeadline(asking) == 250)
        #expect(forged.connections.isEmpty && working.connections.isEmpty)
        Self.expire(asking, after: 250)
        #expect(asking.next() == .init(number: 1, address: 1))
        #expect(forged.connections.next() == 1 && working.connections.next() == 1)
        silence.open()
        // The next connection begins with the endpoint that worked.
        asking.onLoop { $0.expire(at: asking.now.advanced(milliseconds: 30_000)) }
        #expect(asking.ask(target, 2) == .init(number: 2, address: 2))
        #expect(working.connections.next() == 2)
        #expect(hanging.connections.isEmpty && forged.connections.isEmpty)
        asking.end()
    }

    @Test func familiesTakeTurns() {
        let v4 = (1...3).map { Endpoint(.v4(192, 0, 2, $0), port: 853) }
        let v6 = ["2001:db8::1", "2001:db8::2"].map { Endpoint(IPAddress($0)!, port: 853) }
        #expect(inTurn(v4 + v6, first: nil) == [v4[0], v6[0], v4[1], v6[1], v4[2]])
        #expect(inTurn(v6 + v4, first: nil) == [v6[0], v4[0], v6[1], v4[1], v4[2]])
        #expect(inTurn(v4 + v6, first: v6[1]) == [v6[1], v4[0], v6[0], v4[1], v4[2]])
        #expect(inTurn(v4, first: v6[0]) == v4)
    }

    @Test func ofSeveralAddressesTheOneThatFailedIsNamed() throws {
        let asking = try StreamAsking(trusting: [try TLSServerSettings(names: ["dns.example"]).certificate])
        let (descriptor, bound) = try loopbackSocket(SOCK_STREAM)
        defer { close(descriptor) }
        let port = bound.port
        let refused = "connect: Connection refused"
        #expect(asking.ask(Self.named(port, [1]), 1)?.failure?.detail == refused)
        #expect(asking.ask(Self.named(port, [1, 2]), 2)?.failure?.detail == "\(refused) (127.0.0.2:\(port))")
        asking.end()
    }

    @Test func whoHasNoAddressCannotBeAsked() throws {
        let asking = try StreamAsking(trusting: [try TLSServerSettings(names: ["dns.example"]).certificate])
        #expect(asking.ask(Self.named(853, []), 1)?.failure?.kind == .unreachable)
        asking.end()
    }
}
