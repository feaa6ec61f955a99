public import Base
public import DNSCache
public import DNSWire

/// The part of a store entry's key that the forwarder knows: every property of the question that decides the answer.
/// The shell adds the group's settings, so that daemons with other settings do not find the entry.
public struct SharedQuestion: Hashable, Sendable {
    /// The group that answers.
    public var group: GroupID
    /// The queried name.
    public var name: Name
    /// The queried type.
    public var type: RecordType
    /// The clients that the answer is for.
    public var audience: Audience
    /// The families that an HTTPDNS account was asked for; empty for a group that carries messages.
    public var families: Families
    /// Whether private addresses are removed from the answer.
    public var refusesPrivate: Bool

    /// Each parameter sets the property of the same name.
    public init(
        group: GroupID, name: Name, type: RecordType, audience: Audience, families: Families = [],
        refusesPrivate: Bool = false
    ) {
        (self.group, self.name, self.type, self.audience) = (group, name, type, audience)
        (self.families, self.refusesPrivate) = (families, refusesPrivate)
    }

    /// The clients that the answer is for, and how it was made, as bits: they are part of the entry's key and must
    /// never change.
    public var traits: UInt8 {
        var traits = families.rawValue << 4
        switch audience {
        case .everyone, .exceptValidators: traits |= 1
        case .validators: traits |= 2
        case .those(let dnssecOK, let checkingDisabled):
            if dnssecOK { traits |= 2 }
            if checkingDisabled { traits |= 4 }
        }
        return refusesPrivate ? traits | 8 : traits
    }
}

/// The shared form of a group's answer.
public enum SharedContent: Sendable, Equatable {
    case answer(Answer)
    /// An HTTPDNS account has no record of the name.
    case noRecord
}

extension SharedContent {
    /// The content with TTLs limited by this daemon's `maxTTL`: the writer's limit may be higher.
    func clampedToOwnTTL(_ maxTTL: UInt32) -> SharedContent {
        guard case .answer(var answer) = self else { return self }
        answer.clampTTLs(minimum: 0, maximum: maxTTL)
        return .answer(answer)
    }

    /// Whether the content is usable `elapsed` seconds after it was written. Only an account can have "no record".
    func isUsable(after elapsed: UInt32, isOfAccount: Bool) -> Bool {
        if case .answer(let answer) = self { elapsed < answer.keep } else { isOfAccount }
    }
}

/// An entry of the store, opened.
public struct SharedEntry: Sendable, Equatable {
    /// The group's answer.
    public var content: SharedContent
    /// When the entry was written, by the writer's clock, in seconds since 1970.
    public var stored: UInt64
    /// The seconds from ``stored`` on for which the entry is fresh.
    public var lifetime: UInt32

    /// Each parameter sets the property of the same name.
    public init(_ content: SharedContent, stored: UInt64, lifetime: UInt32) {
        (self.content, self.stored, self.lifetime) = (content, stored, lifetime)
    }
}

/// A read of the store that is under way.
public struct SharedReadID: Hashable, Sendable {
    let id: TableID

    init(_ id: TableID) { self.id = id }

    /// A read that no forwarder has made, for code that asks a store directly.
    public init(standalone number: UInt32) { id = TableID(standalone: number) }
}

/// An order to the shell about the store.
public enum SharedAction: Sendable, Equatable {
    /// Connect, authenticate and read the generation; the result is ``SharedEvent/connected`` or
    /// ``SharedEvent/lost(_:)``.
    case dial
    /// Close the connection; reads under way get no reply.
    case hangUp
    case read(SharedReadID, SharedQuestion)
    /// Take the lease of a question.
    case claim(SharedReadID, SharedQuestion)
    /// Write an entry, and a copy to give when the entry has expired. Both always have an expiry, in seconds; `stale`
    /// is the expiry of the copy; 0 for no copy.
    case write(SharedQuestion, SharedContent, lifetime: UInt32, stale: UInt32)
    case delete([SharedQuestion])
    /// Read the generation, to see whether another daemon has begun a new generation and whether the store answers.
    case lookForGeneration
    /// Begin a new generation: no earlier entry is found any more.
    case beginGeneration
}

/// The result of a ``SharedAction``, or an event of the connection.
public enum SharedEvent: Sendable, Equatable {
    case connected
    /// The connection failed or ended, with the reason.
    case lost(String)
    case found(SharedReadID, SharedFinding)
    /// Whether this daemon has the lease.
    case claimed(SharedReadID, Bool)
    /// A read, a claim or a read of the generation failed, with the reason; nil for a read of the generation.
    case failed(SharedReadID?, String)
    case written
    case writeFailed(String)
    /// Writes that were dropped, since too many waited.
    case dropped(Int)
    /// An entry that this fleet has not written was deleted.
    case refused
}

/// The store's reply to a question.
public enum SharedFinding: Sendable, Equatable {
    case entry(SharedEntry, isStaleCopy: Bool)
    case nothing
}

/// The settings that the decisions about the store depend on.
public struct SharedSettings: Sendable, Equatable {
    /// Seconds for which a copy is retained after the entry's expiry; a day at most.
    public var staleSeconds: UInt32
    /// The per cent of an entry's lifetime after which a question refreshes it; 0 for never.
    public var prefetchAt: UInt32

    /// Each parameter sets the property of the same name.
    public init(staleSeconds: UInt32, prefetchAt: UInt32) {
        (self.staleSeconds, self.prefetchAt) = (staleSeconds, prefetchAt)
    }
}

/// Counts since the start.
public struct SharedCacheCounters: Sendable, Equatable {
    /// Reads of the store that have ended.
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
    /// Entries that this fleet has not sealed, or that are no answer; they were deleted.
    public internal(set) var refused: UInt64 = 0
    /// Entries from the future, by this machine's clock.
    public internal(set) var ignored: UInt64 = 0
    /// Refreshes left to another daemon.
    public internal(set) var leasesLost: UInt64 = 0
    /// The number of times that the store was given up.
    public internal(set) var outages: UInt64 = 0
}

/// The state of the shared cache at one moment.
public struct SharedCacheOverview: Sendable, Equatable {
    /// Whether the store is connected and in use.
    public let isOn: Bool
    /// Why the store is not in use, or takes no entries while it is in use; empty while it takes them, and before the
    /// first attempt has ended.
    public var reason = ""
    /// The time of the next attempt to connect.
    public var nextTry: Tick?
    /// The most milliseconds that a question waits for the store.
    public var budget = 0
    /// Nanoseconds within which nearly all reads get a reply; nil: too few reads are known.
    public var usual: UInt64?
    /// Counts of the requests to the store.
    public var counters = SharedCacheCounters()
}
