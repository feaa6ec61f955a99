import Base
import Configuration
import Forwarding

/// A number for each group's name, which never stands for another name while the daemon runs, nor for a group that is
/// asked in the other way, as an account or with messages: what is under way in one way is never put in the other.
struct GroupNumbers: Sendable {
    private var numbers: [String: (id: GroupID, isAccount: Bool)] = [:]
    private var next = GroupID.fallback.rawValue + 1

    init() {}

    /// Gives new names, and those of groups that have changed their kind, the next numbers; all others keep theirs.
    mutating func add(_ settings: Settings) {
        for group in settings.upstreams + (settings.resolvers.map { [$0] } ?? []) {
            let isAccount = group.account != nil
            if let known = numbers[group.name], known.isAccount == isAccount { continue }
            numbers[group.name] = (GroupID(next), isAccount)
            next += 1
        }
    }

    /// - Precondition: settings with this name were added. Another group in its place would be told names that are not for it.
    subscript(name: String) -> GroupID {
        switch name {
        case Settings.Group.httpdnsName: return .httpdns
        case Settings.Group.fallbackName: return .fallback
        default:
            guard let number = numbers[name] else { preconditionFailure("no group has this name") }
            return number.id
        }
    }
}

/// The groups and routes of the settings, in the forwarder's types.
struct UpstreamGroups {
    private(set) var groups: [UpstreamGroup] = []
    private let settings: Settings
    private let numbers: GroupNumbers

    /// - Parameters:
    ///   - services: the present servers of accounts.
    ///   - servers: gives the present servers of any other group.
    init(
        _ settings: Settings, _ numbers: GroupNumbers, services: [GroupID: [Server]],
        servers: (Settings.Group) -> [Server]
    ) {
        (self.settings, self.numbers) = (settings, numbers)
        func account(_ name: String, _ settings: Settings.HTTPDNS) -> UpstreamGroup {
            self.account(name, settings, services[numbers[name]] ?? [])
        }
        let httpdns =
            settings.httpdns.map { account(Settings.Group.httpdnsName, $0) }
            ?? UpstreamGroup(.httpdns, [], .addresses(namesPerRequest: 1), .lastThatAnswered, timeout: 0)
        groups = [httpdns, fallback(servers)]
        for group in settings.upstreams {
            groups.append(group.account.map { account(group.name, $0) } ?? self.group(group, servers(group)))
        }
        if let resolvers = settings.resolvers {
            var group = group(resolvers, servers(resolvers))
            group.choice = .lastThatAnswered
            groups.append(group)
        }
    }

    private func account(_ name: String, _ settings: Settings.HTTPDNS, _ servers: [Server]) -> UpstreamGroup {
        var account = UpstreamGroup(
            numbers[name], servers, .addresses(namesPerRequest: settings.batch),
            .inOrder(
                switchAfter: settings.retryTimesBeforeSwitchServer,
                returnAfterMinutes: settings.minutesBeforeSwitchToMain),
            timeout: settings.timeout)
        account.name = name
        account.namesPerSecond = settings.queriesPerSecond
        account.concurrency = settings.concurrency
        account.isShared = settings.share
        account.leavesValidators = settings.signed == .ask
        account.isProven = settings.credential.isHTTPS
        return account
    }

    /// `[fallback]`: of plain resolvers the last that answered is asked first; encrypted ones are asked in the order of
    /// preference.
    private func fallback(_ servers: (Settings.Group) -> [Server]) -> UpstreamGroup {
        let settings = settings.fallback.group
        var fallback = group(settings, self.settings.isFallbackNeeded ? servers(settings) : [])
        if fallback.servers.allSatisfy({ $0.kind == .plain }) {
            fallback.choice = .lastThatAnswered
        } else if settings.concurrency == 0 {
            fallback.concurrency = Settings.Group.usualConcurrency
        }
        return fallback
    }

    private func group(_ settings: Settings.Group, _ servers: [Server]) -> UpstreamGroup {
        var group = UpstreamGroup(
            numbers[settings.name], servers, .messages,
            .inPreference(nextWithin: max(self.settings.fallback.hedgeAfter, Self.shortestHedge)),
            timeout: settings.timeout)
        group.name = settings.name
        group.concurrency = settings.concurrency
        group.isShared = settings.share
        return group
    }

    /// The least milliseconds after which another server of a group is asked as well.
    private static let shortestHedge = 250

    /// For each group, the groups that are asked for its names, in order.
    var routes: [GroupID: [Step]] {
        var routes: [GroupID: [Step]] = [:]
        if let httpdns = settings.httpdns {
            routes[.httpdns] = route(
                Settings.Group.httpdnsName, httpdns.thenTry, httpdns.thenTryOn, settings.fallback.hedgeAfter)
        }
        for group in settings.upstreams + (settings.isFallbackAsked ? [settings.fallback.group] : []) {
            let hedgeAfter = group.account == nil ? nil : settings.fallback.hedgeAfter
            routes[numbers[group.name]] = route(group.name, group.thenTry, group.thenTryOn, hedgeAfter)
        }
        return routes
    }

    private func route(
        _ name: String, _ thenTry: [String], _ reasons: Set<Settings.Group.Reason>, _ hedgeAfter: Int?
    ) -> [Step] {
        let ends = StepEnds(reasons.map(\.end))
        let steps = [Step(numbers[name])] + thenTry.map { Step(numbers[$0], hedgeAfter: hedgeAfter, after: ends) }
        let bypassed = settings.accounts.filter(\.settings.isBypassed).map { numbers[$0.name] }
        return bypassed.isEmpty ? steps : steps.filter { !bypassed.contains($0.group) }
    }
}

extension Settings {
    /// The addresses of `dnsIp` of each account, as its servers.
    func services(_ numbers: GroupNumbers) -> [GroupID: [Server]] {
        accounts.reduce(into: [:]) { services, account in services[numbers[account.name]] = account.services }
    }
}

extension Settings.Account {
    /// The addresses of `dnsIp`, as servers; none while it is bypassed.
    var services: [Server] { settings.isBypassed ? [] : settings.dnsIp.map { Server($0, .account) } }
}

extension Settings.Group.Reason {
    fileprivate var end: StepEnds {
        switch self {
        case .failure: .failure
        case .refused: .refused
        case .nxdomain: .nxDomain
        case .nodata: .noData
        case .norecord: .noRecord
        }
    }
}
