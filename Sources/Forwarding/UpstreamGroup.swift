public import Base
public import DNSWire

/// The number of a group. The maker of groups ensures that it never stands for another group while the daemon runs.
public struct GroupID: Hashable, Sendable {
    /// Counted from 0, without great gaps: tables have this for an index.
    public let rawValue: Int

    /// - Parameter rawValue: at least 0.
    public init(_ rawValue: Int) { self.rawValue = rawValue }

    /// The group of `[httpdns]`.
    public static let httpdns = GroupID(0)
    /// The group of `[fallback]`.
    public static let fallback = GroupID(1)

    /// The number of this group in the cache, as the source of an answer; 0 is for none.
    var teller: UInt16 { UInt16(exactly: rawValue + 1) ?? 0 }

    init?(teller: UInt16) {
        guard teller > 0 else { return nil }
        self.init(Int(teller) - 1)
    }
}

/// A group of servers that are asked in the same way, each in the place of another.
public struct UpstreamGroup: Sendable, Equatable {
    /// The number of the group.
    public var id: GroupID
    /// The group's name in the configuration.
    public var name = ""
    /// In the order of preference.
    public var servers: [Server]
    /// What is put to its servers: names, or whole messages.
    public var carries: Carries
    /// Which of its servers is asked first.
    public var choice: Choice
    /// Milliseconds for one attempt.
    public var timeout: Int
    /// The most requests and messages at once to one server; 0 = no limit. The answer "too often" halves it for a
    /// while.
    public var concurrency = 0
    /// The names a second that a plan allows; 0 = no limit. Names beyond it go to the next step of their route, or wait
    /// where there is none.
    public var namesPerSecond = 0

    /// Whether its servers' answers are proven to be theirs, by TLS. In aes and des mode an attacker on the path can
    /// forge "no record".
    public var isProven = true

    /// `signed`, of an account: whether clients that validate are sent to groups that have signatures.
    public var leavesValidators = false

    /// `serviceBinding`, of an account: whether another group is asked for HTTPS and SVCB of its names.
    public var looksForBindings = false

    /// The types that it is not asked for: of them there is no record here, whoever comes after it.
    public var without: Set<RecordType> = []

    /// An answer of its servers with one of these addresses is NXDOMAIN. They are a part of ``trust``, too.
    public var bogusAddresses: [Network] = []

    /// What it answers by itself: it has no servers then, and no route leads to it.
    public var answer: GroupAnswer?

    /// Whether the network gives its servers, so that what they say is of that network.
    public var isOfNetwork = false

    /// Whether the network has given it a server since it is to, as far as the forwarder knows.
    var hadServers = false

    /// Whether its servers are not known yet: the network is to give them, and has given none yet.
    var awaitsServers: Bool { isOfNetwork && servers.isEmpty && !hadServers }

    /// What makes its answers be believed otherwise, or be those for another network: by another text, what it has said is not
    /// right any more. The same over restarts.
    public var trust = ""

    /// `addressType`, of an account: the families that it is asked for.
    public var families = Families.both

    /// Whether its answers go to the store of the fleet, and come from there.
    public var isShared = false

    /// What the servers of a group can be asked.
    public enum Carries: Sendable, Equatable {
        /// The addresses of names, with at most this many names in a request; nothing else.
        case addresses(namesPerRequest: Int)
        /// Any question, as a DNS message.
        case messages

        var namesPerRequest: Int {
            if case .addresses(let most) = self { most } else { 1 }
        }
    }

    /// How a server is chosen, in numbers: see ``ServerChoice``.
    public struct Choice: Sendable, Equatable {
        /// After this many failures in a row a server is set aside.
        var failures = 1
        /// After this many answers such as SERVFAIL in a row it is: a single one may be due to the name. Nil: they say none.
        var refusals: Int?
        /// Seconds for which it is, twice as long each time; nil: only where another has answered, and until it answers itself.
        var pause: ClosedRange<Int>?
        /// Whether it is tried beside a live question; else by one.
        var triesBeside = true
        /// Milliseconds after which the next server is asked as well at the latest, when one takes longer than usual; nil: never.
        var nextWithin: Int?

