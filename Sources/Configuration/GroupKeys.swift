import Base
import DNSWire

/// The sections of groups that take a key.
struct Holders: OptionSet, Sendable {
    let rawValue: UInt8

    static let httpdns = Holders(rawValue: 1)
    /// `[tls]`, which configures the servers of `[httpdns]`.
    static let tls = Holders(rawValue: 2)
    static let fallback = Holders(rawValue: 4)
    static let privateNames = Holders(rawValue: 32)
    /// `[upstreams.NAME]` with a `provider`.
    static let account = Holders(rawValue: 8)
    /// `[upstreams.NAME]` with an `answer`.
    static let answer = Holders(rawValue: 64)
    /// `[upstreams.NAME]` with an `alias`.
    static let alias = Holders(rawValue: 128)
    /// `[upstreams.NAME]` with no `provider`, `answer` or `alias`.
    static let servers = Holders(rawValue: 16)

    static let named: Holders = [.asking, .answer, .alias]
    static let asking: Holders = [.account, .servers]
    static let accounts: Holders = [.httpdns, .account]
    /// The sections of one group each, which do not list the names of that group.
    static let resolving: Holders = [.fallback, .privateNames]
    /// Each section of a group that asks servers or an account.
    static let all: Holders = [.httpdns, .resolving, .asking]
    static let trust: Holders = [.tls, .resolving, .asking]
}

extension Key where Root == Settings.Group {
    /// The keys of `[upstreams.NAME]`.
    static var ofGroup: [Key] { keys(of: .named) }

    /// The keys that any of these sections takes, in the order in which they are shown.
    static func keys(of holders: Holders) -> [Key] {
        groupKeys.filter { !$0.holders.isDisjoint(with: holders) }
    }

    fileprivate init<Value: Equatable>(
        _ holders: Holders, _ name: String,
        _ property: @escaping @autoclosure @Sendable () -> any WritableKeyPath<Settings.Group, Value> & Sendable,
        _ kind: Kind<Value>
    ) {
        self.init(name, property(), kind)
        self.holders = holders
    }
}

extension Settings.Group {
    /// The kind of `[upstreams.NAME]`.
    var holder: Holders {
        switch kind {
        case .servers: .servers
        case .account: .account
        case .answer(let answer): answer.target == nil ? .answer : .alias
        }
    }
}

