import Base
import Counters
import DNSWire
import Forwarding
import ShellTestSupport
import Testing
import Transport

@testable import Upstreams

/// The ports and IDs with which local resolvers are asked, and the datagrams that count as answers. The time is
/// invented, the sockets are real.
@Suite struct QueryPortTests {
    /// A resolver that answers nothing by itself, and the upstream that asks it. The loop runs while tests wait.
    private final class World {
        let loop: EventLoop
        let resolver: DatagramSocket
        let upstream: OnLoop<PlainUpstream>
        private let outbox: Outbox
        let ended = Arrivals<(id: QueryID, address: String?, failure: Failure.Kind?)>()
        let time = OnLoop(Tick(nanoseconds: 1_000_000_000_000))
        private var asked: UInt32 = 0

        init() throws {
            loop = try EventLoop(label: "test")
            resolver = try DatagramSocket.bind(Endpoint(.v4(127, 0, 0, 1), port: 0), count: 1)[0]
            let (time, outbox) = (time, Outbox())
            self.outbox = outbox
            loop.turnEnded = { _ = outbox.send() }
            upstream = OnLoop(PlainUpstream(DNSAnswers(negativeTTL: 30), loop: loop, outbox: outbox) { time.value })
            upstream.value.settle = { [ended] id, outcome, _ in
                switch outcome {
                case .answer(let answer):
                    let address = answer.records().first.flatMap { IPAddress(bytes: $0.rdata.span) }
                    ended.append((id, address?.description, nil))
                case .failed(let failure): ended.append((id, nil, failure.kind))
                case .addresses: break
                }
            }
        }

        /// Must be called before the loop runs.
        @discardableResult
        func ask(_ name: String, after nanoseconds: UInt64 = 0) -> QueryID {
            asked += 1
            let id = QueryID(standalone: asked, of: .fallback)
            time.value.nanoseconds += nanoseconds
            upstream.value.ask(
                id, Server(resolver.local), .message(MessageQuestion(name: Name(name)!, type: .a)), at: time.value)
            return id
        }

        /// Ends the turn of the loop.
        func endTurn() { _ = outbox.send() }

        /// The messages that have reached the resolver.
        func arrived() throws -> [(from: Endpoint, message: [UInt8])] {
            endTurn()
            var batch = ReceiveBatch()
            var all: [(Endpoint, [UInt8])] = []
            while try batch.receive(from: resolver, waiting: false) > 0 {
                for index in 0..<batch.count { all.append((batch.sender(index).endpoint, Array(batch.bytes(index)))) }
            }
            return all
        }

        /// Sends a message, from the resolver or from another socket.
        func send(_ message: [UInt8], to port: Endpoint, from other: DatagramSocket? = nil) {
            var batch = SendBatch(slots: 1)
            _ = batch.next().update(fromContentsOf: message)
            batch.commit(message.count, to: SocketAddress(port), from: nil)
            batch.flush(other ?? resolver)
        }

        /// Starts the loop, which has the upstream from now on.
        func run() { loop.start() }

        /// The result of `body` on the loop, after all arrived datagrams were read.
        func onLoop<Value: Sendable>(_ body: @escaping @Sendable (PlainUpstream) -> Value) -> Value? {
            let found = Arrivals<Value>()
            loop.submit { [upstream] in found.append(body(upstream.value)) }
            return found.next()
        }

        deinit {
            let gate = Gate()
            loop.submit { [upstream] in upstream.value.close() }
            loop.stop { gate.open() }
            #expect(gate.wait())
        }
    }

    /// The query as its own answer, with one address.
    private static func answer(_ query: [UInt8], _ last: UInt8) -> [UInt8] {
        ShellTestSupport.answer(to: query, addresses: [.v4(192, 0, 2, last)])
    }

