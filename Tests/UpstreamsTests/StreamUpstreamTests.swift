import Base
import Cryptography
import DNSWire
import Forwarding
import Foundation
import ShellTestSupport
import Synchronization
import Testing

@testable import Upstreams

/// Connections to a server, over real sockets: sharing, losses and second tries; TCP and TLS represent all kinds.
@Suite struct StreamUpstreamTests {
    /// The server's settings, and the certificate that clients trust; through TLS if wanted.
    private static func settings(_ isSecure: Bool) throws -> TLSServerSettings? {
        try isSecure ? TLSServerSettings(addresses: [.v4(127, 0, 0, 1)]) : nil
    }

    private static func server(_ server: FramesServer, _ isSecure: Bool = false) -> Server {
        Server(server.endpoint, isSecure ? .tls : .tcp)
    }

    private static func asking(_ tls: TLSServerSettings?) throws -> StreamAsking {
        try StreamAsking(trusting: tls.map { [$0.certificate] } ?? [])
    }

    // MARK: Many on one connection

    @Test(arguments: [false, true]) func whatWaitsAtConnectGoesOutOnOneConnection(isSecure: Bool) throws {
        let tls = try Self.settings(isSecure)
        let server = try FramesServer(tls: tls) { _, connection in
            // The last query is answered first.
            let queries = (0..<30).compactMap { _ in connection.query() }
            #expect(Set(queries.map { Array($0[..<2]) }).count == 30)
            for query in queries.reversed() { connection.answer(answer(to: query)) }
            _ = connection.query()
        }
        let asking = try Self.asking(tls)
        asking.ask(Self.server(server, isSecure), 1...30)
        #expect(asking.next(30) == StreamAsking.answered(1...30))
        #expect(server.connections.next() == 1 && server.connections.isEmpty)
        asking.end()
    }

    /// Answers come in pieces of any length, even half a length field, and any number at once.
    @Test(arguments: [1, 3, 17, 100_000], [false, true]) func answersInPieces(length: Int, isSecure: Bool) throws {
        let tls = try Self.settings(isSecure)
        let server = try FramesServer(tls: tls) { _, connection in
            let queries = (0..<5).compactMap { _ in connection.query() }
            let all = queries.flatMap { framed(answer(to: $0)) }
            for start in stride(from: 0, to: all.count, by: length) {
                connection.send(Array(all[start..<min(start + length, all.count)]))
            }
            _ = connection.query()
        }
        let asking = try Self.asking(tls)
        asking.ask(Self.server(server, isSecure), 1...5)
        #expect(asking.next(5) == StreamAsking.answered(1...5))
        asking.end()
    }

    /// The queries that exceed a connection use a second one, and queries without room wait.
    @Test func whatOneConnectionDoesNotTake() throws {
        let server = try FramesServer { _, connection in
            while let query = connection.query() { connection.answer(answer(to: query)) }
        }
        let asking = try StreamAsking()
        asking.ask(Self.server(server), 1...1200)
        #expect(asking.next(1200) == StreamAsking.answered(1...1200))
        #expect(server.connections.next() == 1 && server.connections.next() == 2 && server.connections.isEmpty)
        asking.end()
    }

    @Test func oneSlowAnswerHoldsUpNobody() throws {
        let slow = Gate()
        let server = try FramesServer { _, connection in
            guard let first = connection.query() else { return }
            for _ in 0..<3 { if let query = connection.query() { connection.answer(answer(to: query)) } }
            #expect(slow.wait())
            connection.answer(answer(to: first))
            _ = connection.query()
        }
        let asking = try StreamAsking()
        asking.ask(Self.server(server), 1...4)
        #expect(asking.next(3) == StreamAsking.answered(2...4))
        slow.open()
        #expect(asking.next() == StreamAsking.Ended(number: 1, address: 1))
        asking.end()
    }

    // MARK: A server that closes

    @Test(arguments: [1, 2, 100], [false, true])
    func aServerThatClosesAfterSoManyAnswers(count: Int, isSecure: Bool) throws {
        let tls = try Self.settings(isSecure)
        let server = try FramesServer(tls: tls) { _, connection in
            for _ in 0..<count {
                guard let query = connection.query() else { return }
                connection.answer(answer(to: query))
            }
            connection.sayGoodbye()
        }
        let asking = try Self.asking(tls)
        asking.ask(Self.server(server, isSecure), 1...30)
        #expect(asking.next(30) == StreamAsking.answered(1...30))
        asking.end()
    }

    /// The connection ends inside a length field, after it, and inside a message.
    @Test(arguments: [1, 2, 20], [false, true]) func aServerThatClosesInAMessage(octets: Int, isSecure: Bool) throws {
        let tls = try Self.settings(isSecure)
        let server = try FramesServer(tls: tls) { number, connection in
            while let query = connection.query() {
                let whole = framed(answer(to: query))
                let isCut = number == 1 && query[13..<15].elementsEqual("w2".utf8)
                connection.send(isCut ? Array(whole[..<octets]) : whole)
                if isCut { return }
            }
        }
        let asking = try Self.asking(tls)
        #expect(asking.ask(Self.server(server, isSecure), 1) == .init(number: 1, address: 1))
        asking.ask(Self.server(server, isSecure), 2...3)
        #expect(asking.next(2) == StreamAsking.answered(2...3))
        asking.end()
    }

