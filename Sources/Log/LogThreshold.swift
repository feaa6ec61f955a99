public import Logging
import Synchronization

/// The least important level that is logged, shared by all loggers; it may change at any time.
public final class LogThreshold: Sendable {
    private let place: Atomic<Int>

    /// Lines of this level and more important ones are logged.
    public init(_ level: Logger.Level) { place = Atomic(Self.place(level)) }

    /// The level; from any thread.
    public var level: Logger.Level {
        get { Logger.Level.allCases[place.load(ordering: .relaxed)] }
        set { place.store(Self.place(newValue), ordering: .relaxed) }
    }

    private static func place(_ level: Logger.Level) -> Int { Logger.Level.allCases.firstIndex(of: level) ?? 0 }
}
