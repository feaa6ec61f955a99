import Base
import Configuration
import DNSWire
import Forwarding
import Glibc
import ShellTestSupport
import Testing

@testable import Daemon
@testable import Transport

/// A listener's questions that the forwarder's loop reads in the midst of a turn.
@Suite struct LoopReaderTests {
    /// Has one question come to a socket, in the midst of a turn of so many steps, and returns how many were answered.
    /// - Parameter waiting: how many misses the listener sees under way.
    private func answered(waiting: Int, steps: Int) throws -> UInt64 {
        let forwarder = try ForwarderLoop(report: LogLines().report)
        try forwarder.begin(.withoutFiles)
        let socket = try DatagramSocket.bind(Endpoint(.v4(127, 0, 0, 1), port: 0), count: 1)[0]
        let reader = LoopReader(socket, forwarder)
        let client = try DatagramSocket.bind(Endpoint(.v4(127, 0, 0, 1), port: 0), count: 1)[0]
        var question = SendBatch(slots: 1)
        // Of class CHAOS: refused at once.
        let octets = query(example, recordClass: 3)
        for (index, octet) in octets.enumerated() { question.next()[index] = octet }
        question.commit(octets.count, to: SocketAddress(socket.local), from: nil)
        question.flush(client)
        for _ in 0..<waiting { #expect(forwarder.queue.enter(.host)) }
        let done = Gate()
        forwarder.loop.start()
        forwarder.loop.submit {
            // The thread may move to another processor in the midst.
            while waiting >= 4, !reader.findsListenerInTheWay() {}
            if waiting < 4 { #expect(!reader.findsListenerInTheWay()) }
            for _ in 0..<steps { forwarder.readers.step() }
            done.open()
        }
        #expect(done.wait())
        expectEnd { forwarder.stop($0) }
        return reader.tally.answered
    }

    @Test func theLoopAnswersWhatTheListenerCannotRead() throws {
        #expect(try answered(waiting: 4, steps: 4) == 1)
    }

    @Test func aListenerThatCanReadIsLeftToItself() throws {
        #expect(try answered(waiting: 3, steps: 100) == 0)
    }

    @Test func aShortTurnReadsNothing() throws {
        #expect(try answered(waiting: 4, steps: 3) == 0)
    }
}
