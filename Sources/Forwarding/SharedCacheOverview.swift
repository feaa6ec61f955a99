public import Base

/// The settings that the decisions about the store depend on.
public struct SharedSettings: Sendable, Equatable {
    /// Seconds for which a copy is retained after the entry's expiry; a day at most.
    public var staleSeconds: UInt32
    /// The per cent of an entry's lifetime after which a question refreshes it; 0: never.
    public var prefetchAt: UInt32

    /// Each parameter sets the property of the same name.
    public init(staleSeconds: UInt32, prefetchAt: UInt32) {
        (self.staleSeconds, self.prefetchAt) = (staleSeconds, prefetchAt)
    }
}

/// Counts since the start.
public struct SharedCacheCounters: Sendable, Equatable {
    /// Reads of the store.
    public internal(set) var reads: UInt64 = 0
    /// Reads that found a fresh entry.
    public internal(set) var hits: UInt64 = 0
    /// Reads that took longer than a question waits.
    public internal(set) var late: UInt64 = 0
    /// Reads without a reply, or with an error.
    public internal(set) var failures: UInt64 = 0
    /// Entries that the store has taken.
    public internal(set) var writes: UInt64 = 0
    /// Entries that the store has refused, or that did not reach it.
    public internal(set) var writesFailed: UInt64 = 0
    /// Entries that were dropped, since too many waited.
    public internal(set) var dropped: UInt64 = 0
    /// Entries that this fleet has not sealed, or that are no answer: deleted.
    public internal(set) var refused: UInt64 = 0
    /// Entries from the future, by this machine's clock.
    public internal(set) var ignored: UInt64 = 0
    /// Refreshes left to another daemon.
    public internal(set) var leasesLost: UInt64 = 0
    /// The number of times that the store was given up.
    public internal(set) var outages: UInt64 = 0

    /// All counts are 0.
    public init() {}
}

/// The state of the shared cache at one moment.
public struct SharedCacheOverview: Sendable, Equatable {
    /// Whether the store is connected and in use.
    public let isOn: Bool
    /// The reason for which the store is not in use; empty while it is, and before the first attempt has ended.
    public let reason: String
    /// The time of the next attempt to connect.
    public let nextTry: Tick?
    /// The most milliseconds that a question waits for the store.
    public let budget: Int
    /// Nanoseconds within which nearly all reads get a reply; nil: too few reads are known.
    public let usual: UInt64?
    /// Counts of the requests to the store.
    public let counters: SharedCacheCounters

    /// Each parameter sets the property of the same name.
    public init(
        isOn: Bool, reason: String = "", nextTry: Tick? = nil, budget: Int = 0, usual: UInt64? = nil,
        counters: SharedCacheCounters = SharedCacheCounters()
    ) {
        (self.isOn, self.reason, self.nextTry, self.budget) = (isOn, reason, nextTry, budget)
        (self.usual, self.counters) = (usual, counters)
    }
}
