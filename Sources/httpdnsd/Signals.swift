import Control
import Dispatch
import Synchronization
import Transport

/// The daemon's signals, handled one after another on the main thread. They must be made before any other thread.
final class Signals: Sendable {
    private let arrived = DispatchSemaphore(value: 0)
    private let waiting = Mutex<[Signal]>([])
    private let source = Mutex<SignalSource?>(nil)
    /// The callbacks for the outcome of the next reload.
    private let callbacks = Mutex<[@Sendable (ReloadOutcome) -> Void]>([])

    /// - Parameter reloads: Whether HUP reloads. If not, HUP ends the program, as when its terminal closes.
    init(reloads: Bool = false) {
        SignalSource.ignoreBrokenPipe()
        let source = SignalSource([.terminate, .interrupt, .user1] + (reloads ? [.hangup] : [])) { [weak self] signal in
            self?.take(signal)
        }
        self.source.withLock { $0 = source }
    }

    /// Queues a signal. Several signals of one kind count as one.
    private func take(_ signal: Signal) {
        waiting.withLock { waiting in
            guard !waiting.contains(signal) else { return }
            waiting.append(signal)
            arrived.signal()
        }
    }

    /// Requests a reload of the configuration, as HUP does.
    /// - Parameter done: Called once with the outcome, but not if the daemon stops first.
    @Sendable func reload(_ done: @escaping @Sendable (ReloadOutcome) -> Void) {
        callbacks.withLock { $0.append(done) }
        take(.hangup)
    }

    /// Blocks the thread until TERM or INT. USR1 logs the counts. HUP reloads the configuration.
    /// - Parameter mend: Called for the first INT, which then does not end the wait.
    /// - Returns: The name of the signal that ended the wait.
    func untilStopped(counters: () -> Void, reload: (() -> ReloadOutcome)? = nil, mend: (() -> Void)? = nil)
        -> String
    {
        var mend = mend
        while true {
            arrived.wait()
            switch waiting.withLock({ $0.removeFirst() }) {
            case .terminate: return "SIGTERM"
            case .interrupt:
                guard let mended = exchange(&mend, with: nil) else { return "SIGINT" }
                mended()
            case .user1: counters()
            case .hangup:
                // Requests that arrive during the reload wait for the next reload.
                let callbacks = self.callbacks.withLock { exchange(&$0, with: []) }
                guard let outcome = reload?() else { continue }
                for done in callbacks { done(outcome) }
            }
        }
    }
}
