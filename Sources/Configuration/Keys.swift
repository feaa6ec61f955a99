extension Key where Root == Settings {
    /// All keys except those of groups.
    static var all: [Key] { sectionKeys }

    /// The key of this section and name; nil if no key has them, or if the key is a group's.
    static func named(_ id: KeyID) -> Key? { all.first { $0.id == id } }

    /// The key set by this environment variable; nil if the variable sets no key, or a group's key.
    static func variable(_ variable: String) -> Key? { all.first { $0.variable == variable } }
}

/// The keys of all sections, in the order in which they are shown.
private let sectionKeys: [Key<Settings>] = Array(
    [
        listenKeys.map { $0.of(\.listen, .listen) },
        Key<Settings.Group>.keys(of: .httpdns).map { $0.of(\.ownAccount, .httpdns) },
        Key<Settings.Group>.keys(of: .tls).map { $0.of(\.ownAccount, .tls) },
        domainKeys.map { $0.of(\.domains, .domains) },
        Array(fallbackKeys.prefix(1)),
        ownFallbackKeys.map { $0.of(\.fallback, .fallback) },
        Array(fallbackKeys.dropFirst()),
        Key<Settings.Group>.keys(of: .privateNames).map { $0.of(\.privateNames, .privateNames) },
        nat64Keys.map { $0.of(\.nat64, .nat64) },
        cacheKeys.map { $0.of(\.cache, .cache) },
        sharedCacheKeys.map { $0.of(\.sharedCache, .sharedCache) },
        controlKeys.map { $0.of(\.control, .control) },
        logKeys.map { $0.of(\.log, .log) },
    ].joined())

private let fallbackKeys = Key<Settings.Group>.keys(of: .fallback).map { $0.of(\Settings.fallback.group, .fallback) }

private let listenKeys: [Key<Settings.Listen>] = [
    Key(
        "addresses", \.addresses, .list(of: .listener, atLeastOne: true, atMost: Settings.Listen.maximumAddresses)
    )
    .about("UDP and TCP on each; sockets handed over by systemd replace these").effective(.atStart),
    Key("allow", \.allow, .list(of: .network)).about("who may ask; others get REFUSED over UDP, and no connection"),
    Key("workers", \.workers, .number(0...4)).about("listening queues; 0 = one a core, 4 at most").effective(.atStart),
    Key("tcpClients", \.tcpClients, .number(1...10_000)).about("TCP connections at once"),
    Key("tcpIdleSeconds", \.tcpIdleSeconds, .number(1...3600, of: "seconds")).about("RFC 7766 idle timeout"),
    Key("tls", \.tls, .list(of: .listener, atMost: Settings.Listen.maximumAddresses))
        .about("DNS over TLS on each (RFC 7858); empty = off").effective(.atStart),
    Key("https", \.https, .list(of: .listener, atMost: Settings.Listen.maximumAddresses))
        .about("DNS over HTTPS on each, at /dns-query (RFC 8484); empty = off").effective(.atStart),
    Key("certificateFile", \.certificateFile, .optionalFile)
        .about("PEM, the certificate that clients are shown, then those between it and its authority")
        .effective(.withCertificate),
    Key("keyFile", \.keyFile, .optionalFile).about("PEM, its private key").effective(.withCertificate),
    Key("name", \.name, .optionalName)
        .about("the name in the certificate; with it clients find tls and https by themselves (RFC 9462)"),
]

private let domainKeys: [Key<Settings.Domains>] = [
    Key("intercept", \.intercept, .list(of: .domain))
        .about("if not empty, only these and those under them go to HTTPDNS"),
    Key("interceptFile", \.interceptFile, .paths)
        .about("a file with more of them, one a line, or several; empty = none"),
    Key("bypass", \.bypass, .list(of: .domain)).about("these and those under them never do"),
    Key("bypassFile", \.bypassFile, .paths).about("a file with more of them, one a line, or several; empty = none"),
    Key("privateAddresses", \.privateAddresses, .choice)
        .about("\"refuse\": private, loopback and link-local addresses are taken out of answers"),
    Key("privateAllowed", \.privateAllowed, .list(of: .domain))
        .about("these and those under them may have them; so may those of bypass"),
]

