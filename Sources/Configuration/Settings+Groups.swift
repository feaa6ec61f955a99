public import Base
public import DNSWire
public import Names

extension Settings {
    /// The servers, account or answer for names, and how they are used: `[httpdns]`, `[fallback]`, `[private]` or
    /// `[upstreams.NAME]`.
    ///
    /// An account's own keys are also members of the group.
    @dynamicMemberLookup
    public struct Group: Sendable, Equatable {
        /// Letters and digits, ``maximumNameLength`` at most. Two names that differ only in case are refused.
        public let name: String
        public var kind = Kind.servers([])
        /// The names of this group. `[httpdns]` gets those of `[domains]`, `[private]` the private names, `[fallback]`
        /// all names without another group.
        public var domains: [DomainPattern] = []
        /// Paths of files with more patterns, one a line. In a group with an answer of its own, each file is a
        /// ``BlockList``.
        public var domainsFile: [String] = []
        /// Names excluded although a pattern of the group matches; the next shorter matching pattern decides their
        /// group.
        public var except: [DomainPattern] = []
        /// The names of the groups asked next, in order; their own `thenTry` does not apply then. Empty: no further
        /// group.
        public var thenTry: [String] = []
        /// The reasons for asking the next group; never empty.
        public var thenTryOn: Set<Reason> = [.failure]
        /// The timeout of one attempt in milliseconds, 100…60000.
        public var timeout = 2000
        /// Concurrent requests to one server, 1…1000. In `fallback` and `private` also 0: ``usualConcurrency`` if a
        /// server is encrypted or uses TCP only, else no limit.
        public var concurrency = usualConcurrency
        /// The source address, network device and mark of the group's sockets, including sockets for `confIp` and
        /// reports.
        public var egress = Egress()
        /// The address sent as the client's network (ECS, RFC 7871). If nil, no ECS is sent, and an account answers for
        /// the address that its requests come from.
        public var routeIp: IPAddress?
        /// The record types this group is not asked for: the group's names count as having no such record.
        public var without: [RecordType] = []
        /// An answer with one of these addresses becomes NXDOMAIN. The setting is not for accounts.
        public var bogusAddresses: [Network] = []
        /// Whether the AD bit of servers that are not on loopback is passed on. The setting is not for accounts.
        public var trustAD = false
        /// Whether the group's answers are written to `[sharedCache]` and read from it.
        public var share = false
        /// The TLS verification of the group's encrypted servers.
        public var tls = TLS()
        /// The value of the key `httpOnly` as given; nil after the value has become ``thenTry``.
        var givenHTTPOnly: Bool?

        /// The source of the group's answers.
        public enum Kind: Sendable, Equatable {
            /// DNS servers, in order of preference, ``maximumServers`` at most. The list may be empty in `fallback`,
            /// which then uses the servers of `resolvConf`, and in `private`, which then asks no server.
            case servers([UpstreamServer])
            /// The service of an HTTPDNS account.
            case account(Account)
            /// No server: the daemon itself gives this answer.
            case answer(GroupAnswer)
        }

        /// The failures after which the next group is asked.
        public enum Reason: String, Sendable, CaseIterable {
            /// No server answered, or the best answer was SERVFAIL.
            case failure
            /// The HTTPDNS account has no record of the name, or a server's answer is NOERROR without answer and SOA.
            case norecord
            case refused, nxdomain, nodata
        }

        public static let maximumServers = 64
        public static let usualConcurrency = 64
        /// The longest name of a group, in octets.
        public static let maximumNameLength = 63
        /// The names of `[httpdns]`, `[fallback]` and `[private]` in `thenTry`.
        public static let httpdnsName = "httpdns"
        public static let fallbackName = "fallback"
        public static let privateName = "private"
        static let builtInNames = [httpdnsName, fallbackName, privateName]

        /// A group with the defaults of its section.
        public init(name: String) {
            self.name = name
            switch name {
            case Self.httpdnsName:
                (kind, thenTry, thenTryOn) = (.account(Account()), [Self.fallbackName], [.failure, .norecord])
                (concurrency, share) = (128, true)
            case Self.fallbackName: (concurrency, share) = (0, true)
            case Self.privateName: (kind, concurrency) = (.servers([.resolvConf]), 0)
            default: break
            }
        }

        /// An account's group, with the defaults of its section and provider.
        public init(name: String = httpdnsName, credential: Credential) {
            self.init(name: name)
            thenTryOn.insert(.norecord)
            kind = .account(Account(credential: credential))
        }

        /// The account's own keys. In a group of servers, they have their defaults; setting a key makes it an account.
        public subscript<Value>(dynamicMember property: WritableKeyPath<Account, Value>) -> Value {
            get { accountKeys[keyPath: property] }
            set { accountKeys[keyPath: property] = newValue }
        }

