package import Base
import Configuration
import Counters
import Forwarding

/// The state of a server. Texts, JSON, page, metrics and `explain` all show this value.
enum Standing: String, Sendable {
    /// The server was never asked.
    case unknown
    /// The server's last attempt was answered.
    case answers
    /// The last attempt was answered, but other servers of the group are asked first: this server refused several
    /// questions in a row, or was given up for the next server.
    case setAside
    /// The server has asked for a pause.
    case paused
    /// The server's last attempt failed.
    case fails

    /// - Parameter isPassedOver: Whether other servers of the server's group are asked first.
    init(_ server: ServerState, isPassedOver: Bool, at now: Tick) {
        let health = server.health
        if health.isPaused(at: now) {
            self = .paused
        } else if health.consecutiveFailures > 0 {
            self = .fails
        } else if isPassedOver || server.isSetAside {
            self = .setAside
        } else {
            self = health.answers + health.failures > 0 ? .answers : .unknown
        }
    }

    /// Whether a question to the server is likely to fail now.
    var isFailing: Bool { self == .paused || self == .fails }
    /// Whether nothing speaks against the server so far.
    var isWell: Bool { self == .answers || self == .unknown }

    var words: String {
        switch self {
        case .unknown: "not asked yet"
        case .answers: "answers"
        case .setAside: "set aside"
        case .paused: "paused"
        case .fails: "fails"
        }
    }
}

/// The protocol of an HTTPDNS account.
package struct AccountWay: Sendable {
    let provider: Provider
    let encryption: Provider.Encryption

    package init(_ credential: Credential) {
        (provider, encryption) = (credential.provider, credential.encryption)
    }
}

/// The shown state of one server of a group.
package struct ServerView: Sendable {
    let server: Server
    let standing: Standing
    /// Whether the server is the first server of its group to be asked.
    let isInUse: Bool
    /// Seconds until the server is asked again, 0 with the next question; nil: the server is not passed over.
    let secondsUntilNextTry: Int?
    let last: LastFailure?
    let health: ServerHealth
    let figures: UpstreamTallies.Figures
    /// Seconds until the expiry of the certificate in the last handshake, negative after it; nil: there was no
    /// handshake.
    let certificateSeconds: Int64?
    /// The server's last hour, minute by minute, the newest last.
    let hour: [Hour.Answers]
    private let account: AccountWay?

    struct LastFailure: Sendable {
        let detail: String
        let kind: FallbackReason
        let secondsAgo: UInt64

        var text: String { "\(detail), \(Overview.span(secondsAgo)) ago" }
    }

    /// Seconds before a certificate's end from which an operator is warned. Most are renewed a month before their end.
    static let certificateIsNear: Int64 = 14 * 86_400
    /// The age in seconds from which a failure predicts little about the next attempt.
    private static let lately = 30

    fileprivate init(
        _ server: ServerState, of group: GroupOverview, _ account: AccountWay?,
        _ figures: UpstreamTallies.Figures, _ hour: [Hour.Answers], at now: Tick, wall: UInt64
    ) {
        (self.server, self.account, health) = (server.server, account, server.health)
        (self.figures, self.hour) = (figures, hour)
        isInUse = server.server == group.current
        secondsUntilNextTry = group.nextTry(of: server, at: now).map {
            max(0, ($0.milliseconds(since: now) + 999) / 1000)
        }
        standing = Standing(server, isPassedOver: secondsUntilNextTry != nil, at: now)
        last = server.health.lastFailure.map { failure in
            let milliseconds = server.health.lastFailureAt.map { now.milliseconds(since: $0) } ?? 0
            return LastFailure(
                detail: failure.detail, kind: FallbackReason(failure.kind) ?? .unreachable,
                secondsAgo: UInt64(max(0, milliseconds) / 1000))
        }
        certificateSeconds = figures.certificateEnd.map { Int64(clamping: $0) - Int64(clamping: wall) }
    }

    var isFailing: Bool { standing.isFailing }
    var failedLately: Bool { last.map { $0.secondsAgo < Self.lately } ?? false }
}

extension GroupOverview {
    /// The section of the group's settings.
    package var section: String { Settings.Group(name: self.name).section }
}

/// The shown state of one group of upstreams; the group's properties are members, too.
@dynamicMemberLookup
struct GroupView: Sendable {
    private let group: GroupOverview
    /// The protocol of an HTTPDNS account; nil for a group that is asked with DNS messages.
    let account: AccountWay?
    /// Names that were sent to an account in the last hour.
    let namesLastHour: UInt64?
    let servers: [ServerView]
    /// Servers that a file or key names but that are not asked.
    let leftOut: [LeftOutServer]

    init(
        _ group: GroupOverview, of account: AccountWay? = nil, leftOut: [LeftOutServer] = [],
        figures: [Server: UpstreamTallies.Figures] = [:], hour: Hour = Hour(minutes: []), at now: Tick, wall: UInt64 = 0
    ) {
        (self.group, self.account) = (group, account)
        (self.leftOut, namesLastHour) = (leftOut, hour.names[group.id])
        servers = group.servers.map { server in
            ServerView(
                server, of: group, account, figures[server.server] ?? UpstreamTallies.Figures(),
                hour.answers[Member(group: group.id, server: server.server)] ?? [], at: now, wall: wall)
        }
    }

    subscript<Value>(dynamicMember property: KeyPath<GroupOverview, Value>) -> Value { group[keyPath: property] }

