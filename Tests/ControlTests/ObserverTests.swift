import Configuration
import Counters
import Dispatch
import Foundation
import ShellTestSupport
import Synchronization
import Testing
import Transport

@testable import Control

/// Whether the daemon lives, by queues that answer, go on without an answer, or stand still.
@Suite struct ObserverTests {
    private enum Queue: CaseIterable {
        case answers, goesOn, stands

        var source: Observer.Queue {
            let count = Count()
            return (
                ping: { if self == .answers { $0() } },
                progress: { self == .goesOn ? count.next() : 7 }
            )
        }
    }

    private func observer(_ queues: [Queue]) -> Observer {
        Observer(
            Settings(), describe: { _ in }, checkReadiness: {}, queues: queues.map(\.source), listeners: [],
            forwarderLoop: Tally(.udp), logLinesLost: { 0 })
    }

    private func isAlive(_ queues: [Queue]) async -> Bool {
        await withCheckedContinuation { done in observer(queues).liveness { done.resume(returning: $0) } }
    }

    @Test func aQueueThatIsSlowToAnswerIsAliveIfItGoesOn() async {
        #expect(await isAlive([.answers, .answers]))
        #expect(await isAlive([.answers, .goesOn]))
        #expect(await !isAlive([.goesOn, .answers, .stands]))
    }

    @Test func whatHasEndedWithTheDaemonIsNotStuck() throws {
        let folder = NSTemporaryDirectory() + "stopping-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = folder + "/s"
        let observer = observer([.stands])
        let server = try ControlServer(
            UnixListener.listen(path), metrics: nil, host: nil, observer: observer, history: nil, watched: [],
            report: LogLines().report, explain: { _, _ in }, flush: { $1($0.count) }, reload: nil)
        try server.start()
        func said(_ route: ControlRoute, _ parameters: [(String, String)] = []) throws -> String? {
            let texts = Arrivals<String?>()
            try ControlClient(path).send(route, parameters, { texts.append((try? $0.get())?.text) })
            return texts.next() ?? nil
        }
        // The names of one request are flushed together, and the cache's file is written once.
        #expect(try said(.flush, [("name", "a.example"), ("under", "b.example")]) == "2 answers forgotten\n")
        #expect(try said(.health)?.hasPrefix("a queue of the daemon stands still") == true)
        observer.stopping()
        for route in [ControlRoute.health, .status] { #expect(try said(route) == "the daemon is stopping\n") }
        let gate = Gate()
        server.stop { gate.open() }
        #expect(gate.wait())
    }

    /// The time for an answer goes on, but keeps nothing of the caller's.
    @Test func theCallerIsLetGoOfOnceItIsAnswered() {
        final class Caller: Sendable {}
        var caller: Caller? = Caller()
        let isHeld = { [weak caller] in caller != nil }
        observer([.answers]).liveness { [caller] isAlive in
            #expect(isAlive)
            withExtendedLifetime(caller) {}
        }
        caller = nil
        #expect(!isHeld())
    }
}

private final class Count: Sendable {
    private let value = Atomic<UInt64>(0)
    func next() -> UInt64 { value.add(1, ordering: .relaxed).newValue }
}
