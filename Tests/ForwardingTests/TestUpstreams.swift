import Base
import DNSWire

@testable import Forwarding

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
    var privateAllowed: [Name]?
    var intercept: [Name] = []
    var bypass = ["local", "lan", "home.arpa", "internal"].compactMap { Name($0) }

    /// Groups of the operator's own.
    var named: [NamedGroup] = []

    var groups: [UpstreamGroup] {
        var service = UpstreamGroup(
            .httpdns, hasService ? service : [], .addresses(namesPerRequest: batch),
            .inOrder(switchAfter: retryTimes, returnAfterMinutes: returnMinutes), timeout: timeout)
        service.namesPerSecond = queriesPerSecond
        service.isProven = isProven
        return [service, UpstreamGroup(.fallback, resolvers, .messages, .lastThatAnswered, timeout: resolverTimeout)]
            + named.map(\.group)
    }

    func policy(_ negativeTTL: UInt32 = 30, _ hosts: HostsTable = HostsTable()) -> Policy {
        let only = httpOnly && hasService
        var routes: [GroupID: [Step]] = [.fallback: only ? [] : [Step(.fallback)]]
        if hasService {
            routes[.httpdns] = [Step(.httpdns)] + (only ? [] : [Step(.fallback, hedgeAfter: hedgeAfter)])
        }
        for group in named { routes[group.id] = [Step(group.id)] + group.thenTry.map { Step($0, after: group.on) } }
        let rules = try! DomainRules(
            [
                (DomainList((hasService ? intercept : []).map { .subtree($0) }), .group(.httpdns)),
                (DomainList(bypass.map { .subtree($0) }), .group(.fallback)),
            ] + named.map { (DomainList($0.takes.map { .subtree($0) }), .group($0.id)) })
        return Policy(
            groups: groups, routes: routes, rules: rules,
            otherwise: hasService && intercept.isEmpty ? .httpdns : .fallback, negativeTTL: negativeTTL,
            privateAllowed: privateAllowed, hosts: hosts)
    }
}

/// A group of the operator's own that carries whole messages.
struct NamedGroup {
    var id: GroupID
    var servers: [Server]
    var takes: [Name] = []
    var thenTry: [GroupID] = []
    var on: StepEnds = .failure
    var concurrency = 64
    var timeout = 2000

    var group: UpstreamGroup {
        var group = UpstreamGroup(id, servers, .messages, .inPreference(nextWithin: 1000), timeout: timeout)
        (group.name, group.concurrency) = ("\(id)", concurrency)
        return group
    }

    /// `NAME SERVERS takes NAME… [thenTry GROUP…] [on END…] [concurrency N] [timeout N]`
    init?(_ words: ArraySlice<String>) {
        guard words.count > 3, let id = GroupID(scenario: words.first!), let count = Int(words.dropFirst().first!)
        else {
            return nil
        }
        (self.id, servers) = (id, .scenario(count, list: 0))
        var key = ""
        for word in words.dropFirst(2) {
            if ["takes", "thenTry", "on", "concurrency", "timeout"].contains(word) {
                key = word
                if key == "on" { on = [] }
                continue
            }
            guard read(key, word) else { return nil }
        }
    }

    private mutating func read(_ key: String, _ word: String) -> Bool {
        switch key {
        case "takes":
            guard let name = Name(word) else { return false }
            takes.append(name)
        case "thenTry":
            guard let group = GroupID(scenario: word) else { return false }
            thenTry.append(group)
        case "on":
            guard let end = StepEnds.words[word] else { return false }
            on.insert(end)
        case "concurrency":
            guard let number = Int(word) else { return false }
            concurrency = number
        case "timeout":
            guard let number = Int(word) else { return false }
            timeout = number
        default: return false
        }
        return true
    }
}

extension StepEnds {
    static let words: [String: StepEnds] = [
        "failure": .failure, "refused": .refused, "nxdomain": .nxDomain, "nodata": .noData, "norecord": .noRecord,
    ]
}
