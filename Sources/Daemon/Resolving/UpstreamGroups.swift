import Base
import Configuration
import Forwarding
import Transport

/// A number for each group's name, which never stands for another name while the daemon runs.
struct GroupNumbers: Sendable {
    private var numbers: [String: GroupID] = [:]

    /// Gives new names the next numbers; known names keep theirs.
    mutating func add(_ settings: Settings) {
        for group in settings.upstreams where numbers[group.name] == nil {
            numbers[group.name] = GroupID(GroupID.fallback.rawValue + 1 + numbers.count)
        }
    }

    /// - Precondition: settings with this name were added.
    subscript(name: String) -> GroupID {
        switch name {
        case Settings.Group.httpdnsName: .httpdns
        case Settings.Group.fallbackName: .fallback
        default: numbers[name] ?? .fallback
        }
    }
}

/// The groups and routes of the settings, in the forwarder's types.
struct UpstreamGroups {
    let settings: Settings
    let numbers: GroupNumbers

    /// - Parameters:
    ///   - services: the present servers of HTTPDNS.
    ///   - servers: gives the present servers of a group.
    func groups(services: [Server], servers: (Settings.Group) -> [Server]) -> [UpstreamGroup] {
        [account(services), fallback(servers)] + settings.upstreams.map { group($0, servers($0)) }
    }

    private func account(_ services: [Server]) -> UpstreamGroup {
        let httpdns = settings.httpdns
        var account = UpstreamGroup(
            .httpdns, httpdns == nil ? [] : services, .addresses(namesPerRequest: httpdns?.batch ?? 1),
            .inOrder(
                switchAfter: httpdns?.retryTimesBeforeSwitchServer ?? 1,
                returnAfterMinutes: httpdns?.minutesBeforeSwitchToMain ?? 0),
            timeout: httpdns?.timeout ?? 0)
        account.name = Settings.Group.httpdnsName
        account.namesPerSecond = httpdns?.queriesPerSecond ?? 0
        account.concurrency = httpdns?.concurrency ?? 0
        account.isProven = httpdns?.credential.isHTTPS ?? true
        return account
    }

    /// `[fallback]`: of plain resolvers the last that answered is asked first; encrypted ones are asked in the order of
    /// preference.
    private func fallback(_ servers: (Settings.Group) -> [Server]) -> UpstreamGroup {
        let settings = settings.fallback.group
        var fallback = group(settings, self.settings.isFallbackNeeded ? servers(settings) : [])
        if fallback.servers.allSatisfy({ $0.kind == .plain }) {
            fallback.choice = .lastThatAnswered
            // No limit, unless the operator has set another than the default.
            if settings.concurrency == Settings.Group(name: settings.name).concurrency { fallback.concurrency = 0 }
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
            routes[numbers[group.name]] = route(group.name, group.thenTry, group.thenTryOn, nil)
        }
        return routes
    }

    private func route(
        _ name: String, _ thenTry: [String], _ reasons: Set<Settings.Group.Reason>, _ hedgeAfter: Int?
    ) -> [Step] {
        let ends = StepEnds(reasons.map(\.end))
        return [Step(numbers[name])] + thenTry.map { Step(numbers[$0], hedgeAfter: hedgeAfter, after: ends) }
    }
}

extension Settings {
    /// The addresses of `dnsIp`, as servers of the account.
    var services: [Server] { (httpdns?.dnsIp ?? []).map { Server($0, .account) } }
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
