internal import Dispatch
internal import Glibc

/// A signal that the daemon acts on.
public enum Signal: CaseIterable, Sendable {
    case terminate
    case interrupt
    case hangup
    case user1

    var number: Int32 {
        switch self {
        case .terminate: SIGTERM
        case .interrupt: SIGINT
        case .hangup: SIGHUP
        case .user1: SIGUSR1
        }
    }
}

/// Turns signals into calls on a queue.
///
/// `@unchecked Sendable`: it is immutable, and Dispatch sources may be cancelled from any thread.
public final class SignalSource: @unchecked Sendable {
    private let sources: [any DispatchSourceSignal]

    /// Takes the signals over permanently. None is lost: until this is called a signal does what it does by default, and
    /// one that comes meanwhile waits.
    ///
    /// - Parameter received: Called on a queue of its own. Several signals of one kind may be reported as one.
    public init(_ signals: [Signal] = Signal.allCases, received: @escaping @Sendable (Signal) -> Void) {
        let queue = DispatchQueue(label: "signals")
        let installed = DispatchGroup()
        var (taken, before) = (sigset_t(), sigset_t())
        unsafe sigemptyset(&taken)
        for signal in signals { unsafe sigaddset(&taken, signal.number) }
        // Dispatch installs a handler on a thread of its own. Its other threads have blocked all signals.
        unsafe pthread_sigmask(SIG_BLOCK, &taken, &before)
        sources = signals.map { signal in
            let source = DispatchSource.makeSignalSource(signal: signal.number, queue: queue)
            installed.enter()
            source.setRegistrationHandler { installed.leave() }
            source.setEventHandler { received(signal) }
            source.activate()
            return source
        }
        installed.wait()
        unsafe pthread_sigmask(SIG_SETMASK, &before, nil)
    }

    /// Makes writing to a closed pipe or connection an error instead of the end of the process.
    public static func ignoreBrokenPipe() { _ = signal(SIGPIPE, SIG_IGN) }

    /// Sends HUP.
    /// - Parameter process: The number of a process.
    /// - Returns: false if it is not the number of a process that this process may signal.
    public static func hangup(toProcess process: String) -> Bool {
        guard let number = Int32(process), number > 1 else { return false }
        return kill(number, SIGHUP) == 0
    }
}
