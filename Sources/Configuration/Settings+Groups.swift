public import Base
public import DNSWire

extension Settings {
    /// Servers that may be asked for a name, one in the place of another: `[upstreams.NAME]`, and what `[fallback]` has
    /// in common with it.
    public struct Group: Sendable, Equatable {
        /// Letters and digits, ``maximumNameLength`` at most; no two groups differ in their case alone.
        public var name: String
        /// In the order of preference, ``maximumServers`` at most; empty in `fallback` alone, where it means those of
        /// `resolvConf`.
        public var servers: [UpstreamServer] = []
        /// The names this group takes.
        public var domains: [DomainPattern] = []
        /// Path of a file with more patterns, one a line; empty: none.
        public var domainsFile = ""
        /// Names that it does not take although one of its own patterns does; the next shorter pattern has them.
        public var except: [DomainPattern] = []
        /// The groups asked next, in order, by their names; what those try then counts for nothing. Empty: nobody.
        public var thenTry: [String] = []
        /// What the next group is asked for; never empty.
        public var thenTryOn: Set<Reason> = [.failure]
        /// Milliseconds for one attempt, 100…60000.
        public var timeout = 2000
        /// Requests at once to one server, 1…1000.
        public var concurrency = 64
        /// The address for whose clients answers are wanted (ECS, RFC 7871); nil: no ECS.
        public var routeIp: IPAddress?
        /// Pass on the AD bit of servers that are not on loopback.
        public var trustAD = false
        /// How its encrypted servers are verified.
        public var tls = TLS()

        /// What an answer, or its absence, can be that leads to the next group.
        public enum Reason: String, Sendable, CaseIterable {
            /// No server has answered, or none better than SERVFAIL.
            case failure
            /// An HTTPDNS account has no record.
            case norecord
            case refused, nxdomain, nodata
        }

        public static let maximumServers = 64
        /// In octets.
        public static let maximumNameLength = 63
        /// The groups of `[httpdns]` and `[fallback]`, as `thenTry` calls them.
        public static let httpdnsName = "httpdns"
        public static let fallbackName = "fallback"

        public init(name: String) { self.name = name }

        /// Its section, as messages call it.
        public var path: String { "\(Section.upstreams.rawValue).\(name)" }
    }

    /// The local resolver, or whoever takes its place.
    @dynamicMemberLookup
    public struct Fallback: Sendable, Equatable {
        /// What every group has. It takes no names of its own: what no other group takes and HTTPDNS does not answer
        /// comes to it.
        public var group = Group(name: Group.fallbackName)
        /// Paths; the first that names a server other than this daemon is used.
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
