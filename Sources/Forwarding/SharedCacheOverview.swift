public import Base

/// The settings that the decisions about the store depend on.
public struct SharedSettings: Sendable, Equatable {
    /// Seconds for which a copy is kept past its time; a day at most.
    public var staleSeconds: UInt32
    /// Per cent of its time past which an entry that is asked for is refreshed; 0: never.
    public var prefetchAt: UInt32

    /// The parameters are those of the properties.
    public init(staleSeconds: UInt32, prefetchAt: UInt32) {
        (self.staleSeconds, self.prefetchAt) = (staleSeconds, prefetchAt)
    }
}

/// Counts since the start.
public struct SharedCacheCounters: Sendable, Equatable {
    /// Looks into the store.
    public internal(set) var reads: UInt64 = 0
    /// Looks that found a fresh entry.
    public internal(set) var hits: UInt64 = 0
    /// Reads that took longer than a question waits.
    public internal(set) var late: UInt64 = 0
    /// Looks that the store did not answer, or with an error.
    public internal(set) var failures: UInt64 = 0
    /// Answers that the store has taken.
    public internal(set) var writes: UInt64 = 0
    /// Answers that the store has refused, or that did not get there.
    public internal(set) var writesFailed: UInt64 = 0
    /// Writes given up because too many waited.
    public internal(set) var dropped: UInt64 = 0
    /// Entries that were not sealed by this fleet, or are no answer: deleted.
    public internal(set) var refused: UInt64 = 0
    /// Entries from the future, by this machine's clock.
    public internal(set) var ignored: UInt64 = 0
    /// Refreshes left to another daemon.
    public internal(set) var leasesLost: UInt64 = 0
    /// How often the store was found to be of no use.
    public internal(set) var outages: UInt64 = 0

    /// All counts are 0.
    public init() {}
}

/// The state of the shared cache at one moment.
public struct SharedCacheOverview: Sendable, Equatable {
    /// Whether the store is connected and in use.
    public let isOn: Bool
    /// Why it is not in use; empty while it is, and before the first attempt has ended.
    public let reason: String
    /// When it is dialled again.
    public let nextTry: Tick?
    /// Milliseconds that a question waits for it at most.
    public let budget: Int
    /// Nanoseconds within which nearly all reads are answered; nil while too few are known.
    public let usual: UInt64?
    /// What the store was asked how often.
    public let counters: SharedCacheCounters

    /// The parameters are those of the properties.
    public init(
        isOn: Bool, reason: String = "", nextTry: Tick? = nil, budget: Int = 0, usual: UInt64? = nil,
        counters: SharedCacheCounters = SharedCacheCounters()
    ) {
        (self.isOn, self.reason, self.nextTry, self.budget) = (isOn, reason, nextTry, budget)
        (self.usual, self.counters) = (usual, counters)
    }
}
