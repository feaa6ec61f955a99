package import Base

/// The combined needs of the groups' settings.
extension Settings {
    /// The groups asked with DNS messages.
    package var messageGroups: [Group] { groups.filter { $0.account == nil && $0.answer == nil } }

    /// Whether names without a group may go to `[fallback]`. With `httpOnly` they may not: it allows only HTTPDNS.
    package var isFallbackAsked: Bool { !(httpdns?.httpOnly ?? false) }

    /// Whether `[fallback]` is asked for any name.
    package var isFallbackNeeded: Bool {
        isFallbackAsked || (upstreams + [privateNames]).contains { $0.thenTry.contains(Group.fallbackName) }
    }

    /// The servers for private names if `[private]` names none: with httpOnly, no server.
    var usualPrivateServers: [UpstreamServer] {
        if httpdns?.httpOnly ?? false { return [] }
        let own = fallback.servers.filter { $0 != .resolvConf && $0.isLocal }
        return own.isEmpty && !fallback.resolvConf.isEmpty ? [.resolvConf] : own
    }

    /// The files of names that decide where names go, and the other files of names, including the hosts file.
    package var namesAndHosts: (needed: [String], others: [String]) {
        let needed =
            domains.interceptFile + domains.bypassFile + upstreams.filter { $0.answer == nil }.flatMap(\.domainsFile)
        return (needed, upstreams.filter { $0.answer != nil }.flatMap(\.domainsFile) + fallback.hosts)
    }

    /// Whether a server's name has to be looked up before the server can be asked.
    package var isLookupNeeded: Bool { messageGroups.contains { !$0.named.isEmpty } }

    /// The servers of `resolvConf` as a separate group, which looks up the servers' names and the prefix of `[nat64]`.
    /// Nil if nothing is to be looked up. No group of the file can have this group's name.
    package var resolvers: Group? {
        guard isLookupNeeded || nat64.prefix == .auto else { return nil }
        var group = Group(name: "resolv.conf")
        group.egress = fallback.egress
        group.servers = [.resolvConf]
        return group
    }

    /// Whether the settings alone require the resolvers of `resolvConf`, without regard to the present network.
    package var isResolvConfNeeded: Bool {
        isFallbackNeeded && fallback.group.entries.contains(.resolvConf)
            || messageGroups.dropFirst().contains { $0.entries.contains(.resolvConf) } || isLookupNeeded
    }
}

extension Settings.Group {
    /// The entries of `servers`; `resolvConf` for an empty list in `[fallback]`.
    package var entries: [UpstreamServer] {
        servers.isEmpty && name == Self.fallbackName ? [.resolvConf] : servers
    }

    /// The group's servers whose host is a name without addresses.
    package var named: [Server] {
        servers.compactMap { if case .server(let server) = $0, server.endpoints.isEmpty { server } else { nil } }
    }

    /// Whether the group has encrypted servers, whose certificates are verified.
    package var isEncrypted: Bool {
        servers.contains { if case .server(let server) = $0 { server.isEncrypted } else { false } }
    }
}

extension UpstreamServer {
    /// Whether the server is of this network: `resolvConf`, or a plain server with only private or loopback addresses.
    var isLocal: Bool {
        guard case .server(let server) = self else { return true }
        return (server.kind == .plain || server.kind == .tcp) && server.isOfThisNetwork
    }
}
