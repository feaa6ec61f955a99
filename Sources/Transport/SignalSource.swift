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

    /// Takes the signals over permanently. When this returns, no later signal is lost.
    ///
    /// - Parameter received: Called on a queue of its own. Several signals of one kind may be reported as one.
    public init(_ signals: [Signal] = Signal.allCases, received: @escaping @Sendable (Signal) -> Void) {
        let queue = DispatchQueue(label: "signals")
        let installed = DispatchGroup()
        sources = signals.map { signal in
            // The signal must not end the process before Dispatch has installed its handler.
            SignalSource.ignore(signal.number)
            let source = DispatchSource.makeSignalSource(signal: signal.number, queue: queue)
            installed.enter()
            source.setRegistrationHandler { installed.leave() }
            source.setEventHandler { received(signal) }
            source.activate()
            return source
        }
        installed.wait()
    }

    /// Makes writing to a closed pipe or connection an error instead of the end of the process.
    public static func ignoreBrokenPipe() {
        ignore(SIGPIPE)
    }

    /// Sends HUP.
    /// - Parameter process: The number of a process.
    /// - Returns: false if it is not the number of a process that this process may signal.
    public static func hangup(toProcess process: String) -> Bool {
        guard let number = Int32(process), number > 1 else { return false }
        return kill(number, SIGHUP) == 0
    }

    private static func ignore(_ number: Int32) {
        _ = signal(number, SIG_IGN)
    }
}
