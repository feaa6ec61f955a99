public import Base
public import DNSWire

/// Every setting of the daemon, checked; the sections and keys are those of the configuration file.
///
/// `Settings()` has the defaults; ``load(file:contents:environment:readFile:)`` reads the file and the environment.
public struct Settings: Sendable, Equatable {
    public var listen = Listen()
    /// `[httpdns]` and `[tls]`.
    var ownAccount = Group(name: Group.httpdnsName)
    /// Whether there is `[httpdns]`; `[tls]` may be given without it.
    var hasHTTPDNS = false
    public var domains = Domains()
    public var fallback = Fallback()
    /// `[private]`: whom private names are asked of.
    public var privateNames = Group(name: Group.privateName)
    /// The groups of `[upstreams.NAME]`, in the order of the file; ``maximumGroups`` at most.
    public var upstreams: [Group] = []
    public var nat64 = NAT64()
    public var cache = Cache()
    public var sharedCache = SharedCache()
    public var control = Control()
    public var log = Log()

    /// The most groups of the operator's own.
    public static let maximumGroups = 62
    /// The most groups in a `thenTry`, so that a route has at most 64 steps.
    static let maximumNext = 63

    public init() {}

    /// Where clients are served.
    public struct Listen: Sendable, Equatable {
        /// Those without the key: of this machine alone.
        public static let standardAddresses = [
            Endpoint(.v4(127, 0, 0, 1), port: 53), Endpoint(IPAddress(v6: 0, 1), port: 53),
        ]
        /// UDP and TCP on each; never empty, ``maximumAddresses`` at most. Port 0 lets the system choose.
        public var addresses = standardAddresses
        /// The networks of the clients that may ask.
        public var allow = ["127.0.0.0/8", "::1/128"].compactMap { Network($0) }
        /// Listening queues, 0…4; 0 means one for each core, 4 at most.
        public var workers = 0
        /// TCP connections at once, 1…10000.
        public var tcpClients = 256
        /// Seconds after which an idle TCP connection is closed, 1…3600 (RFC 7766 §6.2.3).
        public var tcpIdleSeconds = 10
        /// DNS over TLS on each, ``maximumAddresses`` at most. Port 0 lets the system choose.
        public var tls: [Endpoint] = []
        /// DNS over HTTPS on each, ``maximumAddresses`` at most. Port 0 lets the system choose.
        public var https: [Endpoint] = []
        /// Path of the PEM file with the certificate that clients are shown, and those between it and its authority behind it;
        /// empty: none.
        public var certificateFile = ""
        /// Path of the PEM file with its private key; empty: none.
        public var keyFile = ""
        /// The name in the certificate, by which clients find ``tls`` and ``https`` (RFC 9462); nil: they do not.
        public var name: Name?
        var certificateContents: FileContents?
        var keyContents: FileContents?

        /// Each address has up to four UDP sockets, each of which keeps a thread: of Dispatch's some 250, half.
        public static let maximumAddresses = 32
    }

    /// Which names go to HTTPDNS; each entry stands for itself and the names under it.
    public struct Domains: Sendable, Equatable {
        /// Only these names go to HTTPDNS; empty: all.
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
        /// Of answers with records; at most `maxTTL`.
        public var minTTL: UInt32 = 0
        /// Of answers that there is no record; at most `maxTTL`.
        public var negativeMinTTL: UInt32 = 0
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
        /// Path of the unix socket for the operator's commands, ``maximumSocketLength`` at most; empty: none.
        public var socket = "/run/httpdnsd/control.sock"
        /// A name by which the server at `metrics` may be addressed, beside addresses and `localhost`; nil: none.
        public var host: Name?
        /// Where `/metrics`, `/healthz`, `/readyz` and the status page are served; nil: nowhere. Port 0 lets the system
        /// choose.
        public var metrics: Endpoint?

        /// In bytes: the kernel takes so many and a terminating zero (unix(7)).
        static let maximumSocketLength = 107
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