    var isAccount: Bool { group.carriesAddresses }
    var isOwn: Bool { group.id != .httpdns && group.id != .fallback && !isForPrivateNames }
    /// Whether the group is that of `[private]`, whose state does not affect other names.
    var isForPrivateNames: Bool { group.name == Settings.Group.privateName }
    /// The kind of the group's servers for programs: `httpdns`, `dns` or `answer`.
    var kind: String { group.answer != nil ? "answer" : isAccount ? "httpdns" : "dns" }
    /// Whether the names of this group are never sent to another group.
    var isWall: Bool { group.id != .fallback && group.thenTry.isEmpty }
    /// Whether none of the group's servers answers.
    var isFailing: Bool { !servers.isEmpty && servers.allSatisfy(\.isFailing) }

    /// Whether all servers of the group answer, or were not asked yet.
    var isWell: Bool {
        (!servers.isEmpty || group.answer != nil)
            && servers.allSatisfy { $0.standing.isWell && $0.expiry == nil }
    }

    /// The server that is asked now. Of resolvers, the first that does not fail.
    var asked: ServerView? { servers.first { isAccount ? $0.isInUse : !$0.isFailing } ?? servers.first }

    /// Whether an account uses a server other than the first server, which was given up.
    var isSwitched: Bool { isAccount && asked?.server != servers.first?.server }

    /// The least protected way of questions to the group's servers; nil: there are no servers.
    var exposure: Exposure? { servers.map(\.server.exposure).max() }

    /// The exposure in words.
    var exposureText: String? {
        switch exposure {
        case nil, .some(.none): nil
        case .loopback: "on this machine"
        case .encrypted: "encrypted"
        case .clear: servers.contains { $0.server.exposure == .encrypted } ? "partly in the clear" : "in the clear"
        }
    }
}

/// A server in words.
extension ServerView {
    var address: String { server.description }

    /// The address without a default port.
    var brief: String {
        let usualPort: UInt16 = server.kind == .account ? encryption == .https ? 443 : 80 : 53
        guard server.kind == .plain || server.kind == .account, server.port == usualPort,
            case .address(let address, nil) = server.host
        else { return server.description }
        return address.description
    }

    /// The protocol, and whether an observer on the path can read the questions.
    var way: String {
        guard server.kind == .account else {
            let clear = server.exposure == .loopback ? "in the clear on this machine" : "in the clear"
            return "\(server.kind.facts.title), \(server.isEncrypted ? "encrypted" : clear)"
        }
        let provider = account.flatMap { $0.provider == .tencent ? nil : " of \($0.provider.facts.title)" } ?? ""
        let worth =
            switch encryption {
            case .aes: "encrypted but not proven"
            case .des: "weakly encrypted and not proven"
            default: "encrypted"
            }
        return "HTTPDNS\(provider) by \(encryption.rawValue), \(worth)"
    }

    /// The protocol as one word, for programs.
    var proto: String {
        server.kind == .account
            ? "httpdns-\(encryption.rawValue)" : server.kind.facts.scheme ?? "plain"
    }

    private var encryption: Provider.Encryption { account?.encryption ?? .https }

    /// The state, with the last failure and its time.
    var text: String {
        guard standing != .unknown else { return standing.words }
        var parts: [String] = []
        if isFailing {
            let times = health.consecutiveFailures > 0 ? " (\(health.consecutiveFailures) in a row)" : ""
            parts.append("\(standing.words)\(times): \(last?.text ?? "")")
        } else {
            let roundTrip = standing == .answers ? health.roundTrip : nil
            parts.append(standing.words + (roundTrip.map { " in \(Overview.milliseconds($0))" } ?? ""))
            parts += latest
            if let roundTrips { parts.append("\(roundTrips) in the last hour") }
            if let last { parts.append("last failure: \(last.text)") }
        }
        return (parts + [nextTry, expiry].compactMap(\.self)).joined(separator: "; ")
    }

    /// The durations of the server's latest answers, and the start of its connection.
    var latest: [String] {
        var parts: [String] = []
        if let half = figures.latest.milliseconds(ofShare: 0.5), let most = figures.latest.milliseconds(ofShare: 0.95) {
            parts.append(
                "lately half within \(Overview.milliseconds(half)), 95 % within \(Overview.milliseconds(most))")
        }
        if let isResumed = figures.isResumed { parts.append(isResumed ? "TLS session resumed" : "full TLS handshake") }
        return parts
    }

    /// The shortest and the longest round trip of a minute of the last hour: `12 ms to 95 ms`; nil: there is none.
    var roundTrips: String? {
        let means = hour.compactMap(\.mean)
        guard let least = means.min(), let most = means.max() else { return nil }
        let (first, last) = (Overview.milliseconds(least), Overview.milliseconds(most))
        return first == last ? first : "\(first) to \(last)"
    }

    /// The time at which the server is asked again; nil: the server is not passed over.
    var nextTry: String? {
        secondsUntilNextTry.map { seconds in
            seconds > 0 ? "next try in \(Overview.span(UInt64(seconds)))" : "next try with the next question"
        }
    }

    /// The expiry of the server's certificate, if that is near.
    var expiry: String? {
        guard let seconds = certificateSeconds, seconds < Self.certificateIsNear else { return nil }
        return seconds > 0
            ? "certificate expires in \(Overview.span(UInt64(seconds)))"
            : "certificate expired \(Overview.span(UInt64(-seconds))) ago"
    }
}
