public import Base
public import DNSWire

/// Every setting of the daemon, checked; the sections and keys are those of the configuration file.
///
/// `Settings()` has the defaults; ``load(file:contents:environment:readFile:)`` reads the file and the environment.
public struct Settings: Sendable, Equatable {
    public var listen = Listen()
    /// The HTTPDNS service; nil: names go to the local resolver.
    public var httpdns: HTTPDNS?
    public var tls = TLS()
    public var domains = Domains()
    public var fallback = Fallback()
    /// The groups of `[upstreams.NAME]`, in the order of the file; ``maximumGroups`` at most.
    public var upstreams: [Group] = []
    public var cache = Cache()
    public var sharedCache = SharedCache()
    public var control = Control()
    public var log = Log()

    /// The most groups, so that a route has at most 64 steps, `httpdns` and `fallback` included.
    public static let maximumGroups = 62

    public init() {}

    /// Where clients are served.
    public struct Listen: Sendable, Equatable {
        /// UDP and TCP on each; never empty, ``maximumAddresses`` at most. Port 0 lets the system choose.
        public var addresses = [
            Endpoint(.v4(127, 0, 0, 1), port: 53), Endpoint(IPAddress(v6: 0, 1), port: 53),
        ]
        /// The networks of the clients that may ask.
        public var allow = ["127.0.0.0/8", "::1/128"].compactMap { Network($0) }
        /// Listening queues, 0…4; 0 means one for each core, 4 at most.
        public var workers = 0
        /// TCP connections at once, 1…10000.
        public var tcpClients = 256
        /// Seconds after which an idle TCP connection is closed, 1…3600 (RFC 7766 §6.2.3).
        public var tcpIdleSeconds = 10

        /// Each address has up to four UDP sockets, each of which keeps a thread: of Dispatch's some 250, half.
        public static let maximumAddresses = 32
    }

    /// The account at the HTTPDNS service and how it is asked.
    public struct HTTPDNS: Sendable, Equatable {
        /// How a request is protected, and the account's id and secret for it.
        public enum Credential: Sendable, Equatable {
            case https(token: Secret)
            /// The key has 16 bytes.
            case aes(id: UInt32, key: Secret)
            /// The key has 8 bytes.
            case des(id: UInt32, key: Secret)
            /// Of a provider other than Tencent: requests are signed with the secret. The aesKey has 32 hexadecimal
            /// digits, which are not looked at here; without it TLS protects names and answers.
            case signed(Provider, id: UInt32, secret: Secret, aesKey: Secret?)
        }

        public var credential: Credential
        /// The service's addresses in the order in which they are tried; never empty.
        public var dnsIp: [Endpoint]
        /// Milliseconds for one attempt, 100…60000.
        public var timeout = 2000
        /// Requests at once to one server, 1…1000.
        public var concurrency = 128
        /// The address for whose network answers are wanted (ECS); nil: the request's own address.
        public var routeIp: IPAddress?
        public var routeIpEncrypted = false
        /// The groups asked next, in order; empty: no other group is asked, whatever happens.
        public var thenTry = [Group.fallbackName]
        /// The reasons for asking the next group; never empty.
        public var thenTryOn: Set<Group.Reason> = [.failure, .norecord]
        /// Failed attempts in a row, 1…100, after which the next of `dnsIp` is asked.
        public var retryTimesBeforeSwitchServer = 3
        /// Minutes, 1…1440, after which the first of `dnsIp` is tried again.
        public var minutesBeforeSwitchToMain = 10
        public var addressType = AddressType.auto
        public var signed = Signed.ask
        /// Names in one request at most, 1 to ``Provider/Facts/namesPerRequest``.
        public var batch: Int
        /// Names a second that the account's plan allows, 0…1000000; 0: no limit.
        public var queriesPerSecond = 0
        /// Seconds for which a request is valid, 0…86400; 0: for ever, and the request holds no limit.
        public var authExpirySeconds = 0
        /// The servers asked for the list of service addresses; empty: no list is fetched.
        public var confIp: [Endpoint] = []
        public var proxy = Proxy.bypass
        /// A name for this application in reports; printable ASCII, 128 characters at most.
        public var appId = ""
        /// Report abnormal lookups, to `reportUrl` or, without it, to the log.
        public var enableReport = false
        public var reportUrl: ReportURL?
        /// Log each lookup.
        public var debug = false
        /// Its answers go to `[sharedCache]`, and come from there.
        public var share = true
        /// Not a key: a proxy in the environment has the groups of ``thenTry`` asked instead.
        public internal(set) var isBypassed = false

        /// No other group is asked, so never the local resolver: the same as an empty ``thenTry``.
        public var httpOnly: Bool {
            get { thenTry.isEmpty }
            set { thenTry = newValue ? [] : thenTry.isEmpty ? [Group.fallbackName] : thenTry }
        }

        /// The address families that are looked up.
        public enum AddressType: String, Sendable, CaseIterable {
            /// The families for which there is a route.
            case auto
            case ipv4, ipv6, dual
        }

