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
    private var rules = SuffixTable<Rule>()
    /// By `GroupID.rawValue`.
    private var ways: [Way] = []
    /// The group of names that no rule speaks of.
    private var otherwise: GroupID
    /// The names that may have private addresses; nil: all may.
    private var privateAllowed: SuffixTable<Void>?
    /// `[fallback] hosts`, replaced whole when the file changes.
    public var hosts: HostsTable
    /// `addressType`: the families that HTTPDNS is asked for; it follows the routes when that is "auto".
    public var families = Families.both

    /// TTL of the answers that never change (RFC 6761 names), in seconds.
    static let fixedTTL: UInt32 = 3600

    fileprivate enum Rule {
        case localhost, nonexistent, noData
        /// Only a local resolver can know it (RFC 6761, 6762, 8375, 7050, 6303).
        case localOnly
        case group(GroupID)
    }

    /// What is asked for the names of one group.
    private struct Way {
        var steps: [Step] = []
        /// Those of the steps that carry whole messages.
        var messageSteps: [Step] = []
        var beginsWithAddresses = false
    }

    /// - Parameters:
    ///   - groups: All there are.
    ///   - routes: Which groups are asked for the names of one, itself the first, and each once; empty or absent: nobody.
    ///     ``StepSet/capacity`` at most.
    ///   - rules: Whose group these names and those under them are; of two rules the longer name's holds.
    ///   - otherwise: The group of all other names.
    ///   - privateAllowed: if not nil, only these names and those under them may have private addresses, and those that
    ///     a rule or an RFC leaves to resolvers.
    public init(
        groups: [UpstreamGroup], routes: [GroupID: [Step]], rules: [(Name, GroupID)], otherwise: GroupID,
        negativeTTL: UInt32, privateAllowed: [Name]? = nil, hosts: HostsTable = HostsTable()
    ) {
        self.negativeTTL = negativeTTL
        self.hosts = hosts
        self.otherwise = otherwise
        let carriers = Set(groups.filter(\.carriesAddresses).map(\.id))
        let last = (routes.keys.map(\.rawValue) + [otherwise.rawValue]).max() ?? 0
        ways = (0...last).map { number in
            let steps = routes[GroupID(number)] ?? []
            precondition(steps.count <= StepSet.capacity)
            return Way(
                steps: steps, messageSteps: steps.filter { !carriers.contains($0.group) },
                beginsWithAddresses: steps.first.map { carriers.contains($0.group) } ?? false)
        }
        for (name, group) in rules { self.rules[name] = .group(group) }
        for (name, rule) in Self.specialNames { self.rules[name] = rule }
        guard let privateAllowed else { return }
        var table = SuffixTable<Void>()
        for name in privateAllowed { table[name] = () }
        self.privateAllowed = table
    }

    /// Whether private addresses are taken out of answers to questions for a name.
    func refusesPrivate(_ name: Name) -> Bool {
        guard let privateAllowed, privateAllowed.first(holding: name, where: { _ in true }) == nil else { return false }
        switch rule(for: name) {
        case .group(let group): return ways[group.rawValue].beginsWithAddresses
        case .localOnly: return false
        default: return true
        }
    }

    public func route(_ name: Name, _ type: RecordType) -> Route { route(NameKey(name), type) }

    func route(_ key: NameKey, _ type: RecordType) -> Route {
        let name = key.name
        let rule = rule(for: name)
        switch rule {
        case .localhost where type != .any: return .answer(localhost(name, type))
        case .nonexistent: return .answer(.nxDomain(name, type: type, negativeTTL: Self.fixedTTL))
        case .noData: return .answer(.noData(name, type: type, negativeTTL: Self.fixedTTL))
        default: break
        }
        if type == .any { return .answer(.hinfo(name, ttl: Self.fixedTTL)) }
        if let answer = hosts.answer(key, type, ttl: 0) { return .answer(answer) }
        let way = place(rule)
        guard Self.canBeAddressed(name) else { return messages(way, name, type) }
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

    /// Whether a group may be told a name.
    func mayAsk(_ group: GroupID, _ name: Name) -> Bool {
        let way = ways[place(rule(for: name))]
        let steps = Self.canBeAddressed(name) ? way.steps : way.messageSteps
        return steps.contains { $0.group == group }
    }

    /// Whether a name can be put to an HTTPDNS account. A single label means something on this network alone, and in a
    /// label with other octets a separator of the service's protocol would ask for other names.
    private static func canBeAddressed(_ name: Name) -> Bool { name.labelCount > 1 && name.isHostname }

    /// The place in `ways` of what is asked for a name.
    private func place(_ rule: Rule?) -> Int {
        switch rule {
        case .group(let group): group.rawValue
        case nil: otherwise.rawValue
        default: GroupID.fallback.rawValue
        }
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

    /// The rule of the longest name that holds it; what RFCs reserve comes before what is configured.
    private func rule(for name: Name) -> Rule? {
        var found: Rule?
        return rules.first(holding: name) { rule in
            if found == nil { found = rule }
            return rule.isReserved
        } ?? found
    }

    private func localhost(_ name: Name, _ type: RecordType) -> Answer {
        switch type {
        case .a: .addresses(name, type: .a, [.v4(127, 0, 0, 1)], ttl: Self.fixedTTL)
        case .aaaa: .addresses(name, type: .aaaa, [IPAddress(v6: 0, 1)], ttl: Self.fixedTTL)
        default: .noData(name, type: type, negativeTTL: Self.fixedTTL)
        }
    }
}

extension Policy.Rule {
    fileprivate var isReserved: Bool {
        switch self {
        case .group: false
        default: true
        }
    }
}

extension Policy {
    /// Names with a meaning of their own: RFC 6761 (localhost, invalid, test), 7686 (onion), 9476 (alt), 6762 (local), 8375
    /// (home.arpa), 7050 (ipv4only.arpa), 9462 (_dns.resolver.arpa), and the canary by which Firefox asks whether a
    /// network's resolver may be replaced: here it must not.
    private static let specialNames: [(Name, Rule)] = {
        var all: [(String, Rule)] = [
            ("localhost", .localhost), ("invalid", .nonexistent), ("onion", .nonexistent), ("alt", .nonexistent),
            ("use-application-dns.net", .nonexistent), ("_dns.resolver.arpa", .noData),
            ("local", .localOnly), ("test", .localOnly), ("home.arpa", .localOnly), ("ipv4only.arpa", .localOnly),
        ]
        all += privateReverseNames.map { ($0, .localOnly) }
        return all.compactMap { text, rule in Name(text).map { ($0, rule) } }
    }()

    /// RFC 6303 §4, RFC 1918 and RFC 6598: reverse names that mean something on this network alone.
    private static let privateReverseNames: [String] =
        ["0", "10", "127", "254.169", "168.192", "2.0.192", "100.51.198", "113.0.203", "255.255.255.255"]
        .map { $0 + ".in-addr.arpa" }
        + (16...31).map { "\($0).172.in-addr.arpa" }
        + (64...127).map { "\($0).100.in-addr.arpa" }
        + [
            String(repeating: "0.", count: 32) + "ip6.arpa", "1." + String(repeating: "0.", count: 31) + "ip6.arpa",
            "d.f.ip6.arpa", "c.f.ip6.arpa", "8.e.f.ip6.arpa", "9.e.f.ip6.arpa", "a.e.f.ip6.arpa", "b.e.f.ip6.arpa",
            "8.b.d.0.1.0.0.2.ip6.arpa",
        ]
}
