package import Base

/// What the settings of groups together ask for.
extension Settings {
    /// The groups that are asked with DNS messages.
    package var messageGroups: [Group] { groups.filter { $0.account == nil && $0.answer == nil } }

    /// Whether names without a group may go to `[fallback]`: not with httpOnly, where only HTTPDNS is asked.
    package var isFallbackAsked: Bool { !(httpdns?.httpOnly ?? false) }

    /// Whether `[fallback]` is asked for any names.
    package var isFallbackNeeded: Bool {
        isFallbackAsked || upstreams.contains { $0.thenTry.contains(Group.fallbackName) }
    }

    /// Whom private names are asked of where `[private]` does not say it: nobody with httpOnly.
    var usualPrivateServers: [UpstreamServer] {
        if httpdns?.httpOnly ?? false { return [] }
        let own = fallback.servers.filter { $0 != .resolvConf && $0.isLocal }
        return own.isEmpty && !fallback.resolvConf.isEmpty ? [.resolvConf] : own
    }

    /// The files of names that say where names may go, and the other files of names, the hosts file among them.
    package var namesAndHosts: (needed: [String], others: [String]) {
        let needed =
            domains.interceptFile + domains.bypassFile + upstreams.filter { $0.answer == nil }.flatMap(\.domainsFile)
        return (needed, upstreams.filter { $0.answer != nil }.flatMap(\.domainsFile) + fallback.hosts)
    }

    /// Whether a server has to be looked up before it can be asked.
    package var isLookupNeeded: Bool { messageGroups.contains { !$0.named.isEmpty } }

    /// The resolvers of `resolvConf` as a group of their own, which is asked where servers are, and for the prefix of `[nat64]`; nil:
    /// nothing has to be looked up. No group of an operator's can have its name.
    package var resolvers: Group? {
        guard isLookupNeeded || nat64.prefix == .auto else { return nil }
        var group = Group(name: "resolv.conf")
        group.egress = fallback.egress
        group.servers = [.resolvConf]
        return group
    }

    /// Whether the resolvers of `resolvConf` are used, whatever the network is like.
    package var isResolvConfNeeded: Bool {
        isFallbackNeeded && fallback.group.entries.contains(.resolvConf)
            || messageGroups.dropFirst().contains { $0.entries.contains(.resolvConf) } || isLookupNeeded
    }
}

extension Settings.Group {
    /// The entries of `servers`; where there are none in `[fallback]`, `resolvConf`.
    package var entries: [UpstreamServer] {
        servers.isEmpty && name == Self.fallbackName ? [.resolvConf] : servers
    }

    /// Its servers whose host is a name without addresses.
    package var named: [Server] {
        servers.compactMap { if case .server(let server) = $0, server.endpoints.isEmpty { server } else { nil } }
    }

    /// Whether it has encrypted servers, whose certificates are verified.
    package var isEncrypted: Bool {
        servers.contains { if case .server(let server) = $0 { server.isEncrypted } else { false } }
    }
}

extension UpstreamServer {
    /// Whether it is this network's own: the servers of `resolvConf`, or one that is asked in the clear at private or loopback
    /// addresses alone.
    var isLocal: Bool {
        guard case .server(let server) = self else { return true }
        return (server.kind == .plain || server.kind == .tcp) && !server.endpoints.isEmpty
            && server.endpoints.allSatisfy(\.address.isPrivate)
    }
}
