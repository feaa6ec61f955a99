public import Base
public import DNSWire

/// The number of a group; while the daemon runs, it never denotes another group.
public struct GroupID: Hashable, Sendable {
    /// Counted from 0, without great gaps, since tables use the number as an index.
    public let rawValue: Int

    /// - Parameter rawValue: At least 0.
    public init(_ rawValue: Int) { self.rawValue = rawValue }

    /// The group of `[httpdns]`.
    public static let httpdns = GroupID(0)
    /// The group of `[fallback]`.
    public static let fallback = GroupID(1)

    /// The group's number in the cache, as the source of an answer; 0 if there is none.
    var origin: UInt16 { UInt16(exactly: rawValue + 1) ?? 0 }

    init?(origin: UInt16) {
        guard origin > 0 else { return nil }
        self.init(Int(origin) - 1)
    }
}

/// A group of servers that are asked in the same way, each a substitute for the others.
public struct UpstreamGroup: Sendable, Equatable {
    /// The number of the group.
    public var id: GroupID
    /// The group's name in the configuration.
    public var name = ""
    /// The servers, in the order of preference.
    public var servers: [Server]
    /// The form of the queries to the group's servers: names, or whole messages.
    public var carries: Carries
    /// The rule by which the group's servers are chosen.
    public var choice: Choice
    /// Milliseconds for one attempt.
    public var timeout: Int
    /// The most requests and messages at once to one server; 0 for no limit. "Too often" halves the limit for a while.
    public var concurrency = 0
    /// The names a second that a plan allows; 0 for no limit. Names beyond the limit go to the next step of their
    /// route, or wait if there is none.
    public var namesPerSecond = 0

    /// Whether TLS proves that the group's answers come from its servers. In aes and des mode an attacker on the path
    /// can forge "no record".
    public var isProven = true

    /// `signed`, of an account: whether validating clients are sent to groups that have signatures.
    public var leavesValidators = false

    /// `serviceBinding`, of an account: whether another group is asked for HTTPS and SVCB of its names.
    public var looksForBindings = false

    /// The types that the group is not asked for; the answer for them is NODATA, whatever groups follow.
    public var without: Set<RecordType> = []

    /// Addresses that turn an answer of the group's servers into NXDOMAIN; they are part of ``trust``, too.
    public var bogusAddresses: [Network] = []

    /// The group's own answer. A group with an own answer has no servers, and no route leads to it.
    public var answer: GroupAnswer?

    /// Whether the network gives the group's servers, so that their answers belong to that network.
    public var isOfNetwork = false

    /// Whether the network has given the group a server since it was configured, as far as the forwarder knows.
    var hadServers = false

    /// Whether the group's servers are not known yet: the network is to give them, and has given none so far.
    var awaitsServers: Bool { isOfNetwork && servers.isEmpty && !hadServers }

    /// The settings that decide on the trust in the group's answers and on the network that these are for. If `trust`
    /// changes, cached answers of the group are invalid. The text is stable over restarts.
    public var trust = ""

    /// `addressType`, of an account: the families that the account is asked for.
    public var families = Families.both

    /// Whether the group's answers are written to the fleet's store, and read from the store.
    public var isShared = false

    /// The form of the queries to a group.
    public enum Carries: Sendable, Equatable {
        /// The addresses of names, with at most this many names in a request.
        case addresses(namesPerRequest: Int)
        /// Any question, as a DNS message.
        case messages

        var namesPerRequest: Int { if case .addresses(let most) = self { most } else { 1 } }
    }

    /// How a server is chosen, in numbers: see ``ServerChoice``.
    public struct Choice: Sendable, Equatable {
        /// After this many failures in a row a server is set aside.
        var failures = 1
        /// After this many answers such as SERVFAIL in a row a server is set aside: a single one may be due to the
        /// name. Nil if they do not count.
        var refusals: Int?
        /// Seconds for which a server is set aside, doubled each time; nil if it is set aside only when another server
        /// has answered, and until it answers itself.
        var pause: ClosedRange<Int>?
        /// Whether a server that was set aside is tried beside a client's question; else a client's question tries it.
        var triesBeside = true
        /// Milliseconds after which the next server is asked too at the latest, when a server takes longer than usual;
        /// nil for never.
        var nextWithin: Int?

        /// The first server as long as it answers: after this many failed attempts in a row the next server takes over,
        /// and after this many minutes one live request tries the first server again.
        public static func inOrder(switchAfter: Int, returnAfterMinutes: Int) -> Choice {
            let pause = returnAfterMinutes * 60
            return Choice(failures: switchAfter, pause: pause...pause, triesBeside: false)
        }

        /// The last server that answered; initially the first server.
        public static let lastThatAnswered = Choice(refusals: 1)

        /// The first server that does not fail. The next server is asked too when the first takes longer than usual,
        /// after this many milliseconds at the latest; a failed server is tried beside a live question now and then.
        public static func inPreference(nextWithin: Int) -> Choice {
            Choice(refusals: 3, pause: 1...60, nextWithin: nextWithin)
        }
    }

    /// A group without limits and without the store.
    public init(_ id: GroupID, _ servers: [Server], _ carries: Carries, _ choice: Choice, timeout: Int) {
        (self.id, self.servers, self.carries, self.choice, self.timeout) = (id, servers, carries, choice, timeout)
    }

