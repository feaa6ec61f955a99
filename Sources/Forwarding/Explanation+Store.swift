import Base
import DNSCache
public import DNSWire

/// The replies of the fleet's store to an operator's reads.
public struct StoreLooks: Sendable {
    /// By question: the store's reply, or why it is unknown.
    public var found: [SharedQuestion: StoreLook]
    /// The time of the reads, in seconds since 1970.
    public var wall: UInt64

    /// By default, no reply is known.
    public init(_ found: [SharedQuestion: StoreLook] = [:], wall: UInt64 = 0) {
        (self.found, self.wall) = (found, wall)
    }
}

/// The result of one read.
public enum StoreLook: Sendable, Equatable {
    case found(SharedFinding)
    case failed(String)
}

extension Explanation {
    /// The store's entry for a group.
    public enum Stored: Sendable, Equatable {
        case nothing
        /// The group's answer, so many seconds old. An expired one is given only when no server answers.
        case entry(SharedContent, elapsed: UInt32, isFresh: Bool)
        /// An entry that is not given: it has expired, or is in the future.
        case outOfTime
        /// Why the entry is unknown.
        case unknown(String)
    }

    /// The answer for the case that no server answers: the cached one, or the store's expired copy; with its age.
    public var stale: (answer: Answer, elapsed: UInt32)? {
        if let held { return (held.answer, held.elapsed) }
        for part in parts {
            if case .entry(.answer(let answer), let elapsed, isFresh: false)? = part.stored { return (answer, elapsed) }
        }
        return nil
    }
}

extension Forwarder {
    /// Sets the question to the store before a group is asked, and the store's reply.
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
            // The lesson for the clock stays in a copy.
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
