import Base
import Dispatch
import Foundation
import Synchronization
import Testing

@testable import Transport

@Suite struct LingeringReaderTests {
    @Test func eightBusyReadersStarveNobody() throws {
        // Each reader stays in its handler until everybody else has had a turn: were threads shared, none could.
        let (arrived, leave) = (Gate(), Gate())
        let sockets = try (0..<8).map { _ in try DatagramSocket.bind(Endpoint(loopback, port: 0), count: 1)[0] }
        let readers = sockets.map { socket in
            LingeringReader(socket, label: "busy") { batch, _ in
                arrived.open()
                #expect(leave.wait())
            }
        }
        for reader in readers { try reader.start() }
        let client = PlainClient()
        for socket in sockets { client.send([1], to: socket.local) }
        for _ in readers { #expect(arrived.wait()) }
        let loop = try EventLoop(label: "test loop")
        loop.start()
        for number in 0..<5 { #expect(try loop.inTurn { _ in number } == number) }
        let other = Gate()
        DispatchQueue(label: "other").async { other.open() }
        #expect(other.wait())
        loop.end()
        for _ in readers { leave.open() }
        let stopped = Gate()
        for reader in readers { reader.stop { stopped.open() } }
        for _ in readers { #expect(stopped.wait()) }
    }

    @Test func stopWhileLingeringIsCleanAndClosesTheSocket() throws {
        let server: EchoServer? = try EchoServer(Endpoint(loopback, port: 0))
        let endpoint = try #require(server).endpoint
        let client = PlainClient()
        client.send([1], to: endpoint)
        _ = try #require(client.receive())
        // The reader lingers now.
        server?.stop()
        client.send([2], to: endpoint)
        #expect(server?.seen.all == [1])
    }

    @Test func afterStopNothingKeepsReaderSocketOrClosure() throws {
        final class Witness: Sendable {}
        weak var witness: Witness?
        weak var reader: LingeringReader<ClosureReceiver>?
        weak var socket: DatagramSocket?
        let endpoint: Endpoint
        do {
            let made = Witness()
            let bound = try DatagramSocket.bind(Endpoint(loopback, port: 0), count: 1)[0]
            let started = LingeringReader(bound, label: "kept") { _, _ in withExtendedLifetime(made) {} }
            (witness, reader, socket, endpoint) = (made, started, bound, bound.local)
            try started.start()
        }
        // Between start and stop it keeps itself.
        #expect(reader != nil && socket != nil && witness != nil)
        let gate = Gate()
        reader?.stop { gate.open() }
        #expect(gate.wait())
        // Dispatch lets go of the last handler just after it has run.
        let deadline = Clock.now() + 5_000_000_000
        while reader != nil || socket != nil || witness != nil, Clock.now() < deadline { sched_yield() }
        #expect(reader == nil && socket == nil && witness == nil)
        _ = try DatagramSocket.bind(endpoint, count: 1)
    }

    @Test func manyStartsAndStopsUnderTraffic() throws {
        let client = PlainClient()
        for _ in 0..<30 {
            let server = try EchoServer(Endpoint(loopback, port: 0), count: 2)
            for number in 0..<8 { client.send([UInt8(number)], to: server.endpoint) }
            _ = try #require(client.receive())
            server.stop()
        }
    }

    @Test func pingsAreAnsweredIdleLingeringAndAfterTheStop() throws {
        let server = try EchoServer(Endpoint(loopback, port: 0))
        let reader = server.readers[0]
        func isAnswered() -> Bool {
            let gate = Gate()
            reader.ping { gate.open() }
            return gate.wait()
        }
        #expect(isAnswered())
        let client = PlainClient()
        client.send([1], to: server.endpoint)
        _ = try #require(client.receive())
        #expect(isAnswered())
        server.stop()
        #expect(isAnswered())
    }

    @Test func aReaderInTheWayHasSentItsRepliesAndGoesOn() throws {
        let socket = try DatagramSocket.bind(Endpoint(loopback, port: 0), count: 1)[0]
        let (client, received) = (PlainClient(), Gate())
        nonisolated(unsafe) let other = client
        let reader = LingeringReader(
            socket, label: "in the way",
            isInTheWay: {
                if other.receive() != nil { received.open() }
                return true
            },
            receive: { batch, replies in
                replies.next()[0] = 1
                replies.commit(1, to: batch.sender(0), from: nil)
            })
        try reader.start()
        for _ in 0..<3 {
            client.send([1], to: socket.local)
            #expect(received.wait())
        }
        let gate = Gate()
        reader.stop { gate.open() }
        #expect(gate.wait())
    }

    @Test func aReaderThatCannotReadSaysSoAnswersPingsAndStops() throws {
        let socket = try DatagramSocket.bind(Endpoint(loopback, port: 0), count: 1)[0]
        let (failures, answered, stopped) = (Gate(), Gate(), Gate())
        let reader = LingeringReader(
            socket, label: "no socket", failed: { _ in failures.open() },
            receiver: ClosureReceiver(body: { _, _ in }))
        try reader.start()
        let nothing = open("/dev/null", O_RDONLY)
        #expect(dup2(nothing, socket.descriptor.raw) >= 0)
        close(nothing)
        #expect(failures.wait())
        reader.ping { answered.open() }
        #expect(answered.wait())
        #expect(failures.wait())
        reader.stop { stopped.open() }
        #expect(stopped.wait())
    }

    @Test func stopBeforeStartIsAnswered() throws {
        let socket = try DatagramSocket.bind(Endpoint(loopback, port: 0), count: 1)[0]
        let gate = Gate()
        LingeringReader(socket, label: "never started") { _, _ in }.stop { gate.open() }
        #expect(gate.wait())
    }

    @Test func theResolverSendsFromTheListenersSocketWhileItLingers() throws {
        let socket = try DatagramSocket.bind(Endpoint(loopback, port: 0), count: 1)[0]
        let late = DispatchQueue(label: "late answers")
        let reader = LingeringReader(socket, label: "listener") { batch, _ in
            for slot in 0..<batch.count {
                let (client, number) = (batch.sender(slot), batch.bytes(slot)[0])
                late.async {
                    var replies = SendBatch(slots: 1)
                    replies.next()[0] = number
                    replies.commit(1, to: client, from: nil)
                    replies.flush(socket)
                }
            }
        }
        try reader.start()
        let client = PlainClient()
        for number in UInt8(0)..<100 {
            client.send([number], to: socket.local)
            let reply = try #require(client.receive())
            #expect(reply.bytes == [number])
            #expect(reply.from == "127.0.0.1 \(socket.local.port)")
        }
        let gate = Gate()
        reader.stop { gate.open() }
        #expect(gate.wait())
    }
}
