import Base
import DNSCache
public import DNSWire

/// What an operator's look into the store of the fleet has found.
public struct StoreLooks: Sendable {
    /// By question: what the store has, or why that is not known.
    public var found: [SharedQuestion: StoreLook]
    /// When that was, in seconds since 1970.
    public var wall: UInt64

    /// By default nothing is known of the store.
    public init(_ found: [SharedQuestion: StoreLook] = [:], wall: UInt64 = 0) {
        (self.found, self.wall) = (found, wall)
    }
}

/// The end of one look.
public enum StoreLook: Sendable, Equatable {
    case found(SharedFinding)
    case failed(String)
}

extension Explanation {
    /// What the store has of a group.
    public enum Stored: Sendable, Equatable {
        case nothing
        /// What the group has said so many seconds ago. What is past its time is given only when nobody answers.
        case entry(SharedContent, elapsed: UInt32, isFresh: Bool)
        /// An entry that is not given, since its time is over or seems to lie in the future.
        case outOfTime
        /// Why that is not known.
        case unknown(String)
    }

    /// What is given when nobody answers: what the cache holds, or the store's copy past its time; with its age.
    public var stale: (answer: Answer, elapsed: UInt32)? {
        if let held { return (held.answer, held.elapsed) }
        for part in parts {
            if case .entry(.answer(let answer), let elapsed, isFresh: false)? = part.stored { return (answer, elapsed) }
        }
        return nil
    }
}

extension Forwarder {
    /// Sets what the store is asked before a group is, and what it has for that.
    func look(for key: Flight.Key, _ part: inout Explanation.Part, _ looks: StoreLooks, at now: Tick) {
        guard let settings = store.settings, part.group.isShared, part.standing != .noServer,
            !part.standing.isWithoutRecord, part.standing != .budgetSpent, store.budget(at: now) != nil
        else { return }
        let question = sharedQuestion(part.group.id, key.name.name, key.type, for: key.audience)
        part.sharedQuestion = question
        switch looks.found[question] {
        case nil: break
        case .failed(let why): part.stored = .unknown(why)
        case .found(.nothing): part.stored = .nothing
        case .found(.entry(let entry, let isStaleCopy)):
            let content = entry.content.clampedToOwnTTL(timing.maxTTL)
            // What is learnt by that stays in a copy.
            var clock = store.clock
            switch clock.worth(entry, isStaleCopy: isStaleCopy, settings, wall: looks.wall, at: now) {
            case .fresh(let elapsed, _) where content.isUsable(after: elapsed, isOfAccount: true):
                part.stored = .entry(content, elapsed: elapsed, isFresh: true)
            case .stale(let elapsed): part.stored = .entry(content, elapsed: elapsed, isFresh: false)
            case .fresh, .nothing, .ahead: part.stored = .outOfTime
            }
        }
    }
}