/// The keys of groups. Each key is listed once, for all sections that have the key.
private let groupKeys: [Key<Settings.Group>] = [
    Key([.fallback, .servers], "servers", \.servers, .servers)
        .about("in the order of preference; empty, in fallback alone = those of resolvConf"),
    Key([.privateNames], "servers", \.servers, .servers)
        .about(
            "left out = those of fallback that are plain and have private addresses, else resolvConf; empty = nobody"),
    Key(.answer, "answer", \.answer, .groupAnswer)
        .about("what it answers itself: \"nxdomain\" | \"nodata\" | \"refused\" | addresses"),
    Key(.alias, "alias", \.alias, .aliasTarget)
        .about("the name of which its names are aliases, for A, AAAA, HTTPS and SVCB"),
    Key(.named, "domains", \.domains, .list(of: .pattern)).about("names this group takes: x, *.x, ., \"\", 10.0.0.0/8"),
    Key(.named, "domainsFile", \.domainsFile, .paths)
        .about("files with more of them, one a line; with an answer also hosts files and filter lists; empty = none"),
    Key(.named, "except", \.except, .list(of: .pattern)).about("names it does not take"),
    Key(.accounts, "provider", \.accountKeys.provider, .choice)
        .about(Provider.allCases.map { quoted($0.rawValue) }.joined(separator: " | ")),
    Key(.accounts, "encryptType", \.accountKeys.encryptType, .choice.besideSecrets)
        .about("\"https\" | \"aes\" | \"des\"; not each provider has all"),
    Key(.accounts, "dnsId", \.accountKeys.dnsId, .number(0...UInt32.max).besideSecrets)
        .about("the account; Tencent's aes and des and all other providers need it"),
    Key(.accounts, "dnsKey", \.accountKeys.secrets.dnsKey.value, .secret("a string", showsLength: true))
        .about("its secret; Tencent's aes: 16 bytes, des: 8 bytes; or dnsKeyFile"),
    Key(.accounts, "dnsKeyFile", \.accountKeys.secrets.dnsKey.file, .optionalPath)
        .about("a file that holds the dnsKey"),
    Key(.accounts, "aesKey", \.accountKeys.secrets.aesKey.value, .secret("a string", showsLength: true))
        .about("alibaba's aes: 32 hexadecimal digits; or aesKeyFile"),
    Key(.accounts, "aesKeyFile", \.accountKeys.secrets.aesKey.file, .optionalPath)
        .about("a file that holds the aesKey"),
    Key(.accounts, "token", \.accountKeys.secrets.token.value, .secret("a string", showsLength: false))
        .about("Tencent's https needs it; or tokenFile"),
    Key(.accounts, "tokenFile", \.accountKeys.secrets.token.file, .optionalPath).about("a file that holds the token"),
    Key(.accounts, "dnsIp", \.accountKeys.dnsIp, .list(of: .server(example: "119.29.29.99"), atLeastOne: true))
        .about("service addresses in order"),
    Key(.accounts, "httpOnly", \.httpOnlyKey, .boolean)
        .about("true: no other group is asked, [fallback] neither; the same as an empty thenTry"),
    Key(.all, "thenTry", \.thenTry, .list(of: .groupName, atMost: Settings.maximumNext))
        .about("groups asked next, in order; empty = none"),
    Key(.all, "thenTryOn", \.thenTryOn, .reasons)
        .about("why: \"failure\" | \"norecord\" | \"refused\" | \"nxdomain\" | \"nodata\""),
    Key(.all, "timeout", \.timeout, .number(100...60_000, of: "milliseconds")).about("milliseconds for one attempt"),
    Key([.httpdns, .asking], "concurrency", \.concurrency, .number(1...1000, of: "requests"))
        .about("requests at once to one server"),
    Key(.resolving, "concurrency", \.concurrency, .number(0...1000, of: "requests"))
        .about("requests at once to one server; 0 = no limit for servers of plain DNS, 64 for others"),
    Key(.all, "from", \.egress.source, .optionalAddress).about("the address of its sockets; empty = by the routes"),
    Key(.all, "device", \.egress.device, .optionalDevice)
        .about("the network device its sockets are bound to; empty = by the routes"),
    Key(.all, "mark", \.egress.mark, .number(0...UInt32.max))
        .about("the firewall mark of its sockets, which needs CAP_NET_ADMIN; 0 = none"),
    Key(.all, "routeIp", \.routeIp, .optionalAddress)
        .about("ECS: the address whose answers are wanted; empty = no ECS"),
    Key(.accounts, "routeIpEncrypted", \.accountKeys.routeIpEncrypted, .boolean)
        .about("Tencent's documentation and its SDKs disagree"),
    Key(
        .accounts, "retryTimesBeforeSwitchServer", \.accountKeys.retryTimesBeforeSwitchServer,
        .number(1...100, of: "attempts")
    )
    .about("failed attempts in a row before the next of dnsIp"),
    Key(
        .accounts, "minutesBeforeSwitchToMain", \.accountKeys.minutesBeforeSwitchToMain,
        .number(1...1440, of: "minutes")
    )
    .about("minutes before the first of dnsIp is tried again"),
    Key(.accounts, "addressType", \.accountKeys.addressType, .choice)
        .about("\"auto\" | \"ipv4\" | \"ipv6\" | \"dual\"; auto looks for a route of each family"),
    Key(.accounts, "signed", \.accountKeys.signed, .choice)
        .about("for clients that validate: \"ask\" an encrypted group of thenTry | \"addresses\""),
    Key(.accounts, "serviceBinding", \.accountKeys.serviceBinding, .choice)
        .about(
            "HTTPS and SVCB of its names: \"auto\" = of an encrypted group of thenTry, with its addresses | \"none\""),
    Key(.all, "without", \.without, .list(of: .recordType))
        .about(
            "types it is not asked for, of which there is no record then, such as \"AAAA\", \"HTTPS\"; empty = none"),
    Key([.resolving, .servers], "bogusAddresses", \.bogusAddresses, .list(of: .network))
        .about("addresses and networks that a provider answers with in the place of NXDOMAIN; empty = none"),
    Key(.accounts, "batch", \.accountKeys.batch, .number(1...mostNames, of: "names"))
        .about("names in one request at most; 1 = no batching"),
    Key(.accounts, "queriesPerSecond", \.accountKeys.queriesPerSecond, .number(0...1_000_000, of: "names"))
        .about("the plan's limit; past it the next group is asked; 0 = none"),
    Key(.accounts, "authExpirySeconds", \.accountKeys.authExpirySeconds, .number(0...86_400, of: "seconds"))
        .about("seconds a request is valid; 0 = as the provider has it"),
    Key(.accounts, "confIp", \.accountKeys.confIp, .list(of: .server(example: "192.0.2.1")))
        .about("start-up servers for the service-address list; empty = off"),
    Key(.accounts, "proxy", \.accountKeys.proxy, .choice)
        .about("http(s)_proxy in the environment: \"bypass\" = ask those of thenTry instead | \"ignore\""),
    Key(.accounts, "appId", \.accountKeys.appId, .label).about("only named in reports"),
    Key(.accounts, "enableReport", \.accountKeys.enableReport, .boolean)
        .about("report abnormal lookups, to reportUrl or, without it, to the log"),
    Key(.accounts, "reportUrl", \.accountKeys.reportUrl, .optionalURL).about("where reports are sent; empty = the log"),
    Key(.accounts, "debug", \.accountKeys.debug, .boolean).about("log each lookup"),
    Key(.accounts, "trace", \.accountKeys.trace, .boolean)
        .about("send a random sid and log it with failures, for the provider's support; with \"alibaba\" alone"),
    Key([.resolving, .servers], "trustAD", \.trustAD, .boolean)
        .about("pass on the AD bit of servers that are not on loopback"),
    Key(.all, "share", \.share, .boolean).about("its answers go to the shared cache, and come from there"),
    Key([.tls, .account], "serverName", \.tls.serverName, .optionalServerName)
        .about(
            "certificate name to require, also SNI and Host; empty = the provider's, with Tencent the address dialled"),
    Key(.trust, "caFile", \.tls.caFile, .optionalFile).about("PEM or DER; empty = the system's store"),
    Key(.trust, "caOnly", \.tls.caOnly, .boolean).about("with caFile: trust that file alone"),
    Key(.trust, "pins", \.tls.pins, .list(of: .pin, atMost: 100))
        .about("public keys, one of which the verified chain must have; empty = any"),
    Key(.trust, "validateDomain", \.tls.validateDomain, .boolean)
        .about("false: check the chain, not the name; needs caFile"),
    Key(.trust, "clientCertificate", \.tls.clientCertificate, .optionalFile)
        .about("PKCS#12 for mutual TLS; empty = none"),
    Key(.trust, "clientCertificatePasswordFile", \.tls.clientCertificatePasswordFile, .optionalFile)
        .about("a file that holds its password"),
    Key(.trust, "whenClockUnset", \.tls.whenClockUnset, .choice)
        .about("\"accept\" | \"refuse\" certificates while the clock stands before this build was made"),
]

/// The largest limit of any provider.
private let mostNames = Provider.allCases.map(\.facts.namesPerRequest).max() ?? 1