        /// The first server as long as it answers: after this many failed attempts in a row the next one takes over,
        /// and after this many minutes one live request tries the first again.
        public static func inOrder(switchAfter: Int, returnAfterMinutes: Int) -> Choice {
            let pause = returnAfterMinutes * 60
            return Choice(failures: switchAfter, pause: pause...pause, triesBeside: false)
        }

        /// The last server that answered; in the beginning the first.
        public static let lastThatAnswered = Choice(refusals: 1)

        /// The first server that does not fail. The next one is asked as well when it takes longer than usual, after
        /// this many milliseconds at the latest; a server that has failed is tried beside a live question now and then.
        public static func inPreference(nextWithin: Int) -> Choice {
            Choice(refusals: 3, pause: 1...60, nextWithin: nextWithin)
        }
    }

    /// A group without limits, not shared.
    public init(_ id: GroupID, _ servers: [Server], _ carries: Carries, _ choice: Choice, timeout: Int) {
        (self.id, self.servers, self.carries, self.choice, self.timeout) = (id, servers, carries, choice, timeout)
    }

    /// What it is called in sentences: its name in the configuration, but for the account of `[httpdns]`.
    public var title: String { id == .httpdns ? "HTTPDNS" : name }

    /// Whether it is an HTTPDNS account.
    public var carriesAddresses: Bool {
        if case .addresses = carries { true } else { false }
    }
}

extension UpstreamGroup {
    /// Whether it carries messages, over TLS alone.
    var isEncrypted: Bool {
        !carriesAddresses && !servers.isEmpty && servers.allSatisfy { $0.exposure == .encrypted }
    }

    /// Whether clients that validate may be sent to it for a name of an account: it carries messages, and what it is asked
    /// can be read by nobody on the way.
    var maySign: Bool {
        !carriesAddresses && !servers.isEmpty && servers.allSatisfy { $0.exposure != .clear }
    }
}

/// How a group's step can end so that another group may be asked.
public struct StepEnds: OptionSet, Hashable, Sendable {
    /// A bit for each end.
    public let rawValue: UInt8
    /// - Parameter rawValue: a bit for each end.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// No server answered, or only with SERVFAIL and the like.
    public static let failure = StepEnds(rawValue: 1)
    /// Every server that answered did so with REFUSED.
    public static let refused = StepEnds(rawValue: 2)
    /// The answer was NXDOMAIN.
    public static let nxDomain = StepEnds(rawValue: 4)
    /// NOERROR without a record in the answer section.
    public static let noData = StepEnds(rawValue: 8)
    /// An HTTPDNS account has no record of the name; or a server has answered NOERROR without a record in the answer section and
    /// without an SOA, as the DNS over HTTPS of an account does for names that are not registered with it.
    public static let noRecord = StepEnds(rawValue: 16)

    /// How an answer ends a group's step so that another group may be asked; nil: it has records, so it does not. Without an SOA
    /// it has no data, and no record either.
    init?(of answer: Answer) {
        switch answer.head.responseCode {
        case .noError where answer.head.answerCount > 0: return nil
        case .noError: self = answer.hasStartOfAuthority ? .noData : [.noData, .noRecord]
        case .nxDomain: self = .nxDomain
        case .refused: self = .refused
        default: self = .failure
        }
    }
}

/// One group of a route.
public struct Step: Sendable, Hashable {
    /// The group that is asked.
    public var group: GroupID
    /// How the step before must have ended for this one to begin. Meaningless in a route's first step.
    public var after: StepEnds
    /// Milliseconds after which this step begins although the one before has not ended; nil: it begins only when that
    /// has ended. Meaningless in a route's first step and behind a group that carries messages: there the servers of
    /// the group itself are asked beside each other.
    public var hedgeAfter: Int?

    /// By default it begins after a failure, and after "no record" of an account.
    public init(_ group: GroupID, hedgeAfter: Int? = nil, after: StepEnds = [.failure, .noRecord]) {
        (self.group, self.hedgeAfter, self.after) = (group, hedgeAfter, after)
    }
}
