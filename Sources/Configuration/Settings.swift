public import Base
public import DNSWire

/// All settings of the daemon, checked; sections and keys are those of the configuration file.
///
/// `Settings()` has the defaults; ``load(file:contents:environment:readFile:)`` reads the file and the environment.
public struct Settings: Sendable, Equatable {
    public var listen = Listen()
    /// `[httpdns]` and `[tls]`.
    var ownAccount = Group(name: Group.httpdnsName)
    /// Whether `[httpdns]` is present; `[tls]` may be given without it.
    var hasHTTPDNS = false
    public var domains = Domains()
    public var fallback = Fallback()
    /// `[private]`: the servers for private names.
    public var privateNames = Group(name: Group.privateName)
    /// The groups of `[upstreams.NAME]`, in the order of the file, ``maximumGroups`` at most.
    public var upstreams: [Group] = []
    public var nat64 = NAT64()
    public var cache = Cache()
    public var sharedCache = SharedCache()
    public var control = Control()
    public var log = Log()

    /// The most groups of `[upstreams.NAME]`.
    public static let maximumGroups = 62
    /// The most groups in a `thenTry`, so that a route has at most 64 steps.
    static let maximumNext = 63

    public init() {}

    /// The addresses and clients of the DNS service.
    public struct Listen: Sendable, Equatable {
        /// The default addresses: this machine's loopback.
        public static let standardAddresses = [
            Endpoint(.v4(127, 0, 0, 1), port: 53), Endpoint(IPAddress(v6: 0, 1), port: 53),
        ]
        /// UDP and TCP on each address; never empty, ``maximumAddresses`` at most. Port 0 lets the system choose.
        public var addresses = standardAddresses
        /// The networks of the clients that are served.
        public var allow = ["127.0.0.0/8", "::1/128"].compactMap { Network($0) }
        /// Listening queues, 0…4; 0 means as many as cores, 4 at most.
        public var workers = 0
        /// Concurrent TCP connections, 1…10000.
        public var tcpClients = 256
        /// Seconds after which an idle TCP connection is closed, 1…3600 (RFC 7766 §6.2.3).
        public var tcpIdleSeconds = 10
        /// DNS over TLS on each address, ``maximumAddresses`` at most. Port 0 lets the system choose.
        public var tls: [Endpoint] = []
        /// DNS over HTTPS on each address, ``maximumAddresses`` at most. Port 0 lets the system choose.
        public var https: [Endpoint] = []
        /// The PEM file with the server certificate, followed by its intermediate certificates.
        public var certificateFile = NamedFile()
        /// The PEM file with the certificate's private key.
        public var keyFile = NamedFile()
        /// The name in the certificate, by which clients discover ``tls`` and ``https`` (RFC 9462); nil: no discovery.
        public var name: Name?

        /// An address has up to four UDP sockets, each of which occupies a thread. 32 addresses use half of Dispatch's
        /// some 250 threads.
        public static let maximumAddresses = 32
    }

    /// The names that go to HTTPDNS. Each entry covers its own name and the names under it.
    public struct Domains: Sendable, Equatable {
        /// Only these names go to HTTPDNS; if empty, all names do.
        public var intercept: [Name] = []
        /// Paths of files with more of these names, one a line.
        public var interceptFile: [String] = []
        /// These names never go to HTTPDNS.
        public var bypass: [Name] = []
        /// Paths of files with more of these names, one a line.
        public var bypassFile: [String] = []
        public var privateAddresses = PrivateAddresses.pass
        /// With ``PrivateAddresses/refuse``: the names whose answers may hold private addresses.
        public var privateAllowed: [Name] = []

        /// The treatment of private, loopback and link-local addresses in answers.
        public enum PrivateAddresses: String, Sendable, CaseIterable {
            case pass
            /// Such addresses are removed, against DNS rebinding.
            case refuse
        }
    }

    /// The settings of the cache. Times are in seconds, 0…604800.
    public struct Cache: Sendable, Equatable {
        /// The size in megabytes, 1…65536.
        public var megabytes = 32
        /// The minimum TTL of answers with records, `maxTTL` at most.
        public var minTTL: UInt32 = 0
        /// The minimum TTL of negative answers, `maxTTL` at most.
        public var negativeMinTTL: UInt32 = 0
        public var maxTTL: UInt32 = 86400
        /// The TTL of a negative answer without an SOA record.
        public var negativeTTL: UInt32 = 30
        /// The time for which an expired answer may be served if no fresh one is available (RFC 8767); 0: never.
        public var staleSeconds: UInt32 = 86400
        /// The TTL of an expired answer, at least 1 (RFC 8767 §4).
        public var staleTTL: UInt32 = 30
        /// The percentage of its TTL, 0…99, after which a requested entry is refreshed; 0: never.
        public var prefetchAt: UInt32 = 75
        /// Names refreshed before they expire, 1000 at most.
        public var keepAliveDomains: [Name] = []
        /// Names looked up at the start, 1000 at most.
        public var preResolve: [Name] = []
        /// Names whose addresses are ordered by the speed of their answers, 1000 at most, without repetitions.
        public var rank: [Ranked] = []
        /// Path of the file that preserves the cache across a restart; empty for none.
        public var file = ""

        /// A name, which covers the names under it too.
        public struct Ranked: Sendable, Hashable {
            public var name: Name
            /// The TCP port to which a connection is made at each address, to measure its speed; never 0.
            public var port: UInt16

            public init(_ name: Name, port: UInt16) { (self.name, self.port) = (name, port) }
        }
    }

    /// The interfaces for operators and monitoring.
    public struct Control: Sendable, Equatable {
        /// Path of the unix socket for the operator's commands, ``maximumSocketLength`` at most; empty for none.
        public var socket = "/run/httpdnsd/control.sock"
        /// A name by which the server at `metrics` may be addressed, besides any address and `localhost`; nil for none.
        public var host: Name?
        /// The address of `/metrics`, `/healthz`, `/readyz` and the status page; nil: not served. Port 0 lets the
        /// system choose.
        public var metrics: Endpoint?

        /// The longest path of the socket, in bytes: the kernel's limit without the terminating zero (unix(7)).
        static let maximumSocketLength = 107
    }

    public struct Log: Sendable, Equatable {
        /// The form of the log's lines.
        public enum Format: String, Sendable, CaseIterable {
            /// `journal` if standard error is connected to it, else `text`.
            case auto
            case journal, text, json
        }

        /// The least important level that is logged.
        public var level = LogLevel.info
        public var format = Format.auto
    }
}
