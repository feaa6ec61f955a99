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

    var groups: [UpstreamGroup] {
        var service = UpstreamGroup(
            .httpdns, hasService ? service : [], .addresses(namesPerRequest: batch),
            .inOrder(switchAfter: retryTimes, returnAfterMinutes: returnMinutes), timeout: timeout)
        service.namesPerSecond = queriesPerSecond
        service.isProven = isProven
        return [service, UpstreamGroup(.fallback, resolvers, .messages, .lastThatAnswered, timeout: resolverTimeout)]
    }

    func policy(_ negativeTTL: UInt32 = 30, _ hosts: HostsTable = HostsTable()) -> Policy {
        let only = httpOnly && hasService
        return Policy(
            groups: groups,
            routes: [
                .httpdns: [Step(.httpdns)] + (only ? [] : [Step(.fallback, hedgeAfter: hedgeAfter)]),
                .fallback: only ? [] : [Step(.fallback)],
            ],
            rules: (hasService ? intercept.map { ($0, .httpdns) } : []) + bypass.map { ($0, .fallback) },
            otherwise: hasService && intercept.isEmpty ? .httpdns : .fallback, negativeTTL: negativeTTL,
            privateAllowed: privateAllowed, hosts: hosts)
    }
}
