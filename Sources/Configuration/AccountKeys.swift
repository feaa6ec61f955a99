import Base

extension Key where Root == Draft.Account {
    /// The keys of `[httpdns]`.
    static var ofHTTPDNS: [Key] { accountKeys }
    /// Those of them that a group with a `provider` has as well, beside the keys of every group.
    static var account: [Key] { groupAccountKeys }
}

private let groupAccountKeys = accountKeys.filter { !keysOfEveryGroup.contains($0.name) }

/// What every group has anyway.
private let keysOfEveryGroup: Set<String> = ["timeout", "concurrency", "routeIp", "thenTry", "thenTryOn", "share"]

private let accountKeys: [Key<Draft.Account>] = [
    Key(
        .httpdns, "provider", \.provider, .choice,
        Provider.allCases.map { quoted($0.rawValue) }.joined(separator: " | ")),
    Key(
        .httpdns, "encryptType", \.encryptType, .choice,
        "\"https\" | \"aes\" | \"des\"; not each provider has all"),
    Key(
        .httpdns, "dnsId", \.dnsId, .number(0...UInt32.max),
        "the account; Tencent's aes and des and all other providers need it"),
    Key(
        .httpdns, "dnsKey", \.secrets.dnsKey.value, .secret("a string", showsLength: true),
        "its secret; Tencent's aes: 16 bytes, des: 8 bytes; or dnsKeyFile"),
    Key(
        .httpdns, "dnsKeyFile", \.secrets.dnsKey.file, .optionalPath,
        "a file that holds the dnsKey"),
    Key(
        .httpdns, "aesKey", \.secrets.aesKey.value, .secret("a string", showsLength: true),
        "alibaba's aes: 32 hexadecimal digits; or aesKeyFile"),
    Key(
        .httpdns, "aesKeyFile", \.secrets.aesKey.file, .optionalPath,
        "a file that holds the aesKey"),
    Key(
        .httpdns, "token", \.secrets.token.value, .secret("a string", showsLength: false),
        "Tencent's https needs it; or tokenFile"),
    Key(
        .httpdns, "tokenFile", \.secrets.token.file, .optionalPath,
        "a file that holds the token"),
    Key(
        .httpdns, "dnsIp", \.dnsIp,
        .list(of: .server(defaultPort: 0, example: "119.29.29.99"), atLeastOne: true),
        "service addresses in order"),
    Key(
        .httpdns, "timeout", \.rest.timeout, .number(100...60_000, of: "milliseconds"),
        "milliseconds for one attempt"),
    Key(
        .httpdns, "concurrency", \.rest.concurrency, .number(1...1000, of: "requests"),
        "requests at once to one server"),
    Key(
        .httpdns, "routeIp", \.rest.routeIp, .optionalAddress,
        "ECS: the address whose answers are wanted"),
    Key(
        .httpdns, "routeIpEncrypted", \.rest.routeIpEncrypted, .boolean,
        "Tencent's documentation and its SDKs disagree"),
    Key(
        .httpdns, "httpOnly", \.httpOnly, .boolean,
        "true: never ask the local resolver, nor anybody else; the same as an empty thenTry"),
    Key(
        .httpdns, "thenTry", \.rest.thenTry, .list(of: .groupName),
        "groups asked next, in order; empty = httpOnly"),
    Key(
        .httpdns, "thenTryOn", \.rest.thenTryOn, .reasons,
        "why: \"failure\" | \"norecord\" | \"refused\" | \"nxdomain\" | \"nodata\""),
    Key(
        .httpdns, "retryTimesBeforeSwitchServer", \.rest.retryTimesBeforeSwitchServer,
        .number(1...100, of: "attempts"),
        "failed attempts in a row before the next of dnsIp"),
    Key(
        .httpdns, "minutesBeforeSwitchToMain", \.rest.minutesBeforeSwitchToMain,
        .number(1...1440, of: "minutes"),
        "minutes before the first of dnsIp is tried again"),
    Key(
        .httpdns, "addressType", \.rest.addressType, .choice,
        "\"auto\" | \"ipv4\" | \"ipv6\" | \"dual\"; auto looks for a route of each family"),
    Key(
        .httpdns, "signed", \.rest.signed, .choice,
        "for clients that validate: \"ask\" an encrypted group of thenTry | \"addresses\""),
    Key(
        .httpdns, "batch", \.rest.batch, .number(1...mostNames, of: "names"),
        "names in one request at most; 1 = no batching"),
    Key(
        .httpdns, "queriesPerSecond", \.rest.queriesPerSecond, .number(0...1_000_000, of: "names"),
        "the plan's limit; past it the next group is asked; 0 = none"),
    Key(
        .httpdns, "authExpirySeconds", \.rest.authExpirySeconds, .number(0...86_400, of: "seconds"),
        "seconds a request is valid; 0 = as the provider has it"),
    Key(
        .httpdns, "confIp", \.rest.confIp,
        .list(of: .server(defaultPort: 0, example: "192.0.2.1")),
        "start-up servers for the service-address list; empty = off"),
    Key(
        .httpdns, "proxy", \.rest.proxy, .choice,
        "http(s)_proxy in the environment: \"bypass\" = ask those of thenTry instead | \"ignore\""),
    Key(
        .httpdns, "appId", \.rest.appId, .label,
        "only named in reports"),
    Key(
        .httpdns, "enableReport", \.rest.enableReport, .boolean,
        "report abnormal lookups, to reportUrl or, without it, to the log"),
    Key(
        .httpdns, "reportUrl", \.rest.reportUrl, .optionalURL,
        "where reports are sent; empty = the log"),
    Key(
        .httpdns, "debug", \.rest.debug, .boolean,
        "log each lookup"),
    Key(
        .httpdns, "share", \.rest.share, .boolean,
        "its answers go to the shared cache, and come from there"),
]

/// The largest limit of any provider.
private let mostNames = Provider.allCases.map(\.facts.namesPerRequest).max() ?? 1
