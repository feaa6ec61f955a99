import Base
package import Forwarding

extension Overview {
    /// One group of upstreams, as those see it who look after the daemon.
    package struct Group: Sendable {
        private let overview: GroupOverview
        /// `encryptType` of an HTTPDNS account; nil for a group that is asked DNS messages.
        let encryption: String?

        package init(_ overview: GroupOverview, encryption: String? = nil) {
            (self.overview, self.encryption) = (overview, encryption)
        }

        var id: GroupID { overview.id }
        var name: String { overview.name }
        var servers: [ServerState] { overview.servers }
        var current: Server? { overview.current }
        var counters: GroupCounters { overview.counters }
        var thenTry: [GroupID] { overview.thenTry }
        var isOwn: Bool { id != .httpdns && id != .fallback }
        var isAccount: Bool { overview.carriesAddresses }
        /// Names of this group are put to nobody else.
        var isWall: Bool { id != .fallback && thenTry.isEmpty }

        /// None of its servers answers.
        var isFailing: Bool { !servers.isEmpty && servers.allSatisfy(\.isFailing) }

        /// The server that is asked now; of resolvers, as far as is known.
        var asked: ServerState? {
            if isAccount { return servers.first { $0.server == current } ?? servers.first }
            return servers.first { !$0.isFailing } ?? servers.first
        }

        /// Of an account: another server than the first is asked, which was given up.
        var isSwitched: Bool { isAccount && asked?.server != servers.first?.server }

        func isInUse(_ server: ServerState) -> Bool { server.server == current }

        /// Seconds until a server that is passed over is asked again, 0: with the next question; nil: it is asked as
        /// ever.
        func secondsUntilNextTry(_ server: ServerState, at now: Tick) -> Int? {
            overview.nextTry(of: server, at: now).map { max(0, ($0.milliseconds(since: now) + 999) / 1000) }
        }
    }
}

/// In words.
extension Overview.Group {
    /// Within a sentence, and at its beginning or alone.
    var title: String { overview.title }
    var heading: String { id == .fallback ? "Local resolver" : title }

    /// `kind` of a metric.
    var label: String {
        switch id {
        case .httpdns: "httpdns"
        case .fallback: "resolver"
        default: name
        }
    }

    /// A server without the port that everybody expects.
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

    /// How a server is asked, and what of it others on the path can read.
    func way(_ server: ServerState) -> String {
        switch server.server.kind {
        case .plain: "DNS over UDP and TCP, in the clear"
        case .tcp: "DNS over TCP, in the clear"
        case .tls: "DNS over TLS, encrypted"
        case .https: "DNS over HTTPS, encrypted"
        case .account:
            switch encryption {
            case "aes": "HTTPDNS by aes, encrypted but not proven"
            case "des": "HTTPDNS by des, weakly encrypted and not proven"
            default: "HTTPDNS by \(encryption ?? "https"), encrypted"
            }
        }
    }

    /// The same as one word, for programs.
    func scheme(_ server: ServerState) -> String {
        switch server.server.kind {
        case .plain: "plain"
        case .tcp: "tcp"
        case .tls: "tls"
        case .https: "https"
        case .account: "httpdns-\(encryption ?? "https")"
        }
    }
}

extension Overview {
    /// Who answers in the place of a group that fails; nil: nobody.
    func successor(of group: Group) -> Group? {
        group.thenTry.lazy.compactMap { id in groups.first { $0.id == id } }
            .first { !$0.servers.isEmpty && !$0.isFailing }
    }

    /// A group within a sentence.
    static func noun(_ group: Group) -> String { group.id == .fallback ? "the local resolver" : group.title }

    /// Who is asked after a group: `then the local resolver`. Empty for the local resolver, which is the last by
    /// nature.
    func order(of group: Group) -> String {
        if group.isWall { return "nobody else is asked" }
        let next = group.thenTry.compactMap { id in groups.first { $0.id == id } }.map(Self.noun)
        return next.isEmpty ? "" : "then \(next.joined(separator: ", "))"
    }
}

extension ServerState {
    /// Its last attempt failed.
    var isFailing: Bool { health.consecutiveFailures > 0 }
    /// It was asked at least once.
    var isKnown: Bool { health.answers + health.failures > 0 }

    func failedLately(at now: Tick) -> Bool {
        health.lastFailureAt.map { now.milliseconds(since: $0) < Self.lately } ?? false
    }

    private static let lately = 30_000
}