    @Test func queriesOfOneMomentShareAPortUnderIdsOfTheirOwn() throws {
        let world = try World()
        let count = 2 * QueryPort.maximumQueries + 2
        for number in 0..<count { world.ask("n\(number).example.com") }
        let arrived = try world.arrived()
        #expect(arrived.count == count)
        let ports = Dictionary(grouping: arrived, by: \.from)
        #expect(ports.values.map(\.count).sorted() == [2, QueryPort.maximumQueries, QueryPort.maximumQueries])
        for queries in ports.values { #expect(Set(queries.map { $0.message[..<2] }).count == queries.count) }
        #expect(world.upstream.value.openPorts == 3)
    }

    @Test func aPortTakesQueriesForAMoment() throws {
        let world = try World()
        world.ask("a.example.com")
        world.ask("b.example.com", after: QueryPort.takingTime - 1)
        world.ask("c.example.com", after: 1)
        let ports = try world.arrived().map(\.from.port)
        #expect(ports.count == 3 && ports[0] == ports[1] && ports[1] != ports[2])
    }

    /// After a datagram with other letters, TCP is used; the right datagram may still come, and is the only answer.
    @Test func anAnswerInADatagramEndsTheQuestionOverTCP() throws {
        let world = try World()
        let truncated = Arrivals<QueryID>()
        world.upstream.value.truncated = { id, _, _, _ in truncated.append(id) }
        world.ask("the-first-of-two-long-names.example.com")
        let second = world.ask("the-second-of-two-long-names.example.com")
        let arrived = try world.arrived()
        world.run()
        world.send(Self.answer(arrived[0].message, 1), to: arrived[0].from)
        #expect(world.ended.next()?.address == "192.0.2.1")
        var forged = Self.answer(arrived[1].message, 66)
        for index in 13..<40 { forged[index] = lowercased(forged[index]) }
        world.send(forged, to: arrived[1].from)
        #expect(truncated.next() == second)
        world.send(Self.answer(arrived[1].message, 2), to: arrived[1].from)
        #expect(try #require(world.ended.next()) == (second, "192.0.2.2", nil))
        let late = Outcome.failed(Failure(.unreachable, "closed"))
        #expect(world.onLoop { $0.settledOverTCP(second, late, toRepeat: false) } == false)
        #expect(world.ended.isEmpty && truncated.isEmpty)
    }

    /// The kernel draws the ports: 64 of some 28,000 are hardly ever equal, and they do not count up.
    @Test func portsAndIdsCannotBeForetold() throws {
        let world = try World()
        for number in 0..<64 { world.ask("n\(number).example.com", after: QueryPort.takingTime) }
        let arrived = try world.arrived()
        let ids = arrived.map { Int($0.message[0]) << 8 | Int($0.message[1]) }
        for values in [arrived.map { Int($0.from.port) }, ids] {
            #expect(values.count == 64 && Set(values).count > 58)
            let steps = Dictionary(grouping: zip(values, values.dropFirst()).map { $1 - $0 }) { $0 }
            #expect(steps.values.allSatisfy { $0.count < 6 })
        }
    }

    @Test func whatIsAskedAgainAndWhatAnotherNetworkBringsComesFromAnotherPort() throws {
        let world = try World()
        let id = world.ask("a.example.com")
        world.upstream.value.askAgain(id)
        world.ask("b.example.com")
        world.upstream.value.networkChanged()
        world.ask("c.example.com")
        let arrived = try world.arrived()
        let ports = arrived.map(\.from.port)
        #expect(ports.count == 4 && ports[0] != ports[1] && ports[1] == ports[2] && !ports[..<3].contains(ports[3]))
    }

    /// Wrong datagrams come before the right answer: another ID, sender, question or spelling, and noise.
    @Test func onlyTheAnswerToTheQueryOfItsIdIsBelieved() throws {
        let world = try World()
        let (first, second) = (world.ask("first.example.com"), world.ask("second.example.com"))
        let other = try DatagramSocket.bind(Endpoint(.v4(127, 0, 0, 1), port: 0), count: 1)[0]
        let arrived = try world.arrived()
        let port = arrived[0].from
        let (asked, beside) = (arrived[0].message, arrived[1].message)
        let spelled = asked[12..<35].contains { $0 >= 0x41 && $0 <= 0x5A }
        world.run()
        // The upstream learns that the server repeats the case of letters.
        world.send(Self.answer(beside, 2), to: port)
        #expect(try #require(world.ended.next()) == (second, "192.0.2.2", nil))
        var otherID = Self.answer(asked, 66)
        while otherID[..<2] == asked[..<2] || otherID[..<2] == beside[..<2] { otherID[1] &+= 1 }
        world.send(otherID, to: port)
        world.send(Self.answer(asked, 66), to: port, from: other)
        var otherName = Self.answer(asked, 66)
        otherName[13] ^= 1
        world.send(otherName, to: port)
        world.send(Array(asked[..<7]), to: port)
        var otherCase = Self.answer(asked, 66)
        for index in 13..<18 { otherCase[index] ^= 0x20 }
        world.send(otherCase, to: port)
        // An answer that has come already comes once more: this is no guess of an attacker.
        world.send(Self.answer(beside, 66), to: port)
        world.send(Self.answer(asked, 1), to: port)
        let firstEnded = try #require(world.ended.next())
        let repeats = beside[12..<36].contains { $0 >= 0x41 && $0 <= 0x5A } && spelled
        #expect(firstEnded.id == first && (!repeats || firstEnded.address == "192.0.2.1"))
        let tally = try #require(world.onLoop { $0.answers.tally })
        #expect(tally[.mismatchICMP] == 0 && tally[.mismatchOtherQuery] == 2 && tally[.mismatchMalformed] == 1)
        #expect(!repeats || tally[.mismatchOtherCase] == 1)
    }

    @Test func theAnswerToWhatNobodyWaitsForIsDroppedAndNotCounted() throws {
        let world = try World()
        let (first, second) = (world.ask("first.example.com"), world.ask("second.example.com"))
        let arrived = try world.arrived()
        world.run()
        #expect(world.onLoop { $0.cancel(first) } != nil)
        world.send(Self.answer(arrived[0].message, 1), to: arrived[0].from)
        world.send(Self.answer(arrived[1].message, 2), to: arrived[1].from)
        #expect(try #require(world.ended.next()) == (second, "192.0.2.2", nil))
        #expect(world.ended.isEmpty)
        let tally = try #require(world.onLoop { $0.answers.tally })
        #expect(Counted.allCases.allSatisfy { tally[$0] == 0 })
    }

    /// No server listens at the port any more: each query gets its own refusal.
    @Test func aRefusalEndsTheQueryThatItQuotes() throws {
        let world = try World()
        let nobody = try DatagramSocket.bind(Endpoint(.v4(127, 0, 0, 1), port: 0), count: 1)[0].local
        let ids = (1...70).map { QueryID(standalone: $0, of: .fallback) }
        for id in ids {
            world.upstream.value.ask(
                id, Server(nobody), .message(MessageQuestion(name: Name("a.example.com")!, type: .a)),
                at: world.time.value)
        }
        world.endTurn()
        world.run()
        let failures = ids.compactMap { _ in world.ended.next() }
        #expect(failures.allSatisfy { $0.failure == .unreachable } && Set(failures.map(\.id)) == Set(ids))
        // The second port still takes queries until its deadline.
        let open = world.onLoop { upstream in
            if let deadline = upstream.nextDeadline { upstream.expire(at: deadline) }
            return upstream.openPorts
        }
        #expect(open == 0)
    }

    @Test func aPortIsClosedWhenNobodyWaitsThereAndItTakesNoMore() throws {
        let world = try World()
        let (first, second) = (world.ask("first.example.com"), world.ask("second.example.com"))
        #expect(try world.arrived().count == 2)
        let upstream = world.upstream.value
        upstream.cancel(first)
        #expect(upstream.openPorts == 1 && upstream.nextDeadline == nil)
        upstream.cancel(second)
        // Another query may come at once.
        #expect(upstream.openPorts == 1)
        let deadline = try #require(upstream.nextDeadline)
        #expect(deadline == world.time.value.advanced(milliseconds: PlainUpstream.idleTime))
        world.time.value = deadline
        upstream.expire(at: deadline)
        #expect(upstream.openPorts == 0 && upstream.nextDeadline == nil)
        // A port that takes no more queries does not wait for a deadline.
        let third = world.ask("third.example.com")
        world.time.value.nanoseconds += QueryPort.takingTime
        upstream.cancel(third)
        #expect(upstream.openPorts == 0 && upstream.nextDeadline == nil)
    }

    @Test func serversThatAreListedNoMoreKeepNoPort() throws {
        let world = try World()
        let id = world.ask("a.example.com")
        let upstream = world.upstream.value
        upstream.keep([])
        #expect(upstream.openPorts == 1)
        upstream.cancel(id)
        #expect(upstream.openPorts == 0)
    }
}
