extension Key where Root == Settings {
    /// Every key except those of groups; a key that is in neither list is refused.
    static var all: [Key] { sectionKeys }

    /// The key with this section and name; nil if there is none.
    static func named(_ section: String, _ name: String) -> Key? {
        all.first { $0.section.rawValue == section && $0.name == name }
    }

    /// The key at this place; nil if there is none, or it is a group's.
    static func named(_ place: KeyPlace) -> Key? { named(place.section, place.name) }

    /// The key that this environment variable sets; nil if there is none, or it is a group's.
    static func variable(_ variable: String) -> Key? {
        all.first { $0.variable == variable }
    }
}

private let sectionKeys: [Key<Settings>] =
    [
        Key(
            .listen, "addresses", \.listen.addresses,
            .list(of: .listener, atLeastOne: true, atMost: Settings.Listen.maximumAddresses),
            "UDP and TCP on each; sockets handed over by systemd replace these"),
        Key(
            .listen, "allow", \.listen.allow, .list(of: .network),
            "who may ask; others get REFUSED over UDP, and no connection"),
        Key(
            .listen, "workers", \.listen.workers, .number(0...4),
            "listening queues; 0 = one a core, 4 at most"),
        Key(
            .listen, "tcpClients", \.listen.tcpClients, .number(1...10_000),
            "TCP connections at once"),
        Key(
            .listen, "tcpIdleSeconds", \.listen.tcpIdleSeconds, .number(1...3600, of: "seconds"),
            "RFC 7766 idle timeout"),
        Key(
            .listen, "tls", \.listen.tls, .list(of: .listener, atMost: Settings.Listen.maximumAddresses),
            "DNS over TLS on each (RFC 7858); empty = off"),
        Key(
            .listen, "https", \.listen.https, .list(of: .listener, atMost: Settings.Listen.maximumAddresses),
            "DNS over HTTPS on each, at /dns-query (RFC 8484); empty = off"),
        Key(
            .listen, "certificateFile", \.listen.certificateFile, .optionalPath,
            holding: \Settings.listen.certificateContents,
            "PEM, the certificate that clients are shown, then those between it and its authority"),
        Key(
            .listen, "keyFile", \.listen.keyFile, .optionalPath, holding: \Settings.listen.keyContents,
            "PEM, its private key"),
        Key(
            .listen, "name", \.listen.name, .optionalName,
            "the name in the certificate; with it clients find tls and https by themselves (RFC 9462)"),
    ] + accountKeys + tlsKeys + [
        Key(
            .domains, "intercept", \.domains.intercept, .list(of: .domain),
            "if not empty, only these and those under them go to HTTPDNS"),
        Key(
            .domains, "interceptFile", \.domains.interceptFile, .paths,
            "a file with more of them, one a line, or several; empty = none"),
        Key(
            .domains, "bypass", \.domains.bypass, .list(of: .domain),
            "these and those under them never do"),
        Key(
            .domains, "bypassFile", \.domains.bypassFile, .paths,
            "a file with more of them, one a line, or several; empty = none"),
        Key(
            .domains, "privateAddresses", \.domains.privateAddresses, .choice,
            "\"refuse\": private, loopback and link-local addresses are taken out of answers"),
        Key(
            .domains, "privateAllowed", \.domains.privateAllowed, .list(of: .domain),
            "these and those under them may have them; so may those of bypass"),
    ] + fallbackKeys.prefix(1) + [
        Key(
            .fallback, "resolvConf", \.fallback.resolvConf, .list(of: .path),
            "the first of these that names a server other than this daemon is used"),
        Key(
            .fallback, "hedgeAfter", \.fallback.hedgeAfter, .number(0...60_000, of: "milliseconds"),
            "milliseconds HTTPDNS has before it is asked too; 0 = none"),
        Key(
            .fallback, "hosts", \.fallback.hosts, .paths,
            "answered from this file, or from several, first; empty = off"),
    ] + keysAfterHosts + [
        Key(
            .nat64, "prefix", \.nat64.prefix, .translatorPrefix,
            "by which this network leads to IPv4; \"auto\": as its resolvers say (RFC 7050); empty = off"),
        Key(
            .nat64, "synthesize", \.nat64.synthesize, .choice,
            "AAAA made of A for clients (RFC 6147); auto = while there is a prefix and no IPv4 route"),
        Key(
            .cache, "megabytes", \.cache.megabytes, .number(1...65_536),
            "never more"),
        Key(
            .cache, "minTTL", \.cache.minTTL, .number(0...604_800, of: "seconds"),
            "seconds an answer with records is kept at least"),
        Key(
            .cache, "negativeMinTTL", \.cache.negativeMinTTL, .number(0...604_800, of: "seconds"),
            "seconds an answer that there is no record is kept at least"),
        Key(
            .cache, "maxTTL", \.cache.maxTTL, .number(0...604_800, of: "seconds"),
            "seconds an answer is kept at most"),
        Key(
            .cache, "negativeTTL", \.cache.negativeTTL, .number(0...604_800, of: "seconds"),
            "for \"no record\", when no SOA says otherwise"),
        Key(
            .cache, "staleSeconds", \.cache.staleSeconds, .number(0...604_800, of: "seconds"),
            "seconds expired answers are kept for when nothing else answers; 0 = off"),
        Key(
            .cache, "staleTTL", \.cache.staleTTL, .number(1...604_800, of: "seconds"),
            "the TTL of such an answer"),
        Key(
            .cache, "prefetchAt", \.cache.prefetchAt, .number(0...99),
            "per cent of its TTL past which an entry asked for again is refreshed; 0 = off"),
        Key(
            .cache, "keepAliveDomains", \.cache.keepAliveDomains, .list(of: .hostname, atMost: 1000),
            "refreshed whether asked for or not"),
        Key(
            .cache, "preResolve", \.cache.preResolve, .list(of: .hostname, atMost: 1000),
            "looked up at start"),
        Key(
            .cache, "rank", \.cache.rank, .list(of: .ranked, atMost: 1000),
            "NAME:PORT; the addresses of these and those under them are given in the order in which they answer there"),
        Key(
            .cache, "file", \.cache.file, .optionalPath,
            "keeps the cache over a restart; empty = off"),
    ] + Key<Settings.SharedCache>.ofSharedCache.map { $0.of(\.sharedCache, .sharedCache) } + [
        Key(
            .control, "socket", \.control.socket, .optionalSocketPath,
            "where status and flush reach the daemon; empty = off"),
        Key(
            .control, "host", \.control.host, .optionalName,
            "a name by which metrics and page may be asked for, beside addresses and localhost; empty = none"),
        Key(
            .control, "metrics", \.control.metrics, .optionalEndpoint,
            "ADDRESS:PORT for /metrics, /healthz, /readyz and the status page; empty = off"),

        Key(
            .log, "level", \.log.level, .choice,
            "error | warning | notice | info | debug"),
        Key(
            .log, "format", \.log.format, .choice,
            "auto | journal | text | json"),
    ]

private let accountKeys = Key<Settings.Group>.keys(of: .httpdns).map { $0.of(\Settings.ownAccount, .httpdns) }
private let tlsKeys = Key<Settings.Group>.keys(of: .tls).map { $0.of(\Settings.ownAccount, .tls) }
private let privateKeys = Key<Settings.Group>.keys(of: .privateNames).map {
    $0.of(\Settings.privateNames, .privateNames)
}
/// Those of `[fallback]` behind `hosts`, and those of `[private]`.
private let keysAfterHosts = fallbackKeys.dropFirst() + privateKeys
private let fallbackKeys = Key<Settings.Group>.keys(of: .fallback).map { $0.of(\Settings.fallback.group, .fallback) }
