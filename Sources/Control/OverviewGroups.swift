import Base
package import Configuration
package import Forwarding

extension Overview {
    /// One group of upstreams, as shown to operators.
    package struct Group: Sendable {
        private let overview: GroupOverview
        /// `encryptType` of an HTTPDNS account; nil for a group that is asked with DNS messages.
        let encryption: String?
        /// `provider` of one.
        let provider: String?

        package init(_ overview: GroupOverview, of account: Settings.HTTPDNS.Credential? = nil) {
            self.overview = overview
            (encryption, provider) = (account?.encryption.rawValue, account?.provider.rawValue)
        }

        var id: GroupID { overview.id }
        var name: String { overview.name }
        var servers: [ServerState] { overview.servers }
        var current: Server? { overview.current }
        var counters: GroupCounters { overview.counters }
        var thenTry: [GroupID] { overview.thenTry }
        var isOwn: Bool { id != .httpdns && id != .fallback }
        var isAccount: Bool { overview.carriesAddresses }
        /// Whether the names of this group are never sent to another group.
        var isWall: Bool { id != .fallback && thenTry.isEmpty }

        /// Whether none of its servers answers.
        var isFailing: Bool { !servers.isEmpty && servers.allSatisfy(\.isFailing) }

        /// The server that is asked now; for resolvers, as far as it is known.
        var asked: ServerState? {
            if isAccount { return servers.first { $0.server == current } ?? servers.first }
            return servers.first { !$0.isFailing } ?? servers.first
        }

        /// Whether an account uses another server than the first, which was given up.
        var isSwitched: Bool { isAccount && asked?.server != servers.first?.server }

        func isInUse(_ server: ServerState) -> Bool { server.server == current }

        /// Seconds until a server that is passed over is asked again, 0: with the next question; nil: it is not passed
        /// over.
        func secondsUntilNextTry(_ server: ServerState, at now: Tick) -> Int? {
            overview.nextTry(of: server, at: now).map { max(0, ($0.milliseconds(since: now) + 999) / 1000) }
        }
    }
}

/// Texts about a group.
extension Overview.Group {
    /// The group's name within a sentence, and at the beginning of one or alone.
    var title: String { overview.title }
    var heading: String { id == .fallback ? "Local resolver" : title }

    /// The label `kind` of a metric.
    var label: String {
        switch id {
        case .httpdns: "httpdns"
        case .fallback: "resolver"
        default: name
        }
    }

    /// The text of a server, without the port if that is the default.
    func brief(_ server: ServerState) -> String {
        let usualPort: UInt16 =
            switch server.server.kind {
            case .account: encryption == "https" ? 443 : 80
            default: 53
            }
        switch (server.server.kind, server.server.host) {
        case (.plain, .address(let address, nil)), (.account, .address(let address, nil)):
            return server.server.port == usualPort ? address.description : server.server.description
        default: return server.server.description
        }
    }

    /// How a server is asked, and what an observer on the path can read of it.
    func way(_ server: ServerState) -> String {
        guard server.server.kind == .account else {
            let clear = server.server.exposure == .loopback ? "in the clear on this machine" : "in the clear"
            return "\(server.server.kind.facts.title), \(server.server.isEncrypted ? "encrypted" : clear)"
        }
        return switch encryption {
        case "aes": "\(service) by aes, encrypted but not proven"
        case "des": "\(service) by des, weakly encrypted and not proven"
        default: "\(service) by \(encryption ?? "https"), encrypted"
        }
    }

    /// How questions go to the group's servers, all together: the most readable way counts. Nil without servers.
    var exposure: Exposure? { servers.map(\.server.exposure).max() }

    /// The same in words.
    var exposureText: String? {
        switch exposure {
        case nil, .some(.none): nil
        case .loopback: "on this machine"
        case .encrypted: "encrypted"
        case .clear: servers.contains { $0.server.exposure == .encrypted } ? "partly in the clear" : "in the clear"
        }
    }

    private var service: String {
        let other = provider.flatMap(Provider.init).flatMap { $0 == .tencent ? nil : $0 }
        return other.map { "HTTPDNS of \($0.facts.title)" } ?? "HTTPDNS"
    }

    /// How a server is asked as one word, for programs.
    func scheme(_ server: ServerState) -> String {
        let kind = server.server.kind
        return kind == .account ? "httpdns-\(encryption ?? "https")" : kind.facts.scheme ?? "plain"
    }
}

extension Overview {
    /// The group that answers when this one fails; nil: none.
    func successor(of group: Group) -> Group? {
        group.thenTry.lazy.compactMap { id in groups.first { $0.id == id } }
            .first { !$0.servers.isEmpty && !$0.isFailing }
    }

    /// The noun for a group within a sentence.
    static func noun(_ group: Group) -> String { group.id == .fallback ? "the local resolver" : group.title }

    /// Which group is asked next: `then the local resolver`. Empty for the local resolver, which is always the last.
    func order(of group: Group) -> String {
        if group.isWall { return "nobody else is asked" }
        let next = group.thenTry.compactMap { id in groups.first { $0.id == id } }.map(Self.noun)
        return next.isEmpty ? "" : "then \(next.joined(separator: ", "))"
    }
}

extension ServerState {
    /// Whether its last attempt failed.
    var isFailing: Bool { health.consecutiveFailures > 0 }
    /// Whether it was asked at least once.
    var isKnown: Bool { health.answers + health.failures > 0 }

    func failedLately(at now: Tick) -> Bool {
        health.lastFailureAt.map { now.milliseconds(since: $0) < Self.lately } ?? false
    }

    private static let lately = 30_000
}
