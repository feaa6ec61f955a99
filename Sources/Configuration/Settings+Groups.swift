public import Base
public import DNSWire
public import Names

extension Settings {
    /// Who may be asked for a name, and how: `[httpdns]`, `[fallback]`, `[private]` or `[upstreams.NAME]`.
    ///
    /// An account's own keys can be used as if they were the group's.
    @dynamicMemberLookup
    public struct Group: Sendable, Equatable {
        /// Letters and digits, ``maximumNameLength`` at most; two groups' names must differ in more than case.
        public let name: String
        public var kind = Kind.servers([])
        /// The names this group takes. `[httpdns]` gets those of `[domains]`, `[private]` private names, `[fallback]` all that no
        /// other group takes.
        public var domains: [DomainPattern] = []
        /// Paths of files with more patterns, one a line; of a group that answers by itself each is a ``BlockList``.
        public var domainsFile: [String] = []
        /// Names that it does not take although one of its patterns matches; the next shorter matching pattern decides.
        public var except: [DomainPattern] = []
        /// The groups asked next, in order, by their names; their own `thenTry` does not apply then. Empty: no further
        /// group.
        public var thenTry: [String] = []
        /// The reasons for asking the next group; never empty.
        public var thenTryOn: Set<Reason> = [.failure]
        /// Milliseconds for one attempt, 100…60000.
        public var timeout = 2000
        /// Requests at once to one server, 1…1000. In `fallback` and `private` also 0: ``usualConcurrency`` if a server is encrypted or
        /// asked over TCP alone, else no limit.
        public var concurrency = usualConcurrency
        /// How its sockets leave this machine, those for `confIp` and reports too. A device's name has at most
        /// ``Egress/maximumDeviceLength`` octets.
        public var egress = Egress()
        /// The address for whose network answers are wanted (ECS, RFC 7871); nil: no ECS, of an account the address from
        /// which it is asked.
        public var routeIp: IPAddress?
        /// The types that it is not asked for: of its names there is no such record.
        public var without: [RecordType] = []
        /// An answer with one of these addresses is NXDOMAIN; not of an account.
        public var bogusAddresses: [Network] = []
        /// Pass on the AD bit of servers that are not on loopback; not of an account.
        public var trustAD = false
        /// Its answers go to `[sharedCache]`, and come from there.
        public var share = false
        /// How those of its servers that are asked over TLS are verified.
        public var tls = TLS()
        /// As given; nil once ``thenTry`` says it.
        var givenHTTPOnly: Bool?

        /// Whom the group asks.
        public enum Kind: Sendable, Equatable {
            /// Servers of DNS, in the order of preference, ``maximumServers`` at most. There may be none in `fallback`, where
            /// the servers of `resolvConf` are used then, and in `private`, where nothing is asked then.
            case servers([UpstreamServer])
            /// The service of an HTTPDNS account.
            case account(Account)
            /// Nobody: it gives this answer itself.
            case answer(GroupAnswer)
        }

        /// How a group may fail to answer so that the next group is asked.
        public enum Reason: String, Sendable, CaseIterable {
            /// No server answered, or none answered better than SERVFAIL.
            case failure
            /// The HTTPDNS account has no record of the name; of servers: NOERROR, no answer and no SOA.
            case norecord
            case refused, nxdomain, nodata
        }

        public static let maximumServers = 64
        public static let usualConcurrency = 64
        /// In octets.
        public static let maximumNameLength = 63
        /// The names of the groups `[httpdns]`, `[fallback]` and `[private]` in `thenTry`.
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

        /// A group that is an account, with the defaults of its section and of its provider.
        public init(name: String = httpdnsName, credential: Account.Credential) {
            self.init(name: name)
            thenTryOn.insert(.norecord)
            kind = .account(Account(credential: credential))
        }

        /// The account's own keys; those of a group of servers are the defaults, and to set one makes an account of it.
        public subscript<Value>(dynamicMember property: WritableKeyPath<Account, Value>) -> Value {
            get { accountKeys[keyPath: property] }
            set { accountKeys[keyPath: property] = newValue }
        }

