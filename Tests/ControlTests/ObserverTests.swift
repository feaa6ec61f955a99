import Configuration
import Counters
import Dispatch
import Synchronization
import Testing

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

    private func isAlive(_ queues: [Queue]) async -> Bool {
        let observer = Observer(
            Settings(), describe: { _ in }, checkReadiness: {}, queues: queues.map(\.source), listeners: [],
            forwarderLoop: Tally(.udp), logLinesLost: { 0 })
        return await withCheckedContinuation { done in observer.liveness { done.resume(returning: $0) } }
    }

    @Test func aQueueThatIsSlowToAnswerIsAliveIfItGoesOn() async {
        #expect(await isAlive([.answers, .answers]))
        #expect(await isAlive([.answers, .goesOn]))
        #expect(await !isAlive([.goesOn, .answers, .stands]))
    }
}

private final class Count: Sendable {
    private let value = Atomic<UInt64>(0)
    func next() -> UInt64 { value.add(1, ordering: .relaxed).newValue }
}
