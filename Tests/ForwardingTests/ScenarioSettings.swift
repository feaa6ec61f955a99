import Base
import DNSCache
import DNSWire

@testable import Forwarding

/// The settings of a scenario: the daemon's defaults, one HTTPDNS server, one local resolver, no hedging.
struct ScenarioSettings {
    private var timing = Timing()
    private var upstreams = TestUpstreams()
    /// The number of replacements of a group's servers.
    private var lists: [GroupID: Int] = [:]
    private var staleSeconds: UInt32 = 86400
    private var prefetchAt: UInt32 = 0
    private var preResolve: [Name] = []
    private var keepAlive: [Name] = []
    private var hosts = ""
    private var ranked: [(Name, UInt16)] = []
    /// The present and earlier groups, by name.
    private var gone: [String: NamedGroup] = [:]

    /// The keys of `set`.
    enum Key: String, CaseIterable {
        case httpdns, httpOnly, signed, serviceBinding, resolversOnLoopback, refusePrivate, enableReport, shared
        case dnsIp, resolvers, timeout, resolverTimeout, hedgeAfter, batch, retryTimesBeforeSwitchServer
        case minutesBeforeSwitchToMain, minTTL, negativeMinTTL, maxTTL, negativeTTL, queriesPerSecond, staleTTL,
            staleSeconds,
            prefetchAt
        case encryptType, thenTry, intercept, bypass, privateAllowed, preResolve, keepAliveDomains, addressType, rank,
            without, resolversWithout
    }

    /// A line `set KEY VALUE`, `hosts ADDRESS NAME…` or `group …`: see ``NamedGroup``.
    mutating func read(_ words: [String]) -> Bool {
        if words[0] == "hosts" {
            hosts += words.dropFirst().joined(separator: " ") + "\n"
            return words.count > 2
        }
        if words[0] == "group" {
            guard words.count > 1 else { return false }
            let index = upstreams.named.firstIndex { $0.name == words[1] }
            if words.dropFirst(2) == ["none"] {
                if let index { upstreams.named.remove(at: index) }
                return index != nil
            }
            guard var group = NamedGroup(words.dropFirst()) else { return false }
            // As the daemon numbers groups: under one number a group stays of one kind.
            let former = index.map { upstreams.named[$0] } ?? gone[group.name]
            if let former { group.id = former.isAccount == group.isAccount ? former.id : former.id.ofOtherKind }
            gone[group.name] = group
            if let index { upstreams.named[index] = group } else { upstreams.named.append(group) }
            return true
        }
        guard words.count >= 3, let key = Key(rawValue: words[1]) else { return false }
        if key == .rank {
            let parts = words.dropFirst(2).filter { $0 != "none" }.map { $0.split(separator: ":") }
            ranked = parts.compactMap { part in
                guard part.count == 2, let name = Name(String(part[0])), let port = UInt16(part[1]) else { return nil }
                return (name, port)
            }
            return ranked.count == parts.count
        }
        if key == .without || key == .resolversWithout {
            let given = words.dropFirst(2).filter { $0 != "none" }
            let types = Set(given.compactMap { RecordType(parsing: $0) })
            if key == .without { upstreams.without = types } else { upstreams.resolversWithout = types }
            return types.count == given.count
        }
        if let flag = Bool(words[2]) { return read(key, flag) }
        if let number = Int(words[2]), number >= 0 { return read(key, number) }
        let names = words.dropFirst(2).compactMap { Name($0) }
        switch key {
        case .encryptType: upstreams.isProven = words[2] == "https"
        case .thenTry: upstreams.thenTry = Array(words.dropFirst(2))
        case .intercept: upstreams.intercept = names
        case .bypass: upstreams.bypass = names
        case .privateAllowed: upstreams.privateAllowed = names
        case .preResolve: preResolve = names
        case .keepAliveDomains: keepAlive = names
        case .addressType:
            guard let those = Families(scenario: words[2]) else { return false }
            upstreams.families = those
        default: return false
        }
        return names.count == words.count - 2
    }

    private mutating func read(_ key: Key, _ flag: Bool) -> Bool {
        switch key {
        case .httpdns: upstreams.hasService = flag
        case .httpOnly: upstreams.httpOnly = flag
        case .signed: upstreams.asksForSigned = flag
        case .serviceBinding: upstreams.looksForBindings = flag
        case .resolversOnLoopback: upstreams.resolvers = [Server(Endpoint("127.0.0.53:53")!)]
        case .refusePrivate: upstreams.privateAllowed = flag ? upstreams.privateAllowed ?? [] : nil
        case .enableReport: timing.reportsLookups = flag
        case .shared: upstreams.isShared = flag
        default: return false
        }
        return true
    }

