extension Key where Root == Draft {
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

private let sectionKeys: [Key<Draft>] =
    [
        Key(
            .listen, "addresses", \.settings.listen.addresses,
            .list(of: .endpoint, atLeastOne: true, atMost: Settings.Listen.maximumAddresses),
            "UDP and TCP on each; sockets handed over by systemd replace these"),
        Key(
            .listen, "allow", \.settings.listen.allow, .list(of: .network),
            "who may ask; everyone else gets REFUSED"),
        Key(
            .listen, "workers", \.settings.listen.workers, .number(0...4),
            "listening queues; 0 = one a core, 4 at most"),
        Key(
            .listen, "tcpClients", \.settings.listen.tcpClients, .number(1...10_000),
            "TCP connections at once"),
        Key(
            .listen, "tcpIdleSeconds", \.settings.listen.tcpIdleSeconds, .number(1...3600, of: "seconds"),
            "RFC 7766 idle timeout"),
    ] + Key<Draft.Account>.ofHTTPDNS.map { $0.of(\.account, .httpdns) } + [
        Key(
            .tls, "serverName", \.settings.tls.serverName, .optionalServerName,
            "certificate name to require, also SNI and Host; empty = the provider's, with Tencent the address dialled")
    ] + Key<Settings.TLS>.trust.map { $0.of(\.settings.tls, .tls) } + [
        Key(
            .domains, "intercept", \.settings.domains.intercept, .list(of: .domain),
            "if not empty, only these and those under them go to HTTPDNS"),
        Key(
            .domains, "interceptFile", \.settings.domains.interceptFile, .optionalPath,
            "more of them, one a line; empty = none"),
        Key(
            .domains, "bypass", \.settings.domains.bypass, .list(of: .domain),
            "these and those under them never do"),
        Key(
            .domains, "bypassFile", \.settings.domains.bypassFile, .optionalPath,
            "more of them, one a line; empty = none"),
        Key(
            .domains, "privateAddresses", \.settings.domains.privateAddresses, .choice,
            "\"refuse\": private, loopback and link-local addresses are taken out of answers"),
        Key(
            .domains, "privateAllowed", \.settings.domains.privateAllowed, .list(of: .domain),
            "these and those under them may have them; so may those of bypass"),

        Key(
            .fallback, "servers", \.settings.fallback.group.servers, .servers,
            "empty = those of resolvConf"),
        Key(
            .fallback, "resolvConf", \.settings.fallback.resolvConf, .list(of: .path),
            "the first of these that names a server other than this daemon is used"),
        Key(
            .fallback, "hedgeAfter", \.settings.fallback.hedgeAfter, .number(0...60_000, of: "milliseconds"),
            "milliseconds HTTPDNS has before it is asked too; 0 = none"),
        Key(
            .fallback, "hosts", \.settings.fallback.hosts, .optionalPath,
            "answered from this file first; empty = off"),
    ] + Key<Settings.Group>.sharedWithFallback.map { $0.of(\.settings.fallback.group, .fallback) } + [
        Key(
            .cache, "megabytes", \.settings.cache.megabytes, .number(1...65_536),
            "never more"),
        Key(
            .cache, "minTTL", \.settings.cache.minTTL, .number(0...604_800, of: "seconds"),
            "seconds an answer is kept at least"),
        Key(
            .cache, "maxTTL", \.settings.cache.maxTTL, .number(0...604_800, of: "seconds"),
            "seconds an answer is kept at most"),
        Key(
            .cache, "negativeTTL", \.settings.cache.negativeTTL, .number(0...604_800, of: "seconds"),
            "for \"no record\", when no SOA says otherwise"),
        Key(
            .cache, "staleSeconds", \.settings.cache.staleSeconds, .number(0...604_800, of: "seconds"),
            "seconds expired answers are kept for when nothing else answers; 0 = off"),
        Key(
            .cache, "staleTTL", \.settings.cache.staleTTL, .number(1...604_800, of: "seconds"),
            "the TTL of such an answer"),
        Key(
            .cache, "prefetchAt", \.settings.cache.prefetchAt, .number(0...99),
            "per cent of its TTL past which an entry asked for again is refreshed; 0 = off"),
        Key(
            .cache, "keepAliveDomains", \.settings.cache.keepAliveDomains, .list(of: .hostname, atMost: 1000),
            "refreshed whether asked for or not"),
        Key(
            .cache, "preResolve", \.settings.cache.preResolve, .list(of: .hostname, atMost: 1000),
            "looked up at start"),
        Key(
            .cache, "rank", \.settings.cache.rank, .list(of: .ranked, atMost: 1000),
            "NAME:PORT; the addresses of these and those under them are given in the order in which they answer there"),
        Key(
            .cache, "file", \.settings.cache.file, .optionalPath,
            "keeps the cache over a restart; empty = off"),
    ] + Key<Settings.SharedCache>.ofSharedCache.map { $0.of(\.settings.sharedCache, .sharedCache) } + [
        Key(
            .control, "socket", \.settings.control.socket, .optionalSocketPath,
            "where status and flush reach the daemon; empty = off"),
        Key(
            .control, "host", \.settings.control.host, .optionalName,
            "a name by which metrics and page may be asked for, beside addresses and localhost; empty = none"),
        Key(
            .control, "metrics", \.settings.control.metrics, .optionalEndpoint,
            "ADDRESS:PORT for /metrics, /healthz, /readyz and the status page; empty = off"),

        Key(
            .log, "level", \.settings.log.level, .choice,
            "error | warning | notice | info | debug"),
        Key(
            .log, "format", \.settings.log.format, .choice,
            "auto | journal | text | json"),
    ]
