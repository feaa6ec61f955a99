public import Base
public import Names

extension Settings {
    /// A group of servers, any of which may be asked for a name: `[upstreams.NAME]`, and the keys that `[fallback]` has
    /// too.
    public struct Group: Sendable, Equatable {
        /// Letters and digits, ``maximumNameLength`` at most; two groups' names must differ in more than case.
        public var name: String
        /// In the order of preference, ``maximumServers`` at most; may be empty only in `fallback`, where the servers
        /// of `resolvConf` are used then.
        public var servers: [UpstreamServer] = []
        /// The names this group takes.
        public var domains: [DomainPattern] = []
        /// Path of a file with more patterns, one a line; empty: none.
        public var domainsFile = ""
        /// Names that it does not take although one of its patterns matches; the next shorter matching pattern decides.
        public var except: [DomainPattern] = []
        /// The groups asked next, in order, by their names; their own `thenTry` does not apply then. Empty: no further
        /// group.
        public var thenTry: [String] = []
        /// The reasons for asking the next group; never empty.
        public var thenTryOn: Set<Reason> = [.failure]
        /// Milliseconds for one attempt, 100…60000.
        public var timeout = 2000
        /// Requests at once to one server, 1…1000. In `fallback` also 0: ``usualConcurrency`` if a server is encrypted or
        /// asked over TCP alone, else no limit.
        public var concurrency = usualConcurrency
        /// The address for whose network answers are wanted (ECS, RFC 7871); nil: no ECS.
        public var routeIp: IPAddress?
        /// Pass on the AD bit of servers that are not on loopback.
        public var trustAD = false
        /// Its answers go to `[sharedCache]`, and come from there.
        public var share = false
        /// How its encrypted servers are verified.
        public var tls = TLS()
        /// The HTTPDNS account that it is, which has its own servers then; nil: its servers are asked with DNS messages.
        public internal(set) var account: HTTPDNS?
        /// The keys of that account as they were given.
        var given = Draft.Account()

        /// How a group may fail to answer so that the next group is asked.
        public enum Reason: String, Sendable, CaseIterable {
            /// No server answered, or none answered better than SERVFAIL.
            case failure
            /// The HTTPDNS account has no record of the name.
            case norecord
            case refused, nxdomain, nodata
        }

        public static let maximumServers = 64
        public static let usualConcurrency = 64
        /// In octets.
        public static let maximumNameLength = 63
        /// The names of the groups `[httpdns]` and `[fallback]` in `thenTry`.
        public static let httpdnsName = "httpdns"
        public static let fallbackName = "fallback"

        public init(name: String) { self.name = name }

        /// A group that is an account, with its times, limits and next groups.
        public init(name: String, account: HTTPDNS) {
            self.name = name
            (thenTry, thenTryOn, timeout) = (account.thenTry, account.thenTryOn, account.timeout)
            (concurrency, routeIp, share) = (account.concurrency, account.routeIp, account.share)
            (self.account, given) = (account, Draft.Account(account))
        }

        /// The group's section, as in messages.
        public var path: String {
            name == Self.fallbackName ? name : "\(Section.upstreams.rawValue).\(name)"
        }
    }

    /// The settings of `[fallback]`: the local resolver, or servers used in its place.
    @dynamicMemberLookup
    public struct Fallback: Sendable, Equatable {
        /// The keys that every group has. It has no patterns of its own: it gets the names that no other group takes
        /// and that HTTPDNS does not answer.
        public var group = {
            var group = Group(name: Group.fallbackName)
            (group.share, group.concurrency) = (true, 0)
            return group
        }()
        /// Paths of resolv.conf files; the first one that names a server other than this daemon is used.
        public var resolvConf = [
            "/run/systemd/resolve/resolv.conf", "/run/NetworkManager/no-stub-resolv.conf", "/etc/resolv.conf",
        ]
        /// Milliseconds, 0…60000, after which it is asked too when HTTPDNS has not answered; 0: together with HTTPDNS.
        public var hedgeAfter = 1000
        /// Path of a hosts file answered from first; empty: none.
        public var hosts = "/etc/hosts"

        public subscript<Value>(dynamicMember property: WritableKeyPath<Group, Value>) -> Value {
            get { group[keyPath: property] }
            set { group[keyPath: property] = newValue }
        }
    }
}

extension Settings {
    /// An HTTPDNS account and the group that it is.
    public struct Account: Sendable, Equatable {
        /// The group's name.
        public let name: String
        /// The section of its keys, and that of the keys of ``tls``, as in messages.
        public let section: String
        public let tlsSection: String
        public let settings: HTTPDNS
        public let tls: TLS
    }

    /// Has an account's names go to its `thenTry`, as if it were not there.
    /// - Parameter account: The group's name.
    package mutating func bypass(_ account: String) {
        if account == Group.httpdnsName { httpdns?.isBypassed = true }
        for place in upstreams.indices where upstreams[place].name == account {
            upstreams[place].account?.isBypassed = true
        }
    }

    /// All accounts: that of `[httpdns]` first, then those of groups.
    public var accounts: [Account] {
        let first = httpdns.map {
            Account(
                name: Group.httpdnsName, section: Section.httpdns.rawValue, tlsSection: Section.tls.rawValue,
                settings: $0, tls: tls)
        }
        return (first.map { [$0] } ?? [])
            + upstreams.compactMap { group in
                group.account.map {
                    Account(
                        name: group.name, section: group.path, tlsSection: group.path, settings: $0, tls: group.tls)
                }
            }
    }
}