    /// The connection has ended when the query is written, but the end is not read yet: one more try, no failure.
    @Test(arguments: ["goodbye", "cut", "reset"], [false, true])
    func aConnectionThatEndsAsAQueryIsWritten(end: String, isSecure: Bool) throws {
        if end == "goodbye", !isSecure { return }
        let tls = try Self.settings(isSecure)
        let server = try FramesServer(tls: tls) { number, connection in
            if let query = connection.query() { connection.answer(answer(to: query)) }
            // The query arrives first, and is never read.
            if number == 1, connection.query() != nil {
                switch end {
                case "goodbye": connection.sayGoodbye()
                case "reset": connection.resetsAtClose()
                default: break
                }
            }
            if number > 1 { _ = connection.query() }
        }
        let asking = try Self.asking(tls)
        #expect(asking.ask(Self.server(server, isSecure), 1) == .init(number: 1, address: 1))
        #expect(asking.ask(Self.server(server, isSecure), 2) == .init(number: 2, address: 2))
        #expect(asking.isQuiet)
        #expect(server.connections.next() == 1 && server.connections.next() == 2 && server.connections.isEmpty)
        let counted = asking.onLoop { _ in
            asking.tallies.figures.values.compactMap(\.connections).map { [$0.reused, $0.fresh] }
        }
        #expect(counted == [[1, 1]])
        asking.end()
    }

    /// Queries that wait for one connection all needed a new one.
    @Test func queriesThatWaitForANewConnectionCountAsNew() throws {
        let server = try FramesServer { _, connection in
            while let query = connection.query() { connection.answer(answer(to: query)) }
        }
        let asking = try StreamAsking()
        asking.ask(Server(server.endpoint, .tcp), 1...3)
        for _ in 1...3 { #expect(asking.next()?.address != nil) }
        #expect(asking.ask(Server(server.endpoint, .tcp), 4)?.address == 4)
        let counted = asking.onLoop { _ in
            asking.tallies.figures.values.compactMap(\.connections).map { [$0.reused, $0.fresh] }
        }
        #expect(counted == [[1, 3]])
        asking.end()
    }

    /// The query is sent only once more: a server that always closes has failed.
    @Test func aServerThatNeverAnswersTheSecond() throws {
        let server = try FramesServer { number, connection in
            if let query = connection.query(), number == 1 { connection.answer(answer(to: query)) }
            _ = number == 1 ? connection.query() : nil
        }
        let asking = try StreamAsking()
        #expect(asking.ask(Self.server(server), 1)?.address == 1)
        #expect(asking.ask(Self.server(server), 2)?.failure?.kind == .unreachable)
        #expect(server.connections.next() == 1 && server.connections.next() == 2 && server.connections.isEmpty)
        asking.end()
    }

    /// A server that answers one of the queries on each connection and resets the connection: all queries are answered.
    @Test(arguments: [false, true]) func aServerThatResetsAfterEachAnswer(isSecure: Bool) throws {
        let tls = try Self.settings(isSecure)
        let server = try FramesServer(tls: tls) { number, connection in
            if let query = connection.query() { connection.answer(answer(to: query)) }
            if number == 1 {
                _ = connection.query()
                connection.resetsAtClose()
            }
        }
        let asking = try Self.asking(tls)
        #expect(asking.ask(Self.server(server, isSecure), 1)?.address == 1)
        asking.advance(milliseconds: 1)
        // The queries of the first reset are sent again, and the next reset ends some of them once more.
        asking.ask(Self.server(server, isSecure), 2...20)
        #expect(asking.next(19) == StreamAsking.answered(2...20))
        asking.end()
    }

    /// The queries of a fresh connection that ends are sent once more, on another; then the server has failed.
    @Test func aServerThatClosesAtOnceFails() throws {
        let server = try FramesServer { _, connection in _ = connection.query() }
        let asking = try StreamAsking()
        #expect(asking.ask(Self.server(server), 1)?.failure == Failure(.unreachable, "closed by the server"))
        #expect(server.connections.next() == 1 && server.connections.next() == 2 && server.connections.isEmpty)
        asking.end()
    }

    // MARK: What is no answer

    @Test func anAnswerToAnotherQuestionFails() throws {
        let server = try FramesServer { number, connection in
            while let query = connection.query() {
                var other = answer(to: query)
                if number == 1 { other[13] = UInt8(ascii: "x") }
                connection.answer(other)
            }
        }
        let asking = try StreamAsking()
        #expect(asking.ask(Self.server(server), 1)?.failure?.kind == .badAnswer)
        #expect(asking.ask(Self.server(server), 2)?.address == 2)
        #expect(server.connections.next() == 1 && server.connections.next() == 2)
        asking.end()
    }

    @Test func whatIsSaidTwiceIsHeardOnce() throws {
        let server = try FramesServer { _, connection in
            while let query = connection.query() {
                connection.answer(answer(to: query))
                connection.answer(answer(to: query))
            }
        }
        let asking = try StreamAsking()
        for number in 1...5 as ClosedRange<UInt32> {
            #expect(asking.ask(Self.server(server), number)?.address == UInt8(number))
        }
        #expect(asking.isQuiet && server.connections.next() == 1 && server.connections.isEmpty)
        asking.end()
    }

    @Test(arguments: [[0, 0], [0, 11] + [UInt8](repeating: 0, count: 11)]) func whatIsNoDNSFails(junk: [UInt8]) throws {
        let server = try FramesServer { _, connection in
            _ = connection.query()
            connection.send(junk)
            _ = connection.query()
        }
        let asking = try StreamAsking()
        let failure = asking.ask(Self.server(server), 1)?.failure
        #expect(failure == Failure(.badAnswer, "the server does not speak DNS"))
        asking.end()
    }

    /// A server that does not know EDNS is asked without EDNS, now and later.
    @Test func aServerWithoutEDNS() throws {
        let server = try FramesServer { _, connection in
            while let query = connection.query() {
                connection.answer(query[11] == 1 ? answer(to: query, code: 1) : answer(to: query))
            }
        }
        let asking = try StreamAsking()
        #expect(asking.ask(Self.server(server), 1)?.address == 1)
        #expect(asking.ask(Self.server(server), 2)?.address == 2)
        #expect(server.connections.next() == 1 && server.connections.isEmpty)
        asking.end()
    }

    // MARK: A connection that says nothing

    /// The second message of a query uses a fresh connection, and counts there; the silent one gets no new query.
    @Test func aSilentConnection() throws {
        let server = try FramesServer { number, connection in
            while let query = connection.query() {
                if number > 1 || query[13..<15].elementsEqual("w1".utf8) { connection.answer(answer(to: query)) }
            }
        }
        let asking = try StreamAsking()
        #expect(asking.ask(Self.server(server), 1) == .init(number: 1, address: 1))
        asking.ask(Self.server(server), 2...3)
        asking.onLoop { upstream in
            for number in [2, 3] as [UInt32] { upstream.askAgain(QueryID(standalone: number, of: .fallback)) }
        }
        #expect(
            asking.next(2) == [
                .init(number: 2, address: 2, toRepeat: true), .init(number: 3, address: 3, toRepeat: true),
            ])
        #expect(asking.ask(Self.server(server), 4) == .init(number: 4, address: 4))
        #expect(server.connections.next() == 1 && server.connections.next() == 2 && server.connections.isEmpty)
        asking.end()
    }

