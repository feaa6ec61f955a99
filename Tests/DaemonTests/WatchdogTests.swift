import Dispatch
import ShellTestSupport
import Synchronization
import Testing

@testable import Daemon

/// Signs of life for the service manager, by whether the queues turn.
struct WatchdogTests {
    /// Gives the given results of looking at the queues, one after the other, and then none.
    private final class Queues: Sendable {
        private let results: Mutex<[Bool]>
        let signs = Mutex(0)
        private let alive = DispatchSemaphore(value: 0)

        init(_ results: [Bool]) { self.results = Mutex(results) }

        /// Runs a watchdog until it has given a sign of life.
        func run(_ lines: LogLines) {
            let watchdog = Watchdog(
                Watchdog.Sources(
                    liveness: { done in
                        let result = self.results.withLock { $0.isEmpty ? nil : $0.removeFirst() }
                        if let result { done(result) }
                    },
                    headline: { _ in }),
                period: 3_600_000,
                isAlive: {
                    self.signs.withLock { $0 += 1 }
                    self.alive.signal()
                }, report: lines.report)
            watchdog.start()
            alive.wait()
            watchdog.stop()
        }
    }

    @Test func queuesThatTurnAreEnough() {
        let (queues, lines) = (Queues([true]), LogLines())
        queues.run(lines)
        #expect(queues.signs.withLock { $0 } == 1 && lines.all == [])
    }

    @Test func aQueueThatStandsStillIsSaidOnceAndLookedAtUntilItTurns() {
        let (queues, lines) = (Queues([false, false, false, true]), LogLines())
        queues.run(lines)
        #expect(queues.signs.withLock { $0 } == 1)
        #expect(
            lines.all == [
                "error the service manager is not told that all is well, and restarts the daemon unless that passes: "
                    + "a queue stands still"
            ])
    }
}