        /// What clients get that set DO and not CD, since they validate, for names of the account.
        public enum Signed: String, Sendable, CaseIterable {
            /// What the groups of `thenTry` say that are encrypted or on loopback, if there are any.
            case ask
            /// The account's addresses, which have no signatures.
            case addresses
        }

        /// What an `http_proxy` or `https_proxy` in the environment leads to.
        public enum Proxy: String, Sendable, CaseIterable {
            /// The groups of `thenTry` are asked instead of the service, as the SDK's guide advises.
            case bypass
            /// Proxy variables are ignored.
            case ignore
        }

        /// An account with defaults for everything else, the service's public addresses included.
        public init(credential: Credential) {
            self.credential = credential
            dnsIp = credential.publicServices
            batch = credential.provider.facts.namesPerRequest
        }
    }

    /// Which names go to HTTPDNS; each entry stands for itself and the names under it.
    public struct Domains: Sendable, Equatable {
        /// Only these names go to HTTPDNS; empty: all.
        public var intercept: [Name] = []
        /// Path of a file with more of these names, one a line; empty: none.
        public var interceptFile = ""
        /// These names never go to HTTPDNS.
        public var bypass = ["local", "lan", "home.arpa", "internal"].compactMap { Name($0) }
        /// Path of a file with more of these names, one a line; empty: none.
        public var bypassFile = ""
        public var privateAddresses = PrivateAddresses.pass
        /// With ``PrivateAddresses/refuse``: the names whose answers may hold private addresses.
        public var privateAllowed: [Name] = []

        /// How private, loopback and link-local addresses in answers are treated.
        public enum PrivateAddresses: String, Sendable, CaseIterable {
            case pass
            /// They are removed, against DNS rebinding.
            case refuse
        }
    }

    /// Times in seconds, 0…604800.
    public struct Cache: Sendable, Equatable {
        /// 1…65536.
        public var megabytes = 32
        /// At most `maxTTL`.
        public var minTTL: UInt32 = 0
        public var maxTTL: UInt32 = 86400
        /// The TTL of "no record" when there is no SOA to give one.
        public var negativeTTL: UInt32 = 30
        /// How long an expired answer may still be served when there is no fresh one (RFC 8767); 0: not at all.
        public var staleSeconds: UInt32 = 86400
        /// The TTL of such an answer, at least 1 (RFC 8767 §4).
        public var staleTTL: UInt32 = 30
        /// The share of its TTL in per cent, 0…99, after which an entry is refreshed when it is asked for; 0: never.
        public var prefetchAt: UInt32 = 75
        /// Names that are always refreshed before they expire, 1000 at most.
        public var keepAliveDomains: [Name] = []
        /// Names that are looked up at the start, 1000 at most.
        public var preResolve: [Name] = []
        /// Whose addresses are given in the order in which they answer, 1000 names at most, none of them twice.
        public var rank: [Ranked] = []
        /// Path of the file that keeps the cache over a restart; empty: none.
        public var file = ""

        /// A name that stands for those under it, too.
        public struct Ranked: Sendable, Hashable {
            public var name: Name
            /// Where the addresses are connected to; never 0.
            public var port: UInt16

            public init(_ name: Name, port: UInt16) { (self.name, self.port) = (name, port) }
        }
    }

    /// How operators and monitoring reach the daemon.
    public struct Control: Sendable, Equatable {
        /// Path of the unix socket for the operator's commands; empty: none.
        public var socket = "/run/httpdnsd/control.sock"
        /// A name by which the server at `metrics` may be addressed, beside addresses and `localhost`; nil: none.
        public var host: Name?
        /// Where `/metrics`, `/healthz`, `/readyz` and the status page are served; nil: nowhere. Port 0 lets the system
        /// choose.
        public var metrics: Endpoint?
    }

    public struct Log: Sendable, Equatable {
        /// The least important message that is still logged.
        public enum Level: String, Sendable, CaseIterable {
            case error, warning, notice, info, debug
        }

        /// The form of the log's lines.
        public enum Format: String, Sendable, CaseIterable {
            /// `journal` where standard error is connected to it, else `text`.
            case auto
            case journal, text, json
        }

        public var level = Level.info
        public var format = Format.auto
    }
}

extension Settings.HTTPDNS.Credential {
    public var provider: Provider {
        if case .signed(let provider, _, _, _) = self { provider } else { .tencent }
    }

    public var encryption: Provider.Encryption {
        switch self {
        case .https, .signed(_, _, _, nil): .https
        case .aes, .signed: .aes
        case .des: .des
        }
    }

    /// Whether TLS proves the service's identity; aes and des only hide questions and answers.
    public var isHTTPS: Bool { encryption == .https }

    /// 443 for HTTPS, 80 for the encrypted requests over plain HTTP.
    var defaultPort: UInt16 { isHTTPS ? 443 : 80 }

    /// The service's published addresses for this kind of request.
    var publicServices: [Endpoint] {
        let facts = provider.facts
        return (isHTTPS ? facts.addresses : facts.plainAddresses).map { Endpoint($0, port: defaultPort) }
    }
}
