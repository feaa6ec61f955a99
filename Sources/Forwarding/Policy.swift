import Base
public import DNSWire

/// Where a question goes, by its name and type alone: the first column of the table of answers.
public enum Route: Sendable, Equatable {
    /// Answered here; nobody is asked.
    case answer(Answer)
    /// These groups are asked, in this order; at least one.
    case ask([Step])
    /// HTTPS or SVCB of a name whose addresses come from an HTTPDNS account, the first of these groups: it has no such
    /// record, unless the account is known to have no record of the name at all.
    case serviceBinding([Step])

    /// Whether the same groups are asked, or the same is answered.
    func leads(whereLeads other: Route) -> Bool {
        switch (self, other) {
        case (.ask(let a), .ask(let b)), (.serviceBinding(let a), .serviceBinding(let b)):
            a.map(\.group) == b.map(\.group)
        default: self == other
        }
    }

    /// Whether one of these groups is asked first.
    func begins(with groups: Set<GroupID>) -> Bool {
        switch self {
        case .ask(let steps), .serviceBinding(let steps): steps.first.map { groups.contains($0.group) } ?? false
        case .answer: false
        }
    }
}

/// The rules by which a name goes to one group of upstreams or another.
public struct Policy: Sendable {
    /// `minTTL`-independent TTL of the answers made up here, and of "no record", in seconds.
    public var negativeTTL: UInt32
    private var rules: DomainRules
    /// By `GroupID.rawValue`.
    private var ways: [Way] = []
    /// The group of names that no rule speaks of.
    private var otherwise: GroupID
    /// The names that may have private addresses; nil: all may.
    private var privateAllowed: NameSet?

    /// A reference, so that a policy is copied cheaply.
    private final class NameSet: Sendable {
        let table: DomainTable<Void>
        init(_ names: [Name]) { table = DomainTable([(DomainList(names.lazy.map { .subtree($0) }), ())]) }
    }
    /// `[fallback] hosts`, replaced whole when the file changes.
    public var hosts: HostsTable
    /// `addressType`: the families that HTTPDNS is asked for; it follows the routes when that is "auto".
    public var families = Families.both

    /// TTL of the answers that never change (RFC 6761 names), in seconds.
    static let fixedTTL: UInt32 = 3600

    /// What is asked for the names of one group.
    private struct Way {
        var steps: [Step] = []
        /// Those of the steps that carry whole messages.
        var messageSteps: [Step] = []
        var beginsWithAddresses = false
    }

    /// - Parameters:
    ///   - groups: All there are.
    ///   - routes: Which groups are asked for the names of one, itself the first, and each once; empty or absent:
    ///     nobody. ``StepSet/capacity`` at most.
    ///   - rules: Whose group which names are.
    ///   - otherwise: The group of all other names.
    ///   - privateAllowed: if not nil, only these names and those under them may have private addresses, and those that
    ///     an RFC leaves to resolvers or a rule to another group than HTTPDNS, by more than
    ///     ``DomainPattern/singleLabels`` or `.`.
    public init(
        groups: [UpstreamGroup], routes: [GroupID: [Step]], rules: DomainRules, otherwise: GroupID,
        negativeTTL: UInt32, privateAllowed: [Name]? = nil, hosts: HostsTable = HostsTable()
    ) {
        self.negativeTTL = negativeTTL
        self.hosts = hosts
        self.rules = rules
        self.otherwise = otherwise
        let carriers = Set(groups.filter(\.carriesAddresses).map(\.id))
        let last = rules.groups.union(routes.keys).union([otherwise, .fallback]).map(\.rawValue).max() ?? 0
        ways = (0...last).map { number in
            let steps = routes[GroupID(number)] ?? []
            precondition(steps.count <= StepSet.capacity)
            return Way(
                steps: steps, messageSteps: steps.filter { !carriers.contains($0.group) },
                beginsWithAddresses: steps.first.map { carriers.contains($0.group) } ?? false)
        }
        self.privateAllowed = privateAllowed.map { NameSet($0) }
    }

    /// Which pattern takes a question, and for whom.
    public func rule(for name: Name, _ type: RecordType = .a) -> PolicyDecision {
        let finding = rules.find(name, type)
        let taker: PolicyDecision.Taker =
            if let reason = finding.reserved { .reserved(reason) } else { .group(finding.group ?? otherwise) }
        return PolicyDecision(taker: taker, pattern: rules.pattern(finding), place: rules.place(finding))
    }

    /// Whether private addresses are taken out of answers to questions for a name.
    func refusesPrivate(_ name: Name) -> Bool {
        guard let privateAllowed, !privateAllowed.table.holds(name) else { return false }
        let finding = rules.find(name)
        if finding.reserved == .localOnly { return false }
        return !finding.isNamed || finding.group == .httpdns
    }

    public func route(_ name: Name, _ type: RecordType) -> Route { route(NameKey(name), type) }

