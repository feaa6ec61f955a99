import Dispatch
import Synchronization
import Transport

/// The signals the daemon acts on, one after the other, for the main thread. Made before any other thread.
final class Signals: Sendable {
    private let arrived = DispatchSemaphore(value: 0)
    private let waiting = Mutex<[Signal]>([])
    private let source = Mutex<SignalSource?>(nil)

    init() {
        SignalSource.ignoreBrokenPipe()
        let source = SignalSource([.terminate, .interrupt, .user1]) { [weak self] signal in
            self?.waiting.withLock { $0.append(signal) }
            self?.arrived.signal()
        }
        self.source.withLock { $0 = source }
    }

    /// Holds the thread until TERM or INT; USR1 has the counters logged.
    /// - Returns: what the program was told.
    func untilStopped(counters: () -> Void) -> String {
        while true {
            arrived.wait()
            switch waiting.withLock({ $0.removeFirst() }) {
            case .terminate: return "SIGTERM"
            case .interrupt: return "SIGINT"
            case .user1: counters()
            case .hangup: break
            }
        }
    }
}
