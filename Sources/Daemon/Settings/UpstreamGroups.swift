import Base
import Configuration
import DNSWire
import Forwarding

/// A number for each group's name, which never means another name while the daemon runs, nor a group of the other kind
/// (account or messages): queries under way of one kind never reach the other.
struct GroupNumbers: Sendable {
    private var numbers: [String: (id: GroupID, isAccount: Bool)] = [:]
    private var next = GroupID.fallback.rawValue + 1

    init() {}

    /// Numbers for the groups of these settings.
    init(_ settings: Settings) { add(settings) }

    /// Assigns the next numbers to new names, and to groups that have changed their kind; all others retain theirs.
    mutating func add(_ settings: Settings) {
        for group in [settings.privateNames] + settings.upstreams + (settings.resolvers.map { [$0] } ?? []) {
            let isAccount = group.account != nil
            if let known = numbers[group.name], known.isAccount == isAccount { continue }
            numbers[group.name] = (GroupID(next), isAccount)
            next += 1
        }
    }

    /// - Precondition: Settings with this name were added. Another group instead would learn names that are not for it.
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
    ///   - services: The present servers of accounts.
    ///   - servers: Returns the present servers of any other group.
    init(
        _ settings: Settings, _ numbers: GroupNumbers, services: [GroupID: [Server]],
        servers: (Settings.Group) -> [Server]
    ) {
        (self.settings, self.numbers) = (settings, numbers)
        // The forwarder needs a first group; this one replaces it if there is none.
        if settings.httpdns == nil {
            groups = [UpstreamGroup(.httpdns, [], .addresses(namesPerRequest: 1), .lastThatAnswered, timeout: 0)]
        }
        for group in settings.groups {
            if let account = group.account {
                groups.append(self.account(group, account, services[numbers[group.name]] ?? []))
            } else {
                let isAsked = group.name != Settings.Group.fallbackName || settings.isFallbackNeeded
                groups.append(self.group(group, isAsked ? servers(group) : []))
            }
        }
        if let resolvers = settings.resolvers {
            var group = group(resolvers, servers(resolvers))
            group.choice = .lastThatAnswered
            groups.append(group)
        }
    }

    private func account(
        _ settings: Settings.Group, _ account: Settings.Account, _ servers: [Server]
    ) -> UpstreamGroup {
        var group = group(
            settings, servers, .addresses(namesPerRequest: account.batch),
            .inOrder(
                switchAfter: account.retryTimesBeforeSwitchServer,
                returnAfterMinutes: account.minutesBeforeSwitchToMain))
        group.namesPerSecond = account.queriesPerSecond
        group.leavesValidators = account.signed == .ask
        group.looksForBindings = account.serviceBinding == .auto
        group.isProven = account.credential.isHTTPS
        group.families = Families(account.addressType)
        return group
    }

    private func group(_ settings: Settings.Group, _ servers: [Server]) -> UpstreamGroup {
        var group = group(
            settings, servers, .messages,
            .inPreference(nextWithin: max(self.settings.fallback.hedgeAfter, Self.shortestHedge)))
        guard [Settings.Group.fallbackName, Settings.Group.privateName].contains(settings.name) else { return group }
        // Of plain resolvers the last that answered is asked first; encrypted resolvers are asked in the order of
        // preference.
        if servers.allSatisfy({ $0.kind == .plain }) {
            group.choice = .lastThatAnswered
        } else if settings.concurrency == 0 {
            group.concurrency = Settings.Group.usualConcurrency
        }
        return group
    }

    private func group(
        _ settings: Settings.Group, _ servers: [Server], _ carries: UpstreamGroup.Carries,
        _ choice: UpstreamGroup.Choice
    ) -> UpstreamGroup {
        var group = UpstreamGroup(numbers[settings.name], servers, carries, choice, timeout: settings.timeout)
        group.name = settings.name
        group.concurrency = settings.concurrency
        group.isShared = settings.share
        (group.trust, group.isOfNetwork) = (GroupIdentity(settings).trust, settings.entries.contains(.resolvConf))
        (group.answer, group.without) = (settings.answer, Set(settings.without))
        group.bogusAddresses = settings.bogusAddresses
        return group
    }

    /// The least milliseconds after which another server of a group is asked too.
    private static let shortestHedge = 250

    /// For each group, the groups that are asked for its names, in order.
    var routes: [GroupID: [Step]] {
        settings.groups.reduce(into: [:]) { routes, group in
            let isAsked =
                switch group.name {
                case Settings.Group.fallbackName: settings.isFallbackAsked
                case Settings.Group.privateName: !group.servers.isEmpty || !group.thenTry.isEmpty
                default: group.answer == nil
                }
            if isAsked {
                routes[numbers[group.name]] = route(group)
            }
        }
    }

    private func route(_ group: Settings.Group) -> [Step] {
        let ends = StepEnds(group.thenTryOn.map(\.end))
        let hedgeAfter = group.account == nil ? nil : settings.fallback.hedgeAfter
        let steps =
            [Step(numbers[group.name])]
            + group.thenTry.map { Step(numbers[$0], hedgeAfter: hedgeAfter, after: ends) }
        let bypassed = settings.accounts.filter(\.isBypassed).map { numbers[$0.name] }
        return bypassed.isEmpty ? steps : steps.filter { !bypassed.contains($0.group) }
    }
}

extension Settings.Group {
    /// The addresses of `dnsIp`, as servers; none while the account is bypassed.
    var services: [Server] { self.isBypassed ? [] : self.dnsIp.map { Server($0, .account) } }
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
