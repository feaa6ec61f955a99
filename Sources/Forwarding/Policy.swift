import Base
public import DNSWire

/// Where a question goes, by its name and type alone: the first column of the table of answers.
public enum Route: Sendable, Equatable {
    /// Answered here; nobody is asked.
    case answer(Answer)
    /// A or AAAA at HTTPDNS.
    case service
    /// HTTPS or SVCB of a name whose addresses come from HTTPDNS.
    case serviceBinding
    /// The local resolver and nobody else.
    case resolver
}

/// The rules by which names are kept from, or sent to, HTTPDNS.
public struct Policy: Sendable {
    /// False without an `[httpdns]` section: the local resolver answers everything.
    public var hasService: Bool
    /// `httpOnly`: the local resolver is never asked.
    public var httpOnly: Bool
    /// Whether what HTTPDNS says is proven to be its word: by TLS. In aes and des whoever is on the path can say that there
    /// is no record.
    public var serviceProves = true
    /// `minTTL`-independent TTL of the answers made up here, and of "no record", in seconds.
    public var negativeTTL: UInt32
    private var rules = SuffixTable<Rule>()
    private var interceptsAll: Bool
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
        case bypass, intercept
    }

    /// - Parameters:
    ///   - intercept: if not empty, only these names and those under them go to HTTPDNS.
    ///   - bypass: these names and those under them never do; of two rules the longer name's holds.
    ///   - privateAllowed: if not nil, only these names and those under them may have private addresses, and those that
    ///     `bypass` or an RFC leaves to the local resolver.
    public init(
        hasService: Bool, httpOnly: Bool, negativeTTL: UInt32, intercept: [Name], bypass: [Name],
        privateAllowed: [Name]? = nil, hosts: HostsTable = HostsTable()
    ) {
        self.hasService = hasService
        self.httpOnly = httpOnly && hasService
        self.negativeTTL = negativeTTL
        self.hosts = hosts
        interceptsAll = intercept.isEmpty
        for name in intercept { rules[name] = .intercept }
        for name in bypass { rules[name] = .bypass }
        for (name, rule) in Self.specialNames { rules[name] = rule }
        guard let privateAllowed else { return }
        var table = SuffixTable<Void>()
        for name in privateAllowed { table[name] = () }
        self.privateAllowed = table
    }

    /// Whether private addresses are taken out of answers to questions for a name.
    func refusesPrivate(_ name: Name) -> Bool {
        guard let privateAllowed, privateAllowed.first(holding: name, where: { _ in true }) == nil else { return false }
        switch rule(for: name) {
        case .bypass, .localOnly: return false
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
        guard goesToService(name, rule) else { return resolver(name, type) }
        switch type {
        case .a where !families.contains(.ipv4), .aaaa where !families.contains(.ipv6):
            return .answer(.noData(name, type: type, negativeTTL: negativeTTL))
        case .a, .aaaa: return .service
        case .https, .svcb: return .serviceBinding
        default: return resolver(name, type)
        }
    }

    /// Whether a name may be told to HTTPDNS.
    func mayAskService(_ name: Name) -> Bool { goesToService(name, rule(for: name)) }

    private func goesToService(_ name: Name, _ rule: Rule?) -> Bool {
        guard hasService, name.labelCount > 1, name.isHostname else { return false }
        switch rule {
        case .intercept: return true
        case nil: return interceptsAll
        default: return false
        }
    }

    /// The local resolver, or what takes its place when it must not be asked.
    private func resolver(_ name: Name, _ type: RecordType) -> Route {
        httpOnly ? .answer(notSupported(name, type)) : .resolver
    }

    /// HTTPDNS cannot be asked this and nobody else may be.
    func notSupported(_ name: Name, _ type: RecordType) -> Answer {
        .noData(name, type: type, negativeTTL: negativeTTL, extendedError: .notSupported)
    }

    /// There were addresses, all of them private, and the name may not have such: this daemon's operator wants it so.
    func noPermittedAddress(_ name: Name, _ type: RecordType) -> Answer {
        .noData(name, type: type, negativeTTL: negativeTTL, extendedError: .blocked)
    }

    /// HTTPDNS has no record and nobody else may be asked.
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
        case .bypass, .intercept: false
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
