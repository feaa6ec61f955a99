public import DNSCache
public import DNSWire

/// The part of a store entry's key that the forwarder knows: everything about the question that decides the answer. The
/// shell adds what the settings say of the group, so that daemons with other settings do not find the entry.
public struct SharedQuestion: Hashable, Sendable {
    /// The group whose answer it is.
    public var group: GroupID
    /// The name that is asked for.
    public var name: Name
    /// The type that is asked for.
    public var type: RecordType
    /// The clients that the answer is for.
    public var audience: Audience
    /// The families that an HTTPDNS account was asked for; empty for a group that carries messages.
    public var families: Families
    /// Whether private addresses are taken out of the answer.
    public var refusesPrivate: Bool

    /// The parameters are those of the properties.
    public init(
        group: GroupID, name: Name, type: RecordType, audience: Audience, families: Families = [],
        refusesPrivate: Bool = false
    ) {
        (self.group, self.name, self.type, self.audience) = (group, name, type, audience)
        (self.families, self.refusesPrivate) = (families, refusesPrivate)
    }

    /// The clients that the answer is for, and how it was made, as bits that never change: they are part of the entry's key.
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

/// The answer of a group, as it is shared.
public enum SharedContent: Sendable, Equatable {
    case answer(Answer)
    /// An HTTPDNS account has no record of the name.
    case noRecord
}

extension SharedContent {
    /// The writer's `maxTTL` may be higher than ours.
    func clampedToOwnTTL(_ maxTTL: UInt32) -> SharedContent {
        guard case .answer(var answer) = self else { return self }
        answer.clampTTLs(minimum: 0, maximum: maxTTL)
        return .answer(answer)
    }

    /// Whether it answers a question after so many seconds: only an account can have "no record".
    func isUsable(after elapsed: UInt32, isOfAccount: Bool) -> Bool {
        if case .answer(let answer) = self { elapsed < answer.keep } else { isOfAccount }
    }
}

/// An entry of the store, opened.
public struct SharedEntry: Sendable, Equatable {
    /// What the group has said.
    public var content: SharedContent
    /// When it was written, by the writer's clock, in seconds since 1970.
    public var stored: UInt64
    /// For how many seconds it is fresh from then on.
    public var lifetime: UInt32

    /// The parameters are those of the properties.
    public init(_ content: SharedContent, stored: UInt64, lifetime: UInt32) {
        (self.content, self.stored, self.lifetime) = (content, stored, lifetime)
    }
}

/// A look into the store that is under way.
public struct SharedReadID: Hashable, Sendable {
    let id: TableID

    init(_ id: TableID) { self.id = id }

    /// A look that was not made by a forwarder, for code that asks a store directly.
    public init(standalone number: UInt32) { id = TableID(standalone: number) }
}

/// An instruction to the shell about the store.
public enum SharedAction: Sendable, Equatable {
    /// Connect, authenticate and learn the generation; what comes of it is told as ``SharedEvent/connected`` or
    /// ``SharedEvent/lost(_:)``.
    case dial
    /// Close the connection; reads under way are not answered any more.
    case hangUp
    case read(SharedReadID, SharedQuestion)
    /// Take the lease of a question.
    case claim(SharedReadID, SharedQuestion)
    /// Write an entry, and beside it a copy to be given past its time. Both always have an expiry, in seconds; `stale`
    /// is that of the copy, 0: there is none.
    case write(SharedQuestion, SharedContent, lifetime: UInt32, stale: UInt32)
    case delete([SharedQuestion])
    /// Look whether another daemon has begun a new generation, and whether the store still answers.
    case lookForGeneration
    /// Begin a new generation: no entry of before is found any more.
    case beginGeneration
}

/// The result of a ``SharedAction``, or news of the connection.
public enum SharedEvent: Sendable, Equatable {
    case connected
    /// The connection failed or ended, and why.
    case lost(String)
    case found(SharedReadID, SharedFinding)
    /// Whether the lease is this daemon's.
    case claimed(SharedReadID, Bool)
    /// A read, a claim or a look for the generation failed, and why; nil: for a look.
    case failed(SharedReadID?, String)
    case written
    case writeFailed(String)
    /// Writes that were given up because too many waited.
    case dropped(Int)
    /// An entry that is not one of ours was deleted.
    case refused
}

/// What the store has for a question.
public enum SharedFinding: Sendable, Equatable {
    case entry(SharedEntry, isStaleCopy: Bool)
    case nothing
}
