public import Base

/// A group's number, which never stands for another group as long as the daemon runs; whoever makes the groups sees to
/// that.
public struct GroupID: Hashable, Sendable {
    public let rawValue: Int

    public init(_ rawValue: Int) { self.rawValue = rawValue }

    /// `[httpdns]` and `[fallback]`.
    public static let httpdns = GroupID(0)
    public static let fallback = GroupID(1)

    /// As it is called in the log and the status: an operator's own group by its name.
    public func title(_ name: String) -> String {
        switch self {
        case .httpdns: "HTTPDNS"
        case .fallback: "local resolver"
        default: name
        }
    }
}

/// Who may be asked for a name: servers that are asked in the same way, one in the place of another.
public struct UpstreamGroup: Sendable, Equatable {
    public var id: GroupID
    /// As it is called in the configuration.
    public var name = ""
    /// In the order in which they are preferred.
    public var servers: [Server]
    public var carries: Carries
    public var choice: Choice
    /// Milliseconds for one attempt.
    public var timeout: Int
    /// Requests and messages under way at once to one server, at most; 0 = no limit. What a server answers with "too
    /// often" halves it for a while.
    public var concurrency = 0
    /// What a plan allows; 0 = no limit. Names beyond it go to the next step of their route, or wait where there is
    /// none.
    public var namesPerSecond = 0

    /// Whether what its servers say is proven to be their word: by TLS. In aes and des whoever is on the path can say
    /// that there is no record.
    public var isProven = true

    /// What can be asked.
    public enum Carries: Sendable, Equatable {
        /// The addresses of names, so many names in a request; nothing else.
        case addresses(namesPerRequest: Int)
        /// Any question, as a DNS message.
        case messages

        var namesPerRequest: Int {
            if case .addresses(let most) = self { most } else { 1 }
        }
    }

    /// Which server is asked.
    public enum Choice: Sendable, Equatable {
        /// The first as long as it answers: after so many failed attempts in a row the next one takes over, and after
        /// so many minutes one live request tries the first again.
        case inOrder(switchAfter: Int, returnAfterMinutes: Int)
        /// The last that had an answer, at first the first.
        case lastThatAnswered
        /// The first that does not fail. The next is asked as well when one takes longer than it usually does, after so
        /// many milliseconds at the latest; one that has failed is tried beside a live question now and then.
        case inPreference(nextWithin: Int)
    }

    public init(_ id: GroupID, _ servers: [Server], _ carries: Carries, _ choice: Choice, timeout: Int) {
        (self.id, self.servers, self.carries, self.choice, self.timeout) = (id, servers, carries, choice, timeout)
    }

    public var carriesAddresses: Bool {
        if case .addresses = carries { true } else { false }
    }
}

/// How a group's part in answering a question can end so that another group may be asked.
public struct StepEnds: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// No server answered, or none but with SERVFAIL and the like.
    public static let failure = StepEnds(rawValue: 1)
    /// Every server that answered did so with REFUSED.
    public static let refused = StepEnds(rawValue: 2)
    public static let nxDomain = StepEnds(rawValue: 4)
    /// NOERROR without a record in the answer section.
    public static let noData = StepEnds(rawValue: 8)
    /// An HTTPDNS account has no record of the name.
    public static let noRecord = StepEnds(rawValue: 16)
}

/// One of the groups that a question may be put to, one after the other.
public struct Step: Sendable, Hashable {
    public var group: GroupID
    /// How the group before must have ended for this one to be asked. Means nothing in a route's first step.
    public var after: StepEnds
    /// Milliseconds after which this group is asked as well although the one before it has not answered yet; nil: it is
    /// asked only when the one before has ended. Means nothing in a route's first step, nor behind a group that carries
    /// whole messages: there the servers of the group itself are asked beside each other.
    public var hedgeAfter: Int?

    public init(_ group: GroupID, hedgeAfter: Int? = nil, after: StepEnds = [.failure, .noRecord]) {
        (self.group, self.hedgeAfter, self.after) = (group, hedgeAfter, after)
    }
}