private let ownFallbackKeys: [Key<Settings.Fallback>] = [
    Key("resolvConf", \.resolvConf, .list(of: .path))
        .about("the first of these that names a server other than this daemon is used"),
    Key("hedgeAfter", \.hedgeAfter, .number(0...60_000, of: "milliseconds"))
        .about("milliseconds HTTPDNS has before it is asked too; 0 = none"),
    Key("hosts", \.hosts, .paths).about("answered from this file, or from several, first; empty = off"),
]

private let nat64Keys: [Key<Settings.NAT64>] = [
    Key("prefix", \.prefix, .translatorPrefix)
        .about("by which this network leads to IPv4; \"auto\": as its resolvers say (RFC 7050); empty = off"),
    Key("synthesize", \.synthesize, .choice)
        .about("AAAA made of A for clients (RFC 6147); auto = while there is a prefix and no IPv4 route"),
]

private let cacheKeys: [Key<Settings.Cache>] = [
    Key("megabytes", \.megabytes, .number(1...65_536)).about("never more").effective(.atStart),
    Key("minTTL", \.minTTL, .number(0...604_800, of: "seconds"))
        .about("seconds an answer with records is kept at least"),
    Key("negativeMinTTL", \.negativeMinTTL, .number(0...604_800, of: "seconds"))
        .about("seconds an answer that there is no record is kept at least"),
    Key("maxTTL", \.maxTTL, .number(0...604_800, of: "seconds")).about("seconds an answer is kept at most"),
    Key("negativeTTL", \.negativeTTL, .number(0...604_800, of: "seconds"))
        .about("for \"no record\", when no SOA says otherwise"),
    Key("staleSeconds", \.staleSeconds, .number(0...604_800, of: "seconds"))
        .about("seconds expired answers are kept for when nothing else answers; 0 = off"),
    Key("staleTTL", \.staleTTL, .number(1...604_800, of: "seconds")).about("the TTL of such an answer"),
    Key("prefetchAt", \.prefetchAt, .number(0...99))
        .about("per cent of its TTL past which an entry asked for again is refreshed; 0 = off"),
    Key("keepAliveDomains", \.keepAliveDomains, .list(of: .hostname, atMost: 1000))
        .about("refreshed whether asked for or not"),
    Key("preResolve", \.preResolve, .list(of: .hostname, atMost: 1000)).about("looked up at start"),
    Key("rank", \.rank, .list(of: .ranked, atMost: 1000))
        .about(
            "NAME:PORT; the addresses of these and those under them are given in the order in which they answer there"),
    Key("file", \.file, .optionalPath).about("keeps the cache over a restart; empty = off").effective(.atStart),
]

private let sharedCacheKeys: [Key<Settings.SharedCache>] = [
    Key("server", \.server, .optionalStore).about("the store that the daemons of a fleet share; empty = off"),
    Key("user", \.user, .label).about("the user of its access list; empty = the default user"),
    Key("passwordFile", \.passwordFile, .optionalFile).about("a file that holds its password"),
    Key("keyFile", \.keyFile, .optionalFile).about("a file that holds the fleet's key, 32 octets or more"),
    Key("keyFileBefore", \.keyFileBefore, .optionalFile)
        .about("a file that holds the key of before, while keys change"),
    Key("caFile", \.caFile, .optionalFile).about("PEM or DER, trusted alone; empty = the system's store"),
]

private let controlKeys: [Key<Settings.Control>] = [
    Key("socket", \.socket, .optionalSocketPath)
        .about("where status and flush reach the daemon; empty = off").effective(.atStart),
    Key("host", \.host, .optionalName)
        .about("a name by which metrics and page may be asked for, beside addresses and localhost; empty = none")
        .effective(.atStart),
    Key("metrics", \.metrics, .optionalListener)
        .about("ADDRESS:PORT for /metrics, /healthz, /readyz and the status page; empty = off").effective(.atStart),
]

private let logKeys: [Key<Settings.Log>] = [
    Key("level", \.level, .choice).about("error | warning | notice | info | debug"),
    Key("format", \.format, .choice).about("auto | journal | text | json").effective(.atStart),
]
