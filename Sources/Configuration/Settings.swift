public import Addresses
public import DNSWire

/// Every setting of the daemon, checked; the sections and keys are those of the configuration file.
///
/// `Settings()` has the defaults; ``load(file:contents:environment:readFile:)`` reads the file and the environment.
public struct Settings: Sendable, Equatable {
    public var listen = Listen()
    /// The HTTPDNS service; nil: everything is asked of the local resolver.
    public var httpdns: HTTPDNS?
    public var tls = TLS()
    public var domains = Domains()
    public var fallback = Fallback()
    public var cache = Cache()
    public var log = Log()

    public init() {}

    /// Where clients are served.
    public struct Listen: Sendable, Equatable {
        /// UDP and TCP on each; never empty. Port 0 lets the system choose.
        public var addresses = [
            Endpoint(.v4(127, 0, 0, 1), port: 53), Endpoint(IPAddress(v6: 0, 1), port: 53),
        ]
        /// Who may ask.
        public var allow = ["127.0.0.0/8", "::1/128"].compactMap { Network($0) }
        /// Listening queues, 0…4; 0 is one a core, 4 at most.
        public var workers = 0
        /// TCP connections at once, 1…10000.
        public var tcpClients = 256
        /// Seconds, 1…3600 (RFC 7766 §6.2.3).
        public var tcpIdleSeconds = 10
    }

    /// The account at the HTTPDNS service and how it is asked.
    public struct HTTPDNS: Sendable, Equatable {
        /// How a request is protected, with what that needs.
        public enum Credential: Sendable, Equatable {
            case https(token: Secret)
            /// The key has 16 bytes.
            case aes(id: UInt32, key: Secret)
            /// The key has 8 bytes.
            case des(id: UInt32, key: Secret)
        }

        public var credential: Credential
        /// The service's addresses in the order they are tried; never empty.
        public var dnsIp: [Endpoint]
        /// Milliseconds for one attempt, 100…60000.
        public var timeout = 2000
        /// The address whose answers are wanted (ECS); nil: the one the request comes from.
        public var routeIp: IPAddress?
        public var routeIpEncrypted = false
        /// Never ask the local resolver.
        public var httpOnly = false
        /// Names in one request at most, 1…8.
        public var batch = 8
        /// Log each lookup.
        public var debug = false

        /// An account with the defaults for the rest, the service's public address included.
        public init(credential: Credential) {
            self.credential = credential
            dnsIp = [credential.publicService]
        }
    }

    /// How the HTTPS service is verified.
    public struct TLS: Sendable, Equatable {
        /// The name the certificate must have; empty: the address dialled.
        public var serverName = ""
        /// Path of a PEM or DER file; empty: the system's store.
        public var caFile = ""
        /// What `caFile` holds; nil without one.
        public var anchors: [UInt8]?
        /// With `caFile`: trust that file alone.
        public var caOnly = true
    }

    /// Which names go to HTTPDNS; each stands for itself and those under it.
    public struct Domains: Sendable, Equatable {
        /// Only these do; empty: all.
        public var intercept: [Name] = []
        /// These never do.
        public var bypass = ["local", "lan", "home.arpa", "internal"].compactMap { Name($0) }
    }

    /// The local resolver.
    public struct Fallback: Sendable, Equatable {
        /// Empty: those of `resolvConf`.
        public var servers: [Endpoint] = []
        /// Paths; the first that names a server other than this daemon is used.
        public var resolvConf = [
            "/run/systemd/resolve/resolv.conf", "/run/NetworkManager/no-stub-resolv.conf", "/etc/resolv.conf",
        ]
        /// Milliseconds for one attempt, 100…60000.
        public var timeout = 2000
        /// Path of a hosts file answered from first; empty: none.
        public var hosts = "/etc/hosts"
    }

    /// Times in seconds, 0…604800.
    public struct Cache: Sendable, Equatable {
        /// 1…65536.
        public var megabytes = 32
        /// At most `maxTTL`.
        public var minTTL: UInt32 = 0
        public var maxTTL: UInt32 = 86400
        /// For "no record" when no SOA says otherwise.
        public var negativeTTL: UInt32 = 30
    }

    public struct Log: Sendable, Equatable {
        /// The least important message that is still logged.
        public enum Level: String, Sendable, CaseIterable {
            case error, warning, notice, info, debug
        }

        public var level = Level.info
    }
}

extension Settings.HTTPDNS.Credential {
    /// 443 for HTTPS, 80 for the encrypted requests over plain HTTP.
    var defaultPort: UInt16 {
        if case .https = self { 443 } else { 80 }
    }

    /// The address the service's operator publishes for this kind of request.
    var publicService: Endpoint {
        if case .https = self { return Endpoint(.v4(119, 29, 29, 99), port: defaultPort) }
        return Endpoint(.v4(119, 29, 29, 98), port: defaultPort)
    }
}