    /// The group's name in sentences: its name in the configuration, except for the account of `[httpdns]`.
    public var title: String { id == .httpdns ? "HTTPDNS" : name }

    /// Whether the group is an HTTPDNS account.
    public var carriesAddresses: Bool { if case .addresses = carries { true } else { false } }
}

extension UpstreamGroup {
    /// Whether the group carries messages, all over TLS.
    var isEncrypted: Bool {
        !carriesAddresses && !servers.isEmpty && servers.allSatisfy { $0.exposure == .encrypted }
    }

    /// Whether validating clients may be sent to the group for a name of an account: the group carries messages, and
    /// its queries cannot be read on the way.
    var maySign: Bool {
        !carriesAddresses && !servers.isEmpty && servers.allSatisfy { $0.exposure != .clear }
    }
}

/// The ends of a group's step that can lead to another group.
public struct StepEnds: OptionSet, Hashable, Sendable {
    /// A bit for each end.
    public let rawValue: UInt8
    /// - Parameter rawValue: a bit for each end.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// No server answered, or only with SERVFAIL and the like.
    public static let failure = StepEnds(rawValue: 1)
    /// Every server that answered returned REFUSED.
    public static let refused = StepEnds(rawValue: 2)
    /// The answer was NXDOMAIN.
    public static let nxDomain = StepEnds(rawValue: 4)
    /// NOERROR without a record in the answer section.
    public static let noData = StepEnds(rawValue: 8)
    /// An HTTPDNS account has no record of the name; or a server has answered NOERROR without a record in the answer
    /// section and without an SOA, as an account's DNS over HTTPS does for names that are not registered with it.
    public static let noRecord = StepEnds(rawValue: 16)

    /// The end that an answer means for its step; nil if it has records or is YXDOMAIN, and so leads to no other group.
    /// NOERROR without a record and without an SOA means both ``noData`` and ``noRecord``.
    init?(of answer: Answer) {
        switch answer.head.responseCode {
        case .noError where answer.head.answerCount > 0, .yxDomain: return nil
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
    /// The ends of the preceding step after which this step begins; without meaning in a route's first step.
    public var after: StepEnds
    /// Milliseconds after which this step begins although the preceding step has not ended; nil if it waits for that
    /// end. The value has no meaning in a route's first step and after a group that carries messages, whose own servers
    /// are asked beside each other.
    public var hedgeAfter: Int?
    /// Whether the group leaves the question's type out: see ``Policy/limited(_:to:)``.
    var leavesOut = false

    /// By default the step begins after a failure, and after "no record" of an account.
    public init(_ group: GroupID, hedgeAfter: Int? = nil, after: StepEnds = [.failure, .noRecord]) {
        (self.group, self.hedgeAfter, self.after) = (group, hedgeAfter, after)
    }
}

/// The traits of groups that the routes of rare questions depend on; they are behind one reference, so that the copy of
/// a policy is cheap.
final class GroupKinds: Sendable {
    /// The accounts whose names validating clients ask at other groups, and the groups that may be asked then.
    let leavingValidators, signing: Set<GroupID>
    /// The accounts for whose names other groups are asked for HTTPS and SVCB, and the groups that may be asked.
    let bindingAccounts, encrypted: Set<GroupID>
    /// The groups that have servers.
    let serving: Set<GroupID>
    /// The types that groups are not asked for; a group without such a type is absent.
    let without: [GroupID: Set<RecordType>]
    /// The settings of each group that decide about answers.
    let marks: [GroupID: Mark]
    private let groups: [UpstreamGroup]

    struct Mark: Equatable {
        let name, trust: UInt64
        let isAccount, isOfNetwork: Bool
        let families: Families
    }

    init(_ groups: [UpstreamGroup]) {
        self.groups = groups
        leavingValidators = Set(groups.filter { $0.carriesAddresses && $0.leavesValidators }.map(\.id))
        signing = Set(groups.filter(\.maySign).map(\.id))
        bindingAccounts = Set(groups.filter { $0.carriesAddresses && $0.looksForBindings }.map(\.id))
        encrypted = Set(groups.filter(\.isEncrypted).map(\.id))
        serving = Set(groups.filter { !$0.servers.isEmpty }.map(\.id))
        without = Dictionary(groups.map { ($0.id, $0.without) }) { first, _ in first }.filter { !$0.value.isEmpty }
        marks = Dictionary(groups.map { ($0.id, Mark($0)) }) { first, _ in first }
    }

    /// The same with other servers of a group.
    func with(_ group: UpstreamGroup) -> GroupKinds { GroupKinds([group] + groups.filter { $0.id != group.id }) }

    /// The families that a group is asked for by the settings, whatever the present routes.
    func families(of group: GroupID) -> Families { marks[group]?.families ?? .both }
}

extension GroupKinds.Mark {
    fileprivate init(_ group: UpstreamGroup) {
        var (name, trust) = (FNV(), FNV())
        name.add("\(group.name.isEmpty ? "\(group.id.rawValue)" : group.name) \(group.carriesAddresses)")
        trust.add("\(group.trust) \(group.leavesValidators) \(group.isEncrypted)")
        self.init(
            name: name.value, trust: trust.value, isAccount: group.carriesAddresses, isOfNetwork: group.isOfNetwork,
            families: group.families)
    }
}
