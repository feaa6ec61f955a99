public import Base

extension Settings {
    /// The keys that only an HTTPDNS account has.
    public struct Account: Sendable, Equatable {
        var provider = Provider.tencent
        var encryptType = Provider.Encryption.https
        /// The account's `dnsId`; 0 for none.
        var dnsId: UInt32 = 0
        /// The account's secrets; after loading only the secrets in use.
        var secrets = Secrets()
        /// The service's addresses in the order tried; not empty after loading.
        public var dnsIp: [Endpoint] = []
        public var routeIpEncrypted = false
        /// The keys of the secrets read from files, without `File`.
        public var secretsFromFiles: [String] = []
        /// Failed attempts in a row, 1…100, after which the next address of `dnsIp` is asked.
        public var retryTimesBeforeSwitchServer = 3
        /// Minutes, 1…1440, after which the first address of `dnsIp` is tried again.
        public var minutesBeforeSwitchToMain = 10
        public var addressType = AddressType.auto
        public var signed = Signed.ask
        public var serviceBinding = ServiceBinding.auto
        /// The most names in one request, 1 to ``Provider/Facts/namesPerRequest``.
        public var batch = Provider.tencent.facts.namesPerRequest
        /// The names a second that the account's plan allows, 0…1000000; 0 for no limit.
        public var queriesPerSecond = 0
        /// Seconds for which a request is valid, 0…86400. With 0 there is no limit, and the request names none.
        public var authExpirySeconds = 0
        /// The servers asked for the list of service addresses; if empty, no list is fetched.
        public var confIp: [Endpoint] = []
        public var proxy = Proxy.bypass
        /// The application's name in reports; printable ASCII, 128 characters at most.
        public var appId = ""
        /// Whether abnormal lookups are reported, to `reportUrl` or, without it, to the log.
        public var enableReport = false
        public var reportUrl: ReportURL?
        /// Whether each lookup is logged.
        public var debug = false
        /// Whether each request carries a random `sid`, by which the provider can find the request, and messages about
        /// failures contain the `sid`.
        public var trace = false
        /// A proxy in the environment makes the daemon ask the groups of ``Group/thenTry`` instead. No key sets this.
        public var isBypassed = false

        init() {}

        /// An account with all defaults, including the service's public addresses.
        public init(credential: Credential) {
            self.credential = credential
            dnsIp = credential.publicServices
            batch = provider.facts.namesPerRequest
        }

        /// The address families that are looked up.
        public enum AddressType: String, Sendable, CaseIterable {
            /// The families with a route.
            case auto
            case ipv4, ipv6, dual
        }

        /// The response for names of the account to validating clients, which set DO but not CD.
        public enum Signed: String, Sendable, CaseIterable {
            /// The answer of the `thenTry` groups that are encrypted or on loopback, if there are any.
            case ask
            /// The account's addresses, without signatures.
            case addresses
        }

        /// The response to HTTPS and SVCB queries for names of the account.
        public enum ServiceBinding: String, Sendable, CaseIterable {
            /// The answer of the first encrypted group of `thenTry`, without its address hints.
            case auto
            /// No such record.
            case none
        }

        /// The effect of an `http_proxy` or `https_proxy` in the environment.
        public enum Proxy: String, Sendable, CaseIterable {
            /// The groups of `thenTry` are asked instead of the service, as the SDK's guide advises.
            case bypass
            /// Proxy variables are ignored.
            case ignore
        }

        /// The credential that the account's keys describe.
        public var credential: Credential {
            get {
                let key = secrets.dnsKey.value
                return switch (provider, encryptType) {
                case (.tencent, .https): .https(token: secrets.token.value)
                case (.tencent, .aes): .aes(id: dnsId, key: key)
                case (.tencent, .des): .des(id: dnsId, key: key)
                case (_, .aes): .signed(provider, id: dnsId, secret: key, aesKey: secrets.aesKey.value)
                default: .signed(provider, id: dnsId, secret: key, aesKey: nil)
                }
            }
            set {
                (provider, encryptType) = (newValue.provider, newValue.encryption)
                (dnsId, secrets) = (0, Secrets())
                switch newValue {
                case .https(let token): secrets.token.value = token
                case .aes(let id, let key), .des(let id, let key): (dnsId, secrets.dnsKey.value) = (id, key)
                case .signed(_, let id, let secret, let aesKey):
                    (dnsId, secrets.dnsKey.value) = (id, secret)
                    if let aesKey { secrets.aesKey.value = aesKey }
                }
            }
        }

        /// The secrets of an account.
        struct Secrets: Sendable, Equatable {
            var dnsKey = SecretSource()
            var aesKey = SecretSource()
            var token = SecretSource()

            var all: [(name: String, source: SecretSource)] {
                [("dnsKey", dnsKey), ("aesKey", aesKey), ("token", token)]
            }

            /// The keys of the secrets that files hold, without `File`.
            var fromFiles: [String] { all.filter { !$0.source.file.isEmpty }.map(\.name) }

            /// Whether a secret is written in the configuration itself.
            var isAnyInText: Bool { all.contains { !$0.source.value.bytes.isEmpty } }

            /// Fills in missing secrets from `others`.
            mutating func complete(from others: Secrets) {
                if !dnsKey.isGiven { dnsKey = others.dnsKey }
                if !aesKey.isGiven { aesKey = others.aesKey }
                if !token.isGiven { token = others.token }
            }
        }

        /// A secret, given either directly or as a file that holds it, never both. A property is empty if not given.
        struct SecretSource: Sendable, Equatable {
            var value = Secret([])
            var file = ""

            var isGiven: Bool { !value.bytes.isEmpty || !file.isEmpty }
        }
    }
}

extension Credential {
    /// The port to dial: 443 for HTTPS, 80 for encrypted requests over plain HTTP.
    var defaultPort: UInt16 { isHTTPS ? 443 : 80 }

    /// The service's public addresses for this protocol.
    var publicServices: [Endpoint] {
        let facts = provider.facts
        return (isHTTPS ? facts.addresses : facts.plainAddresses).map { Endpoint($0, port: defaultPort) }
    }
}
