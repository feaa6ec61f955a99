import Base
import DNSCache
import DNSWire
import Names

@testable import Forwarding

extension Forwarder {
    var actions: [Action] { desk.actions }

    /// Returns the actions to carry out, and empties the list.
    mutating func takeActions() -> [Action] {
        var taken: [Action] = []
        takeActions(into: &taken)
        return taken
    }
}

extension Outcome {
    /// The answer of a server that has one address for each name.
    static func success(_ ask: Ask, ttl: UInt32 = 60) -> Outcome {
        let addresses = [IPAddress.v4(1, 2, 3, 4)]
        switch ask {
        case .addresses(let names, _):
            return .addresses(
                names.map { NameAddresses(name: $0, ipv4: .addresses(addresses, ttl: ttl), ipv6: .noRecord) })
        case .message(let question): return .answer(.addresses(question.name, type: question.type, addresses, ttl: ttl))
        }
    }
}

/// An HTTPDNS account before local resolvers, as the daemon's settings have them.
struct TestUpstreams {
    var hasService = true
    var httpOnly = false
    var service = [Server].scenario(1, list: 0)
    var resolvers = [Server].scenario(1, list: 0)
    var timeout = 2000
    var resolverTimeout = 2000
    var hedgeAfter: Int?
    var batch = 8
    var queriesPerSecond = 0
    var retryTimes = 3
    var returnMinutes = 10
    var isProven = true
    var asksForSigned = false
    var looksForBindings = false
    var privateAllowed: [Name]?
    var intercept: [Name] = []
    var bypass: [Name] = []

    /// `without`: of the account, and of the local resolvers.
    var without: Set<RecordType> = [], resolversWithout: Set<RecordType> = []
    /// `addressType`.
    var families = Families.both
    /// See ``UpstreamGroup/trust``: of the account, and of the local resolvers.
    var trust = "", trustOfResolvers = ""
    /// See ``Policy/network``: of the local resolvers, and of those of the group `private`.
    var network: UInt64 = 0

    /// Whether the groups' answers are shared in the fleet's store.
    var isShared = false

    /// The groups that are asked after HTTPDNS, by their names.
    var thenTry = ["fallback"]

    /// Groups of the operator's own.
    var named: [NamedGroup] = []

    var groups: [UpstreamGroup] {
        var service = UpstreamGroup(
            .httpdns, hasService ? service.map { Server($0.endpoints[0], .account) } : [],
            .addresses(namesPerRequest: batch),
            .inOrder(switchAfter: retryTimes, returnAfterMinutes: returnMinutes), timeout: timeout)
        service.namesPerSecond = queriesPerSecond
        service.isProven = isProven
        (service.leavesValidators, service.looksForBindings) = (asksForSigned, looksForBindings)
        (service.families, service.trust) = (families, trust)
        var fallback = UpstreamGroup(.fallback, resolvers, .messages, .lastThatAnswered, timeout: resolverTimeout)
        (fallback.trust, fallback.isOfNetwork) = (trustOfResolvers, true)
        (service.without, fallback.without) = (without, resolversWithout)
        var groups = [service, fallback] + named.map(\.group)
        for index in groups.indices { groups[index].isShared = isShared }
        return groups
    }

    func forwarder(_ cache: DNSCache, _ timing: Timing = Timing(), _ hosts: HostsTable = HostsTable()) -> Forwarder {
        Forwarder(policy: policy(timing.noRecordTTL, hosts), timing: timing, groups: groups, cache: cache)
    }

    func policy(_ negativeTTL: UInt32 = 30, _ hosts: HostsTable = HostsTable()) -> Policy {
        let only = httpOnly && hasService
        var routes: [GroupID: [Step]] = [.fallback: only ? [] : [Step(.fallback)]]
        if hasService {
            routes[.httpdns] = [Step(.httpdns)] + steps(only ? [] : thenTry, hedgeAfter: hedgeAfter)
        }
        for group in named where group.answer == nil {
            routes[group.id] =
                [Step(group.id)]
                + steps(group.thenTry, hedgeAfter: group.isAccount ? hedgeAfter : nil, after: group.on)
        }
        let rules = try! DomainRules(
            [
                (DomainList((hasService ? intercept : []).map { .subtree($0) }), .group(.httpdns)),
                (DomainList(bypass.map { .subtree($0) }), .group(.fallback)),
            ] + named.map { (DomainList($0.takes.map { .subtree($0) }), .group($0.id)) })
        var policy = Policy(
            groups: groups, routes: routes, rules: rules,
            otherwise: hasService && intercept.isEmpty ? .httpdns : .fallback,
            privateNames: number(of: "private") ?? .fallback, negativeTTL: negativeTTL, privateAllowed: privateAllowed,
            hosts: hosts, network: network)
        if let resolvers = number(of: "resolvers") {
            policy.setServerNames(
                Dictionary(uniqueKeysWithValues: named.map { ($0.id, $0.called) }),
                resolvers: Step(resolvers, hedgeAfter: hedgeAfter))
        }
        return policy
    }

    /// The existing groups of these names.
    private func steps(
        _ names: [String], hedgeAfter: Int?, after ends: StepEnds = [.failure, .noRecord]
    ) -> [Step] {
        names.compactMap { number(of: $0) }.map { Step($0, hedgeAfter: hedgeAfter, after: ends) }
    }

    /// The present number of a group.
    func number(of name: String) -> GroupID? {
        switch name {
        case "httpdns": hasService ? .httpdns : nil
        case "fallback": .fallback
        default: named.first { $0.name == name }?.id
        }
    }

    mutating func replaceServers(of group: GroupID, _ servers: [Server]) {
        guard let index = named.firstIndex(where: { $0.id == group }) else { return }
        named[index].servers = servers
    }
}
