extension Key where Root == Settings.Group {
    /// The keys of `[upstreams.NAME]`.
    static var ofGroup: [Key] { groupKeys }
    /// Those of them that a group takes: an account has no servers of messages, and only an account has an account's
    /// keys.
    static func keys(of group: Settings.Group) -> [Key] {
        ofGroup.filter { group.account == nil ? !accountsOwn.contains($0.name) : !messagesOwn.contains($0.name) }
    }
    /// The keys that only an account has.
    static var accountsOwn: Set<String> { Set(Key<Draft.Account>.account.map(\.name) + ["serverName"]) }
    /// The keys that only a group has that is asked with messages.
    static var messagesOwn: Set<String> { ["servers", "trustAD"] }
    /// The keys of `[upstreams.NAME]` that `[fallback]` has as well.
    static var sharedWithFallback: [Key] {
        sharedKeys.map { $0.name == fallbackConcurrency.name ? fallbackConcurrency : $0 }
    }
}

extension Key where Root == Settings.TLS {
    /// The keys of `[tls]` that each group has as well.
    static var trust: [Key] { trustKeys }
}

private let groupKeys: [Key<Settings.Group>] =
    [
        Key(
            .upstreams, "servers", \.servers, .servers,
            "in the order of preference"),
        Key(
            .upstreams, "domains", \.domains, .list(of: .pattern),
            "names this group takes: x, *.x, ., \"\", 10.0.0.0/8"),
        Key(
            .upstreams, "domainsFile", \.domainsFile, .optionalPath,
            "more of them, one a line; empty = none"),
        Key(
            .upstreams, "except", \.except, .list(of: .pattern),
            "names it does not take"),
    ] + sharedKeys
    + Key<Draft.Account>.account.map { $0.of(\.given, .upstreams) } + [
        Key(
            .upstreams, "serverName", \.tls.serverName, .optionalServerName,
            "with a provider: certificate name to require, also SNI and Host; empty = the provider's own")
    ]

private let sharedKeys: [Key<Settings.Group>] =
    [
        Key(
            .upstreams, "thenTry", \.thenTry, .list(of: .groupName),
            "groups asked next, in order; empty = nobody"),
        Key(
            .upstreams, "thenTryOn", \.thenTryOn, .reasons,
            "why: \"failure\" | \"norecord\" (with a provider) | \"refused\" | \"nxdomain\" | \"nodata\""),
        Key(
            .upstreams, "timeout", \.timeout, .number(100...60_000, of: "milliseconds"),
            "milliseconds for one attempt"),
        Key(
            .upstreams, "concurrency", \.concurrency, .number(1...1000, of: "requests"),
            "requests at once to one server"),
        Key(
            .upstreams, "routeIp", \.routeIp, .optionalAddress,
            "ECS: the address whose answers are wanted; empty = no ECS"),
        Key(
            .upstreams, "trustAD", \.trustAD, .boolean,
            "pass on the AD bit of servers that are not on loopback"),
        Key(
            .upstreams, "share", \.share, .boolean,
            "its answers go to the shared cache, and come from there"),
    ] + trustKeys.map { $0.of(\.tls, .upstreams) }

private let fallbackConcurrency = Key<Settings.Group>(
    .upstreams, "concurrency", \.concurrency, .number(0...1000, of: "requests"),
    "requests at once to one server; 0 = no limit for servers of plain DNS, 64 for others")

private let trustKeys: [Key<Settings.TLS>] = [
    Key(
        .tls, "caFile", \.caFile, .optionalPath, holding: \Settings.TLS.caContents,
        "PEM or DER; empty = the system's store"),
    Key(
        .tls, "caOnly", \.caOnly, .boolean,
        "with caFile: trust that file alone"),
    Key(
        .tls, "pins", \.pins, .list(of: .pin, atMost: 100),
        "public keys, one of which the verified chain must have; empty = any"),
    Key(
        .tls, "validateDomain", \.validateDomain, .boolean,
        "false: check the chain, not the name; needs caFile"),
    Key(
        .tls, "clientCertificate", \.clientCertificate, .optionalPath, holding: \Settings.TLS.clientKey,
        "PKCS#12 for mutual TLS; empty = none"),
    Key(
        .tls, "clientCertificatePasswordFile", \.clientCertificatePasswordFile, .optionalPath,
        holding: \Settings.TLS.password,
        "a file that holds its password"),
    Key(
        .tls, "whenClockUnset", \.whenClockUnset, .choice,
        "\"accept\" | \"refuse\" certificates while the clock stands before this build was made"),
]