    func route(_ key: NameKey, _ type: RecordType) -> Route {
        let name = key.name
        let finding = rules.find(name, type)
        switch finding.reserved {
        case .localhost where type != .any: return .answer(localhost(name, type))
        case .nonexistent: return .answer(.nxDomain(name, type: type, negativeTTL: Self.fixedTTL))
        case .noData: return .answer(.noData(name, type: type, negativeTTL: Self.fixedTTL))
        default: break
        }
        if type == .any { return .answer(.hinfo(name, ttl: Self.fixedTTL)) }
        if let answer = hosts.answer(key, type, ttl: 0) { return .answer(answer) }
        let way = place(finding)
        guard !finding.isLocal, Self.canBeAddressed(name) else { return messages(way, name, type) }
        switch type {
        case .a where ways[way].beginsWithAddresses && !families.contains(.ipv4),
            .aaaa where ways[way].beginsWithAddresses && !families.contains(.ipv6):
            return .answer(.noData(name, type: type, negativeTTL: negativeTTL))
        case .a, .aaaa: return ways[way].steps.isEmpty ? .answer(notSupported(name, type)) : .ask(ways[way].steps)
        case .https where ways[way].beginsWithAddresses, .svcb where ways[way].beginsWithAddresses:
            return .serviceBinding(ways[way].steps)
        default: return messages(way, name, type)
        }
    }

    /// Whether a group may be told a name, in a question of this type.
    func mayAsk(_ group: GroupID, _ name: Name, _ type: RecordType = .a) -> Bool {
        let finding = rules.find(name, type)
        let way = ways[place(finding)]
        let steps = !finding.isLocal && Self.canBeAddressed(name) ? way.steps : way.messageSteps
        return steps.contains { $0.group == group }
    }

    /// Which groups are asked for the names of one, in order.
    func steps(of group: GroupID) -> [Step] { ways.indices.contains(group.rawValue) ? ways[group.rawValue].steps : [] }

    /// Whether a group may be asked anything.
    func leads(to group: GroupID) -> Bool { ways.contains { $0.steps.contains { $0.group == group } } }

    /// Whether a name can be put to an HTTPDNS account. A single label means something on this network alone, and in a
    /// label with other octets a separator of the service's protocol would ask for other names.
    private static func canBeAddressed(_ name: Name) -> Bool {
        // The octets of one label are its length, itself, and the root's length.
        name.wire.count > Int(name.wire[0]) + 2 && name.isHostname
    }

    /// The place in `ways` of what is asked for a name.
    private func place(_ finding: DomainRules.Finding) -> Int {
        (finding.group ?? (finding.reserved == nil ? otherwise : .fallback)).rawValue
    }

    /// The groups of a way that carry whole messages, or what takes their place where there is none.
    private func messages(_ way: Int, _ name: Name, _ type: RecordType) -> Route {
        ways[way].messageSteps.isEmpty ? .answer(notSupported(name, type)) : .ask(ways[way].messageSteps)
    }

    /// An HTTPDNS account cannot be asked this and nobody else may be.
    func notSupported(_ name: Name, _ type: RecordType) -> Answer {
        .noData(name, type: type, negativeTTL: negativeTTL, extendedError: .notSupported)
    }

    /// There were addresses, all of them private, and the name may not have such: this daemon's operator wants it so.
    func noPermittedAddress(_ name: Name, _ type: RecordType) -> Answer {
        .noData(name, type: type, negativeTTL: negativeTTL, extendedError: .blocked)
    }

    /// An HTTPDNS account has no record and nobody else may be asked.
    func noRecord(_ name: Name, _ type: RecordType) -> Answer {
        .noData(name, type: type, negativeTTL: negativeTTL)
    }

    /// What stands for an HTTPS or SVCB record of a name that goes to HTTPDNS: a resolver's address hints would undo
    /// the protection of its addresses.
    func noServiceBinding(_ name: Name, _ type: RecordType) -> Answer {
        .noData(name, type: type, negativeTTL: negativeTTL)
    }

    private func localhost(_ name: Name, _ type: RecordType) -> Answer {
        switch type {
        case .a: .addresses(name, type: .a, [.v4(127, 0, 0, 1)], ttl: Self.fixedTTL)
        case .aaaa: .addresses(name, type: .aaaa, [IPAddress(v6: 0, 1)], ttl: Self.fixedTTL)
        default: .noData(name, type: type, negativeTTL: Self.fixedTTL)
        }
    }
}

/// Who takes a question, and why.
public struct PolicyDecision: Sendable, Equatable {
    public enum Taker: Sendable, Equatable {
        case group(GroupID)
        /// Nobody; or the local resolver, where only it can know the name.
        case reserved(ReservedName)
    }

    public let taker: Taker
    /// The pattern that says so; nil if none speaks of the name.
    public let pattern: DomainPattern?
    /// Where the pattern stands in the rules; nil for what RFCs reserve.
    public let place: DomainPlace?
}