        var accountKeys: Account {
            get { account ?? Account() }
            set { kind = .account(newValue) }
        }

        public var account: Account? { if case .account(let account) = kind { account } else { nil } }

        /// What it answers by itself; nil: it asks others. To set nil changes nothing.
        public var answer: GroupAnswer? {
            get { if case .answer(let answer) = kind { answer } else { nil } }
            set { kind = newValue.map { .answer($0) } ?? kind }
        }

        /// The name of which its names are aliases; nil: they are none. To set nil changes nothing.
        public var alias: Name? {
            get { answer?.target }
            set { answer = newValue.map { .alias($0) } }
        }

        /// None of an account, or of a group that answers by itself.
        public var servers: [UpstreamServer] {
            get { if case .servers(let servers) = kind { servers } else { [] } }
            set { kind = .servers(newValue) }
        }

        /// No other group is asked: the same as an empty ``thenTry``.
        public var httpOnly: Bool {
            get { thenTry.isEmpty }
            set { thenTry = newValue ? [] : thenTry.isEmpty ? [Group.fallbackName] : thenTry }
        }

        /// ``httpOnly`` as its key is read and shown.
        var httpOnlyKey: Bool {
            get { givenHTTPOnly ?? httpOnly }
            set { givenHTTPOnly = newValue }
        }

        /// Whether names come to it by themselves, not only after another group.
        var takesNames: Bool { isBuiltIn || !domains.isEmpty || !domainsFile.isEmpty }

        /// Whether it is `[httpdns]`, `[fallback]` or `[private]`.
        var isBuiltIn: Bool { Self.builtInNames.contains(name) }

        /// The group's section, as in messages.
        public var section: String { isBuiltIn ? name : "\(Configuration.Section.upstreams.rawValue).\(name)" }

        /// The section of the keys of ``tls``, as in messages.
        public var tlsSection: String { name == Self.httpdnsName ? Configuration.Section.tls.rawValue : section }
    }

    /// The settings of `[fallback]`: the local resolver, or other servers in its place.
    @dynamicMemberLookup
    public struct Fallback: Sendable, Equatable {
        /// The keys that every group has.
        public var group = Group(name: Group.fallbackName)
        /// Paths of resolv.conf files; the first one that names a server other than this daemon is used.
        public var resolvConf = [
            "/run/systemd/resolve/resolv.conf", "/run/NetworkManager/no-stub-resolv.conf",
            "/etc/httpdnsd/resolv.conf", "/etc/resolv.conf",
        ]
        /// Milliseconds, 0…60000, after which it is asked too when HTTPDNS has not answered; 0: together with HTTPDNS.
        public var hedgeAfter = 1000
        /// Paths of hosts files answered from first.
        public var hosts = ["/etc/hosts"]

        public subscript<Value>(dynamicMember property: WritableKeyPath<Group, Value>) -> Value {
            get { group[keyPath: property] }
            set { group[keyPath: property] = newValue }
        }
    }
}

extension Settings {
    /// All groups: those of `[httpdns]`, if there is one, `[fallback]` and `[private]`, then those of `[upstreams.NAME]`.
    public var groups: [Group] { Array(everyGroup.dropFirst(hasHTTPDNS ? 0 : 1)) }

    /// These, and that of `[httpdns]` even if there is none, since `[tls]` holds a part of it.
    var everyGroup: [Group] { [ownAccount, fallback.group, privateNames] + upstreams }

    /// The group of `[httpdns]`; nil: its names go to `[fallback]`.
    public var httpdns: Group? {
        get { hasHTTPDNS ? ownAccount : nil }
        set {
            hasHTTPDNS = newValue != nil
            ownAccount = newValue ?? Group(name: Group.httpdnsName)
        }
    }

    /// How the service of `[httpdns]` is verified.
    public var tls: TLS {
        get { ownAccount.tls }
        set { ownAccount.tls = newValue }
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

    /// Has an account's names go to its `thenTry`, as if it were not there.
    /// - Parameter account: The group's name.
    package mutating func bypass(_ account: String) {
        changeGroups { if $0.name == account { $0.isBypassed = true } }
    }
}
