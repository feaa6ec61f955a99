public import Base

/// A group's number, which never stands for another group as long as the daemon runs; whoever makes the groups sees to that.
public struct GroupID: Hashable, Sendable {
    public let rawValue: Int

    public init(_ rawValue: Int) { self.rawValue = rawValue }

    /// `[httpdns]` and `[fallback]`.
    public static let httpdns = GroupID(0)
    public static let fallback = GroupID(1)
}

/// Who may be asked for a name: servers that are asked in the same way, one in the place of another.
public struct UpstreamGroup: Sendable, Equatable {
    public var id: GroupID
    /// In the order in which they are preferred.
    public var servers: [Server]
    public var carries: Carries
    public var choice: Choice
    /// Milliseconds for one attempt.
    public var timeout: Int
    /// What a plan allows; 0 = no limit. Names beyond it go to the next step of their route, or wait where there is none.
    public var namesPerSecond = 0

    /// Whether what its servers say is proven to be their word: by TLS. In aes and des whoever is on the path can say that
    /// there is no record.
    public var isProven = true

    /// What can be asked.
    public enum Carries: Sendable, Equatable {
        /// The addresses of names, so many names in a request; nothing else.
        case addresses(namesPerRequest: Int)
        /// Any question, as a DNS message.
        case messages
    }

    /// Which server is asked.
    public enum Choice: Sendable, Equatable {
        /// The first as long as it answers: after so many failed attempts in a row the next one takes over, and after
        /// so many minutes one live request tries the first again.
        case inOrder(switchAfter: Int, returnAfterMinutes: Int)
        /// The last that had an answer, at first the first.
        case lastThatAnswered
    }

    public init(_ id: GroupID, _ servers: [Server], _ carries: Carries, _ choice: Choice, timeout: Int) {
        (self.id, self.servers, self.carries, self.choice, self.timeout) = (id, servers, carries, choice, timeout)
    }

    var carriesAddresses: Bool {
        if case .addresses = carries { true } else { false }
    }
}

/// One of the groups that a question may be put to, one after the other.
public struct Step: Sendable, Hashable {
    public var group: GroupID
    /// Milliseconds after which this group is asked as well although the one before it has not answered yet; nil: it is
    /// asked only when the one before has failed or has no record. Means nothing in a route's first step.
    public var hedgeAfter: Int?

    public init(_ group: GroupID, hedgeAfter: Int? = nil) { (self.group, self.hedgeAfter) = (group, hedgeAfter) }
}