    private mutating func read(_ key: Key, _ number: Int) -> Bool {
        switch key {
        case .dnsIp: upstreams.service = .scenario(number, list: 0)
        case .resolvers: upstreams.resolvers = .scenario(number, list: 0)
        case .timeout: upstreams.timeout = number
        case .resolverTimeout: upstreams.resolverTimeout = number
        case .hedgeAfter: upstreams.hedgeAfter = number
        case .batch: upstreams.batch = number
        case .retryTimesBeforeSwitchServer: upstreams.retryTimes = number
        case .minutesBeforeSwitchToMain: upstreams.returnMinutes = number
        case .minTTL: timing.minTTL = UInt32(number)
        case .negativeMinTTL: timing.negativeMinTTL = UInt32(number)
        case .maxTTL: timing.maxTTL = UInt32(number)
        case .negativeTTL: timing.negativeTTL = UInt32(number)
        case .queriesPerSecond: upstreams.queriesPerSecond = number
        case .staleTTL: timing.staleTTL = UInt32(number)
        case .staleSeconds: staleSeconds = UInt32(number)
        case .prefetchAt: prefetchAt = UInt32(number)
        default: return false
        }
        return true
    }

    func makeCache() -> DNSCache {
        DNSCache(bytes: 1 << 20, staleSeconds: staleSeconds, prefetchAt: prefetchAt, seed: (1, 2))
    }

    func start(_ forwarder: inout Forwarder, at now: Tick) {
        if upstreams.isShared {
            forwarder.change(
                .sharedCache(SharedSettings(staleSeconds: staleSeconds, prefetchAt: prefetchAt)), at: now)
            forwarder.handle(.connected, wall: 0, at: now)
            // Drops the dial, which scenarios do not mention.
            _ = forwarder.takeActions()
        }
        guard !preResolve.isEmpty || !keepAlive.isEmpty else { return }
        forwarder.change(.wanted(preResolve: preResolve, keepAlive: keepAlive), at: now)
    }

    func makeForwarder(_ cache: DNSCache) -> Forwarder {
        Forwarder(policy: policy, timing: timing, groups: upstreams.groups, cache: cache)
    }

    /// The present number of a group.
    func number(of name: String) -> GroupID? { upstreams.number(of: name) }

    /// Replaces the servers of a group, except the first ones that stay.
    mutating func replaceServers(of group: GroupID, _ count: Int, keeping kept: Int) -> [Server] {
        lists[group, default: 0] += 1
        let former = upstreams.groups.first { $0.id == group }?.servers ?? []
        let servers = Array(former.prefix(kept)) + [Server].scenario(count, list: lists[group]!).dropFirst(kept)
        switch group {
        case .httpdns: upstreams.service = servers
        case .fallback: upstreams.resolvers = servers
        default: upstreams.replaceServers(of: group, servers)
        }
        return servers
    }

    private var policy: Policy {
        var policy = upstreams.policy(timing.noRecordTTL, HostsTable(parsing: Array(hosts.utf8).span))
        policy.setFamilies([.httpdns: upstreams.families])
        policy.ranked = RankedNames(ranked)
        return policy
    }

    /// The hosts file holds these lines now: `ADDRESS NAME…`, separated by `and`, or `nothing`.
    mutating func replaceHosts(_ words: [String]) -> HostsTable? {
        let lines = words == ["nothing"] ? [] : words.split(separator: "and")
        guard !words.isEmpty, lines.allSatisfy({ $0.count > 1 && IPAddress($0.first!) != nil }) else { return nil }
        hosts = lines.map { $0.joined(separator: " ") + "\n" }.joined()
        return HostsTable(parsing: Array(hosts.utf8).span)
    }

    /// Another network for each word.
    mutating func replaceNetwork(_ word: String) -> UInt64 {
        upstreams.network = word.utf8.reduce(7) { $0 &* 31 &+ UInt64($1) }
        return upstreams.network
    }

    /// `KEY VALUE` at work, as a reload has it; `routeIp` and `trustAD` have no value of their own here.
    mutating func change(_ words: [String], _ forwarder: inout Forwarder, at now: Tick) -> Bool {
        guard
            ["routeIp", "trustAD"].contains(words[0]) || read(words[0] == "group" ? words : ["set"] + words)
        else { return false }
        if ["keepAliveDomains", "preResolve"].contains(words[0]) { start(&forwarder, at: now) }
        switch words[0] {
        case "routeIp": upstreams.trust += words[1]
        case "trustAD": upstreams.trustOfResolvers += words[1]
        default: break
        }
        let renewed: Set<GroupID> = ["routeIp", "dnsIp"].contains(words[0]) ? [.httpdns] : []
        forwarder.change(.settings(policy, timing, upstreams.groups, renewed: renewed), at: now)
        return true
    }
}
