import Base
import DNSWire

@testable import Forwarding

/// A group of the operator: an HTTPDNS account, or a group that carries whole messages.
struct NamedGroup {
    /// The group gets another ID under the same name when it changes its kind.
    var id: GroupID
    var servers: [Server]
    var isAccount = false
    var isProven = true
    /// Whether its servers come from the network.
    var isOfNetwork = false
    /// Whether its servers are asked over TLS.
    var isEncrypted = false
    var takes: [Name] = []
    /// The names of its servers that must be looked up.
    var called: [Name] = []
    var answer: GroupAnswer?
    var thenTry: [String] = []
    var on: StepEnds
    var concurrency: Int
    var timeout = 2000
    var namesPerSecond = 0
    var without: Set<RecordType> = []
    var bogus: [Network] = []

    var name: String { "\(id)" }

    var group: UpstreamGroup {
        var group =
            isAccount
            ? UpstreamGroup(
                id, servers, .addresses(namesPerRequest: 8), .inOrder(switchAfter: 3, returnAfterMinutes: 10),
                timeout: timeout)
            : UpstreamGroup(
                id, isEncrypted ? servers.map { Server($0.endpoints[0], .tls) } : servers, .messages,
                .inPreference(nextWithin: 1000), timeout: timeout)
        (group.name, group.concurrency, group.namesPerSecond) = (name, concurrency, namesPerSecond)
        (group.isProven, group.answer, group.isOfNetwork) = (isProven, answer, isOfNetwork)
        (group.without, group.bogusAddresses) = (without, bogus)
        group.trust = bogus.map(\.description).joined(separator: " ")
        return group
    }

    /// The keys that can follow a group's servers.
    enum Key: String, CaseIterable {
        case account, unproven, encrypted, ofNetwork, answers, takes, called, thenTry, on, concurrency, timeout,
            queriesPerSecond, without, bogus

        /// Whether it stands for itself, without a value.
        var isFlag: Bool { [.account, .unproven, .encrypted, .ofNetwork].contains(self) }
    }

    /// `NAME SERVERS [account] [unproven] [encrypted] [ofNetwork] [answers ANSWER…] [takes NAME…] [called NAME…]
    /// [thenTry GROUP…] [on END…] [concurrency N] [timeout N] [queriesPerSecond N] [without TYPE…] [bogus NETWORK…]`
    init?(_ words: ArraySlice<String>) {
        guard words.count > 1, let id = GroupID(scenario: words.first!), id.rawValue > GroupID.fallback.rawValue,
            let count = Int(words.dropFirst().first!)
        else { return nil }
        (self.id, servers) = (id, .scenario(count, list: 0))
        isAccount = words.contains(Key.account.rawValue)
        (on, concurrency) = isAccount ? ([.failure, .noRecord], 0) : (.failure, 64)
        var key: Key?
        for word in words.dropFirst(2) {
            if let next = Key(rawValue: word) {
                key = next.isFlag ? nil : next
                if next == .on { on = [] }
                if next == .unproven { isProven = false }
                if next == .encrypted { isEncrypted = true }
                if next == .ofNetwork { isOfNetwork = true }
                continue
            }
            guard let key, read(key, word) else { return nil }
        }
    }

    private mutating func read(_ key: Key, _ word: String) -> Bool {
        switch key {
        case .answers:
            let given =
                GroupAnswer.withoutAddresses.first { $0.description == word }
                ?? IPAddress(word).map { .addresses((answer?.addresses ?? []) + [$0]) }
                ?? Name(word).map { .alias($0) }
            guard let given else { return false }
            answer = given
        case .takes:
            guard let name = Name(word) else { return false }
            takes.append(name)
        case .called:
            guard let name = Name(word) else { return false }
            called.append(name)
        case .thenTry:
            guard GroupID(scenario: word) != nil else { return false }
            thenTry.append(word)
        case .on:
            guard let end = StepEnds.words[word] else { return false }
            on.insert(end)
        case .bogus:
            guard let network = Network(word) else { return false }
            bogus.append(network)
        case .without:
            guard let type = RecordType(parsing: word) else { return false }
            without.insert(type)
        case .concurrency, .timeout, .queriesPerSecond:
            guard let number = Int(word) else { return false }
            switch key {
            case .concurrency: concurrency = number
            case .timeout: timeout = number
            default: namesPerSecond = number
            }
        case .account, .unproven, .encrypted, .ofNetwork: return false
        }
        return true
    }
}

extension StepEnds {
    static let words: [String: StepEnds] = [
        "failure": .failure, "refused": .refused, "nxdomain": .nxDomain, "nodata": .noData, "norecord": .noRecord,
    ]
}
