import Base
import Forwarding
import Foundation
import ShellTestSupport
import Synchronization
import Testing
import Transport

@testable import Upstreams

/// Connections that are made only to see whether an address answers.
@Suite struct AddressTrialsTests {
    private struct Told: Equatable {
        var id: UInt32
        var number: Int
        var hasAnswered: Bool
    }

    /// The loop runs from the end of the initializer on.
    private final class World: @unchecked Sendable {
        let loop: EventLoop
        let trials: AddressTrials
        let told = Arrivals<Told>()
        private let ids = (0..<4).map { TrialID(standalone: $0) }

        init(_ prepare: (AddressTrials, [TrialID]) -> Void) throws {
            loop = try EventLoop(label: "test")
            trials = AddressTrials(loop: loop)
            trials.tried = { [told, ids] id, number, hasAnswered in
                told.append(Told(id: UInt32(ids.firstIndex(of: id)!), number: number, hasAnswered: hasAnswered))
            }
            loop.turnEnded = { [trials] in trials.endTurn() }
            prepare(trials, ids)
            loop.start()
            loop.submit {}
        }

        /// Does work on the loop, and waits for its end.
        func onLoop(_ work: @escaping @Sendable (AddressTrials, [TrialID]) -> Void) {
            let done = Gate()
            loop.submit { [self] in
                work(trials, ids)
                done.open()
            }
            #expect(done.wait())
        }

        func end() {
            let done = Gate()
            loop.submit { [self] in trials.close() }
            loop.stop { done.open() }
            #expect(done.wait())
        }
    }

    /// A listener whose queue of connections is full: the kernel answers no further packet.
    private final class SilentListener {
        let endpoint: Endpoint
        private var descriptors: [Int32]

        init() throws {
            let (descriptor, endpoint) = try loopbackSocket(SOCK_STREAM)
            guard listen(descriptor, 0) == 0 else { throw POSIXError(.EADDRINUSE) }
            self.endpoint = endpoint
            descriptors = [descriptor]
            // A queue of length 0 holds one connection; some kernels accept a second one.
            for _ in 0..<3 {
                let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
                connectToLoopback(client, port: endpoint.port)
                descriptors.append(client)
            }
        }

        deinit { for descriptor in descriptors { close(descriptor) } }
    }

    @Test func eachIsToldOfOnceAndNothingIsSent() throws {
        let (listener, open) = try listeningSocket()
        defer { close(listener) }
        let (bound, refusing) = try loopbackSocket(SOCK_STREAM)
        defer { close(bound) }
        let silent = try SilentListener()
        let world = try World { trials, ids in
            // A multicast address takes no connection, which the kernel reports at once.
            let nowhere = Endpoint(.v4(224, 0, 0, 1), port: 9)
            trials.perform(.begin(ids[1], [open, refusing, silent.endpoint, nowhere]))
        }
        var told: [Told] = []
        for _ in 0..<3 { told.append(try #require(world.told.next())) }
        #expect(
            told.sorted { $0.number < $1.number } == [
                Told(id: 1, number: 0, hasAnswered: true), Told(id: 1, number: 1, hasAnswered: false),
                Told(id: 1, number: 3, hasAnswered: false),
            ])
        // The client's stream ends without an octet before it: there was no reset.
        let client = accept(listener, nil, nil)
        var octet: UInt8 = 0
        #expect(client >= 0 && read(client, &octet, 1) == 0)
        close(client)
        world.onLoop { trials, ids in trials.perform(.end(ids[1])) }
        // No result of a finished trial is reported any more, and the next trial works.
        world.onLoop { trials, ids in trials.perform(.begin(ids[2], [open])) }
        #expect(world.told.next() == Told(id: 2, number: 0, hasAnswered: true))
        world.end()
        #expect(world.told.isEmpty)
    }

    @Test func whatIsNotWantedAnyMoreDoesNotBegin() throws {
        let (listener, open) = try listeningSocket()
        defer { close(listener) }
        let world = try World { trials, ids in
            trials.perform(.begin(ids[0], [open, open]))
            trials.perform(.end(ids[0]))
            trials.perform(.end(ids[3]))
            trials.perform(.begin(ids[1], [open]))
        }
        #expect(world.told.next() == Told(id: 1, number: 0, hasAnswered: true))
        world.end()
        #expect(world.told.isEmpty)
    }
}