    /// The group drops the server while a query is under way: a connection that is then dialled for it would have no
    /// further use, so none is kept.
    @Test func aServerThatIsLetGoWhileItIsAsked() throws {
        let (asked, closed) = (Gate(), Gate())
        let server = try FramesServer { number, connection in
            guard let query = connection.query() else { return }
            if number == 1 { asked.open() } else { connection.answer(answer(to: query)) }
            if connection.query() == nil { closed.open() }
        }
        let asking = try StreamAsking()
        asking.ask(Self.server(server), 1...1)
        #expect(asked.wait())
        asking.onLoop { upstream in
            upstream.keep([])
            upstream.askAgain(QueryID(standalone: 1, of: .fallback))
        }
        #expect(asking.next() == .init(number: 1, address: 1, toRepeat: true))
        // This is long before either side gives up an idle connection.
        let start = ContinuousClock.now
        #expect(closed.wait() && closed.wait())
        #expect(start.duration(to: .now) < .seconds(5))
        asking.end()
    }

    /// A cancelled query leaves its connection to the others, and its late answer is ignored.
    @Test func aQueryThatIsCancelled() throws {
        let (asked, go) = (Gate(), Gate())
        let server = try FramesServer { _, connection in
            let queries = (0..<2).compactMap { _ in connection.query() }
            asked.open()
            #expect(go.wait())
            for query in queries { connection.answer(answer(to: query)) }
            while let query = connection.query() { connection.answer(answer(to: query)) }
        }
        let asking = try StreamAsking()
        asking.ask(Self.server(server), 1...2)
        #expect(asked.wait())
        asking.onLoop { $0.cancel(QueryID(standalone: 1, of: .fallback)) }
        go.open()
        #expect(asking.next() == .init(number: 2, address: 2))
        #expect(asking.ask(Self.server(server), 3) == .init(number: 3, address: 3))
        #expect(asking.isQuiet && server.connections.next() == 1 && server.connections.isEmpty)
        asking.end()
    }
}