        var accountKeys: Account {
            get { account ?? Account() }
            set { kind = .account(newValue) }
        }

        public var account: Account? { if case .account(let account) = kind { account } else { nil } }

        /// The daemon's own answer; nil: the group asks servers or an account. Setting nil changes nothing.
        public var answer: GroupAnswer? {
            get { if case .answer(let answer) = kind { answer } else { nil } }
            set { kind = newValue.map { .answer($0) } ?? kind }
        }

        /// The target of which the group's names are aliases; nil: they are no aliases. Setting nil changes nothing.
        public var alias: Name? {
            get { answer?.target }
            set { answer = newValue.map { .alias($0) } }
        }

        /// The group's servers. Empty for an account, and for a group with its own answer.
        public var servers: [UpstreamServer] {
            get { if case .servers(let servers) = kind { servers } else { [] } }
            set { kind = .servers(newValue) }
        }

        /// Whether no other group is asked, which an empty ``thenTry`` means.
        public var httpOnly: Bool {
            get { thenTry.isEmpty }
            set { thenTry = newValue ? [] : thenTry.isEmpty ? [Group.fallbackName] : thenTry }
        }

        /// ``httpOnly`` as its key is read and shown.
        var httpOnlyKey: Bool {
            get { givenHTTPOnly ?? httpOnly }
            set { givenHTTPOnly = newValue }
        }

        /// Whether names are routed to the group directly, not only through another group's `thenTry`.
        var takesNames: Bool { isBuiltIn || !domains.isEmpty || !domainsFile.isEmpty }

        /// Whether the group is `[httpdns]`, `[fallback]` or `[private]`.
        var isBuiltIn: Bool { Self.builtInNames.contains(name) }

        /// The group's name in sentences.
        public var title: String { name == Self.httpdnsName ? "HTTPDNS" : name }

        /// The group's section, as in messages.
        public var section: String { isBuiltIn ? name : "\(Configuration.Section.upstreams.rawValue).\(name)" }

        /// The section of the keys of ``tls``, as in messages.
        public var tlsSection: String { name == Self.httpdnsName ? Configuration.Section.tls.rawValue : section }
    }

    /// The settings of `[fallback]`: the local resolver, or other servers instead.
    @dynamicMemberLookup
    public struct Fallback: Sendable, Equatable {
        /// The keys that every group has.
        public var group = Group(name: Group.fallbackName)
        /// Paths of resolv.conf files. The first with a server other than this daemon is used.
        public var resolvConf = [
            "/run/systemd/resolve/resolv.conf", "/run/NetworkManager/no-stub-resolv.conf",
            "/etc/httpdnsd/resolv.conf", "/etc/resolv.conf",
        ]
        /// Milliseconds without an answer of HTTPDNS, 0…60000, after which `fallback` is asked too; 0 for both at once.
        public var hedgeAfter = 1000
        /// Paths of hosts files, which have precedence.
        public var hosts = ["/etc/hosts"]

        public subscript<Value>(dynamicMember property: WritableKeyPath<Group, Value>) -> Value {
            get { group[keyPath: property] }
            set { group[keyPath: property] = newValue }
        }
    }
}

extension Settings {
    /// All groups: `[httpdns]` if present, `[fallback]`, `[private]`, then those of `[upstreams.NAME]`.
    public var groups: [Group] { Array(everyGroup.dropFirst(hasHTTPDNS ? 0 : 1)) }

    /// ``groups``, and always the group of `[httpdns]`, since `[tls]` is a part of that group.
    var everyGroup: [Group] { [ownAccount, fallback.group, privateNames] + upstreams }

    /// The group of `[httpdns]`; nil: its names go to `[fallback]`.
    public var httpdns: Group? {
        get { hasHTTPDNS ? ownAccount : nil }
        set {
            hasHTTPDNS = newValue != nil
            ownAccount = newValue ?? Group(name: Group.httpdnsName)
        }
    }

    /// The groups that are HTTPDNS accounts.
    public var accounts: [Group] { groups.filter { $0.account != nil } }

    /// Changes each of ``everyGroup``.
    package mutating func changeGroups<Failure: Error>(_ change: (inout Group) throws(Failure) -> Void) throws(Failure)
    {
        try change(&ownAccount)
        try change(&fallback.group)
        try change(&privateNames)
        for index in upstreams.indices { try change(&upstreams[index]) }
    }

    /// Routes an account's names to its `thenTry` instead.
    /// - Parameter account: The group's name.
    package mutating func bypass(_ account: String) {
        changeGroups { if $0.name == account { $0.isBypassed = true } }
    }
}
